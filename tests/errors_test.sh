#!/bin/sh
# errors_test.sh ROOT [BUILD] - every place in src/ that decides an error is reached by a test, or listed.
#
# tests/errors.txt lists the places that no test reaches, with the reason. This checks that each of them is still
# there, so that the list does not outlive what it speaks of.
#
# With BUILD, a build with --coverage whose tests have been run, it also prints the places that were not reached
# and are not listed, and fails if there are any; and those that are listed and were reached all the same:
#     cmake -S . -B build-coverage -G Ninja -DCMAKE_C_FLAGS='--coverage -O1' && ninja -C build-coverage
#     ctest --test-dir build-coverage -j2; tests/errors_test.sh . build-coverage
# Counts of a process that is killed, or ends by _exit, are lost: "process" in the list.
set -u

root=${1:?usage: errors_test.sh ROOT [BUILD]}
build=${2:-}
list=$root/tests/errors.txt
work=$(mktemp -d) || exit 1
trap 'rm -r "$work"' EXIT

# "file<TAB>first line<TAB>last line<TAB>sentence" for each call that decides an error. The sentence is the call's
# string literals, joined.
find "$root/src" -name '*.c' | sort | xargs awk '
    function literals(text, found) {
        found = ""
        while (match(text, /"([^"\\]|\\.)*"/)) {
            found = found substr(text, RSTART + 1, RLENGTH - 2)
            text = substr(text, RSTART + RLENGTH)
        }
        return found
    }
    FNR == 1 { statement = "" }
    statement == "" && /^[ \t]/ && !/^[ \t]*(\*|\/\*)/ &&
        /(^|[^a-z_])(coh_fail|cohi_fail|cohi_fail_os|cohi_fail_errno|cohi_fail_shape|cohi_world_fail)\(/ {
        first = FNR
        statement = " "
        match($0, /cohi?_(world_)?fail[a-z_]*\(/)
        $0 = substr($0, RSTART)
    }
    statement != "" {
        statement = statement $0
        if (/;[ \t]*(\/\*.*)?$/) {
            name = FILENAME
            sub(/.*\/src\//, "src/", name)
            printf "%s\t%d\t%d\t%s\n", name, first, FNR, literals(statement)
            statement = ""
        }
    }' >"$work/sites"
count=$(grep -c . "$work/sites")
if [ "$count" -lt 400 ]; then
    echo "only $count places that decide an error were found: this script does not read the sources any more"
    exit 1
fi

# "file's name<TAB>sentence" of what is listed: a file may move.
grep -v '^#' "$list" | awk -F '\t' 'NF == 3 { print $2 "\t" $3; next } NF { print "not three fields: " $0 > "/dev/stderr"; exit 1 }' \
    >"$work/listed" || exit 1
awk -F '\t' '{ sub(/.*\//, "", $1); print $1 "\t" $4 }' "$work/sites" | sort -u >"$work/there"
sort -u "$work/listed" | comm -23 - "$work/there" >"$work/stale"
failed=0
if [ -s "$work/stale" ]; then
    echo "tests/errors.txt lists what is not in src/ (any more):"
    cat "$work/stale"
    failed=1
fi
echo "$count places decide an error; $(sort -u "$work/listed" | grep -c .) are listed as not reached"
[ -n "$build" ] || exit "$failed"

(cd "$build" && find src -name '*.gcda' -exec gcov -t {} + 2>/dev/null) | awk -v sites="$work/sites" '
    BEGIN { FS = ":" }
    $2 ~ /^ *0$/ && $3 == "Source" { file = $4; sub(/.*\/src\//, "src/", file); sub(/^(\.\.\/)+/, "", file) }
    $1 ~ /^ *[0-9]+\*?$/ { reached[file, $2 + 0] = 1 }
    END {
        FS = "\t"
        while ((getline <sites) > 0) {
            hit = 0
            for (line = $2; line <= $3; line++)
                hit = hit || (($1, line) in reached)
            name = $1
            sub(/.*\//, "", name)
            print (hit ? "reached" : "missed") "\t" name "\t" $4 "\t" $1 ":" $2
        }
    }' >"$work/found"
awk -F '\t' -v list="$work/listed" 'BEGIN { while ((getline <list) > 0) listed[$1 "\t" $2] = 1 }
    { key = $2 "\t" $3 }
    $1 == "missed" && !(key in listed) { print "not reached, not listed: " $4 "\t" $3; bad = 1 }
    $1 == "reached" && (key in listed) { print "listed, but reached: " $4 "\t" $3 }
    END { exit bad }' "$work/found" || failed=1
exit "$failed"
