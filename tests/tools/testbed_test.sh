#!/bin/bash
# scripts/testbed, and jobs over two of its hosts, which share nothing but a network: docs/faults.md F21 F29 F30 F31. Needs root.
. "$(dirname "$0")/common.sh"
bed=$(dirname "$0")/../../scripts/testbed
unset SLURM_JOB_NODELIST COHORT_HOST

"$bed" --help | grep -q '^usage: testbed' || fail "testbed --help"
"$bed" frobnicate >/dev/null 2>&1
[ $? = 2 ] || fail "the status of a wrong command"
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null; then
    echo "skipped: network namespaces need root, and ip"
    exit 77
fi
name=t$(tr -dc a-z </dev/urandom | head -c 6)
trap '"$bed" --name "$name" down; rm -rf "$folder"' EXIT
if ! "$bed" --name "$name" up 2 2>"$folder/err"; then
    echo "skipped: network namespaces cannot be made here: $(tail -n 1 "$folder/err")"
    exit 77
fi
"$bed" --name "$name" up 2 >/dev/null 2>&1 && fail "it is made twice"
[ "$("$bed" --name "$name" list | tr '\n' ' ')" = "${name}1 ${name}2 " ] || fail "testbed list"
"$bed" --name "$name" shell 2 ip -br address show eth0 | grep -q '10\.77\.0\.2/24' || fail "the address of host 2"

run 0 run --hosts "${name}1:1,${name}2:2" --shell 'ip netns exec' --tag-output ip -br address show eth0
[ "$(grep -c "^\[[12] ${name}2\].*10\.77\.0\.2/24" "$folder/out")" = 2 ] || fail "ranks are not on host 2"
[ "$(grep -c "^\[0 ${name}1\].*10\.77\.0\.1/24" "$folder/out")" = 1 ] || fail "rank 0 is not on host 1"
run 1 run --hosts "${name}1,${name}9" --shell 'ip netns exec' true
says err "host ${name}9: "

# Ranks that use the library: how one ended is known on the other host; and when the network is cut, both sides end.
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}
run 0 run --hosts "${name}1:2,${name}2:2" --shell 'ip netns exec' "$meet"
run 134 run --hosts "${name}1,${name}2" --shell 'ip netns exec' "$meet" crash
says err "rank 0: coh_barrier: rank 1 on host ${name}2 is lost: killed by signal 6 (Aborted)"
COHORT_LINK_TIMEOUT=2 "$cohort" run --hosts "${name}1:1,${name}2:1" --shell 'ip netns exec' \
    sh -c ': >"$1/$COHORT_RANK"; exec "$2" hang' sh "$folder" "$meet" >"$folder/out" 2>"$folder/err" </dev/null &
launcher=$!
wait_for 10 test -e "$folder/1" || fail "the job did not start"
sleep 1
ip -n "$name-bridge" link set v2 down
wait "$launcher"
[ $? = 9 ] || fail "the status of a job whose network was cut"
says err "rank 1 on host ${name}2 is lost: its host has not answered for 2 s"

# cut_off WHAT COMMAND...: a job on all hosts, one rank each, waits in a barrier when COMMAND cuts the network. All of its ranks
# end with an error, and within the link timeout of 2 s and one second more.
cut_off() {
    what=$1
    shift
    rm -f "$folder"/started*
    hosts=$("$bed" --name "$name" list | tr '\n' ',')
    count=$("$bed" --name "$name" list | wc -l)
    COHORT_LINK_TIMEOUT=2 "$cohort" run --hosts "${hosts%,}" --shell 'ip netns exec' --keep-going --tag-output \
        sh -c ': >"$1/started$COHORT_RANK"; exec "$2" hang' sh "$folder" "$meet" >"$folder/out" 2>"$folder/err" </dev/null &
    launcher=$!
    wait_for 10 test -e "$folder/started$((count - 1))" || fail "$what: the job did not start"
    sleep 1
    began=$(now_ms)
    "$@" || fail "$what: the network could not be cut"
    for rank in $(seq 0 $((count - 1))); do
        [ "$rank" = 1 ] || wait_for 4 grep -qE "^\[$rank .*rank [0-9] .*has not answered for 2 s" "$folder/err" \
            || fail "$what: rank $rank has not said that another's host does not answer"
    done
    took=$(($(now_ms) - began))
    kill -TERM "$launcher"
    wait "$launcher"
    [ "$took" -lt 4000 ] || fail "$what: it took $took ms"
    echo "$what: all ranks know after $took ms"
}
"$bed" --name "$name" down
"$bed" --name "$name" up 2 || fail "a second test bed of that name"
cut_off "a link that is half open" ip -n "${name}1" route add blackhole 10.77.0.2/32
"$bed" --name "$name" down

# Two halves of two hosts each: rank 1, which computes, is in the first.
"$bed" --name "$name" up 4 || fail "four hosts"
two_halves() {
    ip -n "$name-bridge" link add other type bridge && ip -n "$name-bridge" link set other up \
        && ip -n "$name-bridge" link set v3 master other && ip -n "$name-bridge" link set v4 master other
}
cut_off "a network in two halves" two_halves
grep -qE "^\[0 .*rank [23] on host ${name}[34] is lost" "$folder/err" || fail "the first half does not name a rank of the second"
grep -qE "^\[3 .*rank [01] on host ${name}[12] is lost" "$folder/err" || fail "the second half does not name a rank of the first"

# What a bad network does is said by the kernel's own counters. A maker that is killed leaves what can be taken away.
"$bed" --name "$name" down
if command -v nft >/dev/null; then
    "$bed" --name "$name" up 2 --rate 10mbit --loss 5 || fail "testbed up --rate --loss"
    began=$(now_ms)
    run 0 run --hosts "${name}1:2,${name}2:1" --shell 'ip netns exec' "$meet"
    ip netns exec "$name-bridge" nft list ruleset | grep -qE 'counter packets [1-9]' || fail "no packet got lost"
    "$bed" --name "$name" shell 1 tc -s qdisc show dev eth0 | grep -q 'tbf.*10Mbit' || fail "the rate has no limit"
    "$bed" --name "$name" down
else
    echo "without nftables: --loss was not tried"
fi
"$bed" --name "$name" up 2 --loss 101 2>"$folder/err" && fail "--loss 101"
says err "'101' is not a number of packets of a hundred"
"$bed" --name "$name" up 2 --rate slow 2>"$folder/err" && fail "--rate slow"
[ -z "$("$bed" --name "$name" list)" ] || fail "a test bed that cannot be made leaves something"
"$bed" --name "$name" up 100 &
maker=$!
wait_for 5 ip netns pids "${name}3" 2>/dev/null
kill -KILL "$maker"
wait "$maker" 2>/dev/null
[ -n "$("$bed" --name "$name" list)" ] || fail "the maker was not killed in the middle of it"
"$bed" --name "$name" down
[ -z "$(ip netns list | grep "^$name")" ] || fail "something is left of a crash"
"$bed" --name "$name" up 1 || fail "it cannot be made after a crash"

# What runs there ends with it.
"$bed" --name "$name" shell 1 sh -c 'echo $$; exec sleep 100' >"$folder/pid" &
wait_for 5 lines "$folder/pid" 1 || fail "nothing runs on host 1"
"$bed" --name "$name" down
all_dead "$folder/pid" || fail "a process outlives the test bed"
[ -z "$("$bed" --name "$name" list)" ] || fail "hosts are left"
wait 2>/dev/null
echo "testbed: two hosts, made and taken away"
