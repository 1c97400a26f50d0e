#!/bin/bash
# mpi_test.sh COHORT RING KIND LIBRARIES TREE: engine mpi below the launcher of that MPI (openmpi or mpich), with a
# program that does not know of MPI, and one that uses it beside Cohort.
. "$(dirname "$0")/common.sh"
ring=$2 kind=$3 libraries=$4 tree=$5
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

case $kind in
openmpi) launch=(mpirun.openmpi --oversubscribe -n 3) rank=OMPI_COMM_WORLD_RANK ;;
mpich) launch=(mpiexec.mpich -n 3) rank=PMI_RANK ;;
esac
for program in "${launch[0]}" "mpicc.$kind"; do
    command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done

# start STATUS ENGINE PROGRAM ARGUMENTS...: three ranks that play two hosts.
start() {
    expected=$1 engine=$2
    shift 2
    COHORT_ENGINE=$engine timeout 60 "${launch[@]}" \
        sh -c "COHORT_HOST=\$((\$$rank % 2)) exec \"\$@\"" sh "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ "$got" = "$expected" ] || [ "$expected" = any ] || fail "$*: status $got, expected $expected"
}

# The engine brings rank and size.
start 0 mpi "$ring"
for number in 0 1 2; do
    says out "rank $number of 3 was sent $(((number + 2) % 3))"
done

"mpicc.$kind" -I "$tree/include" -L "$libraries" -o "$folder/job" "$tree/tests/tools/mpi_job.c" -lcohort \
    -Wl,-rpath,"$libraries" >"$folder/out" 2>"$folder/err" || fail "mpicc.$kind does not compile the program"

# The program has initialised MPI, with every kind of thread support, and finalizes in either order.
for level in 0 3; do
    for order in cohort mpi; do
        start 0 mpi "$folder/job" $level $order
        for number in 0 1 2; do
            says out "rank $number of 3 has 6 by engine mpi:$kind, and $(((number + 2) % 3)) by MPI"
        done
    done
done

# MPI is how they find each other, whatever engine is to connect them.
start 0 any "$folder/job" 3 cohort
says out "rank 2 of 3 has 6 by engine"
grep -q "engine mpi" "$folder/out" && fail "any took an engine that seals nothing"
COHORT_NET=clear start 0 any "$folder/job" 3 cohort
says out "rank 2 of 3 has 6 by engine mpi:$kind"

# A rank that works on after coh_finalize: those that exit before it wait for it in MPI.
start 0 mpi "$folder/job" -1 late
says out "rank 0 is through"

# A rank that is lost: the launcher ends the job.
start any mpi "$folder/job" -1 die
[ "$got" != 0 ] && [ "$got" != 124 ] || fail "a job with a lost rank ended with status $got"

# The launcher was Cohort's own: MPI knows of one process only.
run 1 run -n 2 --pretend-hosts 2 --engine mpi:"$kind" "$ring"
says err "they are not of one job of MPI's"
exit 0
