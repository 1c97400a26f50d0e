#!/bin/sh
# cross_test.sh ROOT - the kernels and their tests built for 64-bit Arm, run by an emulator: NEON,
# and portable C on another architecture.
#
# cmocka is not there for it, so the tests bring the few names of it that they use.
set -eu

root=${1:?usage: cross_test.sh ROOT}
compiler=${CROSS_CC:-aarch64-linux-gnu-gcc}
emulator=${CROSS_EMULATOR:-qemu-aarch64-static}

for tool in "$compiler" "$emulator"; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "skipped: there is no $tool; scripts/need-packages cross installs it"
        exit 77
    fi
done

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
if ! echo 'int main(void) { return 0; }' |
    "$compiler" -static -x c - -o "$work/probe" 2>/dev/null; then
    echo "skipped: $compiler cannot link a static program; libc6-dev-arm64-cross is needed"
    exit 77
fi

flags="-O2 -std=gnu11 -D_GNU_SOURCE -ffp-contract=off -Wall -Wextra -Wshadow -Wstrict-prototypes
    -Wconversion -Werror -DKERNELS_WITHOUT_CMOCKA -I$root/include -I$root/src"
objects=
for source in base/dtype base/error base/host memory/convert memory/copy_forms memory/host_copy memory/kernels \
    memory/kernels_neon memory/kernels_portable memory/profile memory/reduce; do
    object="$work/$(basename "$source").o"
    # shellcheck disable=SC2086 # a list of words
    "$compiler" $flags -c "$root/src/$source.c" -o "$object"
    objects="$objects $object"
done
for test in convert reduce; do
    # shellcheck disable=SC2086 # lists of words
    "$compiler" $flags -static "$root/tests/unit/${test}_test.c" $objects -lm -o "$work/$test"
    "$emulator" "$work/$test"
done
