#!/bin/bash
# test_gpu.sh BUILD - everything that needs a card: `make test-gpu`.
#
# Conformance over heaps on a card and the suite of streams, with 1, 2, 4 and 8 ranks as threads, as processes with MPS and
# without, and on two pretended hosts; ranks that die; random delays; compute-sanitizer; the examples. Starts an MPS server of its
# own, in a folder of its own, and stops it. The last line is "N passed, N failed, N skipped".
#
# Steps run beside each other. Kernels that wait fill multiprocessors, so those of all steps together must fit the card: MPS gives
# each process a part of it (SHARE). What waits on the card without MPS runs alone.
#
# REPEAT=20   how often a rank is killed in each collective        DELAYED=100  runs with random delays
# JOBS=3      steps at a time, of up to four processes             SHARE=8      percent of the card that MPS gives a process:
#                                                                               by itself what fits JOBS steps
# KINDS='barrier scan'  collectives in which a rank is killed; all of them by default, and a signal
# OUT=FOLDER  keeps the output of all that fails, and of what is measured
# STAGES=...  some of: alone threads mps turns hosts killed_turns killed_mps killed_threads delayed eight examples sanitizer
#             in_kernel nvshmem killed_nvshmem beside_nvshmem; all by default
set -u

build=$(cd "${1:?usage: test_gpu.sh BUILD}" && pwd) || exit 2
REPEAT=${REPEAT:-20} DELAYED=${DELAYED:-100} JOBS=${JOBS:-3} SHARE=${SHARE:-$((100 / (4 * ${JOBS:-3})))}
STAGES=${STAGES:-turns killed_turns killed_mps killed_threads hosts mps threads delayed eight examples alone sanitizer in_kernel \
    nvshmem killed_nvshmem beside_nvshmem}
KINDS=${KINDS:-barrier all_reduce reduce reduce_scatter all_gather gather scatter broadcast all_to_all scan scan_exclusive its_signal}
work=$(mktemp -d) || exit 1
steps=0
server=

export COHORT_MODULES="$build/lib/cohort"

# ---- MPS ----

without_mps() { # where no server listens, whoever runs one elsewhere
    mkdir -p "$work/nobody"
    unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
    export CUDA_MPS_PIPE_DIRECTORY="$work/nobody" CUDA_MPS_LOG_DIRECTORY="$work/nobody"
}

with_mps() { # [PERCENT]; 1: there is none
    command -v nvidia-cuda-mps-control >/dev/null || return 1
    mkdir -p "$work/mps"
    export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
    export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="${1:-$SHARE}"
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

# A server that no other step uses, from here to the next stop_mps: what is ended while its kernel waits may take all clients along.
own_mps() { # [PERCENT]
    wait
    stop_mps
    with_mps "$@"
}

keep_logs() {
    [ -n "${OUT:-}" ] || return 0
    mkdir -p "$OUT/logs"
    for log in "$work"/*.failed; do
        [ -e "$log" ] && head -c 100000 "$log" >"$OUT/logs/$(basename "$log" .failed).log"
    done
    cp "$work"/mps/*.log "$OUT/logs/" 2>/dev/null
}
trap 'stop_mps; keep_logs; rm -rf "$work"' EXIT

# ---- steps: each has a number, its counts in N.counts, what it says in N.said ----

tell() { # NUMBER PASSED FAILED SKIPPED TEXT...
    local number=$1
    echo "$2 $3 $4" >"$work/$number.counts"
    shift 4
    printf '%s\n' "$*" >>"$work/$number.said"
}

# The counts of a suite, from what cmocka prints at its end.
count() { sed -n "s/^\[ *$2 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$1" | tail -n 1; }

run_suite() { # NUMBER TITLE COMMAND...: a program of cmocka's
    local number=$1 title=$2 log=$work/$1.log status good bad left began=$SECONDS
    shift 2
    timeout -k 10 "${LIMIT:-900}" "$@" >"$log" 2>&1
    status=$?
    if [ $status = 77 ]; then
        tell "$number" 0 0 1 "skipped: $title: $(sed -n 's/^skipped: //p' "$log" | head -n 1)"
        return
    fi
    good=$(count "$log" PASSED) bad=$(count "$log" FAILED) left=$(count "$log" SKIPPED)
    if [ $status != 0 ] && [ "${bad:-0}" = 0 ]; then # killed, or it ended early
        bad=1
    fi
    tell "$number" "${good:-0}" "${bad:-0}" "${left:-0}" \
        "$title: ${good:-0} passed, ${bad:-0} failed, ${left:-0} skipped ($((SECONDS - began)) s)"
    if [ "${bad:-0}" != 0 ]; then
        mv "$log" "$work/$number.failed"
        log=$work/$number.failed
        echo "    $* (status $status)" >>"$work/$number.said"
        grep -E '^(  rank|  process|  the |\*\*\*|\[  FAILED  \] [a-z])|not so|expected|left behind|replay:' "$log" \
            | head -n "${SHOW:-20}" | sed 's/^/    /' >>"$work/$number.said"
    fi
    grep -E '^  killed in its kernel' "$log" | sed 's/rank [0-9]* heard/heard/; s/after.*//' | sort | uniq -c \
        | head -n 8 | sed 's/^/    /' >>"$work/$number.said"
}

run_program() { # NUMBER TITLE COMMAND...: one that exits with 0
    local number=$1 title=$2 log=$work/$1.log status began=$SECONDS
    shift 2
    timeout -k 10 "${LIMIT:-300}" "$@" >"$log" 2>&1
    status=$?
    case $status in
    0) tell "$number" 1 0 0 "$title: passed ($((SECONDS - began)) s)" ;;
    77) tell "$number" 0 0 1 "skipped: $title: $(tail -n 1 "$log")" ;;
    *)
        tell "$number" 0 1 0 "$title: failed, status $status: $*"
        tail -n "${SHOW:-20}" "$log" | sed 's/^/    /' >>"$work/$number.said"
        mv "$log" "$work/$number.failed"
        ;;
    esac
}

together=yes
start() { # run_suite|run_program TITLE COMMAND...: now, beside others; or, where that is not together, alone
    local how=$1
    shift
    steps=$((steps + 1))
    if [ -z "$together" ]; then
        $how $steps "$@"
        return
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
    $how $steps "$@" &
}
suite() { start run_suite "$@"; }
program() { start run_program "$@"; }

skip() { # WHAT WHY
    steps=$((steps + 1))
    tell $steps 0 0 1 "skipped: $1: $2"
}

both() { # TITLE ENGINE RANKS FLAGS...: both suites
    local title=$1 engine=$2 sizes=$3
    shift 3
    for ranks in $sizes; do
        suite "conform, $title, $ranks ranks" "$build/bin/conform" --heap cuda --engine "$engine" --ranks "$ranks" "$@"
        suite "streams, $title, $ranks ranks" "$build/bin/gpu" --engine "$engine" --ranks "$ranks" "$@"
    done
}

# ---- stages ----

mps() {
    with_mps || { skip "processes with MPS" "nvidia-cuda-mps-control is not there, or does not start"; return; }
    COHORT_TEST_SHARING=mps both 'processes with MPS' shm '4 2 1'
    for ranks in 2 4; do
        program "kernels, $ranks processes with MPS" "$build/bin/cohort" run -n $ranks -- "$build/bin/gpu-kernels" --brief
        program "heaps, $ranks processes with MPS" "$build/bin/cuda-heaps" processes $ranks
    done
}

# Threads of one process share the card without MPS. As clients of a server each such process takes 32 of its connections, of
# which there are few, and one that gets less can stand still. So without one, and one job at a time: contexts that take
# turns make each other's kernels wait. Then once as the only client of a server of its own.
threads() {
    wait
    local together=
    without_mps
    both threads threads '4 2 1'
    if own_mps 100; then
        suite 'conform, threads of a client of MPS, 4 ranks' "$build/bin/conform" --heap cuda --engine threads --ranks 4
        stop_mps
    fi
}

turns() {
    without_mps
    COHORT_TEST_SHARING=turns both 'processes without MPS' shm '4 2 1'
    for ranks in 1 2 4; do
        program "heaps, $ranks processes without MPS" "$build/bin/cuda-heaps" processes $ranks
    done
}

hosts() {
    with_mps || without_mps
    for ranks in 4 2; do
        suite "conform, two hosts, $ranks ranks" "$build/bin/conform" --heap cuda --engine tcp --hosts 2 --ranks $ranks
        suite "streams, two hosts, $ranks ranks" "$build/bin/gpu" --engine tcp --hosts 2 --ranks $ranks
    done
}

eight() {
    with_mps || { skip "eight ranks" "there is no MPS"; return; }
    suite "streams, processes with MPS, 8 ranks" "$build/bin/gpu" --engine shm --ranks 8
    CUDA_DEVICE_MAX_CONNECTIONS=32 suite "streams, threads, 8 ranks" "$build/bin/gpu" --engine threads --ranks 8
    program "kernels, 8 processes with MPS" "$build/bin/cohort" run -n 8 -- "$build/bin/gpu-kernels" --brief
}

killed_in() { # TITLE ENGINE
    for kind in $KINDS; do
        suite "killed before $kind, $1" "$build/bin/gpu" --engine "$2" --ranks 4 --case "killed_before_$kind" \
            --repeat "$REPEAT"
    done
}

killed_turns() {
    without_mps
    killed_in 'processes without MPS' shm
}

killed_mps() {
    with_mps || { skip "killed with MPS" "there is no MPS"; return; }
    killed_in 'processes with MPS' shm
}

# Without MPS, one process at a time: contexts that take turns make each other's kernels wait.
killed_threads() {
    wait
    local together=
    without_mps
    killed_in threads threads
}

# Threads without MPS, and by themselves: contexts that take turns would make each other's kernels wait.
delayed() {
    local cases='any_after_any_on_a_stream chained signals_on_a_stream rounds_in_order several_streams'
    with_mps || without_mps
    for case in $cases; do
        COHORT_TEST_DELAY=300 suite "delays, $case, shm" "$build/bin/gpu" --engine shm --ranks 4 --case $case --repeat "$DELAYED"
    done
    wait
    local together=
    without_mps
    for case in $cases; do
        COHORT_TEST_DELAY=300 suite "delays, $case, threads" "$build/bin/gpu" --engine threads --ranks 4 --case $case \
            --repeat "$DELAYED"
    done
}

has_nvshmem() { # WHAT
    local why
    with_mps || { skip "$1" "nvidia-cuda-mps-control is not there, or does not start"; return 1; }
    why=$("$build/bin/cohort" run -n 2 --engine nvshmem true 2>&1) || { skip "$1" "$why"; return 1; }
}

# Heaps on a card from NVSHMEM: both suites, its calls where nothing is mapped, the examples.
nvshmem() {
    has_nvshmem "engine nvshmem" || return
    for ranks in 4 2; do
        suite "conform, nvshmem, $ranks ranks" "$build/bin/conform" --heap cuda --engine nvshmem --ranks $ranks
    done
    # By themselves: beside them, in which ranks are killed, other clients have lost the server.
    wait
    together=
    for ranks in 4 2; do
        suite "streams, nvshmem, $ranks ranks" "$build/bin/gpu" --engine nvshmem --ranks $ranks
    done
    together=yes
    for ranks in 4 2; do
        for case in puts_and_gets_by_calls the_rest_by_calls collectives_by_calls; do
            COHORT_TEST_NVSHMEM_REACH=calls suite "$case, $ranks ranks" "$build/bin/gpu" --engine nvshmem --ranks $ranks \
                --case $case
        done
        for kind in all_reduce reduce_scatter all_gather all_to_all; do
            COHORT_NVSHMEM_COLLECTIVES=nvshmem suite "$kind by NVSHMEM's, $ranks ranks" "$build/bin/gpu" --engine nvshmem \
                --ranks $ranks --case "lengths_of_$kind"
        done
    done
    for ranks in 1 2 4; do
        for program in ring halo shift train_step; do
            program "example $program on nvshmem, $ranks ranks" "$build/bin/cohort" run -n $ranks --engine nvshmem \
                "$build/bin/cuda_$program"
        done
    done
}

# Ranks that die between operations of engine nvshmem, and in the kernel of one.
killed_nvshmem() {
    has_nvshmem "killed, nvshmem" || return
    killed_in nvshmem nvshmem
    wait
    local together=
    own_mps 25
    COHORT_TEST_BREAK_MPS=1 suite 'killed in its kernel, nvshmem' "$build/bin/gpu" --engine nvshmem --ranks 4 \
        --case killed_in_its_kernel
    stop_mps
}

# A figure for each operation beside NVSHMEM's own call.
beside_nvshmem() {
    wait
    local together=
    has_nvshmem "engine nvshmem beside NVSHMEM" || return
    for ranks in 2 4; do
        with_mps $((100 / ranks))
        program "engine nvshmem beside NVSHMEM, $ranks ranks" "$build/bin/cohort" bench gpu -n $ranks --engine nvshmem \
            --way stream --quick
    done
}

examples() {
    with_mps || without_mps
    for program in ring halo shift train_step; do
        for ranks in 1 2 4; do
            program "example $program, $ranks ranks" "$build/bin/cohort" run -n $ranks "$build/bin/cuda_$program"
        done
    done
    without_mps
    for program in ring halo shift train_step; do
        program "example $program without MPS, 2 ranks" "$build/bin/cohort" run -n 2 "$build/bin/cuda_$program"
    done
}

# Threads without MPS, and every kernel with the whole of the card.
alone() {
    wait
    together=
    without_mps
    for ranks in 1 2 4; do
        program "kernels, $ranks threads" "$build/bin/gpu-kernels" --threads $ranks --brief
        program "heaps, $ranks threads" "$build/bin/cuda-heaps" threads $ranks
    done
    if with_mps 100; then
        program "kernels, 2 processes with MPS and the whole card" \
            "$build/bin/cohort" run -n 2 -- "$build/bin/gpu-kernels" --brief
    fi
    together=yes
}

sanitizer() {
    wait
    without_mps
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || { skip "compute-sanitizer" "it is not installed"; return; }
    for tool in memcheck initcheck; do
        for program in ring halo train_step; do
            program "compute-sanitizer $tool, $program" compute-sanitizer --tool $tool --target-processes all \
                --error-exitcode 9 "$build/bin/cuda_$program"
        done
        for case in lengths_on_a_stream signals_on_a_stream atomics_on_a_stream; do
            suite "compute-sanitizer $tool, $case" compute-sanitizer --tool $tool --target-processes all \
                --error-exitcode 9 "$build/bin/gpu" --engine threads --ranks 2 --case $case
        done
    done
    wait
}

# A kill in a kernel may take the server with it, and so may a kernel that breaks its context.
in_kernel() {
    wait
    together=
    if own_mps 100; then
        COHORT_TEST_BREAK_MPS=1 suite 'killed in its kernel, processes with MPS' "$build/bin/gpu" --engine shm \
            --ranks 4 --case killed_in_its_kernel --repeat "$REPEAT"
        own_mps 100
        COHORT_TEST_BREAK_MPS=1 suite 'a kernel that breaks its context, with MPS' "$build/bin/gpu" --engine shm \
            --ranks 1 --case kernel_that_breaks_the_context
        own_mps 100
        program 'the next job, with a new server' "$build/bin/cohort" run -n 4 "$build/bin/cuda_ring"
    else
        skip 'killed in its kernel' 'there is no MPS'
    fi
    together=yes
}

without_mps
"$build/bin/gpu" --engine threads --ranks 1 --case cards_are_told >"$work/look.log" 2>&1
if [ $? = 77 ]; then
    tail -n 1 "$work/look.log"
    echo "test-gpu: 0 passed, 0 failed, 1 skipped"
    exit 77
fi
summarise() {
    local passed=0 failed=0 skipped=0 number good bad left
    for ((number = 1; number <= steps; number++)); do
        cat "$work/$number.said" 2>/dev/null || echo "step $number has not ended"
        read -r good bad left < <(cat "$work/$number.counts" 2>/dev/null) || { good=0 bad=1 left=0; }
        passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left))
    done
    echo "test-gpu: $passed passed, $failed failed, $skipped skipped in $SECONDS s"
    [ $failed = 0 ]
}
trap 'summarise; kill $(jobs -rp) 2>/dev/null; exit 1' TERM
for stage in $STAGES; do
    $stage
done
wait
summarise
