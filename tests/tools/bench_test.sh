#!/bin/bash
# `cohort bench`: that every benchmark runs to its end and reports; how fast is not a test's affair.
. "$(dirname "$0")/common.sh"

for engine in shm threads; do
    run 0 bench --quick --rounds 2 --engine $engine --sizes 8,64K
    for word in barrier sync put get quiet all_reduce broadcast scan to_bf16 from_f8e5m2 "of limit"; do
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

# Collectives: each on more ranks than there may be cores, cold and warm, in place and not, from
# both kinds of memory. Their results are checked before they are measured.
run 0 bench collectives -n 3,4 --rounds 1 --sizes 8,4K --heap --private --warm --cold \
    --dtype f32,bf16 --csv
says out "all_to_all,4,4096,bf16,private,cold,0,limit"
run 0 bench collectives -n 3 --rounds 1 --sizes 1K-16K --in-place --json
says out '"in_place": true'
says out '"bytes": 16384'

# Several runs, and the page: one file, whole, which loads nothing.
run 0 bench all_reduce --runs 2 --rounds 1 --sizes 8,1K --warm --heap --dtype f16 \
    --html "$folder/page.html"
says out "worst"
says page.html '"worst"'
says page.html "</html>"
grep -qE '(src|href)="[a-z]+:' "$folder/page.html" && fail "the page loads something"
[ "$(ls "$folder" | grep -c page)" = 1 ] || fail "something lies beside the page"
run 1 bench all_reduce --rounds 1 --sizes 8 --warm --heap --dtype f32 \
    --html "$folder/none/page.html"
says err "none/page.html"

run 2 bench all_reduce --dtype f33
says err "f33"
run 2 bench all_reduce --sizes 1M-1K
says err "ends before it begins"
run 2 bench all_reduce -n 2,0
says err "0"
run 2 bench --json --csv
says err "give one of them"

run 0 bench pipeline --bytes 256K --tile 64K --rounds 2
for word in memory file ratio; do
    says out "$word"
done
run 0 bench pipeline --bytes 64K --tile 16K --rounds 1 --depth 3 --json
for word in '"ratio"' '"pipelined"' '"of_at_once"' '"depth": 3'; do
    says out "$word"
done
run 2 bench pipeline --tile 1000
says err "1000"
run 2 bench pipeline --tile 64K --bytes 100K
says err "not a multiple"
run 2 bench pipeline --depth 1
says err "1"

if "$cohort" info | grep -q '^  tcp *yes' && "$cohort" info | grep -q 'between hosts *sealed'; then
    run 0 bench links --rounds 1
    for word in message put all_reduce sealed 'in the clear' fraction; do
        says out "$word"
    done
    # What is not installed is told, and left out.
    run 0 bench links --rounds 1 --turns 1 --against openmpi,gloo,mlx --json --html "$folder/links.html"
    for word in '"fraction"' '"sealed": true' '"sealed": false' '"bytes": 16777216'; do
        says out "$word"
    done
    for peer in openmpi gloo mlx; do
        grep -q "\"name\": \"$peer\"" "$folder/out" || says err "$peer is not measured"
    done
    grep -q 'all_reduce' "$folder/links.html" || fail "the page has no all_reduce"
fi
run 2 bench links --against nothing
says err "there are openmpi, gloo, mlx"
run 2 bench links --against gloo --choices
says err "two reports"
run 2 bench links --rounds 0
says err "0"

run 0 bench gpu --help
for word in all_to_all nvshmem stream; do
    says out "$word"
done
run 2 bench gpu --sizes 6
says err "multiple of 4"
run 2 bench gpu --way sideways
says err "sideways"
run 2 bench gpu juggle
says err "juggle"
if ! "$cohort" info --json | grep -q multiprocessors; then # there is no card
    run 1 bench gpu
    says err "cuda"
fi

run 2 bench tea
says err "tea"
run 2 bench put --sizes 12Q
says err "12Q"
run 2 bench -n 0
says err "0"

# The folder that peers are built in goes with the tool, be it killed.
empty() {
    [ -z "$(ls -A "$folder/peers")" ]
}
filled() {
    ! empty
}
mkdir "$folder/peers"
TMPDIR=$folder/peers "$cohort" bench barrier --against mpich,openmpi >/dev/null 2>&1 </dev/null &
tool=$!
wait_for 20 filled || fail "no folder for the peers"
kill -KILL $tool
wait $tool 2>/dev/null
wait_for 20 empty || fail "the folder of the peers is left: $(ls "$folder/peers")"
echo "bench: passed"
