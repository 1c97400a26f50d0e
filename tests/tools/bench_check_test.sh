#!/bin/bash
# `cohort bench --check` and `--load`: what they refuse and report, and that busy processes end with
# the tool, however it ends. Whether a row reaches its floor is not a test's affair.
. "$(dirname "$0")/common.sh"

# ---- flags ----
for flag in --csv "--html $folder/page.html" --quick "--runs 2"; do
    run 2 bench --check $flag
    says err "--check and ${flag%% *}"
done
[ -e "$folder/page.html" ] && fail "a page was written"
run 2 bench barrier --load 65
says err "65"
run 2 bench barrier --load -1
says err "-1"
run 2 bench barrier --load
says err "--load needs a value"
run 2 bench barrier --load-pinned
says err "no --load"
run 2 bench barrier --load 0 --load-pinned
says err "no --load"
run 2 bench --check tea
says err "tea"
run 2 bench --check --against tea
says err "installed, none"
run 0 bench --help
for word in --check "--load COUNT" --load-pinned; do
    says out "$word"
done

# ---- a check: it holds or does not, and says which ----
# check ARGUMENTS...: runs it; status 0 with a line of success, or 1 with a table.
check() {
    "$cohort" bench --check "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    case $got in
    0) says out "none below a floor" ;;
    1) says out "rows are below a floor" ;;
    *) fail "cohort bench --check $*: status $got" ;;
    esac
}
check put barrier to_bf16 --against none --sizes 8,64K --rounds 2
for word in "put, 2 ranks: 8 B" ", 64 KiB" "barrier: " "to_bf16" " 5 rows"; do
    says out "$word"
done
grep -q "all_reduce" "$folder/out" && fail "what was not named was checked"
check all_reduce -n 3 --against none --sizes 4K --rounds 1 --private --dtype bf16
says out "all_reduce, bf16, 3 ranks, private, caches warm: 4 KiB"

# As JSON: the verdict and the exit status agree.
"$cohort" bench --check barrier strided --against none --sizes 8 --rounds 2 --json \
    >"$folder/out" 2>"$folder/err" </dev/null
got=$?
for word in '"check"' '"checked": 2' '"failed"' '"floor": 0.5' '"floor_short": 0.3' '"results"'; do
    says out "$word"
done
case $got in
0) says out '"passed": true' ;;
1) says out '"passed": false' && says out '"first"' ;;
*) fail "status $got" ;;
esac

# Beside whatever is installed; without any MPI library it is the limits alone.
check message --sizes 8 --rounds 1

# ---- busy processes ----
run 0 bench put --sizes 8 --rounds 1 --load 2
says out "2 busy processes beside"
run 0 bench barrier --rounds 1 -n 2 --load 1 --load-pinned --json
says out '"load": 1'
says out '"load_pinned": true'
run 0 bench barrier signal all_reduce broadcast --sizes 8 --rounds 1 -n 3 --load 1 --csv
says out "cohort_to_peer,load"
grep -q '^barrier,3,.*,1$' "$folder/out" || fail "the load is not in the lines"
run 0 bench barrier --rounds 1 -n 2 --load 0 --json
says out '"load": 0'

# busy_of PID: the ids of the busy processes of that tool.
busy_of() {
    for stat in /proc/[0-9]*/stat; do
        sed -n "s/^\([0-9]*\) (cohort-load) . $1 .*/\1/p" "$stat" 2>/dev/null
    done
}
busy_are_there() {
    busy_of "$tool" >"$folder/busy"
    lines "$folder/busy" 3
}
# What is ignored at the start stays so, and a shell ignores SIGINT for what it starts behind it.
cat >"$folder/reset.sh" <<'END'
echo $$ >"$1/tool"
shift
exec env --default-signal=INT,QUIT "$@"
END
launch() {
    : >"$folder/tool"
    sh "$folder/reset.sh" "$folder" "$cohort" bench barrier -n 2 --rounds 2000 "$@" \
        >"$folder/out" 2>"$folder/err" </dev/null &
    job=$!
    wait_for 10 lines "$folder/tool" 1 || fail "the tool did not start"
    tool=$(cat "$folder/tool")
    wait_for 20 busy_are_there || fail "the busy processes did not start"
}
for signal in INT TERM HUP; do
    launch --load 3
    kill -s $signal "$tool"
    wait "$job"
    got=$?
    [ "$got" = $((128 + $(kill -l $signal))) ] || fail "status $got after SIG$signal"
    all_dead "$folder/busy" || fail "busy processes are left after SIG$signal"
done
launch --load 3 --load-pinned
kill -KILL "$tool"
wait "$job" 2>/dev/null
wait_for 20 all_dead "$folder/busy" || fail "busy processes are left after SIGKILL"

# A run that fails after they were started: nothing is left.
sh -c 'echo $$ >"$1/tool"; TMPDIR=$1/none exec "$2" bench barrier --against mpich --load 2' \
    sh "$folder" "$cohort" >"$folder/out" 2>"$folder/err" </dev/null
got=$?
[ "$got" = 1 ] || fail "status $got without a folder for the peers"
says err "no temporary folder"
[ -z "$(busy_of "$(cat "$folder/tool")")" ] || fail "busy processes are left after a failure"

# One that ends early is told: what was measured is not what was asked for.
launch --load 3 --rounds 8
kill -KILL "$(head -n 1 "$folder/busy")"
wait "$job"
got=$?
[ "$got" = 1 ] || fail "status $got after a busy process was killed"
says err "1 of the busy processes ended early"
echo "bench check: passed"
