#!/bin/bash
# What `cohort run` gives to the ranks, and what it makes of how they end.
. "$(dirname "$0")/common.sh"

run 0 run true
run 0 run -n 3 sh -c 'echo "$COHORT_RANK of $COHORT_SIZE, log $COHORT_LOG"'
[ "$(sort "$folder/out")" = "$(printf '%s of 3, log warn\n' 0 1 2)" ] \
    || fail "the ranks' environment"

run 0 run --engine sim --heap 64M --env A=1 --env 'B=two words' --env COHORT_LOG=info \
    sh -c 'echo "$COHORT_ENGINE $COHORT_HEAP $A $B $COHORT_LOG"'
says out "sim 64M 1 two words info"

# The first failing rank gives the status and is named; the others end soon, by cohort run.
started=$(now_ms)
run 3 run -n 3 sh -c 'if [ "$COHORT_RANK" = 1 ]; then exit 3; fi; sleep 100'
[ $(($(now_ms) - started)) -lt 20000 ] || fail "the others were not ended"
says err "rank 1 of 3"
says err "exited with status 3"
grep -qE '^ +[02] .*killed by signal 15 \(.*\), by cohort run$' "$folder/err" \
    || fail "the table does not say who ended the others"
[ "$(grep -cE '^ +[0-2] +[0-9]+ ' "$folder/err")" = 3 ] || fail "the table has not three ranks"

run 139 run -n 2 sh -c 'if [ "$COHORT_RANK" = 1 ]; then kill -SEGV $$; fi; sleep 100'
says err "rank 1 of 2"
says err "was killed by signal 11"

# Those that come to an end by themselves within the time of grace are not killed.
run 5 run -n 2 --grace 30 sh -c 'if [ "$COHORT_RANK" = 0 ]; then exit 5; fi; sleep 0.3; echo end'
says out "end"
# Without that time, a rank that ignores SIGTERM is killed.
started=$(now_ms)
run 5 run -n 2 --grace 0 sh -c 'trap "" TERM
    [ "$COHORT_RANK" = 0 ] && exit 5
    while :; do sleep 0.1; done'
[ $(($(now_ms) - started)) -lt 20000 ] || fail "a rank that ignores SIGTERM was not killed"

run 7 run -n 3 --keep-going sh -c 'if [ "$COHORT_RANK" = 2 ]; then exit 7; fi; sleep 0.3; echo end'
[ "$(grep -c end "$folder/out")" = 2 ] || fail "--keep-going: the others did not run on"
says err "the others go on"

run 124 run -n 2 --timeout 0.3 sleep 100
says err "--timeout"
run 0 run --timeout 30 true

run 127 run -n 3 "$folder/nowhere"
[ "$(grep -c 'cannot start' "$folder/err")" = 1 ] || fail "a failed exec is not told once"
says err "$folder/nowhere"
says err "No such file"
# A program that is there, but its interpreter is not: the message is about that.
printf '#! /no/such/interpreter -x\nexit 0\n' >"$folder/script"
printf '#!%s\n' "$folder/script" >"$folder/outer"
printf '#!/bin/sh\r\nexit 0\r\n' >"$folder/dos"
chmod +x "$folder/script" "$folder/outer" "$folder/dos"
run 126 run -n 2 "$folder/script"
[ "$(grep -c 'cannot start' "$folder/err")" = 1 ] || fail "a missing interpreter is not told once"
says err "cannot start $folder/script: its interpreter /no/such/interpreter: No such file"
run 126 run "$folder/outer"
says err "its interpreter /no/such/interpreter:"
run 126 run --env PATH="/bin:$folder" dos
says err "its interpreter /bin/sh^M:"
# Neither is /dev/null, which all ranks but the first read, in an empty /dev.
namespace=-m
unshare -m true 2>/dev/null || namespace=-rm
if unshare $namespace mount -t tmpfs none /dev 2>/dev/null; then
    unshare $namespace sh -c 'mount -t tmpfs none /dev && exec "$@"' sh "$cohort" run -n 2 sh -c : \
        >"$folder/out" 2>"$folder/err" </dev/null
    [ $? = 126 ] || fail "the status without /dev/null"
    says err "cannot start sh: /dev/null: No such file"
fi
run 127 run "no-such-program-in-path"
touch "$folder/plain"
run 126 run "$folder/plain"
says err "Permission denied"

# Input goes to rank 0; the others have none.
echo hello | "$cohort" run -n 2 sh -c 'echo "$COHORT_RANK:$(cat)"' >"$folder/out" 2>"$folder/err" \
    || fail "a job that reads its input"
says out "0:hello"
grep -qx '1:' "$folder/out" || fail "rank 1 has input"

# What the launcher holds is not passed on: the ranks have what it was given, and one more.
ls /proc/self/fd >"$folder/before" 2>"$folder/err" </dev/null
run 0 run -n 2 sh -c 'exec ls /proc/self/fd'
[ "$(wc -l <"$folder/out")" = $((2 * ($(wc -l <"$folder/before") + 1))) ] \
    || fail "descriptors other than those of before and the job's"
exec 9<"$folder/plain"
run 0 run sh -c 'test -e /proc/self/fd/9'
exec 9<&-

run 0 run -n 3 --bind core sh -c 'grep Cpus_allowed_list /proc/self/status'
grep -qE '[-,]' <(cut -f2 "$folder/out") && fail "--bind core: a rank has several cores"

# Streams that were closed, and limits that are small.
"$cohort" run -n 2 sh -c 'test "$COHORT_SIZE" = 2' <&- >&- 2>&- || fail "closed streams"
(
    for fd in $(ls "/proc/$BASHPID/fd"); do
        [ "$fd" -gt 2 ] && eval "exec $fd>&-"
    done
    ulimit -n 16 && exec "$cohort" run -n 1 true
) || fail "ulimit -n 16, one rank"
(ulimit -n 32 && "$cohort" run -n 30 true) 2>"$folder/err" && fail "30 ranks within 32 descriptors"
says err "the limit is 32"
(ulimit -S -n 32 && "$cohort" run -n 30 sh -c 'test "$(ulimit -S -n)" = 32') || fail "soft limit"
echo "run status: passed"
