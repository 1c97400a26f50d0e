#!/bin/sh
# routines_test.sh LIST INCLUDE LIBRARY CC - every routine of the list is declared, defined, weak, and has its twin;
# every generic form is there.
set -u
list=${1:?usage: routines_test.sh LIST INCLUDE LIBRARY CC}
include=$2
library=$3
cc=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include <shmem.h>' >"$folder/all.c"

# What the header declares: names before an argument list.
"$cc" -std=c11 -I"$include" -E -P "$folder/all.c" | grep -oE '[A-Za-z_0-9]+ ?\(' | tr -d ' (' | sort -u >"$folder/declared"
"$cc" -std=c11 -I"$include" -dM -E "$folder/all.c" | sed -n 's/^#define \(shmem_[a-z_]*\)(.*/\1/p' | sort -u >"$folder/forms"
nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $2, $3 }' | sort -u >"$folder/defined"

awk '$1 == "function" || $1 == "deprecated" { print $2 }' "$list" | sort >"$folder/routines"
awk '$1 == "generic" { print $2 }' "$list" | sort >"$folder/generic"
sed 's/^/p/' "$folder/routines" | sort >"$folder/twins"
sed 's/^/W /' "$folder/routines" | sort >"$folder/weak"
sed 's/^/T /' "$folder/twins" | sort >"$folder/strong"

missing() { # what, wanted, found
    lacking=$(comm -23 "$2" "$3")
    [ -z "$lacking" ] && return 0
    echo "$1:"
    echo "$lacking" | head -n 20
    failed=1
}
failed=0
missing 'not declared' "$folder/routines" "$folder/declared"
missing 'twins not declared' "$folder/twins" "$folder/declared"
missing 'not defined, or not weak' "$folder/weak" "$folder/defined"
missing 'twins not defined' "$folder/strong" "$folder/defined"
missing 'generic forms that are no macro' "$folder/generic" "$folder/forms"

# The counts that the list states are those of its rows.
stated=$(sed -n 's/^# \([0-9]*\) functions, \([0-9]*\) deprecated, \([0-9]*\) generic\./\1 \2 \3/p' "$list")
counted=$(awk '{ n[$1]++ } END { print n["function"], n["deprecated"], n["generic"] }' "$list")
[ "$stated" = "$counted" ] || { echo "the list states $stated, and has $counted"; failed=1; }

# The library exports nothing else: names of the standard, and twins.
others=$(awk '{ print $2 }' "$folder/defined" | grep -vE '^p?(shmem_|start_pes$|_my_pe$|_num_pes$|shmalloc$|shfree$|shrealloc$|shmemalign$)')
[ -z "$others" ] || { echo "exported: $others"; failed=1; }
[ "$failed" -eq 0 ] && echo "$(wc -l <"$folder/routines") routines with twins, $(wc -l <"$folder/generic") generic forms: none missing"
exit $failed
