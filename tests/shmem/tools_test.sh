#!/bin/sh
# tools_test.sh BIN SOURCES - oshcc, oshc++, oshrun and oshsuite, as a user has them.
set -u
bin=${1:?usage: tools_test.sh BIN SOURCES}
sources=${2:?usage: tools_test.sh BIN SOURCES}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "FAILED: $*" >&2
    [ -f "$folder/err" ] && head -c 2000 "$folder/err" >&2
    exit 1
}

cat >"$folder/hello.c" <<'C'
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    shmem_init();
    if (shmem_my_pe() == 0)
        printf("%d PEs, %s, %s\n", shmem_n_pes(), argc > 1 ? argv[1] : "nothing",
               getenv("WORD") ? getenv("WORD") : "no word");
    shmem_finalize();
    return 0;
}
C
cp "$folder/hello.c" "$folder/hello.cc"
for kind in 'oshcc c' 'oshc++ cc'; do
    # shellcheck disable=SC2086 # two words
    set -- $kind
    "$bin/$1" -Wall "$folder/hello.$2" -o "$folder/hello" 2>"$folder/err" || fail "$1 hello.$2"
    "$bin/$1" -c "$folder/hello.$2" -o "$folder/hello.o" 2>"$folder/err" || fail "$1 -c"
    "$bin/$1" "$folder/hello.o" -o "$folder/hello" 2>"$folder/err" || fail "$1 hello.o"
    for show in -show -showme; do
        "$bin/$1" $show x.c | grep -q 'x.c .*-lcohort-shmem' || fail "$1 $show"
    done
    for static in -static -static-pie; do
        "$bin/$1" $static "$folder/hello.$2" -o "$folder/static" 2>"$folder/err" && fail "$1 $static links"
        grep -q "^$1: $static: " "$folder/err" || fail "$1 $static: no reason is given"
    done
    # The two lines are all that the compiler itself needs.
    compiler=$("$bin/$1" -show x.c)
    # shellcheck disable=SC2046 # flags are words
    ${compiler%% *} $("$bin/$1" -showme:compile) -c "$folder/hello.$2" -o "$folder/hello.o" 2>"$folder/err" ||
        fail "$1 -showme:compile"
    # shellcheck disable=SC2046 # flags are words
    ${compiler%% *} "$folder/hello.o" $("$bin/$1" -showme:link) -o "$folder/hello" 2>"$folder/err" ||
        fail "$1 -showme:link"
done

expect() { # wanted, command...
    wanted=$1
    shift
    got=$("$@" 2>"$folder/err") || fail "$*: status $?"
    [ "$got" = "$wanted" ] || fail "$*: '$got' instead of '$wanted'"
}
expect '1 PEs, nothing, no word' "$folder/hello"
for count in 1 2 3 5 8; do
    expect "$count PEs, a b, no word" "$bin/oshrun" -n $count "$folder/hello" 'a b'
done
expect '2 PEs, nothing, it is' "$bin/oshrun" -np 2 --oversubscribe --mca a b -x 'WORD=it is' "$folder/hello"
expect '2 PEs, -n, set' env WORD=set "$bin/oshrun" -N 2 -x WORD "$folder/hello" -n
"$bin/oshrun" --no-such-flag "$folder/hello" 2>"$folder/err" && fail 'a flag that is not there'
grep -q no-such-flag "$folder/err" || fail 'the flag is not named'
"$bin/oshrun" -n 0 "$folder/hello" 2>"$folder/err" && fail 'no PEs'
expect '3 PEs, nothing, no word' "$bin/oshrun" -n 3 -N 4 "$folder/hello"
expect '3 PEs, nothing, no word' "$bin/oshrun" -N 4 -n 3 "$folder/hello"
"$bin/oshrun" -n 8 -N 4 "$folder/hello" 2>"$folder/err" && fail 'PEs of several hosts on one'
grep -q '8 PEs with at most 4 on a host' "$folder/err" || fail 'the hosts are not named'
# Hosts go on to cohort run, unless they are this one alone.
starts() { # command line of cohort run, flags of oshrun...
    wanted=$1
    shift
    [ "$("$bin/oshrun" "$@" --dry-run prog)" = "$(dirname "$(readlink -f "$bin/oshrun")")/cohort $wanted -- prog" ] \
        || fail "oshrun $*: $("$bin/oshrun" "$@" --dry-run prog)"
}
starts 'run -n 4 --hosts a:2,b:2' -n 4 -H a:2,b:2
starts 'run --hosts a:2,b:2' -N 2 --hosts a,b
starts 'run -n 3 --hosts a,b --oversubscribe' -n 3 --oversubscribe -host a,b
starts 'run -n 2' -n 2 -H "localhost:2,$(uname -n)"
printf 'a slots=2 # one\nb\n' >"$folder/hosts"
starts "run --hostfile $folder/hosts" -machinefile "$folder/hosts"
echo localhost >"$folder/hosts"
starts 'run -n 2' -n 2 --hostfile "$folder/hosts"
"$bin/oshrun" -n 2 --hostfile "$folder/none" prog 2>/dev/null && fail 'a hostfile that is not there'
"$bin/oshrun" -n 2 "$folder/hello" : -n 2 "$folder/hello" 2>"$folder/err" && fail 'several programs'
grep -q "':'" "$folder/err" || fail 'the colon is not named'

SHMEM_VERSION=1 "$bin/oshrun" -n 2 "$folder/hello" | grep -q 'OpenSHMEM 1.6' || fail SHMEM_VERSION
SHMEM_INFO=1 "$bin/oshrun" -n 2 "$folder/hello" | grep -q SHMEM_SYMMETRIC_SIZE || fail SHMEM_INFO
SHMEM_SYMMETRIC_SIZE=lots "$bin/oshrun" -n 2 "$folder/hello" 2>"$folder/err" && fail 'a size that is none'
grep -q SHMEM_SYMMETRIC_SIZE "$folder/err" || fail 'the variable is not named'
SHMEM_SYMMETRIC_SIZE=3.5M "$bin/oshrun" -n 2 "$folder/hello" >/dev/null 2>"$folder/err" || fail 'a size with a fraction'

SHMEM_SYMMETRIC_SIZE=40T "$bin/oshrun" -n 2 "$folder/hello" >/dev/null 2>"$folder/err" || fail 'a size beyond the host'
[ "$(grep -c 'SHMEM_SYMMETRIC_SIZE is 40T' "$folder/err")" = 1 ] || fail 'one line for a size beyond the host'

# A slow PE is told of once for each length of time, not once by each PE that waits: there are eight here,
# and the time would have to double seven times for as many lines.
cat >"$folder/slow.c" <<'EOF'
#include <shmem.h>
#include <unistd.h>
int main(void)
{
    shmem_init();
    if (shmem_my_pe() == 0)
        sleep(1);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
EOF
"$bin/oshcc" "$folder/slow.c" -o "$folder/slow" 2>"$folder/err" || fail 'oshcc slow.c'
expect '' "$bin/oshrun" -n 9 -x COHORT_WARN=0.2 "$folder/slow"
lines=$(grep -c 'shmem: warning: PE [0-9]* has waited .* for PE 0' "$folder/err")
[ "$lines" -ge 1 ] && [ "$lines" -le 7 ] || fail "$lines lines about a slow PE"

# A PE that ends all waits for nobody, with whatever status; a forked child is no PE. Neither frees what
# the library has, which is no leak.
sanitizing=${ASAN_OPTIONS-}
export ASAN_OPTIONS=$sanitizing:detect_leaks=0
cat >"$folder/ends.c" <<'EOF'
#include <shmem.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    int status = -1;
    shmem_init();
    if (count < 2) {
        if (fork() == 0)
            exit(0);
        wait(&status);
        return status;
    }
    if (shmem_my_pe() == 0)
        shmem_global_exit(atoi(words[1]));
    shmem_barrier_all();
    return 9;
}
EOF
"$bin/oshcc" -v "$folder/ends.c" -o "$folder/ends" 2>/dev/null || fail 'oshcc -v does not link'
expect '' "$bin/oshrun" -n 3 "$folder/ends"
[ ! -s "$folder/err" ] || fail "a forked child says: $(cat "$folder/err")"
expect '' "$bin/oshrun" -n 3 "$folder/ends" 0
[ ! -s "$folder/err" ] || fail "shmem_global_exit(0) says: $(cat "$folder/err")"
"$bin/oshrun" -n 3 "$folder/ends" -1 2>/dev/null
[ $? = 255 ] || fail 'shmem_global_exit(-1)'
export ASAN_OPTIONS=$sanitizing

# Objects that live as long as the program: their destructors run after main, and may call the library.
cat >"$folder/guard.cc" <<'EOF'
#include <shmem.h>
#include <cstdlib>
struct Guard {
    long *word = nullptr;
    ~Guard()
    {
        shmem_barrier_all();
        shmem_free(word);
        shmem_finalize();
    }
};
static Guard guard;
int main()
{
    shmem_init();
    guard.word = static_cast<long *>(shmem_malloc(sizeof(long)));
    return 0;
}
EOF
"$bin/oshc++" "$folder/guard.cc" -o "$folder/guard" 2>"$folder/err" || fail 'oshc++ guard.cc'
for count in 1 3; do
    expect '' "$bin/oshrun" -n $count "$folder/guard"
    [ ! -s "$folder/err" ] || fail "a static destructor: $(cat "$folder/err")"
done

# One shmem_finalize too many is told once for the whole job.
cat >"$folder/extra.c" <<'EOF'
#include <shmem.h>
int main(void)
{
    shmem_init();
    shmem_finalize();
    shmem_finalize();
    shmem_finalize();
    return 0;
}
EOF
"$bin/oshcc" "$folder/extra.c" -o "$folder/extra" 2>"$folder/err" || fail 'oshcc extra.c'
expect '' "$bin/oshrun" -n 3 "$folder/extra"
[ "$(grep -c 'shmem_finalize' "$folder/err")" = 1 ] || fail 'one line for one shmem_finalize too many'

# A folder with one that passes, one that fails and one that is no program.
mkdir "$folder/suite"
cp "$sources/order.c" "$sources/check.h" "$folder/suite"
printf '#include <shmem.h>\nint main(void) { shmem_init(); shmem_global_exit(3); }\n' >"$folder/suite/three.c"
printf 'int helper(void) { return 0; }\n' >"$folder/suite/helper.c"
"$bin/oshsuite" -n 2 -t 30 "$folder/suite" >"$folder/err" && fail 'oshsuite: something failed, and it said nothing'
grep -q 'order.c .*pass' "$folder/err" || fail 'oshsuite: order.c'
grep -q 'three.c .*FAIL(3)' "$folder/err" || fail 'oshsuite: three.c'
grep -q '2 programs: 1 passed, 1 failed' "$folder/err" || fail 'oshsuite: the last line'
echo "compilers, runner and suite work"
