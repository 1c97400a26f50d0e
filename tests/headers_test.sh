#!/bin/sh
# headers_test.sh FOLDER [CC] - each installed header compiles alone, as C11 and as C++17. Of Cohort's own also: cohort.hpp as
# C++17 and C++20; and compilers warn where a status is not looked at.
set -u

folder=${1:?usage: headers_test.sh FOLDER [CC]}
cc=${2:-cc}
cxxs=
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null && cxxs="$cxxs $compiler"
done
[ -n "$cxxs" ] || cxxs=$(command -v c++)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

flags="-pedantic -Wall -Wextra -Werror -I$folder -c -o /dev/null"
failed=0
count=0
for header in $(cd "$folder" && find . -name '*.h' | sed 's|^\./||'); do
    count=$((count + 1))
    # Twice, so that a missing guard shows as well.
    printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header" \
        >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cc"
    # shellcheck disable=SC2086
    $cc -std=c11 $flags "$work/alone.c" || { echo "$header: not C11 by itself"; failed=1; }
    for cxx in $cxxs; do
        # shellcheck disable=SC2086
        $cxx -std=c++17 $flags "$work/alone.cc" || { echo "$header: not C++17 by itself ($cxx)"; failed=1; }
    done
done

compile_hpp() {
    printf '#include <cohort.hpp>\n#include <cohort.hpp>\nint main() { return 0; }\n' >"$work/alone.cc"
    for cxx in $cxxs; do
        for standard in 17 20; do
            # shellcheck disable=SC2086
            $cxx -std=c++$standard $flags "$work/alone.cc" || { echo "cohort.hpp: not C++$standard ($cxx)"; failed=1; }
        done
    done
}

# A status that is dropped is warned of, unless it is cast away or the program does not want that.
drop() { # compiler, language, what to do with the status, more flags
    printf '#include <cohort.h>\nvoid f(coh_world *world);\nvoid f(coh_world *world) { %scoh_barrier(world); }\n' "$3" \
        >"$work/drop.$2"
    # shellcheck disable=SC2086
    $1 $flags $4 "$work/drop.$2" 2>/dev/null
}
warns() { # compiler, language, more flags
    drop "$1" "$2" '' "$3" && { echo "$1 $3: a status that is dropped is not warned of"; failed=1; }
    drop "$1" "$2" '(void)' "$3" || { echo "$1 $3: a status that is cast away is warned of"; failed=1; }
    drop "$1" "$2" '' "$3 -DCOH_NODISCARD=" || { echo "$1 $3: COH_NODISCARD cannot be set"; failed=1; }
}
if [ -f "$folder/cohort.hpp" ]; then
    compile_hpp
    warns "$cc" c -std=c11
    for cxx in $cxxs; do
        warns "$cxx" cc -std=c++17
    done
fi
if [ "$count" -eq 0 ]; then
    echo "no header in $folder"
    exit 1
fi
if [ -z "$cxxs" ]; then
    echo "$count headers as C11; there is no C++ compiler here"
    [ "$failed" -eq 0 ] && exit 77
fi
[ "$failed" -eq 0 ] && echo "$count headers, as C11 and C++17"
exit $failed
