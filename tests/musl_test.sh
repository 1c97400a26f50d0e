#!/bin/sh
# musl_test.sh ROOT COHORT - the headers and libcohort compile with musl without a warning, and two ranks run on them.
#
# COHORT, the launcher, is of another C library; ranks and launcher agree all the same.
set -eu

root=$(cd "${1:?usage: musl_test.sh ROOT COHORT}" && pwd)
cohort=${2:?usage: musl_test.sh ROOT COHORT}
compiler=${MUSL_CC:-musl-gcc}
if ! command -v "$compiler" >/dev/null 2>&1; then
    echo "skipped: there is no $compiler; scripts/need-packages musl installs it"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "musl_test: $*" >&2
    exit 1
}

# Its headers are musl's alone: the kernel's, which Alpine has among them, are the host's.
kernel="-idirafter /usr/include -idirafter /usr/include/$(cc -print-multiarch 2>/dev/null)"

for header in cohort.h cohort-collectives.h cohort-ml.h cohort-graph.h; do
    echo "#include <$header>" | "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$root/include" -fsyntax-only -x c - \
        || fail "$header does not compile with musl"
done

# Without optimisation, since this is about what musl has; the presets ask for what the optimiser sees. Its macro CMSG_NXTHDR
# converts signs.
cmake -S "$root" -B "$work/build" -G Ninja -DCOHORT_CUDA=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_C_FLAGS="$kernel -Wno-error=sign-conversion" -DCMAKE_C_FLAGS_DEBUG=-O0 -DCOHORT_ML=OFF -DCOHORT_WERROR=ON >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "$(grep -v '^\[' "$work/log" | head -n 40)"
needed=$(readelf -d "$work/build/lib/libcohort.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vx 'libc\.so\|libgcc_s\.so\.1' || true)
[ -z "$needed" ] || fail "libcohort.so needs $needed, beside musl"

"$compiler" -I"$root/include" "$root/examples/ring.c" -static -L"$work/build/lib" -lcohort -o "$work/ring"
COHORT_PROFILE=described "$cohort" run -n 2 "$work/ring" >"$work/out" 2>&1 || fail "two ranks: $(cat "$work/out")"
[ "$(grep -c 'was sent' "$work/out")" = 2 ] || fail "two ranks say: $(cat "$work/out")"
echo "musl_test: libcohort compiles with musl, and two ranks run"
