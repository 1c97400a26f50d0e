#!/bin/bash
# `cohort run` on a terminal: what it starts, for whom it waits, colours; and nothing of it elsewhere.
. "$(dirname "$0")/common.sh"
meet=$2
command -v script >/dev/null || exit 77
unset NO_COLOR
export TERM=xterm
esc=$(printf '\033')

# terminal ARGUMENTS...: runs the tool with a terminal as its output and error, into out.
terminal() {
    script -qec "$(printf '%q ' "$cohort" "$@")" /dev/null >"$folder/out" 2>"$folder/err" </dev/null
}

# lacks FILE TEXT
lacks() {
    grep -qF -- "$2" "$folder/$1" && fail "'$2' is in $1"
}

late='[ "$COHORT_RANK" = 1 ] && sleep 1.1; exec "$0"'

# What is started; and while rank 1 is late, that it is waited for, on a line that is wiped.
terminal run -n 2 --heap 64M sh -c "$late" "$meet" || fail "a job on a terminal"
says out "2 ranks of sh, heap 64M"
says out "waiting for rank 1 of 2 to join, 0 s$esc[0m"
says out "$(printf '\r')$esc[K"
[ "$(tail -c 4 "$folder/out" | od -An -c | tr -d ' ')" = '\r033[K' ] || fail "the note stays"

# Output comes on lines of its own, also while the note is there.
terminal run -n 2 sh -c 'sleep 0.9; echo "a line"'
says out "no rank has called coh_init yet"
grep -qE "$esc\[Ka line" "$folder/out" || fail "output does not wipe the note"

# Colours, and without them.
terminal run -n 2 "$meet" crash
says out "$esc[1;31mcause:$esc[0m rank 1 of 2"
grep -qE "^$esc\[1;31m  1 +[0-9]+ +failed" "$folder/out" || fail "a rank that failed is not red"
NO_COLOR=1 terminal run -n 2 sh -c "$late" "$meet"
says out "waiting for rank 1 of 2 to join, 0 s"
NO_COLOR=1 terminal run -n 2 "$meet" crash
says out "cohort run: cause: rank 1 of 2"
grep -qE "$esc\[[0-9;]*m" "$folder/out" && fail "colours in spite of NO_COLOR"
TERM=dumb terminal run -n 2 sh -c "$late" "$meet"
lacks out "$esc"
lacks out "waiting for"

# Where standard error is no terminal.
run 134 run -n 2 "$meet" crash
lacks err "$esc"
lacks err "ranks of"
run 0 run -n 2 sh -c "$late" "$meet"
lacks err "waiting for"
[ -s "$folder/err" ] && fail "something was said to a file"
echo "run terminal: passed"
