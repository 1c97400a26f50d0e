#!/bin/bash
# Steps of Slurm: without PMI, with PMI-1 and with PMIx, on one node and on two that share nothing but a network. docs/faults.md F38.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/slurm.sh"
ring=${3:?usage: $0 PATH_TO_COHORT PATH_TO_MEET PATH_TO_RING}
unset COHORT_HOST COHORT_SECRET COHORT_SECRET_FILE COHORT_PORT MASTER_ADDR
reason=$(slurm_reason)
[ -z "$reason" ] || { echo "skipped: $reason"; exit 77; }
bed=$(dirname "$0")/../../scripts/testbed name=s$(tr -dc a-z </dev/urandom | head -c 6)
trap 'slurm_down; "$bed" --name "$name" down >/dev/null 2>&1; rm -rf "$folder"' EXIT
chmod 755 "$folder" # munged looks at the folders above its socket

# step STATUS FLAG...: ends with it; out and err are kept.
step() {
    expected=$1
    shift
    in_slurm timeout 30 srun "$@" "$ring" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || fail "srun $*: status $got, expected $expected"
}
is_ring() {
    for rank in 0 1 2 3; do
        says out "rank $rank of 4 was sent $(((rank + 3) % 4))"
    done
}

slurm_up "$folder/slurm" || { tail -n 3 "$folder"/slurm/*.log; echo "skipped: Slurm cannot be started here"; exit 77; }
for kind in none:Slurm pmi2:PMI-1 pmix:PMIx; do
    [ -e "$(dirname "$(command -v slurmd)")" ] && srun --mpi=list 2>&1 | grep -q "${kind%:*}" || continue
    COHORT_LOG=info step 0 --mpi="${kind%:*}" -n 4
    is_ring
    says err "4 ranks, by ${kind#*:}"
done
step 0 --mpi=none -n 1
slurm_down

if "$bed" --name "$name" up 2 >/dev/null 2>&1; then
    slurm_up "$folder/two" "${name}1=10.77.0.1" "${name}2=10.77.0.2" || { tail -n 3 "$folder"/two/*.log; fail "two nodes"; }
    for kind in pmi2:PMI-1 pmix:PMIx; do
        srun --mpi=list 2>&1 | grep -q "${kind%:*}" || continue
        COHORT_LOG=info step 0 --mpi="${kind%:*}" -N 2 -n 4
        is_ring
        says err "4 ranks, by ${kind#*:}"
        says err "rank 0 of 4: engine tcp"
    done
    step 1 --mpi=none -N 2 -n 4
    says err "it has ranks on several hosts, and they need a secret"
    COHORT_SECRET=$(printf '%064d' 42) MASTER_ADDR=10.77.0.1 step 0 --mpi=none -N 2 -n 4
    is_ring
else
    echo "slurm: without two nodes, for which network namespaces cannot be made here"
fi
echo "slurm: passed"
