/*
 * mpi_links.c SIZES - messages and all_reduces of an MPI library whose ranks reach each other over TCP, for
 * `cohort bench links`. Rank 0 prints "cohort-peer ROW BYTES NANOSECONDS": a message of 8 bytes one way, between the
 * first rank of the first half and that of the second, and an all_reduce of each size.
 */
#include "peer.h"

#include <mpi.h>

struct job {
    int rank, size, takes_part;
    size_t bytes;
    float *source, *target;
};

static double turns(void *arg, uint64_t repeats)
{
    struct job *job = arg;
    int other = job->rank == 0 ? job->size / 2 : 0;
    char word[8] = "";
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats && job->takes_part; i++) {
        if (job->rank == 0)
            MPI_Send(word, sizeof word, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        MPI_Recv(word, sizeof word, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (job->rank != 0)
            MPI_Send(word, sizeof word, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
    return peer_each(start, 2 * repeats);
}

static double all_reduce(void *arg, uint64_t repeats)
{
    struct job *job = arg;
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        MPI_Allreduce(job->source, job->target, (int)(job->bytes / sizeof(float)), MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
    return peer_each(start, repeats);
}

static void measure(struct job *job, const char *name, peer_run *run, uint64_t repeats)
{
    struct peer_long_rounds plain = {.agree = NULL};
    MPI_Barrier(MPI_COMM_WORLD);
    double each = peer_measure(&plain, run, job, repeats);
    if (job->rank == 0)
        peer_tell(name, job->bytes, each);
}

int main(int argc, char **argv)
{
    struct peer_options options;
    struct job job;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    char *given[] = {argv[0], (char[]){"all_reduce"}, argc > 1 ? argv[1] : (char[]){""}};
    MPI_Init(&argc, &argv);
    if (argc != 2 || peer_parse(3, given, &options) != 0)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    MPI_Get_library_version(version, &length);
    if (job.rank == 0)
        peer_tell_version(version);
    job.takes_part = job.rank == 0 || job.rank == job.size / 2;
    job.source = calloc(1, options.largest);
    job.target = calloc(1, options.largest);
    memset(job.source, 0, options.largest);
    memset(job.target, 0, options.largest);
    job.bytes = 8;
    measure(&job, "message", turns, 100);
    for (size_t i = 0; i < options.count; i++) {
        job.bytes = options.sizes[i];
        measure(&job, "all_reduce", all_reduce, peer_link_repeats(job.bytes));
    }
    free(job.source);
    free(job.target);
    MPI_Finalize();
    return 0;
}
