#!/bin/sh
# rooms_test.sh ROOT OBJECTS - the rooms of src/ and the arrows between them, as they are built.
#
# An arrow is a symbol that a room's object files need and another room's define, or an #include of another room's
# header. Prints all of them. Fails on an arrow that the table "Rooms" of docs/architecture.md does not have, on one of the
# table that is not there any more, and on a cycle; and on a room, of tools/run, tools/hosts and tools/bench too, that no header or
# more than one states.
set -eu

root=${1:?usage: rooms_test.sh ROOT OBJECTS}
objects=${2:?usage: rooms_test.sh ROOT OBJECTS}
work=$(mktemp -d) || exit 1
trap 'rm -r "$work"' EXIT

# "path symbol" of what is defined, and of what is needed; the path is that below src/.
list() {
    find "$objects" -name '*.c.o' | while read -r object; do
        path=${object#"$objects"/}
        source=$root/src/${path%.o}
        [ -f "$source" ] || continue # of a file that is gone
        nm "$object" | awk -v path="$path" 'NF == 2 && $1 == "U" { print "needs", path, $2 }
            NF == 3 && $2 ~ /^[TDBRCVW]$/ { print "has", path, $3 }'
    done
    (cd "$root/src" && grep -rHo '^#include "[a-z0-9_/]*\.h"' --include='*.[ch]' base memory secure bootstrap rendezvous engine core coll start) \
        | sed 's/^\([^:]*\):#include "\(.*\)"$/includes \1 \2/'
}

# The folder; of engine, one room however many engines there are.
list | awk '
    function room(path) { sub(/\/[^\/]*$/, "", path); if (path ~ /^engine/) path = "engine"; return path }
    $1 == "has" { owner[$3] = room($2) }
    $1 == "needs" { need[room($2) " " $3] = 1 }
    $1 == "includes" && $3 ~ /\// { if (room($2) != room($3)) arrow[room($2) " " room($3)] = 1 }
    END {
        for (pair in need) {
            split(pair, part, " ")
            if (part[2] in owner && owner[part[2]] != part[1]) arrow[part[1] " " owner[part[2]]] = 1
        }
        for (pair in arrow) print pair
    }' | sort >"$work/arrows"
count=$(grep -c . "$work/arrows") || true
if [ "$count" -lt 20 ]; then
    echo "only $count arrows were found: this test does not read the objects in $objects any more"
    exit 1
fi

# Rows "| `room` | what it is | `room`, `room` |" under the heading.
awk '/^### Rooms/ { on = 1; next } /^##/ { on = 0 } on && /^\| `/ {
        split($0, cell, "|"); gsub(/[` ]/, "", cell[2]); gsub(/[` ]/, "", cell[4])
        count = split(cell[4], to, ",")
        for (i = 1; i <= count; i++) if (to[i] != "") print cell[2], to[i]
    }' "$root/docs/architecture.md" | sort >"$work/table"

awk '{ to[$1] = to[$1] " " $2 } END { for (room in to) print room ":" to[room] }' "$work/arrows" | sort
failed=0
comm -23 "$work/arrows" "$work/table" | sed 's/^\(.*\) \(.*\)$/\1 uses \2, which the table of docs\/architecture.md does not allow/' \
    >"$work/new"
comm -13 "$work/arrows" "$work/table" | sed 's/^\(.*\) \(.*\)$/the table of docs\/architecture.md has \1 use \2, which it does not/' \
    >"$work/old"
cat "$work/new" "$work/old"
[ ! -s "$work/new" ] && [ ! -s "$work/old" ] || failed=1
if ! tsort "$work/arrows" >/dev/null 2>"$work/cycle"; then
    echo "the rooms have a cycle:"
    sed -n 's/^tsort: /    /p' "$work/cycle"
    failed=1
fi

# Every room says in the head of one of its headers what it is: "Room: core/heap.", what it uses, what it hides.
rooms=$( (
    awk '{ print $1; print $2 }' "$work/table"
    cd "$root/src" && find . -name '*.c' | sed 's|^\./||; s|/[^/]*$||; s|^engine/.*|engine|'
    echo tools/run
    echo tools/hosts
    echo tools/bench
) | sort -u)
(cd "$root" && grep -rnx ' \* Room: [a-z/]*\.' --include='*.h' src tools) \
    | sed 's|^src/||; s|^\([^:]*\):[0-9]*: \* Room: \(.*\)\.$|\2 \1|' >"$work/statements"
for room in $rooms; do
    stated=$(awk -v room="$room" '$1 == room { print $2 }' "$work/statements")
    if [ "$(printf '%s' "$stated" | grep -c .)" -ne 1 ]; then
        echo "room $room: wanted one header with the line \"Room: $room.\", found: ${stated:-none}" | tr '\n' ' '
        echo
        failed=1
    elif [ "${stated%/*}" != "$room" ]; then
        echo "room $room is stated in $stated, which is not in it"
        failed=1
    fi
done
awk '{ print $1 }' "$work/statements" | sort -u >"$work/stated"
printf '%s\n' "$rooms" | comm -13 - "$work/stated" | sed 's/^/a header states a room that is not there: /' >"$work/unknown"
cat "$work/unknown"
[ ! -s "$work/unknown" ] || failed=1
exit $failed
