#!/bin/bash
# Signals to the launcher.
. "$(dirname "$0")/common.sh"

# launch SCRIPT: two ranks that run it, in the background. There a plain shell ignores SIGINT, and
# what is ignored at the start stays so; hence the env that resets it.
cat >"$folder/reset.sh" <<'END'
echo $$ >"$1/launcher"
shift
exec env --default-signal=INT,QUIT "$@"
END
launch() {
    : >"$folder/ready"
    sh "$folder/reset.sh" "$folder" "$cohort" run -n 2 --grace 20 sh -c "$1" sh "$folder" \
        >"$folder/out" 2>"$folder/err" </dev/null &
    job=$!
    wait_for 10 lines "$folder/ready" 2 || fail "the ranks did not start"
    launcher=$(cat "$folder/launcher")
}

# ends STATUS: the job ends with that.
ends() {
    wait "$job"
    got=$?
    [ "$got" = "$1" ] || fail "status $got, expected $1"
}

for signal in INT TERM HUP QUIT; do
    number=$(kill -l "$signal")
    launch "trap 'echo got $signal; exit 0' $signal; echo >>\$1/ready; while :; do sleep 0.05; done"
    kill -s "$signal" "$launcher"
    ends $((128 + number))
    [ "$(grep -c "got $signal" "$folder/out")" = 2 ] || fail "$signal did not reach both ranks"
    says err "interrupted by signal $number"
done

for signal in USR1 USR2; do
    launch "trap 'echo got $signal; exit 0' $signal; echo >>\$1/ready; while :; do sleep 0.05; done"
    kill -s "$signal" "$launcher"
    ends 0
    [ "$(grep -c "got $signal" "$folder/out")" = 2 ] || fail "$signal did not reach both ranks"
done

# Ranks that do not listen: the second signal ends them at once, and the table is shown.
launch "trap '' TERM; echo >>\$1/ready; while :; do sleep 0.05; done"
kill -TERM "$launcher"
sleep 0.3
alive "$launcher" || fail "one SIGTERM is not to kill what ignores it at once"
started=$(now_ms)
kill -TERM "$launcher"
ends 143
[ $(($(now_ms) - started)) -lt 15000 ] || fail "the second signal did not end the job"
says err "RANK"

# Stopped and continued as a whole.
launch 'echo $$ >>$1/ready; while :; do sleep 0.05; done'
stopped() {
    for pid in "$launcher" $(cat "$folder/ready"); do
        grep -q '^State:.T' "/proc/$pid/status" || return 1
    done
}
running() {
    for pid in "$launcher" $(cat "$folder/ready"); do
        grep -q '^State:.T' "/proc/$pid/status" && return 1
    done
    return 0
}
kill -TSTP "$launcher"
wait_for 5 stopped || fail "SIGTSTP did not stop launcher and ranks"
kill -CONT "$launcher"
wait_for 5 running || fail "SIGCONT did not continue launcher and ranks"
kill -TERM "$launcher"
ends 143

# What is ignored from the start, as nohup has it, stays ignored, by the ranks too.
: >"$folder/ready"
(trap '' HUP; exec "$cohort" run sh -c 'echo >>$1/ready; sleep 0.7; echo through' sh "$folder") \
    >"$folder/out" 2>"$folder/err" </dev/null &
job=$!
wait_for 10 lines "$folder/ready" 1
kill -HUP "$job"
ends 0
says out "through"
echo "run signal: passed"
