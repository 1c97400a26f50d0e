#!/bin/bash
# `cohort tune`: that it measures the rows that take long, and saves a file that jobs go by, whatever
# the environment and the file that was there say.
. "$(dirname "$0")/common.sh"
unset COHORT_PROFILE XDG_CACHE_HOME

XDG_CACHE_HOME=$folder/cache run 0 tune
file=$(echo "$folder"/cache/cohort/profile-*)
[ -f "$file" ] || fail "no file was saved"
[ "$(ls "$folder/cache/cohort" | wc -l)" = 1 ] || fail "something lies beside the file"
says out "$file"
grep -qE '^end [0-9]+$' "$file" || fail "the file is not whole"
measured=line
[ "$(nproc)" -lt 2 ] || measured="call take"
for row in $measured; do
    grep -qE "^$row +[0-9]" "$folder/out" || fail "$row is not told"
    grep -qE "^row $row [0-9.e+-]+ tuned " "$file" || fail "$row is not saved"
done
COHORT_LOG=warn COHORT_PROFILE=$file "$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null ||
    fail "a job does not run with what was saved"
[ -s "$folder/err" ] && fail "a job complains about what was saved"

# The file is named before it is there. What a user forces on collectives is not measured: a job
# that looked at these two would refuse them.
export COHORT_PROFILE=$folder/new/folder/profile
COHORT_ALL_REDUCE=none COHORT_DETERMINISTIC=perhaps run 0 tune
grep -qE '^end ' "$COHORT_PROFILE" || fail "the file that was named is not there"

# One that is damaged is warned of, and made anew.
echo "line of nonsense" >"$COHORT_PROFILE"
"$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null || fail "a damaged file stops a job"
says err "line 1 of the profile $COHORT_PROFILE"
run 0 tune
"$cohort" run -n 2 "$2" >"$folder/out" 2>"$folder/err" </dev/null || fail "a job does not run"
[ -s "$folder/err" ] && fail "what was made anew is complained about"
unset COHORT_PROFILE

run 0 tune --dry-run --output "$folder/mine"
[ -e "$folder/mine" ] && fail "a dry run saved something"
run 1 tune --output /proc/nowhere/profile
says err "/proc/nowhere/profile"
run 2 tune now
says err "now"

# Between hosts: its rows are added, and the others stay.
run 2 tune --shell ssh
says err "--hosts"
if "$cohort" info | grep -q '^  tcp *yes'; then
    XDG_CACHE_HOME=$folder/cache run 0 tune --hosts pretend
    for row in message message_further message_byte $measured; do
        grep -qE "^row $row [0-9.e+-]+ tuned " "$file" || fail "$row is not in the file after --hosts"
    done
fi
echo "tune: passed"
