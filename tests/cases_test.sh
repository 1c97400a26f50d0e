#!/bin/sh
# cases_test.sh ROOT - the labels of the tests and the pages that they refer to agree.
#
# A case is a row of docs/semantics.md (S1, S2, ...) or docs/faults.md (F1, F9a, ...). A test cites it
# in the label of a suite's row, "S47 F26", or on a line that names the page. Fails when a case is
# cited that no page has, when a case is neither cited nor said to be "not yet: ...", when a page
# has a case twice, and when a row names a file, `conform/order.c`, that does not cite the case.
set -u

# Prints "CASE FILE" for each citation below $1/tests, with the file's path below tests.
citations() {
    (cd "$1/tests" && grep -rnE --include='*.[ch]' --include='*.sh' \
        '"[SF][0-9]+a?( [SF][0-9]+a?)*"|docs/(semantics|faults)\.md' .) | awk '
        {
            colon = index($0, ":"); file = substr($0, 3, colon - 3); text = substr($0, colon)
            if (file ~ /^(cases_test\.sh|harness\/)/) next
            if (text !~ /docs\/(semantics|faults)\.md/) {
                if (file !~ /^(conform|faults)\//) next
                match(text, /"[SF][0-9]+a?( [SF][0-9]+a?)*"/); text = substr(text, RSTART, RLENGTH)
            }
            count = split(text, words, /[^A-Za-z0-9_]+/)
            for (i = 1; i <= count; i++)
                if (words[i] ~ /^[SF][0-9]+a?$/) print words[i], file
        }' | sort -u
}

# Prints "CASE|its row" for each case of the pages.
cases() {
    sed -nE 's/^\| *([SF][0-9]+a?) *\|/\1|/p' \
        "$1/docs/semantics.md" "$1/docs/faults.md"
}

# Prints a line for each disagreement.
disagreements() {
    { citations "$1" | sed 's/^/cited /'; cases "$1"; } | awk '
        /^cited / { cited[$2] = cited[$2] " " $3; uses[$2 " " $3] = 1; next }
        {
            bar = index($0, "|"); name = substr($0, 1, bar - 1); shown = substr($0, bar + 1)
            if (name in page) print name " stands twice"
            page[name] = 1
            if (!(name in cited) && shown !~ /not yet: /)
                print name " is cited by no test, and does not say why (\"not yet: ...\")"
            while (match(shown, /`[^`]*`/)) {
                file = substr(shown, RSTART + 1, RLENGTH - 2); shown = substr(shown, RSTART + RLENGTH)
                if (file !~ /\//) continue
                if (!((name " " file) in uses)) print name " names tests/" file ", which does not cite it"
            }
        }
        END {
            for (name in cited)
                if (!(name in page)) print name " is on no page; cited by" cited[name]
        }' | sort
}

# The check must find what is planted, and nothing else.
self_check() {
    planted=$(mktemp -d) || exit 1
    mkdir -p "$planted/docs" "$planted/tests/conform"
    printf '| S1 | a | `conform/a.c`, `conform/b.c` |\n| S2 | a | nothing |\n| S2 | a | nothing |\n' \
        >"$planted/docs/semantics.md"
    printf '| F1 | a | b | not yet: hosts |\n' >"$planted/docs/faults.md"
    printf 'CASE(a, "S1 F7", 0)\n/* docs/faults.md F8 */\n' >"$planted/tests/conform/a.c"
    found=$(disagreements "$planted" | tr '\n' ';')
    rm -r "$planted"
    wanted='F7 is on no page; cited by conform/a.c;F8 is on no page; cited by conform/a.c;'
    wanted=$wanted'S1 names tests/conform/b.c, which does not cite it;'
    wanted=$wanted'S2 is cited by no test, and does not say why ("not yet: ...");'
    wanted=$wanted'S2 is cited by no test, and does not say why ("not yet: ...");S2 stands twice;'
    if [ "$found" != "$wanted" ]; then
        echo "the check itself is broken: it found '$found' in a planted tree"
        exit 1
    fi
}

root=${1:?usage: cases_test.sh ROOT}
self_check
if [ "$(cases "$root" | wc -l)" -eq 0 ]; then
    echo "$root/docs has no cases"
    exit 1
fi
findings=$(disagreements "$root")
if [ -n "$findings" ]; then
    echo "$findings"
    exit 1
fi
echo "$(cases "$root" | wc -l) cases, $(citations "$root" | wc -l) citations"
