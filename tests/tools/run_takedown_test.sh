#!/bin/bash
# Nothing outlives a job, however it ends: docs/faults.md F9.
. "$(dirname "$0")/common.sh"

# A rank with the descendants that are hardest to find: in the background, in a session of its
# own, and forked twice. Each writes its process id.
cat >"$folder/tree.sh" <<'END'
echo $$ >>"$PIDS"
sh -c 'echo $$ >>"$PIDS"; exec sleep 100' &
setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 100' </dev/null >/dev/null 2>&1 &
(setsid sh -c 'trap "" HUP TERM INT; echo $$ >>"$PIDS"; sleep 100; :' </dev/null >/dev/null 2>&1 & )
case $1 in
    stay) while :; do sleep 0.1; done ;;
    leave) while [ "$(wc -l <"$PIDS")" -lt $((4 * COHORT_SIZE)) ]; do sleep 0.02; done; exit 0 ;;
    fail) while [ "$(wc -l <"$PIDS")" -lt $((4 * COHORT_SIZE)) ]; do sleep 0.02; done; exit 4 ;;
esac
END
export PIDS="$folder/pids"

# start: the job in the background; its launcher is $launcher, and all processes have written.
start() {
    : >"$PIDS"
    "$cohort" run -n 3 sh "$folder/tree.sh" stay >"$folder/out" 2>"$folder/err" </dev/null &
    launcher=$!
    wait_for 10 lines "$PIDS" 12 || fail "the job did not start: $(wc -l <"$PIDS") of 12"
}

for round in 1 2 3; do
    start
    kill -KILL "$launcher"
    wait "$launcher" 2>/dev/null
    wait_for 10 all_dead "$PIDS" || fail "round $round: processes outlive a killed launcher"
done

# The whole process group killed at once, as a shell kills a job.
: >"$PIDS"
setsid "$cohort" run -n 3 sh "$folder/tree.sh" stay >/dev/null 2>&1 </dev/null &
wait_for 10 lines "$PIDS" 12 || fail "the job did not start"
group=$(sed -n 's/.*) . [0-9]* \([0-9]*\) .*/\1/p' "/proc/$(head -n 1 "$PIDS")/stat")
kill -KILL -- "-$group"
wait 2>/dev/null
wait_for 10 all_dead "$PIDS" || fail "processes outlive their killed process group"

# All processes of one name, or of two of the three, killed at once, as `killall -9` and `pkill -9 -f`
# do it, only that this looks at no other job. They are stopped first, so that none of them has the
# time to do something about another's end.
children() {
    for parent in "$@"; do
        cat "/proc/$parent/task/$parent/children" 2>/dev/null
    done
}
named() {
    # shellcheck disable=SC2046
    for pid in "$launcher" $(children "$launcher") $(children $(children "$launcher")); do
        tr '\0' ' ' <"/proc/$pid/cmdline" | cat "/proc/$pid/comm" - | grep -qE "$1" && echo "$pid"
    done
}
for names in cohort rank-supervisor job-guard \
    'cohort|rank-supervisor' 'cohort|job-guard' 'rank-supervisor|job-guard'; do
    start
    targets=$(named "$names")
    [ "$(echo "$targets" | wc -w)" -ge "$(echo "$names" | tr '|' ' ' | wc -w)" ] \
        || fail "not all of $names are there: $targets"
    # shellcheck disable=SC2086
    kill -STOP $targets && kill -KILL $targets
    wait "$launcher" 2>/dev/null
    [ $? = 137 ] || fail "the status when $names are killed"
    wait_for 10 all_dead "$PIDS" || fail "processes outlive all that is named $names"
done

# A supervisor killed: the guard takes its rank's processes down, and the job fails.
start
rank_pid=$(sed -n 1p "$PIDS")
supervisor=$(sed -n 's/.*) . \([0-9]*\) .*/\1/p' "/proc/$rank_pid/stat")
kill -KILL "$supervisor"
wait "$launcher"
[ $? = 137 ] || fail "the status when a supervisor is killed"
all_dead "$PIDS" || fail "processes outlive a killed supervisor"
says err "the supervisor of rank"

# The guard killed: the supervisors take everything down, and the launcher says why.
start
kill -KILL "$(children "$launcher")"
wait "$launcher"
[ $? = 137 ] || fail "the status when the guard is killed"
all_dead "$PIDS" || fail "processes outlive a killed guard"
says err "the guard of the job"
says err "killed by signal 9"

# A normal end and a failure take the descendants along, before cohort run returns.
: >"$PIDS"
run 0 run -n 3 sh "$folder/tree.sh" leave
lines "$PIDS" 12 || fail "the job did not start all processes"
all_dead "$PIDS" || fail "descendants outlive their ranks"
: >"$PIDS"
run 4 run -n 3 sh "$folder/tree.sh" fail
all_dead "$PIDS" || fail "descendants outlive a failed job"

# Processes that cohort run was started with are not its own.
sleep 100 &
stranger=$!
run 3 run -n 2 sh -c 'exit 3'
alive "$stranger" || fail "a process that is no rank's was killed"
kill "$stranger"
echo "run takedown: passed"
