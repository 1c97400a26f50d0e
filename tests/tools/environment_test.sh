#!/bin/bash
# What a rank says of the environment it finds: a misspelt variable, once for the job; another launcher's job.
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

# other STATUS VARIABLE...: how the program ends that is started with these, but not by cohort run.
other() {
    wanted=$1
    shift
    env "$@" "$meet" 2>"$folder/err"
    got=$?
    [ "$got" = "$wanted" ] || fail "with $*: status $got, expected $wanted"
}
other 9 OMPI_COMM_WORLD_SIZE=4 PMI_SIZE=4
says err "(OMPI_COMM_WORLD_SIZE=4, PMI_SIZE=4)"
says err "cohort run -n 4"
other 0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1
other 0 WORLD_SIZE=1
WORLD_SIZE=4 run 0 run -n 2 "$meet"
echo "environment: passed"
