#!/bin/bash
# `cohort run` where a sandbox refuses system calls: another way, or an error that says so.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET PATH_TO_REFUSE}
refuse=${3:?usage: $0 PATH_TO_COHORT PATH_TO_MEET PATH_TO_REFUSE}
"$refuse" EPERM pidfd_open -- true
[ $? = 77 ] && { echo "no filters here"; exit 77; }

# refused ERROR CALLS STATUS ARGUMENTS...: as `run`, with those calls refused.
refused() {
    error=$1 calls=$2 expected=$3
    shift 3
    # shellcheck disable=SC2086
    "$refuse" "$error" $calls -- "$cohort" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || fail "$error $calls, cohort $*: status $got, expected $expected"
}
polls=poll
"$refuse" EPERM poll -- true || polls=ppoll

cat >"$folder/tree.sh" <<'END'
echo $$ >>"$PIDS"
(setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 100' </dev/null >/dev/null 2>&1 & )
exec sleep 100
END
export PIDS="$folder/pids"

for error in EPERM ENOSYS; do
    for calls in close_range "$polls" "close_range $polls"; do
        refused "$error" "$calls" 3 run -n 3 sh -c 'echo hello; [ $COHORT_RANK = 1 ] && exit 3; :'
        [ "$(grep -c hello "$folder/out")" = 3 ] || fail "$error $calls: the output"
        # Nothing outlives a killed launcher.
        : >"$PIDS"
        # shellcheck disable=SC2086
        "$refuse" "$error" $calls -- "$cohort" run -n 3 sh "$folder/tree.sh" \
            >"$folder/out" 2>"$folder/err" </dev/null &
        launcher=$!
        wait_for 10 lines "$PIDS" 6 || fail "$error $calls: the job did not start"
        kill -KILL "$launcher"
        wait "$launcher" 2>/dev/null
        wait_for 10 all_dead "$PIDS" || fail "$error $calls: processes outlive a killed launcher"
    done
    # The ranks still hold nothing of the launcher's.
    ls /proc/self/fd >"$folder/before" 2>"$folder/err" </dev/null
    refused "$error" close_range 0 run -n 2 sh -c 'exec ls /proc/self/fd'
    [ "$(wc -l <"$folder/out")" = $((2 * ($(wc -l <"$folder/before") + 1))) ] \
        || fail "$error close_range: descriptors other than those of before and the job's"

    refused "$error" memfd_create 1 run -n 2 true
    says err "cohort run: "
    refused "$error" signalfd 1 run -n 2 true
    says err "cannot watch for signals"
    refused "$error" prctl 1 run -n 2 true
    says err "cannot adopt"
    refused "$error" futex 1 run -n 2 true
    says err "futex(2) is refused"
    refused "$error" eventfd 9 run -n 2 "$meet"
    says err "the watcher cannot be woken"
    refused "$error" fallocate 1 run -n 2 true
    says err "cannot back"
    for calls in accept4 set_robust_list "process_vm_readv process_vm_writev" poll; do
        [ "$calls" = poll ] && [ "$polls" != poll ] && continue
        refused "$error" "$calls" 0 run -n 3 "$meet"
        [ -s "$folder/err" ] && fail "$error $calls: not done in another way without a word"
    done
done

# By process numbers instead. A sandbox that refuses it is warned of; an old kernel, and valgrind, do not have it, which is told
# at level debug alone.
refused EPERM pidfd_open 0 run -n 2 "$meet"
says err "pidfd_open is refused here (Operation not permitted)"
refused ENOSYS pidfd_open 0 run -n 2 "$meet"
[ ! -s "$folder/err" ] || fail "a kernel without pidfd_open is told of, though nobody asked"
refused ENOSYS pidfd_open 0 run -n 2 --env COHORT_LOG=debug "$meet"
says err "pidfd_open is refused here (Function not implemented): the others look for this process by its number"
# And a rank that is killed is found all the same.
refused ENOSYS pidfd_open 137 run -n 3 --env COHORT_FAULT=kill@barrier,rank=1 "$meet"
says err "rank 1 is lost"
echo "run sandbox: passed"
