#!/bin/bash
# Ranks with a stack of 64 KiB, of which the loader and the environment take a part: a quarter of it
# is enough most of the time, but where the kernel puts the stack varies.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}

small='ulimit -s 64 && exec "$0" "$@"'
env -i sh -c "$small" /bin/true || { echo "no program runs with a stack of 64 KiB here"; exit 77; }
for profile in described "$folder/profile"; do
    env -i COHORT_PROFILE="$profile" sh -c "$small" "$meet" 2>"$folder/err" \
        || fail "one rank with a small stack, profile $profile"
    env -i COHORT_PROFILE="$profile" "$cohort" run -n 3 sh -c "$small" "$meet" 2>"$folder/err" \
        || fail "three ranks with small stacks, profile $profile"
done
echo "stack: passed"
