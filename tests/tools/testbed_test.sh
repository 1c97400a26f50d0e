#!/bin/bash
# scripts/testbed, and jobs over two of its hosts, which share nothing but a network: docs/faults.md F29 F30 F31. Needs root.
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

# What runs there ends with it.
"$bed" --name "$name" shell 1 sh -c 'echo $$; exec sleep 100' >"$folder/pid" &
wait_for 5 lines "$folder/pid" 1 || fail "nothing runs on host 1"
"$bed" --name "$name" down
all_dead "$folder/pid" || fail "a process outlives the test bed"
[ -z "$("$bed" --name "$name" list)" ] || fail "hosts are left"
wait 2>/dev/null
echo "testbed: two hosts, made and taken away"
