#!/bin/sh
# layers_test.sh ROOT - fails when a file of a layer includes a header of a higher one.
#
# The order is docs/architecture.md's. Includes with quotes name "layer/file.h" or a file beside the
# including one; tools, tests, examples and bench stand above all layers.
set -u

layers="base memory secure bootstrap rendezvous engine core coll start device graph parallel compat"

# Prints "file:line: layer may not include other" for each upward include under $1.
upward_includes() {
    (cd "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' --include='*.[ch]' . \
        2>/dev/null) | awk -v layers="$layers" '
        BEGIN { count = split(layers, names, " "); for (i = 1; i <= count; i++) level[names[i]] = i
                above["tools"] = above["tests"] = above["examples"] = above["bench"] = 1 }
        {
            split($0, part, ":"); split(part[1], path, "/"); from = path[2]
            match($0, /"[^"]*"/); target = substr($0, RSTART + 1, RLENGTH - 2)
            split(target, steps, "/"); to = steps[1]
            if (target ~ /(^|\/)\.\.\//) { print part[1] ":" part[2] ": leaves its folder: " target; next }
            if (to in above || (to in level && from in level && level[to] > level[from]))
                print part[1] ":" part[2] ": " from " may not include " target
        }'
}

# A folder that is no layer would escape the rule.
unknown_folders() {
    for folder in "$1"/*/; do
        name=$(basename "$folder")
        case " $layers " in
        *" $name "*) ;;
        *) echo "src/$name is not a layer of this test; known: $layers" ;;
        esac
    done
}

# The check must find a planted upward include, and only that one.
self_check() {
    planted=$(mktemp -d) || exit 1
    mkdir -p "$planted/base" "$planted/core"
    printf '#include "core/world/world.h"\n#include <stdio.h>\n' >"$planted/base/bad.c"
    printf '#include "base/os.h"\n#include "world.h"\n' >"$planted/core/good.c"
    found=$(upward_includes "$planted")
    rm -r "$planted"
    if [ "$found" != './base/bad.c:1: base may not include core/world/world.h' ]; then
        echo "the check itself is broken: it found '$found' in a planted tree"
        exit 1
    fi
}

root=${1:?usage: layers_test.sh ROOT}
if [ ! -d "$root/src/base" ]; then
    echo "$root/src/base is not there"
    exit 1
fi
self_check
findings=$(upward_includes "$root/src"; unknown_folders "$root/src")
if [ -n "$findings" ]; then
    echo "$findings"
    exit 1
fi
echo "$(find "$root/src" -name '*.[ch]' | wc -l) files, no upward include"
