#!/bin/sh
# names_test.sh BUILD_DIR - the tools have short names in a prefix of one's own, and long ones in the system's, where the
# short ones may be another package's.
set -eu
build=${1:?usage: names_test.sh BUILD_DIR}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
root=$here/root

fail() {
    echo "names_test: $*" >&2
    exit 1
}

has() { # prefix, the name before oshcc, the other one
    rm -rf "$root"
    DESTDIR=$root cmake --install "$build" --component osh --prefix "$1" >"$here/log" 2>&1 || fail "$(cat "$here/log")"
    for tool in oshcc oshc++ oshCC oshcxx oshrun oshsuite; do
        [ -x "$root$1/bin/$2$tool" ] || fail "$1/bin has no $2$tool"
        [ ! -e "$root$1/bin/$3$tool" ] || fail "$1/bin has $3$tool"
    done
    for page in oshcc oshc++ oshCC oshcxx oshrun oshsuite; do
        [ -f "$(find "$root$1" -name "$2$page.1")" ] || fail "$1 has no page $2$page.1"
    done
}

has /opt/private '' cohort-
has /usr/local cohort- ''
has /usr cohort- ''
grep -q '\$here/cohort-oshrun' "$root/usr/bin/cohort-oshsuite" || fail "cohort-oshsuite would run another's oshrun"
