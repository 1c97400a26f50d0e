#!/bin/bash
# `cohort tune`: that it measures every constant, and saves a file that jobs can read, whatever the
# environment and the file that was there say.
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

# The file is named before it is there. What a user forces on collectives is not measured: a job
# that looked at these two would refuse them.
export COHORT_TUNING=$folder/new/folder/tuning
COHORT_ALL_REDUCE=none COHORT_DETERMINISTIC=perhaps run 0 tune
says new/folder/tuning "# Measured by cohort tune"

# One that is damaged stops every job, and is made anew.
echo "line of nonsense" >"$COHORT_TUNING"
"$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null && fail "a damaged file is taken"
says err "make the file anew with cohort tune"
run 0 tune
"$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null ||
    fail "a job does not read what was made anew"
unset COHORT_TUNING

run 0 tune --dry-run --output "$folder/mine"
[ -e "$folder/mine" ] && fail "a dry run saved something"
run 2 tune now
says err "now"
echo "tune: passed"
