#!/bin/bash
# What `cohort run` says when a job fails, and what `cohort ps` says of one that waits.
. "$(dirname "$0")/common.sh"
meet=$2

# last LINE: the last line of err matches.
last() {
    tail -n 1 "$folder/err" | grep -qE "$1" || fail "the last line does not match '$1'"
}

# The cause comes last, once, after the table; nobody in the table still runs.
run 134 run -n 4 "$meet" crash
last '^cohort run: cause: rank 1 of 4 on [^ ]+ \(process [0-9]+\) was killed by signal 6 \(Aborted\)$'
[ "$(grep -c 'cause:' "$folder/err")" = 1 ] || fail "the cause is not told once"
[ "$(tail -n 6 "$folder/err" | head -n 1 | awk '{print $1, $3}')" = "RANK STATE" ] || fail "the table is not before it"
grep -qE '^ +[0-9] +[0-9]+ +running ' "$folder/err" && fail "a rank that ended is shown as running"
[ "$(grep -cE '^ +1 +[0-9]+ +failed ' "$folder/err")" = 1 ] || fail "rank 1 is not shown as failed"
[ "$(grep -cE '^ +[023] +[0-9]+ +ended ' "$folder/err")" = 3 ] || fail "the others are not shown as ended"
grep -qE '^ +0 .* barrier #[0-9]+ ' "$folder/err" || fail "the table does not say what rank 0 was in"

[ "$(grep -c '^barrier: rank [0-9]: coh_barrier: rank 1 is lost' "$folder/err")" = 3 ] || fail "lines of the program"

# Of the ranks whose library says the same one is heard, and the others are named; all of them with tags.
same='[ "$COHORT_RANK" = 0 ] || sleep 0.1
    echo "cohort: error: rank $COHORT_RANK: rank 7 is lost: gone" >&2; echo "rank $COHORT_RANK" >&2'
run 0 run -n 4 sh -c "$same"
[ "$(grep -v '^rank ' "$folder/err")" = "cohort: error: rank 0: rank 7 is lost: gone
cohort: error: ranks 1-3: the same, rank 7 is lost: gone" ] || fail "lines that many ranks write alike"
[ "$(grep -c '^rank [0-3]$' "$folder/err")" = 4 ] || fail "lines beside them"
run 0 run -n 9 sh -c "case \$COHORT_RANK in 2 | 7) exit ;; esac; $same"
says err "cohort: error: ranks 1, 3-6 and 8: the same, rank 7 is lost: gone"
run 0 run -n 2 sh -c "$same"
[ "$(grep -c '^cohort: error: rank [01]: rank 7 is lost: gone$' "$folder/err")" = 2 ] || fail "two lines"
run 0 run -n 4 --tag-output sh -c "$same"
[ "$(grep -c '^\[[0-3]\] cohort: error: rank [0-3]: rank 7 is lost' "$folder/err")" = 4 ] || fail "tagged lines"
# A line of a program that only looks alike is not left out: it speaks for another rank.
run 3 run -n 3 sh -c 'echo "cohort: error: rank 9: all is lost" >&2; exit 3'
[ "$(grep -c 'rank 9: all is lost' "$folder/err")" = 3 ] || fail "a line of the program was left out"

# A rank that gives up after a call that failed: the call, and what it said.
run 9 run -n 2 "$meet" mistake
last '^cohort run: cause: rank 1 of 2 on .* exited with status 9; UNKNOWN_RANK: coh_put: there is no rank 99; '

run 9 run -n 2 --env COHORT_ENGINE=threads "$meet"
last '^cohort run: cause: rank [01] of 2 on .* exited with status 9; [A-Z_]+: coh_init: [^ ]'

# One that is killed inside a call; one that was ended by the launcher, with what it waited for.
COHORT_FAULT=kill@barrier:3,rank=1 run 137 run -n 2 "$meet"
last '^cohort run: cause: rank 1 of 2 on .* was killed by signal 9 \(Killed\), in barrier #[0-9]+$'
run 124 run -n 2 --timeout 1.5 "$meet" await
last '^cohort run: cause: the job ran longer than --timeout, 1.5 s; 1 of 2 ranks waited for rank 0, outside Cohort$'
grep -qE '^ +1 +[0-9]+ +ended +wait .* rank 0: u64 >= 3, is 2, offset [0-9]+ +' "$folder/err" \
    || fail "the table does not say what rank 1 waited for"

# The same while it waits.
"$cohort" run -n 2 "$meet" await >/dev/null 2>&1 </dev/null &
launcher=$!
shown() {
    "$cohort" ps >"$folder/out" && grep -A4 "launcher $launcher," "$folder/out" \
        | grep -qE '^ +1 +[0-9]+ +waiting +in wait +.* rank 0: u64 >= 3, is 2, offset [0-9]+$'
}
wait_for 10 shown || fail "cohort ps does not say what rank 1 waits for"
run 0 ps --json
says out '"awaits": "rank 0: u64 >= 3, is 2, offset '
kill -TERM "$launcher"
wait "$launcher"
echo "run cause: passed"
