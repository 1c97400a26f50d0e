#!/bin/bash
# Output: whole lines, nothing lost, nothing mixed, and no harm from a slow or closed reader.
. "$(dirname "$0")/common.sh"

# Eight ranks write long lines in small parts; each line must come out as it was written.
cat >"$folder/chatty.sh" <<'END'
i=0
while [ $i -lt 60 ]; do
    printf '<%s:%s:' "$COHORT_RANK" "$i"
    printf '%0500d' "$COHORT_RANK"
    printf ':'
    printf '%0500d>\n' "$i"
    i=$((i + 1))
done
END
expect='^<([0-9]):([0-9]+):0{499}\1:0*\2>$'
run 0 run -n 8 sh "$folder/chatty.sh"
[ "$(grep -cE "$expect" "$folder/out")" = 480 ] || fail "lines were mixed"
[ "$(wc -l <"$folder/out")" = 480 ] || fail "lines were lost or broken"
for rank in 0 7; do
    grep -oE "^<$rank:[0-9]+" "$folder/out" | cut -d: -f2 | sort -nc || fail "rank $rank: order"
done

run 0 run -n 8 --tag-output sh "$folder/chatty.sh"
[ "$(grep -cE '^\[([0-9])\] <\1:' "$folder/out")" = 480 ] || fail "--tag-output"

# Output and error into one file keep their lines too.
"$cohort" run -n 4 sh -c "sh $folder/chatty.sh & sh $folder/chatty.sh >&2; wait" \
    >"$folder/out" 2>&1 </dev/null
[ "$(grep -cE "$expect" "$folder/out")" = 480 ] || fail "lines of output and error were mixed"

# An unfinished last line is kept, and nothing is added to it.
[ "$("$cohort" run printf 'no end' | wc -c)" = 6 ] || fail "an unfinished line"
run 0 run -n 2 sh -c 'printf "%s" "rank $COHORT_RANK"'
[ "$(grep -c '^rank [01]$' "$folder/out")" = 2 ] || fail "two unfinished lines in one"

# A line too long to be kept comes out whole when nobody else writes.
size=$("$cohort" run sh -c 'head -c 5000000 /dev/zero | tr "\0" x; echo' | wc -c)
[ "$size" = 5000001 ] || fail "a line of 5 MB: $size bytes"
# With others it is broken at most between pieces, and no byte is lost.
"$cohort" run -n 3 sh -c 'head -c 3000000 /dev/zero | tr "\0" "$COHORT_RANK"; echo' >"$folder/out"
for rank in 0 1 2; do
    [ "$(tr -cd "$rank" <"$folder/out" | wc -c)" = 3000000 ] || fail "bytes of rank $rank"
done
awk '{ gsub(/0+/, "a"); gsub(/1+/, "b"); gsub(/2+/, "c"); if (length($0) > 1) exit 1 }' \
    "$folder/out" || fail "two ranks in one line"
rm "$folder/out"

# Signals that do not ask for the end lose nothing of what a slow reader has not taken; one that does
# is the status.
mkfifo "$folder/last"
# leave_output: a job whose only rank has ended, and whose output nobody has taken yet from $folder/last.
leave_output() {
    : >"$folder/pid"
    PIDS=$folder/pid "$cohort" run sh -c 'echo $$ >"$PIDS"; head -c 300000 /dev/zero | tr "\0" "\n"' \
        >"$folder/last" &
    launcher=$!
    exec 8<"$folder/last"
    wait_for 20 lines "$folder/pid" 1 || fail "the job did not start"
    wait_for 20 all_dead "$folder/pid" || fail "the rank waits for the reader"
}
leave_output
kill -USR1 "$launcher"
kill -TSTP "$launcher"
sleep 0.2
kill -CONT "$launcher"
[ "$(wc -l <&8)" = 300000 ] || fail "bytes were lost by a signal behind a slow reader"
exec 8<&-
wait "$launcher" || fail "the job that was stopped behind a slow reader"
leave_output
kill -TERM "$launcher"
wait "$launcher"
[ $? = 143 ] || fail "the status of a job whose last output was given up"
exec 8<&-

# A reader that is slow holds the ranks up without costing the launcher time.
mkfifo "$folder/fifo"
"$cohort" run -n 2 sh -c 'head -c 2000000 /dev/zero | tr "\0" "\n"' >"$folder/fifo" &
launcher=$!
exec 8<"$folder/fifo"
sleep 1
ticks=$(cut -d' ' -f14,15 "/proc/$launcher/stat" | tr ' ' '+')
[ $((ticks)) -lt 50 ] || fail "the launcher spins while its reader waits: $ticks ticks in 1 s"
[ "$(wc -l <&8)" = 4000000 ] || fail "bytes were lost behind a slow reader"
exec 8<&-
wait "$launcher" || fail "the job behind a slow reader"

# A reader that goes away ends the job.
started=$(now_ms)
("$cohort" run -n 2 sh -c 'while :; do echo y; done' 2>"$folder/err"; echo $? >"$folder/status") \
    | head -n 3 >/dev/null
[ "$(cat "$folder/status")" = 141 ] || fail "status $(cat "$folder/status") when the reader is gone"
[ $(($(now_ms) - started)) -lt 20000 ] || fail "the job outlived its reader"

# Output that cannot be written is no success.
"$cohort" run echo lost >/dev/full 2>"$folder/err"
[ $? = 1 ] || fail "a full device is not noticed"
says err "cannot be written"

# A rank that fails while the reader takes nothing: the others are ended all the same.
: >"$folder/pids"
(PIDS=$folder/pids "$cohort" run -n 2 sh -c 'echo $$ >>"$PIDS"
    [ "$COHORT_RANK" = 1 ] && sleep 0.3 && exit 3
    while :; do echo y; done' 2>/dev/null) >"$folder/fifo" &
job=$!
exec 8<"$folder/fifo"
wait_for 10 lines "$folder/pids" 2 || fail "the job did not start"
wait_for 3 all_dead "$folder/pids" || fail "ranks outlive a failure behind a slow reader"
cat <&8 >/dev/null
wait "$job"
[ $? = 3 ] || fail "the status of a failure behind a slow reader"
exec 8<&-

# On a terminal an unfinished line is seen at once.
if command -v script >/dev/null; then
    rank='if [ $COHORT_RANK = 0 ]; then printf prompt; while [ ! -e $SEEN ]; do sleep 0.05; done; fi; echo'
    SEEN=$folder/seen script -qec "$cohort run -n 2 sh -c '$rank'" \
        "$folder/typescript" </dev/null >"$folder/terminal" 2>&1 &
    watcher=$!
    wait_for 20 grep -q prompt "$folder/terminal"
    seen=$?
    touch "$folder/seen"
    wait "$watcher"
    [ "$seen" = 0 ] || fail "a prompt on a terminal is not seen at once"
fi
echo "run output: passed"
