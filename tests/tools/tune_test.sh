#!/bin/bash
# `cohort tune`: that it measures every constant, and saves a file that jobs can read.
. "$(dirname "$0")/common.sh"
unset COHORT_TUNING XDG_CONFIG_HOME

if [ "$(nproc)" -lt 2 ]; then
    run 1 tune --dry-run
    says err "two cores"
    echo "tune: passed, on one core"
    exit 0
fi

XDG_CONFIG_HOME=$folder/config run 0 tune
for constant in line call take copy stream reduce reduce_stream cache message message_byte; do
    grep -qE "^$constant +[0-9]" "$folder/out" || fail "$constant is not told"
    grep -qE "^$constant [0-9.e+-]+$" "$folder/config/cohort/tuning" ||
        fail "$constant is not saved"
done
says out "$folder/config/cohort/tuning"
says config/cohort/tuning "# Measured by cohort tune"
[ "$(ls "$folder/config/cohort")" = tuning ] || fail "something lies beside the file"
COHORT_TUNING=$folder/config/cohort/tuning \
    "$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null ||
    fail "a job does not read what was saved"

run 0 tune --dry-run --output "$folder/mine"
[ -e "$folder/mine" ] && fail "a dry run saved something"
run 2 tune now
says err "now"
echo "tune: passed"
