#!/bin/bash
# `cohort run` and `cohort ps` with a program that uses the library: meet.c's, the second argument.
# Crashes and global exit: docs/faults.md F8 and F10.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}

run 0 run -n 4 "$meet"
[ ! -s "$folder/err" ] || fail "a job that ends well says something"
run 0 run "$meet"
"$meet" || fail "a program without a launcher"

# How rank 1 ends is the status, and the others' operation is in the table: the barrier that it does
# not come to, or the one before, which it was the first to leave.
run 134 run -n 3 --grace 20 "$meet" crash
says err "rank 1 of 3"
says err "was killed by signal 6"
grep -qE '^ +[02] .*(barrier #5[01]|outside Cohort).*exited with status 9' "$folder/err" \
    || fail "the table does not show the others"
run 1 run -n 3 --grace 20 "$meet" return
says err "rank 1 of 3"
says err "exited without finalize"
run 17 run -n 3 --grace 20 "$meet" global-exit
says err "asked for the end of the job, with status 17"
run 0 run -n 3 "$meet" global-exit-0
[ ! -s "$folder/err" ] || fail "a global exit with status 0 is no failure"

# The first to fail is named, not those that fail because of it.
for round in 1 2 3 4 5; do
    COHORT_FAULT=kill@barrier:20,rank=2 run 137 run -n 4 --grace 20 "$meet"
    says err "rank 2 of 4"
done

# A job that hangs can be looked at, and says where it was when it is ended.
"$cohort" run -n 3 "$meet" hang >"$folder/out" 2>"$folder/err" </dev/null &
launcher=$!
hung() {
    waiting=$("$cohort" ps | sed -n "/launcher $launcher,/,/^\$/p" \
        | grep -cE 'waiting +in barrier #51 .* rank 1$')
    [ "$waiting" = 2 ]
}
wait_for 10 hung || fail "cohort ps does not show two ranks that wait for rank 1: $("$cohort" ps)"
kill -INT "$launcher" 2>/dev/null
kill -TERM "$launcher"
wait "$launcher"
run 124 run -n 3 --timeout 5 "$meet" hang
# One that learns of rank 1's end before its own signal comes exits by itself.
[ "$(grep -cE 'ended +barrier #51 +[0-9.]+ m?s +rank 1 +(killed|exited with status 9; ended by cohort run)' \
    "$folder/err")" = 2 ] \
    || fail "the table of a hung job"
says err "cause: the job ran longer than --timeout, 5.0 s; 2 of 3 ranks waited for rank 1, outside Cohort"

# The others name the signal though the supervisor is late to tell it. How late is up to the
# scheduler, so one of several tries is enough.
hung_rank() {
    "$cohort" ps | sed -n "/launcher $launcher,/,/^\$/p" | awk '$1 == 1 { print $2 }'
}
late_word() {
    "$cohort" run -n 3 --grace 20 "$meet" hang >"$folder/out" 2>"$folder/err" </dev/null &
    launcher=$!
    wait_for 10 hung || fail "the ranks do not wait for rank 1"
    victim=$(hung_rank)
    supervisor=$(sed -n 's/.*) . \([0-9]*\) .*/\1/p' "/proc/$victim/stat")
    kill -STOP "$supervisor"
    kill -KILL "$victim"
    sleep 0.25
    kill -CONT "$supervisor"
    wait "$launcher"
    [ "$(grep -c '^barrier: .*rank 1 is lost: killed by signal 9' "$folder/err")" = 2 ]
}
rounds=5
until late_word; do
    rounds=$((rounds - 1))
    [ "$rounds" -gt 0 ] || fail "a late word of the supervisor is not waited for"
done

# One process of each rank, in an environment that is the launcher's.
run 9 run -n 2 sh -c '"$0"; "$0"' "$meet"
says err "one process of each rank may call coh_init"
run 9 run -n 2 sh -c 'COHORT_RANK=$((1 - COHORT_RANK)) exec "$0"' "$meet"
says err "but cohort run started this process as rank"
# alone TEXT VARIABLES...: without a launcher, that environment is refused.
alone() {
    text=$1
    shift
    env "$@" "$meet" 2>"$folder/err" 3</dev/null && fail "$* is taken"
    says err "$text"
}
alone "COHORT_SIZE is missing" COHORT_RANK=0
alone "COHORT_JOB_FD is missing" COHORT_RANK=0 COHORT_SIZE=2
alone "COHORT_RANK: '2' is not a whole number from 0 to 1" \
    COHORT_RANK=2 COHORT_SIZE=2 COHORT_JOB_FD=3
alone "descriptor 3 is not the socket" COHORT_RANK=0 COHORT_SIZE=2 COHORT_JOB_FD=3
alone "descriptor 977, which cohort run gave this rank, is closed" \
    COHORT_RANK=0 COHORT_SIZE=2 COHORT_JOB_FD=977
echo "run job: passed"
