#!/bin/sh
# build_test.sh SOURCE_DIR COMPILER [link] - Cohort builds without a preset, alone, and below another project.
#
# Compiles what has to be compiled to know that the flags and targets are right; with "link" all of libcohort,
# as a release with warnings as errors, and a program over it.
set -eu

source=$(cd "${1:?usage: build_test.sh SOURCE_DIR COMPILER [link]}" && pwd)
compiler=${2:?usage: build_test.sh SOURCE_DIR COMPILER [link]}
how=${3:-compile}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

fail() {
    echo "build_test: $*" >&2
    exit 1
}

configure() { # name, source, options...
    name=$1
    from=$2
    shift 2
    cmake -S "$from" -B "$here/$name" -G Ninja -DCOHORT_CUDA=OFF -DCMAKE_C_COMPILER="$compiler" "$@" >"$here/$name.log" 2>&1
}

build() { # name, targets...
    name=$1
    shift
    cmake --build "$here/$name" --target "$@" >"$here/$name.log" 2>&1 || fail "$name: $(cat "$here/$name.log")"
}

# A plain build: warnings are warnings, and there are none where gcc looks hardest.
configure plain "$source" -DCMAKE_BUILD_TYPE=Release || fail "plain: $(cat "$here/plain.log")"
! grep -q -- -Werror "$here/plain/build.ninja" || fail "a build without a preset has -Werror"
build plain src/CMakeFiles/cohort-objects.dir/core/onesided/strided.c.o
! grep -q warning "$here/plain.log" || fail "plain: $(cat "$here/plain.log")"

# Below a project that has its own names for things: with libcohort-ml, then libcohort alone where pkg-config finds nothing.
mkdir "$here/parent"
cat >"$here/parent/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C)
add_subdirectory("$source" cohort)
add_executable(ring ring.c)
target_link_libraries(ring PRIVATE cohort::cohort)
if(COHORT_ML)
  target_link_libraries(ring PRIVATE cohort::cohort-ml)
endif()
CMAKE
cp "$source/examples/ring.c" "$here/parent"
configure with_ml "$here/parent" || fail "below a project, with libcohort-ml: $(cat "$here/with_ml.log")"
PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH=
export PKG_CONFIG_LIBDIR PKG_CONFIG_PATH
configure below "$here/parent" -DCMAKE_BUILD_TYPE=Release -DCOHORT_ML=OFF -DCOHORT_WERROR=ON \
    || fail "below a project: $(cat "$here/below.log")"
build below CMakeFiles/ring.dir/ring.c.o
grep -q 'build CMakeFiles/ring.dir/ring.c.o' "$here/below/build.ninja" || fail "ring is not the parent's"
! sed -n '/^build CMakeFiles\/ring.dir\/ring.c.o/,/^$/p' "$here/below/build.ninja" | grep -q -- '-W[a-z]' \
    || fail "the parent's files are compiled with Cohort's warnings"
[ ! -e "$here/below/cohort/tests" ] || fail "the tests are built below another project"
cmake --install "$here/below" --prefix "$here/prefix" >/dev/null 2>&1 || true
[ -z "$(find "$here/prefix" -type f 2>/dev/null)" ] || fail "Cohort is installed with its parent"

# What contradicts itself is refused with a message.
! configure refused "$source" -DCOHORT_ML=OFF -DCOHORT_TOOLS=ON || fail "tools without libcohort-ml were taken"
grep -q 'COHORT_TOOLS=ON needs COHORT_ML=ON' "$here/refused.log" || fail "refused: $(cat "$here/refused.log")"

[ "$how" = link ] || exit 0
build below ring
"$here/below/ring" || fail "ring, linked below another project, failed"
