/*
 * mpi_job LEVEL ORDER - a program that uses MPI and Cohort. LEVEL is the thread support that it asks MPI for, or -1:
 * it does not call MPI_Init. ORDER is "mpi" or "cohort": which of the two it finalizes first; or "die": rank 1
 * ends without; or "late": rank 0 works on for 4 s before it exits; or "reduce": all_reduce again and again, whatever
 * becomes of it, and then a barrier.
 */
#include <cohort.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, coh_last_error());
    return 1;
}

/* Each adds its number to a word of every rank. */
static coh_status add_up(coh_world *world, int64_t *sum)
{
    int64_t *word, mine = coh_rank(world) + 1;
    coh_status status = coh_calloc(world, 1, sizeof *word, (void **)&word);
    for (int rank = 0; rank < coh_size(world) && status == COH_OK; rank++)
        status = coh_atomic(world, COH_ATOMIC_ADD, COH_I64, word, &mine, rank);
    if (status == COH_OK)
        status = coh_barrier(world);
    *sum = status == COH_OK ? *word : -1;
    return status;
}

/* MPI's own messages go on beside Cohort's, with wildcards too. */
static int ring_by_mpi(void)
{
    int rank, size, sent, got = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sent = rank;
    MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, 7, &got, 1, MPI_INT, MPI_ANY_SOURCE,
                 MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}

static void reduce_and_tell(coh_world *world)
{
    enum { CALLS = 5, COUNT = 4096 };
    static int64_t source[COUNT], target[COUNT];
    int rank = coh_rank(world);
    for (int i = 0; i < CALLS; i++) {
        coh_status status =
            coh_all_reduce(coh_team_world(world), COH_I64, COH_SUM, source, target, COUNT);
        printf("rank %d, call %d: %s: %s\n", rank, i, coh_status_name(status),
               status == COH_OK ? "" : coh_last_error());
    }
    printf("rank %d, barrier: %s\n", rank, coh_status_name(coh_barrier(world)));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int level = argc > 2 ? atoi(argv[1]) : -1, given;
    const char *order = argc > 2 ? argv[2] : "cohort";
    coh_world *world;
    int64_t sum;
    if (level >= 0)
        MPI_Init_thread(&argc, &argv, level, &given);
    if (coh_init(NULL, &world) != COH_OK)
        return fail("coh_init");
    int rank = coh_rank(world);
    if (strcmp(order, "die") == 0 && rank == 1)
        _exit(3);
    if (strcmp(order, "reduce") == 0)
        reduce_and_tell(world);
    if (add_up(world, &sum) != COH_OK)
        return fail("add_up");
    printf("rank %d of %d has %lld by engine %s, and %d by MPI\n", rank, coh_size(world),
           (long long)sum, coh_engine(world), level >= 0 ? ring_by_mpi() : -1);
    fflush(stdout);
    if (strcmp(order, "mpi") == 0)
        MPI_Finalize();
    if (coh_finalize(world) != COH_OK)
        return fail("coh_finalize");
    if (level >= 0 && strcmp(order, "mpi") != 0)
        MPI_Finalize();
    if (strcmp(order, "late") == 0 && rank == 0) {
        sleep(4);
        printf("rank %d is through\n", rank);
    }
    return 0;
}
