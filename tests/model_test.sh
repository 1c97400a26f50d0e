#!/bin/sh
# model_test.sh ROOT [TIMES] - the library's meeting, posts, bell, latch and lane under C11's memory model.
#
# Compiles the models of tests/model, which contain the library's own functions, and runs them with Relacy. Each
# model must hold as it is, and be refuted with each memory order weakened and with each of its mutants: a
# check that cannot fail would not be one. TIMES: as many times the executions of a model.
set -u

root=${1:?usage: model_test.sh ROOT [TIMES]}
times=${2:-1}
cxx=${CXX:-g++}
models="lane meeting bell"

if ! echo '#include <relacy/relacy.hpp>' | "$cxx" -E -x c++ - >/dev/null 2>&1; then
    echo "skipped: there is no $cxx with Relacy; scripts/need-packages model installs both"
    exit 77
fi

work=$(mktemp -d) || exit 1
trap 'rm -r "$work"' EXIT

# C in C++: a pointer to void becomes any other, and designators come in any order.
check() {
    "$root/tests/model/expand" "$root" "$root/tests/model/$1.cpp" >"$work/$1.cpp" &&
        "$cxx" -std=gnu++20 -O1 -fpermissive -w -I"$root/tests/model" "$work/$1.cpp" -o "$work/$1" &&
        "$work/$1" "$times"
}

for model in $models; do
    check "$model" >"$work/$model.log" 2>&1 &
    eval "pid_$model=$!"
done
failed=0
for model in $models; do
    eval "wait \"\$pid_$model\"" || failed=1
    cat "$work/$model.log"
done
exit "$failed"
