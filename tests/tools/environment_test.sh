#!/bin/bash
# What a rank says of the environment it finds: a misspelt variable, once for the job; another launcher's job: docs/faults.md F38.
. "$(dirname "$0")/common.sh"
meet=${2:?the path of tools-meet}

COHORT_HEEP=1G run 0 run -n 3 "$meet"
says err "COHORT_HEEP is set, but nothing reads it; did you mean COHORT_HEAP"
[ "$(grep -c COHORT_HEEP "$folder/err")" = 1 ] || fail "the warning came more than once"
run 0 run -n 2 --env COHORT_STAL=3 "$meet"
says err "did you mean COHORT_STALL"
COHORT_HEAP=64M COHORT_TEST_SEED=1 run 0 run -n 2 "$meet"
[ ! -s "$folder/err" ] || fail "there was something to say of right variables"
COHORT_HEEP=1G "$meet" 2>"$folder/err" || fail "a misspelt variable is an error"
[ ! -s "$folder/err" ] || fail "the library printed without having been asked to"

# other STATUS VARIABLE...: how the program ends that is started with these, but not by cohort run.
other() {
    wanted=$1
    shift
    env "$@" "$meet" 2>"$folder/err"
    got=$?
    [ "$got" = "$wanted" ] || fail "with $*: status $got, expected $wanted"
}
# Variables of a launcher without the others that it sets: the message has those that are there and those that are not.
other 9 OMPI_COMM_WORLD_SIZE=4
says err "another launcher started this process with others (OMPI_COMM_WORLD_SIZE=4)"
says err "cohort run -n 4"
other 9 PMIX_NAMESPACE=x OMPI_COMM_WORLD_SIZE=4
says err "srun --mpi=pmix) started this process with others (PMIX_NAMESPACE=x)"
says err "PMIX_RANK is not set"
other 9 PMI_SIZE=4 PMI_RANK=1
says err "(PMI_RANK=1, PMI_SIZE=4)"
says err "PMI_FD is not set"
other 9 PMI_FD=971 PMI_SIZE=4 PMI_RANK=1
says err "descriptor 971 is not the launcher's socket"
other 9 PMI_PORT=host:1 PMI_ID=0
says err "PMI_FD, PMI_RANK, PMI_SIZE are not set"
other 9 WORLD_SIZE=4 RANK=1
says err "MASTER_ADDR, MASTER_PORT are not set"
other 9 WORLD_SIZE=4 RANK=4 MASTER_ADDR=localhost MASTER_PORT=1
says err "RANK: '4' is not a whole number from 0 to 3"
other 9 WORLD_SIZE=4 RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1
says err "ranks on several hosts, and they need a secret"
other 9 WORLD_SIZE=4 RANK=1 MASTER_ADDR=192.0.2.1 MASTER_PORT=1
says err "rank 0 is on another host (MASTER_ADDR=192.0.2.1)"
other 9 MLX_RANK=1
says err "MLX_HOSTFILE is not set"
other 9 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4
says err "srun without PMI started this process with others (SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=4)"
says err "SLURM_JOB_ID, SLURM_STEP_ID, SLURM_STEP_NODELIST are not set"

# A launcher that started one process.
other 0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1
other 0 WORLD_SIZE=1
other 0 PMI_SIZE=1 PMI_RANK=0 PMI_FD=971
other 0 PMIX_NAMESPACE=x PMIX_RANK=0 OMPI_COMM_WORLD_SIZE=1
echo '[["127.0.0.1:5000"]]' >"$folder/hosts"
other 0 MLX_RANK=0 MLX_HOSTFILE="$folder/hosts"
WORLD_SIZE=4 run 0 run -n 2 "$meet"

# A secret that is none, or that others can read.
plain="WORLD_SIZE=2 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=1"
# shellcheck disable=SC2086 # a list of words
{
    other 9 $plain COHORT_SECRET=abc
    says err "COHORT_SECRET has no secret: it is 64 hexadecimal digits"
    other 9 $plain COHORT_SECRET=abc COHORT_SECRET_FILE=x
    says err "are both set"
    other 9 $plain COHORT_SECRET_FILE="$folder/none"
    says err "cannot open"
    other 9 $plain COHORT_SECRET_FILE="$folder"
    says err "is not a file"
    (umask 022 && printf '%064d\n' 7 >"$folder/secret")
    other 9 $plain COHORT_SECRET_FILE="$folder/secret"
    says err "has mode 644, so others can read or change it"
    chmod 600 "$folder/secret"
    other 9 $plain COHORT_SECRET_FILE="$folder/secret" COHORT_INIT_TIMEOUT=0.2
    says err "missing: rank 1"
    other 9 $plain COHORT_SECRET="$(printf '%064d' 7)" COHORT_PORT=70000
    says err "COHORT_PORT"
}
echo "environment: passed"
