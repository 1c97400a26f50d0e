#!/bin/bash
# `cohort bench`: that every benchmark runs to its end and reports; how fast is not a test's affair.
. "$(dirname "$0")/common.sh"

for engine in shm threads; do
    run 0 bench --quick --engine $engine --sizes 8,64K
    for word in barrier sync put get quiet "of limit"; do
        says out "$word"
    done
done

run 0 bench put --quick --sizes 1K --json
for word in '"results"' '"version"' '"engine"'; do
    says out "$word"
done
if command -v python3 >/dev/null; then
    python3 -m json.tool "$folder/out" >/dev/null || fail "not JSON"
fi

run 2 bench tea
says err "tea"
run 2 bench put --sizes 12Q
says err "12Q"
run 2 bench -n 0
says err "0"
echo "bench: passed"
