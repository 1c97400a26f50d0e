#!/bin/bash
# `cohort ps` and `cohort info`.
. "$(dirname "$0")/common.sh"

# valid: out is JSON, where something here can tell.
valid() {
    if command -v jq >/dev/null; then
        jq -e . "$folder/out" >/dev/null || fail "not JSON"
    elif command -v python3 >/dev/null; then
        python3 -m json.tool "$folder/out" >/dev/null || fail "not JSON"
    fi
}

run 0 info
says out "cuda: not available: this build has no CUDA module"
says out "cohort $("$cohort" version | cut -d' ' -f2)"
for word in shm threads sim COHORT_HEAP COHORT_STALL "cores usable" "memory available" kernel; do
    says out "$word"
done
COHORT_WARN=9 "$cohort" info >"$folder/out"
grep -qE 'COHORT_WARN +9 +environment' "$folder/out" || fail "the origin of a setting"
COHORT_WARN=later "$cohort" info >"$folder/out"
says out "COHORT_WARN: 'later' is not a time"

# The launcher that would be used, and why another would not: the innermost first, then the one that carries the id.
launchers="TORCHELASTIC_RUN_ID= MLX_RANK= MLX_HOSTFILE= PMIX_NAMESPACE= PMIX_RANK= PMI_FD= PMI_RANK= PMI_SIZE= WORLD_SIZE= \
    SLURM_STEP_NUM_TASKS= OMPI_COMM_WORLD_SIZE="
# used NAME VARIABLE...: it is the one and only, with these variables.
used() {
    name=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    env $launchers "$@" "$cohort" info >"$folder/out" || fail "cohort info with $*"
    [ "$(sed -n '/^launchers/,/^settings/p' "$folder/out" | grep -cE '  yes  ')" = 1 ] || fail "one is used, with $*"
    grep -qE "^  $name +yes +" "$folder/out" || fail "$name is used with $*"
}
all="SLURM_STEP_NUM_TASKS=2 WORLD_SIZE=2"
# shellcheck disable=SC2086 # a list of words
{
    used Slurm SLURM_STEP_NUM_TASKS=2
    used environment $all
    used PMI-1 $all PMI_FD=5 PMI_RANK=0 PMI_SIZE=2
    all="$all PMI_FD=5 PMI_RANK=0 PMI_SIZE=2 PMIX_NAMESPACE=x PMIX_RANK=0"
    used PMIx $all
    used mlx.launch $all MLX_RANK=0
    used torchrun $all TORCHELASTIC_RUN_ID=none MLX_RANK=0
    used 'cohort run' $all TORCHELASTIC_RUN_ID=none COHORT_RANK=0
    used 'another launcher' OMPI_COMM_WORLD_SIZE=2
    used PMIx OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=x PMIX_RANK=0 WORLD_SIZE=1
    grep -qE '^  environment +no +WORLD_SIZE=1; it started one process$' "$folder/out" || fail "one process"
    grep -qE '^  another launcher +no +OMPI_COMM_WORLD_SIZE=2; PMIx goes first$' "$folder/out" || fail "who goes first"
    env $launchers "$cohort" info >"$folder/out"
}
says out "none: a program that is started like this is a world of one"
COHORT_SECRET=0123456789 "$cohort" info >"$folder/out"
grep -q 0123456789 "$folder/out" && fail "a secret was shown"
says out "(not shown)"
run 0 info --json
valid
for word in '"engines"' '"COHORT_HEAP"' '"origin"' '"cores_usable"' '"host_id"'; do
    says out "$word"
done
"$cohort" info >/dev/full 2>"$folder/err" && fail "output that cannot be written is no success"

# Collectives: the algorithms, the model and where it comes from, the choice for each number of ranks.
unset COHORT_PROFILE COHORT_KERNELS COHORT_DETERMINISTIC COHORT_ALL_REDUCE COHORT_BROADCAST
export XDG_CACHE_HOME="$folder/nothing"
run 0 info --collectives -n 1,2,3
says out "model, described"
says out "with private memory the same calls are staged"
for count in "1 rank," "2 ranks, engine threads" "3 ranks,"; do says out "$count"; done
for row in 'all_reduce +one-shot, two-shot, staged +recursive-doubling\*, halving-doubling\*, ring\*, pairwise, native\* +two-level\*, two-level-ordered$' \
    'broadcast +one-shot to [0-9]+ K?i?B, direct$' 'message_byte +0\.[0-9]+ +0\.[0-9]+ +ns/byte'; do
    grep -qE "^  $row" "$folder/out" || fail "no line '$row'"
done
[ "$(grep -cE '^  scan +' "$folder/out")" = 4 ] || fail "a scan for the algorithms and each number of ranks"

# It is the choice of these settings: a model in which lines are dear, an algorithm by name, no mapping.
printf 'cohort any\ncpu any\ncores any\nkernel any\nrow line 1000000 tuned 1 1\nend 1\n' >"$folder/profile"
COHORT_PROFILE=$folder/profile COHORT_KERNELS=portable run 0 info --collectives -n 2
says out "model, from $folder/profile"
grep -qE '^  line +1000000 +100 +ns ' "$folder/out" || fail "the constant of the file"
grep -qE '^  all_reduce +one-shot to 32 KiB, two-shot$' "$folder/out" || fail "the choice by the file"
says out "[portable]"
COHORT_ALL_REDUCE=one-shot run 0 info --collectives -n 2
grep -qE '^  all_reduce +one-shot to 32 KiB, none$' "$folder/out" || fail "what cannot do the call"
COHORT_ENGINE=sim run 0 info --collectives -n 3
grep -qE '^  gather +linear$' "$folder/out" || fail "the choice without mapping"
COHORT_ENGINE=sim COHORT_DETERMINISTIC=1 run 0 info --collectives -n 8
grep -qE '^  all_reduce +pairwise$' "$folder/out" || fail "the choice in rank order"
COHORT_ALL_REDUCE=rung run 1 info --collectives
says err "there are auto, one-shot"
run 0 info --collectives --json
valid
for word in '"kernels"' '"profile_file": null' '"rank_order": false' '"symmetric": true' '"to_bytes": 1073741824' '"unit": "ns/byte"'; do
    says out "$word"
done
run 2 info --collectives -n 2,none
says err "'none' is not a whole number"
run 2 info -n 2
says err "--ranks is for --collectives"

# A job of three ranks is shown while it runs, and not after.
mark=$folder/a-program-to-be-seen
printf '#!/bin/sh\necho >>"$1"\nsleep 100\n' >"$mark"
chmod +x "$mark"
"$cohort" run -n 3 "$mark" "$folder/ready" >/dev/null 2>&1 </dev/null &
launcher=$!
wait_for 10 lines "$folder/ready" 3 || fail "the job did not start"
run 0 ps
name=$(printf '%.63s' "$mark")
says out "$name: launcher $launcher, ranks 3"
says out "RANK"
run 0 ps --json
valid
says out "\"launcher\": $launcher"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
gone() { ! "$cohort" ps | grep -qF "launcher $launcher,"; }
wait_for 2 gone || fail "a dead job is still shown"
echo "look: passed"
