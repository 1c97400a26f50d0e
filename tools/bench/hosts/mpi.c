/* mpi.c - the rows of scripts/bench-hosts by MPI. */
#include "rows.h"

#include <mpi.h>

static int rank, other;
static float *memory, *result;
static MPI_Win window;

static void message(size_t bytes)
{
    if (rank == 0)
        MPI_Send(memory, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    MPI_Recv(memory, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(memory, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void put(size_t bytes)
{
    if (rank == 1)
        return;
    MPI_Put(result, (int)bytes, MPI_BYTE, other, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void all_reduce(size_t bytes)
{
    MPI_Allreduce(memory, result, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    MPI_Win_allocate(ROWS_BYTES_MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Alloc_mem(ROWS_BYTES_MAX, MPI_INFO_NULL, &result);
    for (size_t i = 0; i < ROWS_BYTES_MAX / sizeof(float); i++)
        memory[i] = result[i] = 0;
    rows_measure("message", message, 2, rank);
    MPI_Win_lock_all(0, window);
    rows_measure("put", put, 1, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    rows_measure("all_reduce", all_reduce, 1, rank);
    MPI_Free_mem(result);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
