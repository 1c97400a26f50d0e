#!/bin/bash
# Jobs under a memory limit: a memory cgroup far smaller than the host. Skipped where none can be made.
# docs/faults.md F11.
. "$(dirname "$0")/common.sh"
meet=${2:?usage: $0 PATH_TO_COHORT PATH_TO_MEET}

# group_of MARKER ROOT: the folder of this process's cgroup in that hierarchy.
group_of() {
    path=$(sed -n "s/^[0-9]*:$1://p" /proc/self/cgroup)
    [ -n "$path" ] && [ -d "$2$path" ] && echo "$2${path%/}"
}

# make_group PARENT LIMIT_FILE: a group below PARENT that has a limit to set.
make_group() {
    group=$1/cohort-test-$$
    mkdir "$group" 2>/dev/null || return 1
    [ -w "$group/$2" ] && limit_file=$group/$2 && return 0
    rmdir "$group"
    return 1
}

make_group "$(group_of memory /sys/fs/cgroup/memory)" memory.limit_in_bytes \
    || make_group "$(group_of '' /sys/fs/cgroup)" memory.max \
    || { echo "no memory cgroup can be made here"; exit 77; }
leave() {
    rmdir "$group"
    rm -rf "$folder"
}
trap leave EXIT

# within BYTES COMMAND...: runs it under that limit.
within() {
    echo "$1" >"$limit_file" || fail "cannot set a limit of $1 bytes"
    shift
    bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" \
        >"$folder/out" 2>"$folder/err" </dev/null
}

mib=$((1024 * 1024))
for limit in 128 400; do
    within $((limit * mib)) "$cohort" run -n 2 "$meet" || fail "two ranks in a container of $limit MiB"
    # Most of the container can be used.
    within $((limit * mib)) "$cohort" run -n 2 "$meet" allocate $((limit * mib / 4)) \
        || fail "two ranks that take half of a container of $limit MiB"
    # What it cannot hold is an error that tells of its limit, not the end of a process.
    within $((limit * mib)) "$cohort" run -n 2 --grace 20 "$meet" allocate $((limit * mib)) \
        && fail "two ranks got twice the memory of their container"
    says err "this container (memory cgroup) has $((limit * mib)) bytes"
    says err "kept back for its other processes"
done
echo "container: passed"
