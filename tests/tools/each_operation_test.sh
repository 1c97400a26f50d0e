#!/bin/bash
# each_operation_test.sh COHORT STRIKE [kill|stop] [TIMES] [OPERATION...] - the last rank of four, on the second of two
# hosts, is killed or stopped in each operation. All others must be told which rank, on which host, and what became of it,
# within LIMIT_MS (1000): docs/faults.md F29 F32. On a test bed where one can be made, else on hosts that are played.
cohort=${1:?usage: $0 PATH_TO_COHORT PATH_TO_STRIKE [kill|stop] [TIMES] [OPERATION...]}
strike=$(realpath "${2:?}")
how=${3:-kill}
times=${4:-1}
shift $(($# < 4 ? $# : 4))
. "$(dirname "$0")/common.sh" "$cohort"
limit=${LIMIT_MS:-1000}
bed=$(dirname "$0")/../../scripts/testbed
unset SLURM_JOB_NODELIST COHORT_HOST

name=e$(tr -dc a-z </dev/urandom | head -c 6)
if [ "$(id -u)" = 0 ] && "$bed" --name "$name" up 2 2>/dev/null; then
    trap '"$bed" --name "$name" down; rm -rf "$folder"' EXIT
    where="two network namespaces"
    first=${name}1 last=${name}2
    hosts=(--hosts "$first:2,$last:2" --shell 'ip netns exec')
else
    where="two hosts that are played"
    first=host0 last=host1
    hosts=(-n 4 --pretend-hosts 2)
fi

if [ "$how" = stop ]; then
    fault='(is|was|has) stalled: stopped'
    export COHORT_STALL=1 COHORT_WARN=500ms
    limit=$((limit + 1000))
else
    fault='(is|was) lost: killed by signal 9 [(]Killed[)]'
fi
[ $# -gt 0 ] || set -- $("$strike" list)
good=0 all=0 worst=0
for operation; do
    for _ in $(seq "$times"); do
        rm -f "$folder/stamp"
        timeout 60 "$cohort" run "${hosts[@]}" --env "COHORT_FAULT=$how@$operation:40,rank=3" "$strike" "$operation" "$folder/stamp" \
            >"$folder/out" 2>"$folder/err" </dev/null
        status=$?
        all=$((all + 1))
        right=$(grep '^told [012] ' "$folder/out" | grep -cE "rank 3 on host $last $fault")
        slowest=$(awk '/^told/ && $3 > most { most = $3 } END { print most + 0 }' "$folder/out")
        [ "$slowest" -le "$worst" ] || worst=$slowest
        if [ "$right" = 3 ] && [ "$slowest" -le "$limit" ]; then
            good=$((good + 1))
        else
            echo "$operation: status $status, $right of 3 ranks were told it as it was, the last after $slowest ms"
            grep '^told' "$folder/out"
            tail -n 3 "$folder/err"
        fi
    done
done
echo "each operation, $how, on $where: $good of $all told on all ranks with host and cause, after at most $worst ms"
[ "$good" = "$all" ]
