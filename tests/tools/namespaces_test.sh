#!/bin/bash
# Ranks of two hosts that share nothing but a network: two network namespaces joined by a veth pair, two ranks in
# each, which find each other by a unique id. Skipped where namespaces cannot be made. docs/faults.md F24.
. "$(dirname "$0")/common.sh"
by_id=${2:?usage: $0 PATH_TO_COHORT PATH_TO_BY_ID}
one=cohort-$$-1 two=cohort-$$-2

leave() {
    ip netns del "$one" 2>/dev/null
    ip netns del "$two" 2>/dev/null
    rm -rf "$folder"
}
trap leave EXIT

# make_network: both ends up, with addresses of both families where the kernel has IPv6.
make_network() {
    ip netns add "$one" && ip netns add "$two" \
        && ip link add "v$$a" netns "$one" type veth peer name "v$$b" netns "$two" \
        && ip -n "$one" addr add 10.77.0.1/24 dev "v$$a" && ip -n "$two" addr add 10.77.0.2/24 dev "v$$b" \
        && ip -n "$one" link set lo up && ip -n "$two" link set lo up \
        && ip -n "$one" link set "v$$a" up && ip -n "$two" link set "v$$b" up || return 1
    ip -n "$one" addr add fd77::1/64 dev "v$$a" nodad 2>/dev/null
    ip -n "$two" addr add fd77::2/64 dev "v$$b" nodad 2>/dev/null
    return 0
}
carries() { ip -n "$1" -o link show up | grep -q 'v[0-9]*[ab].*LOWER_UP'; }

command -v ip >/dev/null && make_network 2>/dev/null || { echo "no network namespaces can be made here"; exit 77; }
wait_for 5 carries "$one" && wait_for 5 carries "$two" || { echo "no veth pair can be made here"; exit 77; }

# rank NAMESPACE RANK [wrong]: in the background, with its output in files.
rank() {
    nsenter --net="/run/netns/$1" "$by_id" "$2" 4 "$folder/id" ${3:-} >"$folder/out$2" 2>"$folder/err$2" </dev/null &
    pids="${pids:-} $!"
}

# all_end STATUS: all ranks of the last job end with it.
all_end() {
    for pid in $pids; do
        wait "$pid"
        status=$?
        [ "$status" = "$1" ] || { cat "$folder"/err?; fail "a rank ended with $status, expected $1"; }
    done
    cat "$folder"/out? >"$folder/out"
    cat "$folder"/err? >"$folder/err"
    rm -f "$folder/id" "$folder"/out? "$folder"/err?
    pids=
}

# job [SUBNET]: two ranks in each namespace, all of which must do well.
job() {
    export COHORT_NET_INTERFACE=$1
    rank "$two" 3; rank "$two" 2; rank "$one" 1; rank "$one" 0
    all_end 0
    [ "$(grep -c ', 2 on its host, was sent' "$folder/out")" = 4 ] || fail "four ranks, two on each host"
}

export COHORT_INIT_TIMEOUT=20 COHORT_LOG=info
job 10.77.0.0/24
says err "rank 0 listens for other hosts at 10.77.0.1"
if ip -n "$one" -o addr show | grep -q fd77::1; then
    job fd77::/64
    says err "rank 0 listens for other hosts at fd77::1"
fi

# Another secret on the second host: that is told to it at once, and rank 0's job does not come together.
export COHORT_NET_INTERFACE=10.77.0.0/24 COHORT_INIT_TIMEOUT=3
rank "$two" 2 wrong; rank "$two" 3 wrong; rank "$one" 1; rank "$one" 0
all_end 1
says err "cannot join by rank 0 at 10.77.0.1"
says err "2 of 4 ranks have come; missing: rank 2, 3"

# Nobody at the address: what was called is in the message.
export COHORT_INIT_TIMEOUT=2
rank "$one" 0 && sleep 0.3
ip -n "$two" link set "v$$b" down
rank "$two" 2
all_end 1
says err "10.77.0.1 port"
