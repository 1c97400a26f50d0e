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

# A collective of the library that fails on one rank alone: the others, which wait in it, are told; the team goes on
# without. The library in front has the name that the engine opens, and brings in the real one by its path.
real=$(ldd "$folder/job" | sed -n 's/.*=> \(.*libmpi[^ ]*\) .*/\1/p')
mkdir "$folder/front"
"mpicc.$kind" -shared -fPIC -x c /dev/null -nostdlib -Wl,-soname,"$real" -o "$folder/named.so" \
    && "mpicc.$kind" -shared -fPIC "$tree/tests/tools/mpi_fails.c" -o "$folder/front/${real##*/}" -nodefaultlibs \
        -Wl,--no-as-needed,--allow-shlib-undefined "$folder/named.so" -lc >"$folder/out" 2>"$folder/err" \
    || fail "mpicc.$kind does not make the library in front"
for failing in "3 MPI_Iallreduce" "2 MPI_Comm_create_group"; do
    FAILS=$failing COHORT_ALL_REDUCE=native LD_LIBRARY_PATH=$folder/front start any mpi "$folder/job" -1 reduce
    [ "$got" != 124 ] || fail "a rank in which $failing fails keeps the others"
    last=$((${failing%% *} - 1))
    case $failing in *group) last=0 ;; esac
    says out "rank 1, call $last: TRANSPORT: rank 1: coh_all_reduce: the collective of engine mpi:$kind failed"
    for number in 0 2; do
        says out "rank $number, call $last: TRANSPORT: rank $number: coh_all_reduce: rank 1 was refused in all_reduce(sum of 4096 i64)"
        says out "rank $number, call 4: TRANSPORT: rank $number: coh_all_reduce: a collective of engine mpi:$kind has failed in this team before"
        says out "rank $number, barrier: OK"
    done
done

# A thread of Open MPI's may still call what MPI_Finalize takes out of memory.
LD_LIBRARY_PATH=$folder/front start 0 mpi "$folder/job"
grep "without Open MPI's PMIx" "$folder/err" && fail "MPI_Finalize took the component for PMIx out of memory"

# A process that MPI's end does not give back, while the others wait for it there.
if [ "$kind" = mpich ]; then
    HANGS=1 LD_LIBRARY_PATH=$folder/front COHORT_LOG=warn start 0 mpi "$folder/job"
    says err "mpi: MPI_Finalize has not returned within 3 s; the process ends"
    [ "$(grep -c "through the launcher's barrier" "$folder/err")" = 2 ] || fail "a process that ends keeps the others in MPI"
fi

# The same where the ranks are about to join: what is left of the job is the launcher's to end.
FAILS="1 MPI_Comm_create_group" LD_LIBRARY_PATH=$folder/front start any mpi "$folder/job"
[ "$got" != 0 ] && [ "$got" != 124 ] || fail "a job in which a rank does not join ended with status $got"
says err "MPI_Comm_create_group failed"

# The launcher was Cohort's own: MPI knows of one process only.
run 1 run -n 2 --pretend-hosts 2 --engine mpi:"$kind" "$ring"
says err "they are not of one job of MPI's"
exit 0
