#!/bin/bash
# The command line: help, version, and what is said to a wrong one.
. "$(dirname "$0")/common.sh"

run 2
says err "usage: cohort COMMAND"
for form in help --help -h; do
    run 0 "$form"
    for command in run ps info bench tune completion help version; do
        says out "  $command "
    done
done
run 0 version
version=$(cat "$folder/out")
run 0 --version
[ "$(cat "$folder/out")" = "$version" ] || fail "--version and version differ"
for command in run ps info; do
    run 0 "$command" --help
    cp "$folder/out" "$folder/help"
    says out "usage: cohort $command"
    run 0 help "$command"
    cmp -s "$folder/out" "$folder/help" || fail "help $command is not $command --help"
done

run 2 frobnicate
says err "there is no command 'frobnicate'; there are run, ps, info, bench, tune, completion, help, version"
run 2 help frobnicate
says err "'frobnicate'"

# wrong TEXT ARGUMENTS...: `cohort run` refuses, says the text, and starts nothing.
wrong() {
    text=$1
    shift
    run 2 run "$@" touch "$folder/started"
    says err "$text"
    [ ! -e "$folder/started" ] || fail "cohort run $*: the program was started"
}
wrong "-n: '0' is not a whole number from 1 to 1024" -n 0
wrong "-n: '1025' is not a whole number from 1 to 1024" -n 1025
wrong "-n: '-3' is not" -n -3
wrong "--ranks: '2x' is not" --ranks=2x
wrong "there is no engine 'warp'; there are any, shm, threads" --engine warp
wrong "--engine threads" -n 2 --engine threads
wrong "--heap: '12 parsecs' is not a size" --heap '12 parsecs'
wrong "--env: 'NAME' is not NAME=VALUE" --env NAME
wrong "--env: '=x' is not NAME=VALUE" --env =x
wrong "cohort run sets COHORT_RANK itself" --env COHORT_RANK=1
wrong "--timeout: 'soon' is not a time" --timeout soon
wrong "--grace: 'soon' is not a time" --grace soon
wrong "--bind: 'socket' is not one of none, core" --bind socket
wrong "there is no flag '--frobnicate'; there are --ranks" --frobnicate
wrong "--tag-output takes no value, but was given 'yes'" --tag-output=yes
run 2 run
says err "no PROGRAM was given"
run 2 run -n
says err "-n needs a value"
run 2 ps --frobnicate
says err "there is no flag '--frobnicate'"
run 2 info now
says err "it takes flags alone, but was given 'now'"
echo "cli: passed"
