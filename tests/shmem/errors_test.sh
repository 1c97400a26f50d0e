#!/bin/sh
# errors_test.sh OSHRUN MISUSE - each mistake gives a message with the PE and the call, and ends the whole
# job with a status that is not 0, within a second or so.
set -u
oshrun=${1:?usage: errors_test.sh OSHRUN MISUSE}
misuse=${2:?usage: errors_test.sh OSHRUN MISUSE}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "FAILED: $*" >&2
    head -c 2000 "$folder/err" >&2
    exit 1
}

# mistake NAME TEXT...: all texts are in what the job says.
mistake() {
    name=$1
    shift
    begun=$(date +%s)
    "$oshrun" -n 2 --timeout 15 "$misuse" "$name" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    took=$(($(date +%s) - begun))
    [ "$status" -ne 0 ] || fail "$name: the status is 0"
    [ "$status" -ne 124 ] || fail "$name: it was ended by its time limit"
    [ "$took" -le 5 ] || fail "$name: it took $took s"
    grep -q coh_global_exit "$folder/err" && fail "$name: a call of Cohort's is named"
    grep -qE 'signal (4|6|7|8|11)\b' "$folder/err" && fail "$name: a PE crashed"
    grep -E '^shmem:.*\<(ranks?|coh_[a-z_]*|Cohort)\>' "$folder/err" >"$folder/foreign" &&
        fail "$name: words that are not OpenSHMEM's: $(cat "$folder/foreign")"
    for text; do
        grep -qE -- "$text" "$folder/err" || fail "$name: '$text' is not said"
    done
}

mistake bad_pe 'PE [01]: shmem_long_p\(' 'pe=2'
mistake not_symmetric 'PE [01]: shmem_long_p\(' 'not in the symmetric'
mistake freed_twice 'PE [01]: shmem_free\(' 'freed before'
mistake mismatch 'PE [01]: shmem_' 'barrier' 'all_reduce'
mistake bad_root 'PE [01]: shmem_long_broadcast\(' 'PE_root=5'
mistake past_the_end 'PE [01]: shmem_putmem\(' 'nelems=1125899906842624'
mistake before_init 'shmem_long_p: the library is not initialized'
echo "7 mistakes, each told and ended"
