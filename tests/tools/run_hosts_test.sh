#!/bin/bash
# Jobs on several hosts, played by agents of this machine that a script starts as ssh would: docs/faults.md F25 F29 F32 F37.
. "$(dirname "$0")/common.sh"
unset SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE COHORT_HOST WHERE

# The shells: one as plain as can be, and some that behave as hosts do.
shell() {
    printf '#!/bin/sh\nhost=$1\nshift\n%s\n' "$2" >"$folder/$1"
    chmod +x "$folder/$1"
}
shell plain 'WHERE=$host COHORT_HOST=$host exec "$@"' # which may have no address but the loopback's
shell parent '"$@"; exit $?'
shell noisy 'echo "Welcome to $host"; printf "no end of line"; echo "motd of $host" >&2; exec "$@"'
shell unknown 'echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255'
shell bare 'echo "sh: 1: cohort: not found" >&2; exit 127'
shell older '[ "$host" = a ] && exec "$@"; printf "hello\n@@cohort-agent-1@@ 0.0.9\n"; sleep 5'
shell silent '[ "$host" = a ] && exec "$@"; exec sleep 100'
shell chatty '[ "$host" = a ] && exec "$@"; exec yes'
shell liar '[ "$host" = a ] && exec "$@"; printf "@@cohort-agent-1@@ %s\nthis is no frame, whatever it is" "$VERSION"; exec sleep 5'
VERSION=$("$cohort" version)
export VERSION=${VERSION#cohort }

# over SHELL STATUS ARGUMENTS...
over() {
    with=$1
    expected=$2
    shift 2
    run "$expected" run --shell "$folder/$with" "$@"
}

# Ranks fill hosts by slots, in order, and know where they are.
over plain 0 --hosts a:2,b:3 --tag-output sh -c 'echo "$COHORT_RANK of $COHORT_SIZE on $WHERE"; echo "error $COHORT_RANK" >&2'
sort "$folder/out" >"$folder/sorted"
printf '[%d %s] %d of 5 on %s\n' 0 a 0 a 1 a 1 a 2 b 2 b 3 b 3 b 4 b 4 b | cmp -s - "$folder/sorted" \
    || fail "the tagged lines are not what they should be"
says err "[4 b] error 4"
over plain 0 --hosts a:2,b:3,c:9 -n 4 sh -c 'echo "$COHORT_RANK $WHERE"'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "0 a 1 a 2 b 3 b " ] || fail "-n 4 of 14 slots"
over plain 0 --hosts a,b -n 5 --oversubscribe sh -c 'echo "$COHORT_RANK $WHERE"'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "0 a 1 a 2 b 3 b 4 b " ] || fail "5 ranks in 2 slots"
printf '# hosts\na slots=1\nb:2\n' >"$folder/hostfile"
over plain 0 --hostfile "$folder/hostfile" sh -c 'echo $WHERE'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "a b b " ] || fail "a hostfile of lines"
echo '[{"ssh": "x", "ips": []}, {"ssh": "y", "ips": []}]' >"$folder/hosts.json"
over plain 0 --hostfile "$folder/hosts.json" sh -c 'echo $WHERE'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "x y " ] || fail "a hostfile of MLX's form"
SLURM_JOB_NODELIST='n[08-09]' SLURM_TASKS_PER_NODE='1(x2)' over plain 0 -n 2 sh -c 'echo $WHERE'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "n08 n09 " ] || fail "an allocation of Slurm"
SLURM_JOB_NODELIST="$(uname -n)" run 0 run -n 2 sh -c 'echo "${WHERE-here}"'
[ "$(tr '\n' ' ' <"$folder/out")" = "here here " ] || fail "an allocation of this host alone"

# What goes along: the folder, COHORT_* and --env; arguments as they are.
(cd "$folder" && COHORT_STALL=7 "$cohort" run --hosts a,b --shell ./plain --env 'X=a "b' \
    sh -c 'printf "%s|" "$PWD" "$COHORT_STALL" "$X" "$@"; echo' sh '' 'two  words' '$(x)') >"$folder/out" 2>"$folder/err" </dev/null \
    || fail "a job with odd arguments"
[ "$(grep -cxF "$folder|7|a \"b||two  words|\$(x)|" "$folder/out")" = 2 ] || fail "arguments do not arrive as they are"

# What a login script says is skipped, in front of the agent and on standard error.
over noisy 0 --hosts a,b echo hello
[ "$(sort -u "$folder/out")" = hello ] || fail "noise was taken for output"
[ ! -s "$folder/err" ] || fail "the shell's words were shown though all went well"

# A host that is of no use: one line that names it, soon, and nothing is started.
# no_host SHELL STATUS TEXT ARGUMENTS...
no_host() {
    with=$1
    status=$2
    text=$3
    shift 3
    began=$(now_ms)
    over "$with" "$status" --hosts a,b "$@"
    says err "$text"
    [ "$(grep -c 'cohort run: host [ab]: ' "$folder/err")" -ge 1 ] || fail "$with: no host is named"
    [ $(($(now_ms) - began)) -lt 8000 ] || fail "$with: it took too long"
    [ ! -e "$folder/started" ] || fail "$with: the program was started"
}
no_host unknown 1 "it cannot be reached (the shell exited with status 255): ssh: Could not resolve hostname" touch "$folder/started"
no_host bare 1 "there is no '$(realpath "$cohort")' there, or no such shell: sh: 1: cohort: not found" touch "$folder/started"
no_host older 1 "host b: it has version 0.0.9 of Cohort, and this host $VERSION" touch "$folder/started"
no_host silent 1 "host b: it has not answered within 1 s (--host-timeout)" --host-timeout 1 touch "$folder/started"
no_host chatty 1 "host b: it answers, but not as an agent of Cohort does" touch "$folder/started"
no_host liar 1 "host b: what it says makes no sense" touch "$folder/started"
no_host plain 127 "cannot start $folder/nothing: No such file or directory" "$folder/nothing"
no_host plain 127 "cannot start no-such-program: No such file or directory" no-such-program
mkdir "$folder/away"
(cd "$folder/away" && rmdir ../away && "$cohort" run --hosts a,b --shell "$folder/plain" true) >"$folder/out" 2>"$folder/err" \
    && fail "a folder that is not there"

# A failure is named with rank and host, and its status is the job's; a flood of output delays it little.
over plain 5 --hosts a:2,b:2 sh -c 'sleep 0.2; [ $COHORT_RANK != 2 ] || exit 5; sleep 60'
says err "cause: rank 2 of 4 on host b"
says err "exited with status 5"
grep -qE '^ +RANK +HOST +PID' "$folder/err" || fail "the table has no column for hosts"
grep -qE '^ +3 +b +[0-9]+ +ended ' "$folder/err" || fail "the table does not show rank 3 on host b"
began=$(now_ms)
"$cohort" run --hosts a:2,b:2 --shell "$folder/plain" sh -c \
    'if [ $COHORT_RANK = 3 ]; then sleep 0.5; kill -SEGV $$; fi; exec yes "a line of some length from rank $COHORT_RANK"' \
    2>"$folder/err" </dev/null | { sleep 1; tail -c 100 >/dev/null; }
[ "${PIPESTATUS[0]}" = 139 ] || fail "the status of a job that floods its output"
says err "cause: rank 3 of 4 on host b"
[ $(($(now_ms) - began)) -lt 8000 ] || fail "a flood of output delays a verdict"
over plain 0 --hosts a,b sh -c 'seq 1 20000; seq 1 20000 >&2'
[ "$(sort -n "$folder/out" | uniq -c | awk '$1 != 2' | wc -l)" = 0 ] && lines "$folder/out" 40000 && lines "$folder/err" 40000 \
    || fail "output was lost"
over parent 3 --hosts a,b sh -c '[ $COHORT_RANK != 1 ] || exit 3'
over plain 124 --hosts a,b --timeout 1 sleep 60
says err "the job ran longer than --timeout"
over plain 0 --hosts a,b --keep-going sh -c 'exit 0'

# Ranks that use the library: how one ended is known on all hosts, at once.
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}
run 0 run -n 5 --pretend-hosts 2 "$meet"
run 0 run -n 3 --pretend-hosts 2 sh -c 'echo "$COHORT_RANK $COHORT_HOST"'
[ "$(sort "$folder/out" | tr '\n' ' ')" = "0 host0 1 host0 2 host1 " ] || fail "pretended hosts"
over plain 0 --hosts a:2,b:3 "$meet"
began=$(now_ms)
over plain 134 --hosts a,b "$meet" crash
[ $(($(now_ms) - began)) -lt 10000 ] || fail "a crash is told late"
says err "rank 0: coh_barrier: rank 1 on host b is lost: killed by signal 6 (Aborted)"
says err "cause: rank 1 of 2 on host b"
over plain 17 --hosts a,b "$meet" global-exit
says err "the program asked for the end of the job, with status 17"
over plain 1 --hosts a,b "$meet" return
says err "rank 1 of 2 on host b"
says err "exited without finalize"
COHORT_WARN=300ms COHORT_STALL=1 over plain 9 --hosts a,b "$meet" stop
says err "rank 1 on host b is stalled: stopped outside Cohort"
# Rank 3 finds it first, and ends before it has told the others: that is not what went wrong.
over plain 9 --hosts a:2,b:2 sh -c '[ $COHORT_RANK != 3 ] || export COHORT_STALL=1; exec "$@"' sh "$meet" stop hasty
for rank in 0 2; do
    says err "rank $rank: coh_barrier: rank 1 on host a is stalled: stopped outside Cohort"
done
echo typed >"$folder/in"
[ "$("$cohort" run -n 2 --pretend-hosts 2 cat <"$folder/in")" = typed ] || fail "rank 0 of pretended hosts does not read the input"

# And rank 0 of real ones: all of it, in order, to its end; nothing waits where it is not read.
seq 1 200000 >"$folder/in"
"$cohort" run --hosts a,b --shell "$folder/plain" sh -c 'if [ $COHORT_RANK = 0 ]; then cat; else wc -c >&2; fi' <"$folder/in" \
    >"$folder/out" 2>"$folder/err" || fail "the status of a job that reads its input"
cmp -s "$folder/in" "$folder/out" || fail "the input does not arrive as it was sent"
[ "$(tr -d ' ' <"$folder/err")" = 0 ] || fail "rank 1 reads something"
[ "$("$cohort" run --hosts a,b --shell "$folder/plain" sh -c '[ $COHORT_RANK != 0 ] || head -n 1' <"$folder/in")" = 1 ] \
    || fail "a rank 0 that reads one line"
[ "$(yes | "$cohort" run --hosts a,b --shell "$folder/plain" echo unread | sort -u)" = unread ] || fail "input that nobody reads"
"$cohort" run --hosts a,b --shell "$folder/plain" cat <&- >"$folder/out" 2>"$folder/err" || fail "a closed standard input"

# What goes between ranks of two hosts is counted by peer; ranks of one host have no link.
"$cohort" run -n 3 --pretend-hosts 2 "$meet" hang >/dev/null 2>&1 </dev/null &
launcher=$!
# Of what cohort ps shows, the job of $launcher: other tests have theirs.
own_job() { awk -v job="launcher $launcher," 'index($0, job) { own = 1 } /^$/ { own = 0 } own'; }
counts() {
    "$cohort" ps --links | own_job >"$folder/out"
    grep -qE '^ +2 +0 +[1-9][0-9]* +[0-9.]+ (KiB|B) +[0-9.]+ (KiB|B) +[0-9]+' "$folder/out"
}
wait_for 10 counts || fail "cohort ps --links does not count what rank 2 sends to rank 0"
grep -qE '^ +RANK +HOST +PID +STATE +OPERATION +WAITING +SENT +RECEIVED +FOR' "$folder/out" || fail "cohort ps does not show bytes"
grep -qE '^ +1 +0 +[0-9]+ +[0-9.]+ (KiB|B)' "$folder/out" && fail "ranks of one host are shown to have a link"
"$cohort" ps --json | grep -q '"received_bytes": [1-9]' || fail "cohort ps --json has no links"
kill -TERM "$launcher"
wait "$launcher"
"$cohort" run -n 2 "$meet" hang >/dev/null 2>&1 </dev/null &
launcher=$!
shows_one() { "$cohort" ps --links | own_job | tee "$folder/out" | grep -q "launcher $launcher"; }
wait_for 10 shows_one || fail "cohort ps does not show a job of one host"
grep -q 'SENT' "$folder/out" && fail "a job of one host has no bytes to show"
kill -TERM "$launcher"
wait "$launcher"

# cohort ps shows the ranks of all hosts once, on the host of the launcher.
"$cohort" run --hosts ha,hb --shell "$folder/plain" sleep 30 >/dev/null 2>&1 </dev/null &
launcher=$!
shows() {
    "$cohort" ps >"$folder/out"
    grep -qE '^ +1 +hb ' "$folder/out"
}
wait_for 10 shows || fail "cohort ps does not show the job"
[ "$(grep -c "launcher $launcher" "$folder/out")" = 1 ] || fail "cohort ps does not show the job once"
"$cohort" ps --json | grep -q '"host": "hb"' || fail "cohort ps --json has no hosts"
kill -TERM "$launcher"
wait "$launcher"
[ $? = 143 ] || fail "the status of a job that was told to end"

# Bad input.
refuse() {
    text=$1
    shift
    run 2 run "$@" touch "$folder/started"
    says err "$text"
    [ ! -e "$folder/started" ] || fail "cohort run $*: the program was started"
}
refuse "--hosts: the name of a host is empty" --hosts ''
refuse "--hosts: host 'a' is there twice" --hosts a:2,a
refuse "--hosts: a host with 0 slots" --hosts a:0
refuse "cannot be the name of a host" --hosts=-oProxyCommand=x
refuse "3 ranks do not fit into 2 slots of 2 hosts; give hosts more slots, or --oversubscribe" --hosts a,b -n 3
refuse "--hosts and --hostfile: give one of them" --hosts a --hostfile "$folder/hostfile"
refuse "--hosts and --pretend-hosts: give one of them" --hosts a --pretend-hosts 1
refuse "--hosts and --pretend-hosts: give one of them" --hosts a:2 --pretend-hosts 2
refuse "--pretend-hosts 4: there are 2 ranks" -n 2 --pretend-hosts 4
printf 'a slots=2 address=\n' >"$folder/bad"
refuse "$folder/bad:1:19: the address of a host is empty" --hostfile "$folder/bad"
refuse "--hostfile and --pretend-hosts: give one of them" --hostfile x --pretend-hosts 1
refuse "cannot read $folder/none: No such file" --hostfile "$folder/none"
refuse "cannot read $folder: Is a directory" --hostfile "$folder"
printf 'a\nb slots=many\n' >"$folder/bad"
refuse "$folder/bad:2:9: 'many' is no number of slots" --hostfile "$folder/bad"
: >"$folder/bad"
refuse "$folder/bad: it names no host" --hostfile "$folder/bad"
refuse "--shell: no hosts are given" --shell ssh
refuse "--shell: the command is empty" --hosts a --shell ''
refuse "--host-timeout: 'soon' is not a time" --hosts a --host-timeout soon
SLURM_JOB_NODELIST='n[1-' refuse "SLURM_JOB_NODELIST: a bracket has no end" -n 2
run 2 agent x
says err "it is started by cohort run --hosts"
echo "hosts: all is well"
