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

cmake --install "$build" --prefix "$prefix" --strip >"$here/install.log" || fail "install: $(cat "$here/install.log")"
cp "$build/install_manifest.txt" "$here/installed.txt"
libdir=$(dirname "$(find "$prefix" -name libcohort.so)")
[ -x "$prefix/bin/cohort" ] || fail "bin/cohort is not there"
[ -f "$prefix/include/cohort.h" ] || fail "include/cohort.h is not there"

# Stripped, and what was taken away lies apart where debuggers look; readelf follows the link if the checksum is right.
for file in "$libdir/libcohort.so" "$libdir/libcohort-ml.so" "$libdir/libcohort-shmem.so" "$libdir/cohort/cohort-tcp.so" \
    "$prefix/bin/cohort"; do
    ! readelf -SW "$file" | grep -q debug_info || fail "$file was not stripped"
    link=$(readelf --string-dump=.gnu_debuglink "$file" | sed -n 's/.* \([^ ]*\.debug\)$/\1/p')
    [ -f "$(dirname "$file")/.debug/$link" ] || fail "$file has its debug information in '$link', which is not there"
    readelf --debug-dump=follow-links,decodedline "$file" 2>/dev/null | grep -q '\.c' || fail "$file: no lines by its link"
done
if command -v gdb >/dev/null; then
    lines=$(gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'info line coh_put' "$libdir/libcohort.so" 2>&1)
    case $lines in *'Line '*rma.c*) ;; *) fail "gdb does not see the lines of coh_put: $lines" ;; esac
fi

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

cat >"$here/ml.c" <<'C'
#include <cohort-ml.h>
#include <stdio.h>
static coh_status say(void *arg)
{
    printf("on a %s\n", (const char *)arg);
    return COH_OK;
}
int main(void)
{
    coh_device *device;
    coh_stream *stream;
    if (coh_device_open(COH_DEVICE_CPU, 0, &device) != COH_OK
        || coh_stream_create(device, NULL, &stream) != COH_OK
        || coh_stream_host(stream, "say", say, (void *)coh_device_kind_name(COH_DEVICE_CPU)) != COH_OK
        || coh_stream_submit_wait(stream) != COH_OK || coh_stream_destroy(stream) != COH_OK)
        return 1;
    return coh_device_close(device) != COH_OK;
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
"$compiler" $sanitize "$here/outside.c" -o "$here/by_pkg_config" $(pkg-config --cflags --libs cohort)
expect 'alone' "outside $version: 1 of 1" "$("$here/by_pkg_config")"
expect 'two ranks' "outside $version: 1 of 2" "$("$prefix/bin/cohort" run -n 2 "$here/by_pkg_config")"

expect 'two hosts' "outside $version: 1 of 2" "$("$prefix/bin/cohort" run -n 2 --pretend-hosts 2 "$here/by_pkg_config")"

# A sanitizer has no static runtime for a static program.
if [ -z "$sanitize" ]; then
    # shellcheck disable=SC2046 # flags are words
    "$compiler" -static "$here/outside.c" -o "$here/static" $(pkg-config --static --cflags --libs cohort)
    expect 'static' "outside $version: 1 of 2" "$("$prefix/bin/cohort" run -n 2 "$here/static")"
fi

mkdir "$here/project"
cat >"$here/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES C)
find_package(cohort 0.1 REQUIRED COMPONENTS ml shmem)
if(NOT TARGET cohort::cohort-shmem)
  message(FATAL_ERROR "component shmem has no target")
endif()
find_package(cohort 0.1 QUIET COMPONENTS no_such)
if(cohort_FOUND)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
add_executable(by_cmake ../outside.c)
target_link_libraries(by_cmake PRIVATE cohort::cohort)
add_executable(ml_by_cmake ../ml.c)
target_link_libraries(ml_by_cmake PRIVATE cohort::cohort-ml)
CMAKE
build_outside() {
    cmake -S "$here/project" -B "$here/project/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$sanitize"
    cmake --build "$here/project/build"
}
(build_outside) >"$here/cmake.log" 2>&1 || fail "find_package: $(cat "$here/cmake.log")"
expect 'find_package' "outside $version: 1 of 2" \
    "$("$prefix/bin/cohort" run -n 2 "$here/project/build/by_cmake")"

expect 'pkg-config --modversion cohort-ml' "$version" "$(pkg-config --modversion cohort-ml)"
# shellcheck disable=SC2046,SC2086 # flags are words
"$compiler" $sanitize "$here/ml.c" -o "$here/ml_by_pkg_config" $(pkg-config --cflags --libs cohort-ml)
expect 'cohort-ml by pkg-config' "on a cpu" "$("$here/ml_by_pkg_config")"
expect 'cohort-ml by find_package' "on a cpu" "$("$here/project/build/ml_by_cmake")"

# The system's folders are found without a run path, which a package must not bring.
DESTDIR=$here/root cmake --install "$build" --prefix /usr >"$here/install.log" || fail "install: $(cat "$here/install.log")"
! grep -r rpath "$here/root/usr" --include='*.pc' || fail "a run path below /usr"
! find "$here/root" -name .debug | grep . || fail "debug information apart, though nothing was stripped"

# The examples, all of them, by their own Makefile.
examples=$(dirname "$(find "$prefix" -path '*/examples/ring.c')")
for source in "$(dirname "$0")"/../examples/*.c; do
    [ -f "$examples/$(basename "$source")" ] || fail "the example $(basename "$source") is not installed"
done
if [ -z "$sanitize" ]; then # they are the same for every build of ours
    COHORT_PROFILE=described make -C "$examples" check CC="$compiler" CFLAGS=-O0 BIN="$here/examples" \
        COHORT="$prefix/bin/cohort" >"$here/examples.log" 2>&1 || fail "examples: $(tail -n 20 "$here/examples.log")"
    [ -x "$here/examples/heat" ] && [ -x "$here/examples/llama" ] || fail "the Makefile of the examples leaves some out"
fi

# Every call that a library exports, and no other name, is in its header and has a page.
mandir=$(dirname "$(find "$prefix" -name coh_init.3)")
: >"$here/exported"
for library in cohort cohort-ml; do
    case $library in
    cohort) headers="$prefix/include/cohort.h $prefix/include/cohort-collectives.h $prefix/include/cohort-cuda.h" ;;
    *) headers="$prefix/include/cohort-ml.h $prefix/include/cohort-graph.h" ;;
    esac
    nm -D --defined-only "$libdir/lib$library.so" | awk '$2 ~ /[TD]/ { sub(/@.*/, "", $3); print $3 }' \
        | sort >"$here/exported.$library"
    [ -s "$here/exported.$library" ] || fail "lib$library.so exports nothing"
    while read -r symbol; do
        case $symbol in coh_*) ;; *) fail "lib$library.so exports $symbol" ;; esac
        grep -hqw "$symbol" $headers || fail "no header of $library declares $symbol"
        [ -f "$mandir/$symbol.3" ] || fail "there is no manual page $symbol.3"
    done <"$here/exported.$library"
    cat "$here/exported.$library" >>"$here/exported"
    # And the header declares no call that the library does not have.
    for symbol in $(sed -nE 's/^COH_(API|EXPORT) .*\<(coh_[a-z0-9_]*)\(.*/\2/p' $headers); do
        grep -qx "$symbol" "$here/exported.$library" || fail "lib$library.so does not have $symbol"
    done
done

# And the pages name no call that is not there.
for page in "$mandir"/coh_*.3; do
    grep -qx "$(basename "$page" .3)" "$here/exported" || fail "$(basename "$page") describes no exported call"
done
for page in "$mandir"/../man*/*; do
    link=$(sed -n 's/^\.so //p' "$page")
    [ -z "$link" ] || [ -f "$mandir/../$link" ] || fail "$page is a link to $link, which is not there"
done
# The manual knows every status and type of the header, and every knob that the tool prints.
for constant in $(sed -n 's/^    X(\(COH_[A-Z0-9_]*\),.*/\1/p' "$prefix"/include/cohort*.h); do
    grep -qrw "$constant" "$mandir" || fail "the manual does not know $constant"
done
knobs=$("$prefix/bin/cohort" info | grep -o '\<COHORT_[A-Z_]*' | sort -u)
[ -n "$knobs" ] || fail "cohort info names no knob"
for knob in $knobs; do
    grep -qw "$knob" "$mandir/../man7/cohort.7" || fail "cohort.7 does not know $knob"
done

# And all of it goes again.
"$(dirname "$0")/../scripts/uninstall" "$here/installed.txt"
left=$(find "$prefix" ! -type d -o -name cohort -o -name mpp -o -name .debug)
[ -z "$left" ] || fail "uninstall left $left"
echo "install_test: $(wc -l <"$here/exported") calls exported, declared and documented"
