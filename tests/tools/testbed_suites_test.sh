#!/bin/bash
# testbed_suites_test.sh BIN [short|whole] - the suites with ranks on the hosts of a test bed, each a network namespace; where none
# can be made, on hosts that are played. docs/faults.md F35. RANKS and HOSTS, lists of numbers, choose what `whole` runs, and
# ENGINE (tcp) on what.
bin=$(realpath "${1:?usage: $0 FOLDER_OF_PROGRAMS [short|whole]}")
how=${2:-short}
bed=$(dirname "$0")/../../scripts/testbed
name=s$(tr -dc a-z </dev/urandom | head -c 6)
failed=0

if [ "$(id -u)" = 0 ] && "$bed" --name "$name" up 4 2>/dev/null; then
    trap '"$bed" --name "$name" down' EXIT
    on=(--testbed "$name")
    echo "on network namespaces"
else
    on=()
    echo "on hosts that are played: network namespaces cannot be made here"
fi

# suite PROGRAM ARGUMENTS...: its last lines, and all of them where it fails.
suite() {
    program=$1
    shift
    "$bin/$program" --engine "${ENGINE:-tcp}" "$@" ${on[@]+"${on[@]}"} >"/tmp/$name.log" 2>&1
    status=$?
    summary=$(grep -E '^\[  (PASSED|FAILED)  \]|^soak:' "/tmp/$name.log" | sort -u | head -n 12 | tr '\n' ' ')
    echo "$program $*: $summary"
    if [ "$status" != 0 ]; then
        grep -vE '^\[ (RUN|      OK) ' "/tmp/$name.log" | head -n 60
        failed=1
    fi
    rm -f "/tmp/$name.log"
}

if [ "$how" = whole ]; then
    for hosts in ${HOSTS:-2 4}; do
        for ranks in ${RANKS:-1 2 3 4 5 6 7}; do
            suite conform --hosts "$hosts" --ranks "$ranks"
        done
    done
    # With two of its four ranks on each host, and with each alone on its own, without a launcher.
    for hosts in ${HOSTS:-2 4}; do
        suite faults --hosts "$hosts"
    done
    exit "$failed"
fi

# Some of each: one-sided and messages, collectives by levels, worlds that come and go, a rank that dies.
for row in random_pairs jobs_one_after_another; do
    suite conform --hosts 2 --ranks 3 --case "$row"
done
suite conform --hosts 4 --ranks 5 --case scattered_members
suite faults --hosts 2 --ranks 4 --case killed_in_all_reduce
suite faults --hosts 4 --ranks 4 --case stopped_in_barrier # alone on its host
suite soak --hosts 4 --ranks 6 --seconds 3

# A network that loses packets and is slow: right, slower, nobody is accused.
if [ ${#on[@]} -gt 0 ] && command -v nft >/dev/null; then
    "$bed" --name "$name" down
    "$bed" --name "$name" up 2 --rate 10mbit --loss 5 || exit 1
    suite soak --hosts 2 --ranks 3 --seconds 4
fi
exit "$failed"
