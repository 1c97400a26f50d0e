#!/bin/bash
# any_test.sh COHORT RING: what "any" is over two hosts. ucx where the network is trusted and has a fabric, which is played
# here by a folder in the place of the kernel's; else tcp.
if [ -z "${ANY_INSIDE:-}" ] && unshare --mount true 2>/dev/null; then
    ANY_INSIDE=1 exec unshare --mount bash "$0" "$@"
fi
. "$(dirname "$0")/common.sh"
ring=$2
export UCX_TLS=tcp,self UCX_NET_DEVICES=lo

# taken ENGINE VARIABLES...: that is the one, as a rank's log says.
taken() {
    expected=$1
    shift
    env COHORT_LOG=info "$@" timeout 60 "$cohort" run -n 2 --pretend-hosts 2 "$ring" >"$folder/out" 2>"$folder/err" </dev/null \
        || fail "$*: the ring did not run"
    says out "rank 1 of 2 was sent 0"
    says err "engine $expected"
}

taken tcp COHORT_NET=seal
taken tcp COHORT_NET=clear

"$cohort" info 2>/dev/null | grep -q "UCX" || { echo "skipped: engine ucx is not available"; exit 77; }
[ -n "${ANY_INSIDE:-}" ] || { echo "skipped: no mount namespace can be made here"; exit 77; }
mkdir -p "$folder/class"
cp -a /sys/class/. "$folder/class/" 2>/dev/null # control files cannot be read
mkdir -p "$folder/class/infiniband/mlx5_0/ports/1"
mount --bind "$folder/class" /sys/class || { echo "skipped: /sys/class cannot be covered"; exit 77; }

echo "1: DOWN" >"$folder/class/infiniband/mlx5_0/ports/1/state"
taken tcp COHORT_NET=clear
echo "4: ACTIVE" >"$folder/class/infiniband/mlx5_0/ports/1/state"
taken ucx COHORT_NET=clear
taken tcp COHORT_NET=seal
taken tcp COHORT_NET=clear COHORT_ENGINE=tcp
exit 0
