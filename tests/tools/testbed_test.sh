#!/bin/bash
# scripts/testbed, and a job over two of its hosts; needs root.
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

# What runs there ends with it.
"$bed" --name "$name" shell 1 sh -c 'echo $$; exec sleep 100' >"$folder/pid" &
wait_for 5 lines "$folder/pid" 1 || fail "nothing runs on host 1"
"$bed" --name "$name" down
all_dead "$folder/pid" || fail "a process outlives the test bed"
[ -z "$("$bed" --name "$name" list)" ] || fail "hosts are left"
wait 2>/dev/null
echo "testbed: two hosts, made and taken away"
