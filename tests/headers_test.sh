#!/bin/sh
# headers_test.sh FOLDER [CC] - each installed header compiles alone, as C11 and as C++17.
set -u

folder=${1:?usage: headers_test.sh FOLDER [CC]}
cc=${2:-cc}
cxx=$(command -v c++ || command -v g++ || command -v clang++)
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
    if [ -n "$cxx" ]; then
        # shellcheck disable=SC2086
        $cxx -std=c++17 $flags "$work/alone.cc" || { echo "$header: not C++17 by itself"; failed=1; }
    fi
done
if [ "$count" -eq 0 ]; then
    echo "no header in $folder"
    exit 1
fi
if [ -z "$cxx" ]; then
    echo "$count headers as C11; there is no C++ compiler here"
    [ "$failed" -eq 0 ] && exit 77
fi
[ "$failed" -eq 0 ] && echo "$count headers, as C11 and C++17"
exit $failed
