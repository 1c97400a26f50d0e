#!/bin/sh
# launch_test.sh COHORT PROGRAM PYTHON - engine mlx:ring under cohort run, under mlx.launch, and from MLX's variables; a hostfile with a
# rank that does not come; a rank that dies, on one host and on several that are played; mlx:mpi under mpirun.
set -u
cohort=$1 program=$2 python=${3:-}
modules=$(dirname "$cohort")/../lib/cohort
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export COHORT_MODULES="$modules" COHORT_INIT_TIMEOUT=30

if ! "$cohort" info 2>/dev/null | grep -q '^  mlx:ring *yes'; then
    echo "skipped: $("$cohort" info 2>/dev/null | sed -n 's/^  mlx:ring *no *//p')"
    exit 77
fi

failed=0
fail() {
    echo "FAILED: $1"
    cat "$folder"/out* 2>/dev/null
    failed=1
}

# Whether all of N ranks said that all is well.
all_well() { [ "$(cat "$folder"/out* | grep -c "of $1: all is well on $2")" = "$1" ]; }

# Ranks FIRST... of a hostfile of N, each with the arguments after --. Ports below those that the kernel gives to others.
by_hand() {
    ranks=$1
    size=$2
    shift 2
    port=$((10000 + $$ % 20000))
    hosts=
    for rank in $(seq 0 $((size - 1))); do
        hosts="$hosts${hosts:+, }[\"127.0.0.1:$((port + rank))\"]"
    done
    echo "[$hosts]" >"$folder/hosts.json"
    rm -f "$folder"/out*
    processes=
    for rank in $ranks; do
        if [ "${PLAY:-}" ]; then export COHORT_HOST="h$rank"; fi
        MLX_RANK=$rank MLX_HOSTFILE=$folder/hosts.json COHORT_ENGINE=mlx:ring "$program" "$@" >"$folder/out$rank" 2>&1 &
        processes="$processes $!"
    done
    for process in $processes; do wait "$process"; done
    unset COHORT_HOST
}

"$cohort" run -n 4 --engine mlx:ring "$program" >"$folder/out" 2>&1 || fail 'cohort run'
all_well 4 mlx:ring || fail 'cohort run: not all is well'
rm -f "$folder"/out*

# Its status says nothing: it is 0 though ranks failed.
launch=$(dirname "${python:-/nowhere}")/mlx.launch
if [ -x "$launch" ]; then
    PATH="$(dirname "$python"):$PATH" COHORT_ENGINE=mlx:ring "$launch" -n 3 --backend ring -- "$program" >"$folder/out" 2>&1
    all_well 3 mlx:ring || fail 'mlx.launch'
else
    echo 'left out: mlx.launch, whose Python is not known'
fi

by_hand '0 1 2' 3
all_well 3 mlx:ring || fail 'from MLX_RANK and MLX_HOSTFILE'

by_hand '0 1 2' 3 twice
all_well 3 mlx:ring || fail 'a second world in the group of the first'

PLAY=1
by_hand '0 1 2' 3 twice
all_well 3 mlx:ring || fail 'a second world in the group of the first, between hosts'
PLAY=

COHORT_INIT_TIMEOUT=2
by_hand '0 2' 3
for rank in 0 2; do
    grep -q "mlx:ring: rank $rank: MLX has not made its group for .*did not come" "$folder/out$rank" || fail "rank $rank of a ring without rank 1"
done
COHORT_INIT_TIMEOUT=30

by_hand '0 1 2' 3 die 1
for rank in 0 2; do
    grep -q "rank $rank: PEER_LOST after [01]\..*rank 1 is lost: its process ended" "$folder/out$rank" || fail "rank $rank after the death of rank 1"
done

PLAY=1
by_hand '0 1 2 3' 4 die 2
for rank in 0 1 3; do
    grep -q "rank $rank: PEER_LOST after [01]\..*rank 2 on host h2 is lost" "$folder/out$rank" || fail "rank $rank after the death of rank 2 on another host"
done

if command -v mpirun.openmpi >/dev/null && "$cohort" info 2>/dev/null | grep -q '^  mlx:mpi *yes'; then
    rm -f "$folder"/out*
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
    COHORT_ENGINE=mlx:mpi mpirun.openmpi --oversubscribe -n 2 "$program" >"$folder/out" 2>&1 || fail 'mlx:mpi below mpirun'
    all_well 2 mlx:mpi || fail 'mlx:mpi below mpirun: not all is well'
else
    echo 'left out: mlx:mpi, for which Open MPI is not there'
fi
exit "$failed"
