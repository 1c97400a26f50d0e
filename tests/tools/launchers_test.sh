#!/bin/bash
# Jobs of other launchers: Open MPI's mpirun, MPICH's mpiexec, the environments of torchrun and mlx.launch, each as it
# should go and with a rank that does not come, one that dies, and a launcher that falls silent. docs/faults.md F38.
# What is not installed is left out and named.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET PATH_TO_RING PATH_TO_TWICE}
ring=${3:?} twice=${4:?}
unset COHORT_HOST COHORT_SECRET COHORT_SECRET_FILE COHORT_PORT
left_out=

# job STATUS COMMAND...: ends with it within 20 s; out and err are kept.
job() {
    expected=$1
    shift
    timeout 20 "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || [ "$expected" = failed -a "$got" != 0 -a "$got" != 124 ] \
        || fail "$*: status $got, expected $expected"
}

# is_ring COUNT: each rank printed the line of the example.
is_ring() {
    for rank in $(seq 0 $(($1 - 1))); do
        says out "rank $rank of $1 was sent $(((rank + $1 - 1) % $1))"
    done
}

# starts NAME RANK_VARIABLE COMMAND...: the command is a launcher with its flags, for 4 ranks, and RANK_VARIABLE is how
# its ranks know themselves.
starts() {
    name=$1 variable=$2
    shift 2
    job 0 "$@" "$ring"
    is_ring 4
    job 0 "$@" "$twice"
    [ "$(grep -c 'of 4 joined three times' "$folder/out")" = 4 ] || fail "$name: joining again"
    # One that does not come is named.
    for missing in 0 2; do
        COHORT_INIT_TIMEOUT=0.7 job failed "$@" sh -c "[ \$$variable = $missing ] && exec sleep 1.5; exec '$ring'"
        grep -qE "(missing: rank $missing |rank $missing of 4 did not come|rank $missing has not come)" "$folder/err" \
            || fail "$name: rank $missing is not named"
    done
    # One that dies while the others wait for it.
    job failed "$@" sh -c "[ \$$variable = 2 ] && export COHORT_FAULT=kill@init; exec '$ring'"
}

# by_environment COMMAND...: four processes with the variables of torchrun, on free ports of their own.
by_environment() {
    ranks "RANK=%d WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=$((20000 + $$ % 20000))" "$@"
}
# by_hostfile COMMAND...: the same with those of mlx.launch.
by_hostfile() {
    port=$((20000 + $$ % 20000))
    printf '[["127.0.0.1:%d"], ["127.0.0.1:%d"],\n ["127.0.0.1:%d"], ["127.0.0.1:%d"]]\n' \
        $port $((port + 1)) $((port + 2)) $((port + 3)) >"$folder/hosts"
    ranks "MLX_RANK=%d MLX_HOSTFILE=$folder/hosts" "$@"
}
# ranks VARIABLES COMMAND...: ends when all have, with the status of one that failed.
ranks() (
    variables=$1 pids= status=0
    shift
    for rank in 3 2 1 0; do
        # shellcheck disable=SC2046,SC2059 # the variables are a list of words with a place for the rank
        env $(printf "$variables" $rank) "$@" &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || status=$?
    done
    exit "$status"
)
export -f by_environment by_hostfile ranks
export folder

# A process of another launcher that forgot the rest of its variables.
starts environment RANK bash -c 'by_environment "$@"' sh
secret=$(printf '%064d' 42)
COHORT_SECRET=$secret starts secret RANK bash -c 'by_environment "$@"' sh
COHORT_INIT_TIMEOUT=1 job failed bash -c 'by_environment "$@"' sh \
    sh -c "[ \$RANK = 3 ] && export COHORT_SECRET=${secret%42}43; export COHORT_SECRET=\${COHORT_SECRET:-$secret}; exec '$ring'"
says err "missing: rank 3 "
# The same job twice at a time: the second rank 0 is refused.
COHORT_INIT_TIMEOUT=2 job failed bash -c 'by_environment "$@"' sh sh -c "[ \$RANK = 1 ] && export RANK=0; exec '$ring'"
says err "another process of this host is rank 0"
starts mlx MLX_RANK bash -c 'by_hostfile "$@"' sh
if command -v mlx.launch >/dev/null; then
    job 0 mlx.launch -n 4 -- "$ring"
    is_ring 4
else
    left_out="$left_out mlx.launch"
fi
# Debian's 1.13 fails with every program, since its Python is newer than it knows.
if torchrun --nproc_per_node 1 --no_python true >/dev/null 2>&1; then
    job 0 torchrun --nproc_per_node 4 --no_python "$ring"
    is_ring 4
else
    left_out="$left_out torchrun"
fi

if command -v mpirun.openmpi >/dev/null; then
    openmpi="mpirun.openmpi --allow-run-as-root --oversubscribe"
    if ldconfig -p | grep -q libpmix.so.2; then
        # shellcheck disable=SC2086 # a list of words
        starts openmpi PMIX_RANK $openmpi -n 4
        # One process is a world of one.
        # shellcheck disable=SC2086
        job 0 $openmpi -n 1 "$ring"
        is_ring 1
        # A launcher that is stopped answers nobody; the rank writes to a file, since output goes through it too.
        # shellcheck disable=SC2086
        COHORT_INIT_TIMEOUT=1 $openmpi -n 2 \
            sh -c "[ \$PMIX_RANK = 0 ] && exec sleep 20; echo > '$folder/began'; exec '$ring' 2>'$folder/err'; " &
        launcher=$!
        wait_for 10 test -s "$folder/began" || fail "mpirun has not started its ranks"
        kill -STOP "$launcher"
        wait_for 10 grep -q 'within 1.0 s (COHORT_INIT_TIMEOUT)' "$folder/err" || fail "PMIx made a rank wait for ever"
        kill -CONT "$launcher"
        kill -KILL "$launcher"
        wait "$launcher" 2>/dev/null
    else
        left_out="$left_out PMIx (libpmix.so.2)"
    fi
else
    left_out="$left_out mpirun.openmpi"
fi
# Nobody serves PMIx to this process.
if ldconfig -p | grep -q libpmix.so.2; then
    job failed env PMIX_NAMESPACE=nobody PMIX_RANK=0 "$ring"
    says err "PMIx_Init failed: "
else
    job failed env PMIX_NAMESPACE=nobody PMIX_RANK=0 "$ring"
    says err "libpmix.so.2 (Debian: libpmix2) cannot be used"
fi

if command -v mpiexec.hydra >/dev/null; then
    starts mpich PMI_RANK mpiexec.hydra -n 4
    job 0 mpiexec.hydra -n 1 "$ring"
    is_ring 1
    # The connection is used up by the first process of a rank.
    job failed mpiexec.hydra -n 2 sh -c "'$ring' && '$ring'"
    says err "the launcher closed its connection"
else
    left_out="$left_out mpiexec.hydra"
fi

# Two hosts that share nothing but a network, with the variables of torchrun on one and of Kubernetes on the other.
bed=$(dirname "$0")/../../scripts/testbed name=l$(tr -dc a-z </dev/urandom | head -c 6)
# rank HOST RANK VARIABLE...
rank() {
    host=$1 number=$2
    shift 2
    "$bed" --name "$name" shell "$host" env RANK="$number" WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$@" \
        "$ring" >"$folder/out$number" 2>"$folder/err$number" </dev/null &
    pids="$pids $!"
}
# pair STATUS VARIABLE...: two ranks on each host, all of which end with it.
pair() {
    expected=$1 pids=
    shift
    rank 2 3 "$@"; rank 2 2 "$@"; rank 1 1 "$@"; rank 1 0 "$@"
    for pid in $pids; do
        wait "$pid"
        got=$?
        [ "$got" = "$expected" ] || { cat "$folder"/err?; fail "a rank ended with $got, expected $expected"; }
    done
    cat "$folder"/out? >"$folder/out"
    cat "$folder"/err? >"$folder/err"
}
if [ "$(id -u)" = 0 ] && "$bed" --name "$name" up 2 >/dev/null 2>&1; then
    trap '"$bed" --name "$name" down; rm -rf "$folder"' EXIT
    printf '%064d\n' 42 >"$folder/secret" && chmod 600 "$folder/secret"
    pair 0 COHORT_SECRET_FILE="$folder/secret" COHORT_LOG=info
    is_ring 4
    says err "port 29501"
    pair 0 COHORT_SECRET="$secret" COHORT_PORT=31000
    is_ring 4
    pair 1 COHORT_INIT_TIMEOUT=1
    says err "rank 0 is on another host (MASTER_ADDR=10.77.0.1), and they need a secret"
    says err "missing: rank 2, 3"
    pids=
    rank 2 3 COHORT_SECRET="${secret%42}43" COHORT_INIT_TIMEOUT=2; rank 1 0 COHORT_SECRET="$secret" COHORT_INIT_TIMEOUT=2
    wait $pids
    cat "$folder"/err? >"$folder/err"
    says err "cannot join by rank 0 at 10.77.0.1 port 29501"
    says err "missing: rank 1, 2, 3"
else
    left_out="$left_out two-hosts"
fi
echo "launchers: passed${left_out:+, without$left_out, which cannot be used here}"
