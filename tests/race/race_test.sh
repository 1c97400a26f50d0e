#!/bin/sh
# race_test.sh COHORT RACE TIMES [ENGINE [NAME]] - under the race check each omission is found TIMES
# times out of TIMES, and the same program without it is right as often, on shm and threads.
#
# Prints a line for each omission and engine; `make race-check` runs it with 50.
set -u

cohort=$1 race=$2 times=$3 engines=${4:-shm threads} only=${5:-}
failed=0
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
unset COHORT_CHECK COHORT_ENGINE

# run ENGINE FLAGS... - one run under the check; its status.
run() {
    engine=$1
    shift
    case $engine in
    shm) timeout 60 "$cohort" run -n 3 --race-check "$race" "$@" ;;
    threads) COHORT_CHECK=order timeout 60 "$race" --threads 3 "$@" ;;
    esac >"$output" 2>&1
}

# count WANTED ENGINE FLAGS... - how many of the runs ended so; shows one that did not.
count() {
    wanted=$1
    shift
    good=0 i=0
    while [ $i -lt "$times" ]; do
        i=$((i + 1))
        run "$@"
        status=$?
        if [ $status -eq "$wanted" ]; then
            good=$((good + 1))
        elif [ $good -ge $((i - 1)) ]; then
            { echo "race_test: $*: status $status, not $wanted"; cat "$output"; } >&2
        fi
    done
    echo $good
}

# A program that does not look at what its calls return: the launcher says it, and fails.
tells_the_deaf() {
    run shm --deaf get_without_quiet
    [ $? -eq 1 ] && grep -q '^cohort run: race: rank .*coh_get: .*coh_put of this rank itself' "$output" \
        && run shm --deaf --mended get_without_quiet
}

# What nobody waited for is told at the end, though no call named it.
tells_of_late_puts() {
    run shm --linger halo_without_wait
    grep -q 'warning: rank [0-9]: [0-9]* puts and signals came late, .* the first was coh_put' "$output"
}

case $engines in
*shm*)
    tells_of_late_puts || { echo "race_test: puts that nobody waited for are not told of"; cat "$output"; failed=1; }
    tells_the_deaf || { echo "race_test: cohort run does not tell of a race"; cat "$output"; failed=1; }
    ;;
esac

for engine in $engines; do
    while read -r name found; do
        [ -z "$only" ] || [ "$only" = "$name" ] || continue
        caught=$(count "$found" "$engine" "$name")
        passed=$(count 0 "$engine" --mended "$name")
        echo "$engine $name: found $caught of $times, mended right $passed of $times"
        [ "$caught" -eq "$times" ] && [ "$passed" -eq "$times" ] || failed=1
    done <<EOF
$("$race" --list)
EOF
done
exit $failed
