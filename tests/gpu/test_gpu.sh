#!/bin/bash
# test_gpu.sh BUILD - everything that needs a card: `make test-gpu`.
#
# Conformance over heaps on a card and the suite of streams, with 1, 2 and 4 ranks as threads, as processes with MPS and
# without, and on two pretended hosts; ranks that die; random delays; compute-sanitizer; the examples. Starts an MPS server of its
# own, in a folder of its own, and stops it. The last line is "N passed, N failed, N skipped".
#
# REPEAT=20   how often a rank is killed in each collective        DELAYED=100  runs with random delays
# STAGES=...  some of: kernels threads mps turns hosts killed delayed sanitizer examples; all by default
set -u

build=$(cd "${1:?usage: test_gpu.sh BUILD}" && pwd) || exit 2
REPEAT=${REPEAT:-20} DELAYED=${DELAYED:-100}
STAGES=${STAGES:-kernels threads mps turns hosts killed delayed sanitizer examples}
collectives='barrier all_reduce reduce reduce_scatter all_gather gather scatter broadcast all_to_all scan scan_exclusive'
work=$(mktemp -d) || exit 1
passed=0 failed=0 skipped=0 steps=0
server=

export COHORT_MODULES="$build/lib/cohort"

# ---- MPS ----

without_mps() { # where no server listens, whoever runs one elsewhere
    mkdir -p "$work/nobody"
    export CUDA_MPS_PIPE_DIRECTORY="$work/nobody" CUDA_MPS_LOG_DIRECTORY="$work/nobody"
}

with_mps() { # 1: there is none
    command -v nvidia-cuda-mps-control >/dev/null || return 1
    mkdir -p "$work/mps"
    export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
    if [ -z "$server" ]; then
        nvidia-cuda-mps-control -d >"$work/mps.log" 2>&1 || return 1
        server=yes
    fi
}

stop_mps() {
    [ -n "$server" ] || return 0
    CUDA_MPS_PIPE_DIRECTORY="$work/mps" nvidia-cuda-mps-control <<<quit >/dev/null 2>&1
    server=
}
trap 'stop_mps; rm -rf "$work"' EXIT

# ---- steps ----

skip() { # WHAT WHY
    echo "skipped: $1: $2"
    skipped=$((skipped + 1))
}

# The counts of a suite, from what cmocka prints at its end.
count() { sed -n "s/^\[ *$2 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$1" | tail -n 1; }

suite() { # TITLE COMMAND...: a program of cmocka's
    local title=$1 log status good bad left
    shift
    log=$work/$((steps += 1)).log
    timeout -k 10 "${LIMIT:-900}" "$@" >"$log" 2>&1
    status=$?
    if [ $status = 77 ]; then
        skip "$title" "$(sed -n 's/^skipped: //p' "$log" | head -n 1)"
        return
    fi
    good=$(count "$log" PASSED) bad=$(count "$log" FAILED) left=$(count "$log" SKIPPED)
    if [ $status != 0 ] && [ "${bad:-0}" = 0 ]; then # killed, or it ended early
        bad=1
    fi
    passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-0})) skipped=$((skipped + ${left:-0}))
    echo "$title: ${good:-0} passed, ${bad:-0} failed, ${left:-0} skipped"
    if [ "${bad:-0}" != 0 ]; then
        echo "    $* (status $status)"
        grep -E '^(  rank|  process|  the |\*\*\*|\[  FAILED  \] [a-z])|not so|expected|left behind|replay:' "$log" \
            | head -n "${SHOW:-20}" | sed 's/^/    /'
    fi
    grep -E '^  killed in its kernel' "$log" | sort | uniq -c | head -n 8 | sed 's/^/    /'
}

program() { # TITLE COMMAND...: one that exits with 0
    local title=$1 log status
    shift
    log=$work/$((steps += 1)).log
    timeout -k 10 "${LIMIT:-300}" "$@" >"$log" 2>&1
    status=$?
    case $status in
    0) passed=$((passed + 1)); echo "$title: passed" ;;
    77) skip "$title" "$(tail -n 1 "$log")" ;;
    *)
        failed=$((failed + 1))
        echo "$title: failed, status $status: $*"
        tail -n "${SHOW:-20}" "$log" | sed 's/^/    /'
        ;;
    esac
}

both() { # TITLE ENGINE FLAGS...: both suites
    local title=$1 engine=$2
    shift 2
    for ranks in 1 2 4; do
        suite "conform, $title, $ranks ranks" "$build/bin/conform" --heap cuda --engine "$engine" --ranks $ranks "$@"
        suite "streams, $title, $ranks ranks" "$build/bin/gpu" --engine "$engine" --ranks $ranks "$@"
    done
}

# ---- stages ----

# Every kernel against the CPU's collectives, and heaps by the calls of the host.
kernels() {
    without_mps
    for ranks in 1 2 4; do
        program "kernels, $ranks threads" "$build/bin/gpu-kernels" --threads $ranks --brief
        program "heaps, $ranks threads" "$build/bin/cuda-heaps" threads $ranks
        program "heaps, $ranks processes without MPS" "$build/bin/cuda-heaps" processes $ranks
    done
    with_mps || { skip "kernels with MPS" "there is no MPS"; return; }
    for ranks in 2 4; do
        program "kernels, $ranks processes with MPS" "$build/bin/cohort" run -n $ranks -- "$build/bin/gpu-kernels" --brief
        program "heaps, $ranks processes with MPS" "$build/bin/cuda-heaps" processes $ranks
    done
}

threads() {
    without_mps
    both threads threads
}

mps() {
    with_mps || { skip "processes with MPS" "nvidia-cuda-mps-control is not there, or does not start"; return; }
    COHORT_TEST_SHARING=mps both 'processes with MPS' shm
}

turns() {
    without_mps
    COHORT_TEST_SHARING=turns both 'processes without MPS' shm
}

hosts() {
    with_mps || without_mps
    for ranks in 2 4; do
        suite "conform, two hosts, $ranks ranks" "$build/bin/conform" --heap cuda --engine tcp --hosts 2 --ranks $ranks
        suite "streams, two hosts, $ranks ranks" "$build/bin/gpu" --engine tcp --hosts 2 --ranks $ranks
    done
}

killed_in() { # TITLE ENGINE
    for kind in $collectives its_signal; do
        suite "killed before $kind, $1" "$build/bin/gpu" --engine "$2" --ranks 4 --case "killed_before_$kind" \
            --repeat "$REPEAT"
    done
}

killed() {
    without_mps
    killed_in threads threads
    killed_in 'processes without MPS' shm
    with_mps || { skip "killed under MPS" "there is no MPS"; return; }
    killed_in 'processes with MPS' shm
    # A kill under MPS may take the server with it: each step has one of its own.
    suite 'killed in its kernel, processes with MPS' "$build/bin/gpu" --engine shm --ranks 4 \
        --case killed_in_its_kernel --repeat "$REPEAT"
    stop_mps
    with_mps
    program 'the next job, with a new server' "$build/bin/cohort" run -n 4 "$build/bin/cuda_ring"
}

delayed() {
    with_mps || without_mps
    for case in any_after_any_on_a_stream chained signals_on_a_stream rounds_in_order several_streams; do
        for engine in threads shm; do
            COHORT_TEST_DELAY=300 suite "delays, $case, $engine" "$build/bin/gpu" --engine $engine --ranks 4 \
                --case $case --repeat "$DELAYED"
        done
    done
}

sanitizer() {
    without_mps
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || { skip "compute-sanitizer" "it is not installed"; return; }
    for tool in memcheck initcheck; do
        for program in ring halo train_step; do
            program "compute-sanitizer $tool, $program" compute-sanitizer --tool $tool --target-processes all \
                --error-exitcode 9 "$build/bin/cuda_$program"
        done
        for case in lengths_on_a_stream signals_on_a_stream atomics_on_a_stream any_after_any_on_a_stream; do
            suite "compute-sanitizer $tool, $case" compute-sanitizer --tool $tool --target-processes all \
                --error-exitcode 9 "$build/bin/gpu" --engine threads --ranks 2 --case $case
        done
    done
}

examples() {
    with_mps || without_mps
    for program in ring halo train_step; do
        for ranks in 1 2 4; do
            program "example $program, $ranks ranks" "$build/bin/cohort" run -n $ranks "$build/bin/cuda_$program"
        done
    done
    without_mps
    for program in ring halo train_step; do
        program "example $program without MPS, 2 ranks" "$build/bin/cohort" run -n 2 "$build/bin/cuda_$program"
    done
}

without_mps
"$build/bin/gpu" --engine threads --ranks 1 --case cards_are_told >"$work/look.log" 2>&1
if [ $? = 77 ]; then
    tail -n 1 "$work/look.log"
    echo "test-gpu: 0 passed, 0 failed, 1 skipped"
    exit 77
fi
for stage in $STAGES; do
    $stage
done
echo "test-gpu: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
