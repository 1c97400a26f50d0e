#!/bin/sh
# cross_test.sh ROOT LIBRARIES COHORT - all of Cohort built for 64-bit Arm; then the tests of the kernels, NEON and portable C,
# and a job of two ranks run by an emulator.
#
# LIBRARIES is the folder where scripts/foreign-packages unpacked jansson for it; where it is not, libcohort alone is
# built. COHORT is the host's launcher. cmocka is not there for it, so the tests bring the few names of it that they use.
set -eu

root=$(cd "${1:?usage: cross_test.sh ROOT LIBRARIES COHORT}" && pwd)
libraries=${2:?usage: cross_test.sh ROOT LIBRARIES COHORT}
cohort=${3:?usage: cross_test.sh ROOT LIBRARIES COHORT}
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

fail() {
    echo "cross_test: $*" >&2
    exit 1
}

# OpenBLAS is opened at run time: its header is all that is needed, and the host's is the same.
what=-DCOHORT_ML=OFF
if jansson=$(find "$libraries" -name jansson.pc 2>/dev/null) && [ -n "$jansson" ] && pkg-config --exists openblas; then
    mkdir "$work/pkgconfig"
    cp "$jansson" "$work/pkgconfig"
    sed -i "s,^prefix=.*,prefix=$(cd "$libraries" && pwd)/usr," "$work/pkgconfig/jansson.pc"
    printf 'Name: openblas\nDescription: its header\nVersion: 0\nCflags: %s\n' "$(pkg-config --cflags openblas)" \
        >"$work/pkgconfig/openblas.pc"
    PKG_CONFIG_LIBDIR=$work/pkgconfig
    export PKG_CONFIG_LIBDIR
    what=-DCOHORT_TOOLS=ON
fi

# Where the emulator finds the loader and the C library.
QEMU_LD_PREFIX=$(dirname "$(dirname "$("$compiler" -print-file-name=libc.so.6)")")
export QEMU_LD_PREFIX

# The kernels are optimised as in a release; the rest is about warnings and what is declared, and -O1 is quicker.
cmake -S "$root" -B "$work/build" -G Ninja -DCOHORT_CUDA=OFF -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CROSSCOMPILING_EMULATOR="$(command -v "$emulator")" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS='-O1 -g0' -DCOHORT_TESTS=OFF -DCOHORT_WERROR=ON "$what" \
    >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "$(grep -v '^\[' "$work/log" | head -n 40)"

for test in convert reduce; do
    "$compiler" -O1 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -DKERNELS_WITHOUT_CMOCKA -I"$root/include" -I"$root/src" \
        -static "$root/tests/unit/${test}_test.c" -L"$work/build/lib" -lcohort -lm -o "$work/$test"
done
"$emulator" "$work/convert" &
"$emulator" "$work/reduce"
wait $!

"$compiler" -static -I"$root/include" "$root/examples/ring.c" -L"$work/build/lib" -lcohort -o "$work/ring"
"$emulator" "$work/ring" >"$work/out" || fail "a rank alone: $(cat "$work/out")"
# The host's launcher: the emulator has no way to adopt processes (PR_SET_CHILD_SUBREAPER).
COHORT_PROFILE=described "$cohort" run -n 2 "$emulator" "$work/ring" >"$work/out" 2>&1 || fail "two ranks: $(cat "$work/out")"
[ "$(grep -c 'was sent' "$work/out")" = 2 ] || fail "two ranks say: $(cat "$work/out")"
if [ "$what" = -DCOHORT_ML=OFF ]; then
    echo "cross_test: the tool was left out: jansson for it is not in $libraries; scripts/foreign-packages gets it"
    exit 0
fi
COHORT_PROFILE=described "$emulator" "$work/build/bin/cohort" info >"$work/out" 2>&1 || fail "cohort info: $(cat "$work/out")"
grep -q aarch64 "$work/out" || fail "cohort info does not know where it is: $(cat "$work/out")"
echo "cross_test: all of it is built; two ranks run, and the tool"
