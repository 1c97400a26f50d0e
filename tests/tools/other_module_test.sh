#!/bin/bash
# other_module_test.sh COHORT RING MODULES: a module that does not belong to the library is refused with a sentence,
# whatever it differs in. MODULES has a cohort-tcp.so that differs as OTHER_MODULE says, and aborts if it is taken.
. "$(dirname "$0")/common.sh"
ring=$2
export COHORT_MODULES=$3 COHORT_ENGINE=tcp
ulimit -c 0

# refused HOW TEXT
refused() {
    OTHER_MODULE=$1 "$ring" >"$folder/out" 2>"$folder/err"
    got=$?
    [ "$got" = 1 ] || fail "a module with another $1: status $got, expected 1"
    says err "$2"
}

refused contract "its module is built for contract"
refused version "its module is of version 0.0.9"
refused size "its module was built with another cohi_module than the library; both must be of one build"
refused services "built with another cohi_services"
refused args "built with another cohi_engine_args"
refused knobs "built with another cohi_config"

# One that differs in nothing is taken: the test would see it.
"$ring" >"$folder/out" 2>"$folder/err"
got=$?
[ "$got" = 134 ] || fail "a module like the library: status $got, expected 134"
