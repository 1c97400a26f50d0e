#!/bin/bash
# `cohort ps` and `cohort info`.
. "$(dirname "$0")/common.sh"

# valid: out is JSON, where something here can tell.
valid() {
    if command -v jq >/dev/null; then
        jq -e . "$folder/out" >/dev/null || fail "not JSON"
    elif command -v python3 >/dev/null; then
        python3 -m json.tool "$folder/out" >/dev/null || fail "not JSON"
    fi
}

run 0 info
says out "cohort $("$cohort" version | cut -d' ' -f2)"
for word in shm threads sim COHORT_HEAP COHORT_STALL "cores usable" "memory available" kernel; do
    says out "$word"
done
COHORT_WARN=9 "$cohort" info >"$folder/out"
grep -qE 'COHORT_WARN +9 +environment' "$folder/out" || fail "the origin of a setting"
COHORT_WARN=later "$cohort" info >"$folder/out"
says out "COHORT_WARN: 'later' is not a time"
run 0 info --json
valid
for word in '"engines"' '"COHORT_HEAP"' '"origin"' '"cores_usable"' '"host_id"'; do
    says out "$word"
done
"$cohort" info >/dev/full 2>"$folder/err" && fail "output that cannot be written is no success"

# A job of three ranks is shown while it runs, and not after.
mark=$folder/a-program-to-be-seen
printf '#!/bin/sh\necho >>"$1"\nsleep 100\n' >"$mark"
chmod +x "$mark"
"$cohort" run -n 3 "$mark" "$folder/ready" >/dev/null 2>&1 </dev/null &
launcher=$!
wait_for 10 lines "$folder/ready" 3 || fail "the job did not start"
run 0 ps
name=$(printf '%.63s' "$mark")
says out "$name: launcher $launcher, ranks 3"
says out "RANK"
run 0 ps --json
valid
says out "\"launcher\": $launcher"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
gone() { ! "$cohort" ps | grep -qF "launcher $launcher,"; }
wait_for 2 gone || fail "a dead job is still shown"
echo "look: passed"
