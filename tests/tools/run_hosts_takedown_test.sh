#!/bin/bash
# run_hosts_takedown_test.sh COHORT ... [ROUNDS] - nothing is left on any host, whatever of a job on several is
# killed: docs/faults.md F33. LIMIT_MS is how long that may take; a machine that is busy needs more than two seconds.
. "$(dirname "$0")/common.sh"
rounds=${4:-2}
unset SLURM_JOB_NODELIST COHORT_HOST

# The shell stays above the agent, as ssh and sshd do.
printf '#!/bin/sh\necho $$ >>"$SHELLS"\nshift\n"$@"\n' >"$folder/shell"
chmod +x "$folder/shell"
cat >"$folder/tree.sh" <<'END'
echo $$ >>"$PIDS"
setsid sh -c 'trap "" HUP TERM INT; echo $$ >>"$PIDS"; sleep 100; :' </dev/null >/dev/null 2>&1 &
trap '' TERM
while :; do sleep 0.1; done
END
export PIDS="$folder/pids" SHELLS="$folder/shells"

start() {
    : >"$PIDS"
    : >"$SHELLS"
    env --default-signal=INT "$cohort" run --hosts a:2,b:2 --shell "$folder/shell" sh "$folder/tree.sh" >"$folder/out" 2>"$folder/err" </dev/null &
    launcher=$!
    wait_for 20 lines "$PIDS" 8 || fail "the job did not start: $(wc -l <"$PIDS") of 8"
    agents=$(for shell in $(cat "$SHELLS"); do cat "/proc/$shell/task/$shell/children"; done)
    # shellcheck disable=SC2086
    set -- $agents
    agent=$1
    [ $# = 2 ] || fail "the agents are $agents"
}
# gone WHAT STATUS: within two seconds, and the launcher has ended with it.
gone() {
    began=$(now_ms)
    wait "$launcher" 2>/dev/null
    got=$?
    wait_for 10 all_dead "$PIDS" || fail "$1: processes are left"
    took=$(($(now_ms) - began))
    [ "$took" -le "${LIMIT_MS:-8000}" ] || fail "$1: it took $took ms"
    for pid in $agents $(cat "$SHELLS"); do
        wait_for 2 dead "$pid" || fail "$1: an agent or a shell is left"
    done
    [ "$got" = "$2" ] || fail "$1: status $got, expected $2"
}
dead() {
    ! alive "$1"
}

for round in $(seq "$rounds"); do
    start
    kill -KILL "$launcher"
    gone "the launcher is killed" 137

    start
    kill -KILL "$agent"
    gone "an agent is killed" 1
    grep -qE "cause: host [ab]: the connection ended" "$folder/err" || fail "the cause of a killed agent"
    says err "lost with its host"

    start
    kill -KILL "$(sed -n 2p "$SHELLS")"
    gone "a shell is killed" 1
    says err "the connection ended (the shell was killed by signal 9 (Killed))"

    start
    kill -INT "$launcher"
    gone "the launcher is interrupted" 130
    says err "interrupted by signal 2"

    start
    kill -TERM "$agent"
    gone "an agent is told to end" 1
done
echo "hosts: nothing is left, $rounds rounds"
