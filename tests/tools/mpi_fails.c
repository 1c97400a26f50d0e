/*
 * mpi_fails - a library in front of MPI's, in which a call fails on rank 1. FAILS says which, "3 MPI_Iallreduce" for the
 * third.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool fails(const char *function, int turn)
{
    int rank;
    const char *chosen = getenv("FAILS");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1 && chosen && atoi(chosen) == turn && strcmp(chosen + 2, function) == 0;
}

int MPI_Iallreduce(const void *source, void *target, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    static int calls;
    if (fails("MPI_Iallreduce", ++calls))
        return MPI_ERR_OTHER;
    return PMPI_Iallreduce(source, target, count, type, op, comm, request);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    static int calls;
    if (fails("MPI_Comm_create_group", ++calls))
        return MPI_ERR_OTHER;
    return PMPI_Comm_create_group(comm, group, tag, made);
}
