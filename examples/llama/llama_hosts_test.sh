#!/bin/sh
# llama_hosts_test.sh COHORT LLAMA MODEL - ranks on two hosts say what one rank says. The hosts are network namespaces where those can
# be made, else they are played.
set -u
export COHORT_PROFILE=described # measures nothing, keeps nothing in the home folder
unset SLURM_JOB_NODELIST COHORT_HOST

cohort=${1:?usage: llama_hosts_test.sh COHORT LLAMA MODEL}
llama=${2:?usage: llama_hosts_test.sh COHORT LLAMA MODEL}
model=${3:?usage: llama_hosts_test.sh COHORT LLAMA MODEL}
bed=$(dirname "$0")/../../scripts/testbed
name=l$(tr -dc a-z </dev/urandom | head -c 6)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tokens=40
prompt='And it came to pass, when the king of'

fail() {
    echo "llama_hosts_test: $*"
    exit 1
}

if [ "$(id -u)" = 0 ] && "$bed" --name "$name" up 2 2>/dev/null; then
    trap '"$bed" --name "$name" down; rm -rf "$work"' EXIT
    echo "on network namespaces"
else
    name=
    echo "on hosts that are played: network namespaces cannot be made here"
fi

over_hosts() { # ranks on each, program...
    each=$1
    shift
    if [ -n "$name" ]; then
        "$cohort" run --hosts "${name}1:$each,${name}2:$each" --shell 'ip netns exec' "$@"
    else
        "$cohort" run -n $((2 * each)) --pretend-hosts 2 "$@"
    fi
}

"$llama" -m "$model" -n $tokens -p "$prompt" -q >"$work/text" 2>&1 || fail "one rank: $(cat "$work/text")"
for layout in '2 1' '1 2' '2 2' '4 1'; do
    set -- $layout
    over_hosts $(($1 * $2 / 2)) "$llama" -m "$model" -t "$1" -s "$2" -n $tokens -p "$prompt" -q >"$work/other" 2>&1 \
        || fail "$layout: $(cat "$work/other")"
    cmp -s "$work/text" "$work/other" || fail "$layout: it says '$(cat "$work/other")', one rank '$(cat "$work/text")'"
done
echo "two hosts: tensor and pipeline say what one rank says"
