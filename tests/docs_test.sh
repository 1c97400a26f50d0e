#!/bin/bash
# docs_test.sh ROOT [CC] - the examples of the manual pages and the README compile, every page about calls has
# one, and what the pages of docs/ link to is there.
set -u

root=${1:?usage: docs_test.sh ROOT [CC]}
cc=${2:-cc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "$*"
    failed=1
}

# compile FILE WHERE: as a translation unit of its own, without a warning.
compile() {
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I"$root/include" \
        -I"$root/compat/shmem/include" "$1" || fail "$2: its example does not compile"
}

# examples PAGE: the text between .EX and .EE of EXAMPLES, without the page's escapes.
examples() {
    awk '/^\.SH /{inside = $2 == "EXAMPLES"} /^\.EX/{on = inside; next} /^\.EE/{on = 0} on' "$1" \
        | sed 's/^\\&//; s/\\e/\\/g; s/\\-/-/g'
}

pages=0
for page in "$root"/docs/man/*.3; do
    examples "$page" >"$work/example.c"
    [ -s "$work/example.c" ] || { fail "$page: it has no example"; continue; }
    # One that is about something else would help nobody.
    names=$(awk '/^\.SH NAME/{getline; sub(/ \\-.*/, ""); gsub(/,/, ""); print; exit}' "$page")
    used=0
    for name in $names; do
        grep -qw "$name" "$work/example.c" && used=1
    done
    [ "$used" = 1 ] || fail "$page: its example uses none of its calls"
    compile "$work/example.c" "$page"
    pages=$((pages + 1))
done
[ "$pages" -gt 40 ] || fail "only $pages manual pages have an example"

# Each C block of the README is a file of its own.
awk -v work="$work" '/^```c$/{on = 1; file = work "/readme" ++count ".c"; next} /^```/{on = 0} on{print > file}' \
    "$root/README.md"
blocks=0
for block in "$work"/readme*.c; do
    [ -f "$block" ] || continue
    compile "$block" "README.md, C block $((blocks + 1))"
    blocks=$((blocks + 1))
done
[ "$blocks" -ge 4 ] || fail "README.md has $blocks blocks of C"

# Links to files and headings of the same tree, relative to the page that they are on.
anchors() {
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for page in "$root/README.md" "$root/CONTRIBUTING.md" "$root"/docs/*.md "$root"/docs/performance/*.md; do
    for link in $(grep -oE '\]\([^) ]+\)' "$page" | sed 's/^](//; s/)$//'); do
        case $link in
        http*) continue ;;
        esac
        file=${link%%#*}
        target=$page
        [ -z "$file" ] || target=$(dirname "$page")/$file
        [ -e "$target" ] || { fail "$page links to $link, which is not there"; continue; }
        [ "$link" = "$file" ] || anchors "$target" | grep -qxF -- "${link#*#}" \
            || fail "$page links to $link, and there is no such heading"
    done
done

# The index knows every page beside it.
for page in "$root"/docs/*.md "$root"/docs/performance/*.md; do
    name=${page#"$root"/docs/}
    [ "$name" = README.md ] || grep -qF "($name)" "$root/docs/README.md" || fail "docs/README.md does not list $name"
done
[ "$failed" -eq 0 ] && echo "docs: $pages examples of manual pages and $blocks of the README compile; no link is broken"
exit $failed
