#!/bin/bash
# What a rank says of the environment it finds: a misspelt variable, once for the job.
. "$(dirname "$0")/common.sh"
meet=${2:?the path of tools-meet}

COHORT_HEEP=1G run 0 run -n 3 "$meet"
says err "COHORT_HEEP is set, but nothing reads it; did you mean COHORT_HEAP"
[ "$(grep -c COHORT_HEEP "$folder/err")" = 1 ] || fail "the warning came more than once"
run 0 run -n 2 --env COHORT_STAL=3 "$meet"
says err "did you mean COHORT_STALL"
COHORT_HEAP=64M COHORT_TEST_SEED=1 run 0 run -n 2 "$meet"
[ ! -s "$folder/err" ] || fail "there was something to say of right variables"
COHORT_HEEP=1G "$meet" 2>"$folder/err" || fail "a misspelt variable is an error"
[ ! -s "$folder/err" ] || fail "the library printed without having been asked to"
echo "environment: passed"
