#!/bin/bash
# `cohort run` where /proc is not mounted: in a mount namespace that has an empty folder there. The
# processes are looked at from outside.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}

# hidden COMMAND...: runs it without /proc, as root of a user namespace where that is needed.
cat >"$folder/hidden.sh" <<'END_OF_SCRIPT'
mount -t tmpfs none /proc && exec "$@"
END_OF_SCRIPT
namespace=-m
unshare -m true 2>/dev/null || namespace=-rm
hidden() {
    unshare $namespace sh "$folder/hidden.sh" "$@"
}
hidden true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }

# run_hidden STATUS ARGUMENTS...: as `run`, without /proc.
run_hidden() {
    expected=$1
    shift
    hidden timeout -s KILL 60 "$cohort" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || fail "cohort $*: status $got, expected $expected"
}

# Descendants that left their session and their parent end with the rank, though none is listed.
cat >"$folder/tree.sh" <<'END_OF_SCRIPT'
echo $$ >>"$PIDS"
sh -c 'echo $$ >>"$PIDS"; exec sleep 100' &
(setsid sh -c 'trap "" HUP TERM INT; echo $$ >>"$PIDS"; sleep 100; :' </dev/null >/dev/null 2>&1 & )
while [ "$(wc -l <"$PIDS")" -lt $((3 * COHORT_SIZE)) ]; do sleep 0.02; done
[ "$1" = leave ] || sleep 100
END_OF_SCRIPT
export PIDS="$folder/pids"
: >"$PIDS"
started=$(now_ms)
run_hidden 0 run -n 3 sh "$folder/tree.sh" leave
[ $(($(now_ms) - started)) -lt 30000 ] || fail "the job waited for its ranks' descendants"
all_dead "$PIDS" || fail "descendants outlive their ranks"

: >"$PIDS"
unshare $namespace sh "$folder/hidden.sh" "$cohort" run -n 3 sh "$folder/tree.sh" stay \
    >"$folder/out" 2>"$folder/err" </dev/null &
launcher=$! # each of them executes the next
wait_for 10 lines "$PIDS" 9 || fail "the job did not start"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
wait_for 10 all_dead "$PIDS" || fail "processes outlive a killed launcher"

# A stopped rank is found, outside Cohort too, where others would only be busy.
export COHORT_STALL=1 COHORT_WARN=0.5
run_hidden 9 run -n 3 "$meet" stop
says err "rank 1 is stalled: stopped"
grep -q "gone" "$folder/err" && fail "a stopped rank passes for gone"

# `cohort ps` says why it shows nothing.
run_hidden 1 ps
says err "/proc"
echo "run no proc: passed"
