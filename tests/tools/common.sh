# common.sh - what the tests of the command-line tool share; $1 is the program's path.
set -u
cohort=${1:?usage: $0 PATH_TO_COHORT}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset COHORT_RANK COHORT_SIZE COHORT_JOB_FD COHORT_ENGINE COHORT_HEAP COHORT_LOG

fail() {
    echo "FAILED: $*" >&2
    for file in "$folder/out" "$folder/err"; do
        [ -s "$file" ] && { echo "--- ${file##*/}:"; head -c 2000 "$file"; } >&2
    done
    exit 1
}

# run STATUS ARGUMENTS...: runs the tool, keeps out and err, and checks the exit status.
run() {
    expected=$1
    shift
    "$cohort" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || fail "cohort $*: status $got, expected $expected"
}

# says FILE TEXT: the text is in $folder/FILE.
says() {
    grep -qF -- "$2" "$folder/$1" || fail "'$2' is not in $1"
}

# alive PID: it is there, and not a zombie that waits for a slow parent.
alive() {
    state=$(sed -n 's/.*) \(.\) .*/\1/p' "/proc/$1/stat" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

# wait_for SECONDS COMMAND...: polls until the command succeeds.
wait_for() {
    tries=$(($1 * 50))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.02
    done
}

# all_dead FILE...: none of the processes whose ids the files hold is alive.
all_dead() {
    for pid in $(cat "$@"); do
        alive "$pid" && return 1
    done
    return 0
}

# lines FILE COUNT: the file has at least so many lines.
lines() {
    [ "$(cat "$1" 2>/dev/null | wc -l)" -ge "$2" ]
}

# now_ms: a clock for generous bounds.
now_ms() {
    echo $(($(date +%s%N) / 1000000))
}
