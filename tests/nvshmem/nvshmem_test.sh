#!/bin/bash
# nvshmem_test.sh COHORT LIBRARY MODULES PROGRAM - engine nvshmem where NVSHMEM is missing, of another release, or
# lacks functions; and that nothing else changes. Needs no card: it says why the engine cannot be used, and by name.
#
# LIBRARY has NVSHMEM's name and tells a version (told_version.c); PROGRAM is cuda_ring.
set -u
cohort=$1 library=$2 modules=$3 program=$4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
export COHORT_MODULES=$modules
unset COHORT_ENGINE LD_LIBRARY_PATH
# Where no Python is, so that one which has NVSHMEM does not help.
export HOME=$work VIRTUAL_ENV='' CONDA_PREFIX=''

expect() { # WHAT TEXT WORDS...: the text has all the words
    local what=$1 text=$2 word
    shift 2
    for word in "$@"; do
        case $text in
        *"$word"*) ;;
        *) echo "$what: '$word' is not in: $text"; failed=1 ;;
        esac
    done
}

row() { "$cohort" info --json | tr -d '\n' | grep -o '"name": *"nvshmem"[^}]*'; }

# Not installed. An installation that the loader or Python knows of is left alone: then there is nothing to see.
text=$(row)
case $text in
*'not installed'*)
    expect 'missing' "$text" '"available": false' 'libnvshmem_host.so.3' COHORT_NVSHMEM
    ;;
esac

COHORT_NVSHMEM=$work/nothing.so
export COHORT_NVSHMEM
expect 'a file that is not there' "$(row)" '"available": false' "$work/nothing.so" 'cannot be loaded'

# Of another release: both numbers. In all known ones the next thing is missing, a function.
export COHORT_NVSHMEM=$library
for version in 2.11.0 3.3.24 3.9.0 4.0.0; do
    TEST_NVSHMEM_VERSION=$version
    export TEST_NVSHMEM_VERSION
    expect "release $version" "$(row)" '"available": false' "NVSHMEM $version" '3.4 to 3.8'
done
for version in 3.4.5 3.5.19 3.6.5 3.7.2 3.8.0; do
    TEST_NVSHMEM_VERSION=$version
    expect "release $version" "$(row)" '"available": false' "NVSHMEM $version" 'has no function'
done

# A folder is as good as the file in it.
COHORT_NVSHMEM=$(dirname "$library")
expect 'a folder' "$(row)" 'has no function'

# By name it is refused with that reason, by the launcher and by the ranks; `any` does not ask for it.
text=$("$cohort" run -n 2 --engine nvshmem "$program" 2>&1)
[ $? != 0 ] || { echo "cohort run --engine nvshmem went on: $text"; failed=1; }
expect 'by the launcher' "$text" 'NVSHMEM 3.8.0' 'has no function'
text=$(COHORT_ENGINE=tcp+nvshmem "$cohort" run -n 2 "$program" 2>&1)
[ $? != 0 ] || { echo "COHORT_ENGINE=tcp+nvshmem went on: $text"; failed=1; }
expect 'by the ranks' "$text" 'NVSHMEM 3.8.0' 'has no function'
text=$("$cohort" run -n 2 --engine shm+other "$program" 2>&1)
expect 'an unknown one behind the plus' "$text" "there is no engine 'shm+other'"
text=$("$cohort" run -n 2 true 2>&1) || { echo "without it: $text"; failed=1; }

exit $failed
