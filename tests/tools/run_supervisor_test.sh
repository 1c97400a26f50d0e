#!/bin/bash
# The launcher and the supervisors: what they tell each other, and what one does without the other.
. "$(dirname "$0")/common.sh"

# parent PID, state PID, has_state PID LETTER
parent() {
    sed -n 's/.*) . \([0-9]*\) .*/\1/p' "/proc/$1/stat"
}
state() {
    sed -n 's/.*) \(.\) .*/\1/p' "/proc/$1/stat" 2>/dev/null
}
has_state() {
    [ "$(state "$1")" = "$2" ]
}
has_ended() {
    ! alive "$1"
}
no_pending() {
    grep -qE '^ShdPnd:[[:space:]]*0+$' "/proc/$1/status"
}

# launch COUNT SCRIPT: ranks that run it in the background, each of which writes "RANK PID".
launch() {
    : >"$folder/ranks"
    rm -f "$folder/go"
    "$cohort" run -n "$1" sh -c "echo \$COHORT_RANK \$\$ >>\$1/ranks; $2" sh "$folder" \
        >"$folder/out" 2>"$folder/err" </dev/null &
    launcher=$!
    wait_for 10 lines "$folder/ranks" "$1" || fail "the ranks did not start"
}
pid_of() {
    sed -n "s/^$1 //p" "$folder/ranks"
}
# ends STATUS: the launcher ends with it, soon; if not, what each of its processes waits for.
ends() {
    if ! wait_for 30 has_ended "$launcher"; then
        ps -e -o pid,ppid,pgid,sid,stat,wchan:24,args --forest | grep -v ' \[' >&2
        kill -KILL "$launcher"
        fail "the launcher does not end"
    fi
    wait "$launcher"
    got=$?
    [ "$got" = "$1" ] || fail "status $got, expected $1"
}

# An order that a supervisor leaves unread does not take the news of its rank's end with it: the
# supervisor is held until the rank has ended and an order has come as well, and the launcher until
# the supervisor has ended.
launch 1 'while [ ! -e $1/go ]; do sleep 0.02; done; exit 3'
supervisor=$(parent "$(pid_of 0)")
kill -STOP "$supervisor"
wait_for 10 has_state "$supervisor" T || fail "the supervisor does not stop"
touch "$folder/go"
wait_for 10 has_state "$(pid_of 0)" Z || fail "the rank does not end"
kill -USR1 "$launcher"
wait_for 10 no_pending "$launcher" || fail "the launcher does not take its signal"
wait_for 10 has_state "$launcher" S || fail "the launcher does not sleep again"
kill -STOP "$launcher"
wait_for 10 has_state "$launcher" T || fail "the launcher does not stop"
kill -CONT "$supervisor"
wait_for 10 has_ended "$supervisor" || fail "the supervisor does not end"
kill -CONT "$launcher"
ends 3
says err "exited with status 3"
grep -q "supervisor" "$folder/err" && fail "a supervisor is blamed"

# A guard that is stopped, and so tells nothing, holds nobody up.
launch 3 'while [ ! -e $1/go ]; do sleep 0.02; done'
guard=$(parent "$(parent "$(pid_of 0)")")
kill -STOP "$guard"
wait_for 10 has_state "$guard" T || fail "the guard does not stop"
touch "$folder/go"
wait_for 20 has_ended "$launcher" || fail "a stopped guard holds the job up"
ends 0
has_ended "$guard" || fail "the guard outlives the job"

# timeout(1) sends its signal to the launcher and to the whole group.
for round in 1 2 3 4; do
    : >"$folder/ranks"
    timeout --preserve-status --kill-after 30 0.4 "$cohort" run -n 4 \
        sh -c 'echo >>$1/ranks; exec sleep 100' sh "$folder" >"$folder/out" 2>"$folder/err"
    got=$?
    # Where the machine was too slow to start the ranks in time, nothing was tried.
    lines "$folder/ranks" 4 || continue
    [ "$got" = 143 ] || fail "status $got after timeout's SIGTERM"
    grep -qE "supervisor|cannot be killed|not known" "$folder/err" && fail "false rows"
done

# Many ranks, of which one is killed: all ends are known.
run 137 run -n 64 sh -c '[ "$COHORT_RANK" = 7 ] && kill -KILL $$; exec sleep 100'
says err "rank 7 of 64"
grep -qE "supervisor|cannot be killed|not known" "$folder/err" && fail "false rows"
# In a session without a shell: the end of the ranks hangs up nobody, though a process of the group
# is stopped, be it a rank or another.
cat >"$folder/session.sh" <<'END'
trap 'echo hangup >>"$1/ranks"' HUP
sleep 100 &
echo other $! >>"$1/ranks"
kill -STOP $!
"$2" run -n 3 sh -c 'echo $COHORT_RANK $$ >>$1/ranks
    [ $COHORT_RANK = 1 ] && kill -STOP $$
    [ $COHORT_RANK = 1 ] || while [ ! -e $1/go ]; do sleep 0.02; done' sh "$1"
echo status $? >>"$1/ranks"
kill -KILL $!
END
: >"$folder/ranks"
rm -f "$folder/go"
setsid bash "$folder/session.sh" "$folder" "$cohort" >"$folder/out" 2>"$folder/err" </dev/null &
wait_for 10 lines "$folder/ranks" 4 || fail "the ranks did not start"
wait_for 10 has_state "$(pid_of 1)" T || fail "rank 1 does not stop"
touch "$folder/go"
sed -n 's/^[02] //p' "$folder/ranks" >"$folder/others"
wait_for 10 all_dead "$folder/others" || fail "the others do not end"
has_state "$(pid_of 1)" T || fail "the end of the other ranks continues a stopped rank"
kill -CONT "$(pid_of 1)"
has_status() {
    [ -n "$(pid_of status)" ]
}
wait_for 30 has_status || fail "a session without a shell: the job does not end"
wait
grep -q hangup "$folder/ranks" && fail "the end of the ranks hangs up the session"
[ "$(pid_of status)" = 0 ] || fail "a session without a shell: status $(pid_of status)"
echo "run supervisor: passed"
