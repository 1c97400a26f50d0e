#!/bin/bash
# own_job_test.sh COHORT RING MODULES: an engine that brings its own rank and size. RING is started without a
# launcher; MODULES has a cohort-tcp.so that does.
. "$(dirname "$0")/common.sh"
ring=$2
export COHORT_MODULES=$3 COHORT_ENGINE=tcp OWN_JOB=$folder/job

# start SIZE VARIABLES...: a process for each rank, on two pretended hosts; sets statuses.
start() {
    size=$1
    shift
    rm -rf "$OWN_JOB"
    mkdir "$OWN_JOB"
    pids=
    for ((rank = 0; rank < size; rank++)); do
        env OWN_JOB_RANK=$rank OWN_JOB_SIZE="$size" COHORT_HOST=$((rank % 2)) "$@" timeout 60 "$ring" \
            >"$folder/out.$rank" 2>"$folder/err.$rank" </dev/null &
        pids="$pids $!"
    done
    statuses=
    for pid in $pids; do
        wait "$pid"
        statuses="$statuses $?"
    done
    cat "$folder"/out.* >"$folder/out"
    cat "$folder"/err.* >"$folder/err"
    rm "$folder"/out.* "$folder"/err.*
}

start 3
[ "$statuses" = " 0 0 0" ] || fail "three ranks ended with$statuses"
for rank in 0 1 2; do
    says out "rank $rank of 3 was sent $(((rank + 2) % 3))"
    says out "rank $rank ends its job 1"
done

start 1
[ "$statuses" = " 0" ] || fail "a job of one ended with$statuses"
says out "rank 0 of 1 was sent 0"

# What rank 0 cannot do all are told, at once.
start 3 COHORT_NET_INTERFACE=nonesuch
[ "$statuses" = " 1 1 1" ] || fail "ranks that cannot meet ended with$statuses"
[ "$(grep -c "COHORT_NET_INTERFACE is 'nonesuch'" "$folder/err")" = 3 ] || fail "not all were told why"
[ "$(grep -c "ends its job 1" "$folder/out")" = 3 ] || fail "a job was left begun"

# An impossible place in the job is refused.
start 1 OWN_JOB_SIZE=0
[ "$statuses" = " 1" ] || fail "a size of 0 ended with$statuses"
says err "engine tcp says that this is rank 0 of 0"

# The engine's own words where there is no job.
env -u OWN_JOB "$ring" >"$folder/out" 2>"$folder/err" && fail "it joined no job"
says err "OWN_JOB is not set"

# A launcher of Cohort's own goes before.
run 0 run -n 2 "$ring"
says out "rank 1 of 2 was sent 0"
