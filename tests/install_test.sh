#!/bin/sh
# install_test.sh BUILD_DIR - an installed Cohort is usable by a stranger, through pkg-config and through CMake.
set -eu

build=$(cd "${1:?usage: install_test.sh BUILD_DIR}" && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
prefix=$here/usr

fail() {
    echo "install_test: $*" >&2
    exit 1
}

cmake --install "$build" --prefix "$prefix" >"$here/install.log" || fail "install: $(cat "$here/install.log")"
libdir=$(dirname "$(find "$prefix" -name libcohort.so)")
[ -x "$prefix/bin/cohort" ] || fail "bin/cohort is not there"
[ -f "$prefix/include/cohort.h" ] || fail "include/cohort.h is not there"

cat >"$here/outside.c" <<'C'
#include <cohort.h>
#include <stdio.h>
int main(void)
{
    coh_world *world;
    int *box, one = 1, size;
    if (coh_init(NULL, &world) != COH_OK || coh_calloc(world, 1, sizeof *box, (void **)&box) != COH_OK
        || coh_put(world, box, &one, sizeof one, coh_size(world) - 1) != COH_OK
        || coh_barrier(world) != COH_OK) {
        fprintf(stderr, "outside: %s\n", coh_last_error());
        return 1;
    }
    size = coh_size(world);
    if (coh_rank(world) == size - 1)
        printf("outside %s: %d of %d\n", coh_version_string(), *box, size);
    return coh_finalize(world) != COH_OK;
}
C

expect() { # what, wanted, got
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
}

version=$(sed -n 's/^Version: //p' "$libdir/pkgconfig/cohort.pc")
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
expect 'pkg-config --modversion' "$version" "$(pkg-config --modversion cohort)"

# A library with a sanitizer in it needs its program to be built with the same.
sanitize=$(sed -n 's/^COHORT_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

# shellcheck disable=SC2046,SC2086 # flags are words
"$compiler" $sanitize "$here/outside.c" -o "$here/by_pkg_config" $(pkg-config --cflags --libs cohort) \
    -Wl,-rpath,"$libdir"
expect 'alone' "outside $version: 1 of 1" "$("$here/by_pkg_config")"
expect 'two ranks' "outside $version: 1 of 2" "$("$prefix/bin/cohort" run -n 2 "$here/by_pkg_config")"

mkdir "$here/project"
cat >"$here/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES C)
find_package(cohort 0.1 REQUIRED)
add_executable(by_cmake ../outside.c)
target_link_libraries(by_cmake PRIVATE cohort::cohort)
CMAKE
build_outside() {
    cmake -S "$here/project" -B "$here/project/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$sanitize"
    cmake --build "$here/project/build"
}
(build_outside) >"$here/cmake.log" 2>&1 || fail "find_package: $(cat "$here/cmake.log")"
expect 'find_package' "outside $version: 1 of 2" \
    "$("$prefix/bin/cohort" run -n 2 "$here/project/build/by_cmake")"

# Every call that the library exports, and no other name, is in the header and has a page.
nm -D --defined-only "$libdir/libcohort.so" | awk '$2 ~ /[TD]/ { sub(/@.*/, "", $3); print $3 }' \
    | sort >"$here/exported"
[ -s "$here/exported" ] || fail "libcohort.so exports nothing"
mandir=$(dirname "$(find "$prefix" -name coh_init.3)")
while read -r symbol; do
    case $symbol in coh_*) ;; *) fail "libcohort.so exports $symbol" ;; esac
    grep -qw "$symbol" "$prefix/include/cohort.h" || fail "cohort.h does not declare $symbol"
    [ -f "$mandir/$symbol.3" ] || fail "there is no manual page $symbol.3"
done <"$here/exported"

# And the pages name no call that is not there.
for page in "$mandir"/coh_*.3; do
    grep -qx "$(basename "$page" .3)" "$here/exported" || fail "$(basename "$page") describes no exported call"
done
for page in "$mandir"/../man*/*; do
    link=$(sed -n 's/^\.so //p' "$page")
    [ -z "$link" ] || [ -f "$mandir/../$link" ] || fail "$page is a link to $link, which is not there"
done
# The manual knows every status and type of the header, and every knob that the tool prints.
for constant in $(sed -n 's/^    X(\(COH_[A-Z0-9_]*\),.*/\1/p' "$prefix/include/cohort.h"); do
    grep -qrw "$constant" "$mandir" || fail "the manual does not know $constant"
done
knobs=$("$prefix/bin/cohort" info | grep -o '\<COHORT_[A-Z_]*' | sort -u)
[ -n "$knobs" ] || fail "cohort info names no knob"
for knob in $knobs; do
    grep -qw "$knob" "$mandir/../man7/cohort.7" || fail "cohort.7 does not know $knob"
done
echo "install_test: $(wc -l <"$here/exported") calls exported, declared and documented"
