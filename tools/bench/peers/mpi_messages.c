/* mpi_messages.c - messages and barriers of an MPI library. */
#include "peer.h"

#include <mpi.h>

/* The tool says which library it means: a compiler of another one is no use to it. */
#if defined(PEER_OPENMPI) && !defined(OPEN_MPI)
#error "this mpicc is not Open MPI's"
#endif
#if defined(PEER_MPICH) && !defined(MPICH_VERSION)
#error "this mpicc is not MPICH's"
#endif

enum { WINDOW = 64 };

struct job {
    int rank, size;
    int bytes;
    char *data;
    struct peer_long_rounds longer;
};

/* Those that take part in what is measured. */
static MPI_Comm taking_part;

static int agree(int mine)
{
    MPI_Bcast(&mine, 1, MPI_INT, 0, taking_part);
    return mine;
}

/* Every byte anew, but for messages so short that sending writes them. */
static uint64_t write_anew(const struct job *job)
{
    if (job->bytes <= 8)
        return 0;
    uint64_t start = peer_now_ns();
    memset(job->data, ++job->data[0], (size_t)job->bytes);
    return peer_now_ns() - start;
}

/* What one way took, without the writing of both. */
static double one_way(const struct job *job, uint64_t passed, uint64_t writing, uint64_t repeats)
{
    uint64_t others = 0;
    int peer = !job->rank;
    MPI_Sendrecv(&writing, 1, MPI_UINT64_T, peer, 3, &others, 1, MPI_UINT64_T, peer, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    writing += others;
    return passed > writing ? (double)(passed - writing) / (2 * (double)repeats) : 0;
}

static double run_message(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    int peer = !job->rank;
    uint64_t start = peer_now_ns(), writing = 0;
    for (uint64_t i = 0; i < repeats; i++) {
        if (job->rank == 0) {
            writing += write_anew(job);
            MPI_Send(job->data, job->bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
        MPI_Recv(job->data, job->bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (job->rank == 1) {
            writing += write_anew(job);
            MPI_Send(job->data, job->bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
    return one_way(job, peer_now_ns() - start, writing, repeats);
}

static void answer(const struct job *job)
{
    char nothing = 0;
    if (job->rank == 0)
        MPI_Recv(&nothing, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&nothing, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

static double run_rate_blocking(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        for (int message = 0; message < WINDOW; message++) {
            if (job->rank == 0)
                MPI_Send(job->data, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            else
                MPI_Recv(job->data, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        answer(job);
    }
    return peer_each(start, repeats * WINDOW);
}

static double run_rate_started(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        for (int message = 0; message < WINDOW; message++) {
            if (job->rank == 0)
                MPI_Isend(job->data, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[message]);
            else
                MPI_Irecv(job->data, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[message]);
        }
        MPI_Waitall(WINDOW, requests, statuses);
        answer(job);
    }
    return peer_each(start, repeats * WINDOW);
}

static double run_barrier(void *arg, uint64_t repeats)
{
    (void)arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return peer_each(start, repeats);
}

static const struct row {
    const char *name;
    int sized;
    int all;         /* all ranks take part; else two */
    uint64_t weight; /* one repeat takes as long as so many messages */
    peer_run *run;
    peer_run *other; /* another way, which may be the faster one; or NULL */
} rows[] = {
    {"message", 1, 0, 1, run_message, NULL},
    {"private_message", 1, 0, 1, run_message, NULL},
    {"rate", 0, 0, 20, run_rate_blocking, run_rate_started},
    {"barrier", 0, 1, 1, run_barrier, NULL},
};

static void run_row(const struct row *row, struct job *job, size_t bytes)
{
    job->bytes = (int)bytes;
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, job->rank <= 1, 0, &pair);
    taking_part = row->all ? MPI_COMM_WORLD : pair;
    MPI_Barrier(MPI_COMM_WORLD);
    if (row->all || job->rank <= 1) {
        uint64_t repeats = peer_agreed_repeats(bytes, job->size) / row->weight;
        double each = peer_measure(&job->longer, row->run, job, repeats);
        double other = row->other ? peer_measure(&job->longer, row->other, job, repeats) : each;
        if (job->rank == 0)
            peer_tell(row->name, bytes, other < each ? other : each);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&pair);
}

static void run_rows(const struct peer_options *options, struct job *job)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!peer_wants(options, rows[i].name))
            continue;
        for (size_t size = 0; size < (rows[i].sized ? options->count : 1); size++)
            run_row(&rows[i], job, rows[i].sized ? options->sizes[size] : 0);
    }
}

int main(int argc, char **argv)
{
    struct peer_options options;
    if (peer_parse(argc, argv, &options) != 0 || options.largest > (size_t)1 << 30) {
        fprintf(stderr, "usage: %s BENCHMARKS SIZES (each at most 1 GiB) [ROUND_MS]\n", argv[0]);
        return 2;
    }
    MPI_Init(&argc, &argv);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    struct job job = {.data = peer_memory(options.largest),
                      .longer = {options.round_ns ? agree : NULL, options.round_ns, 0}};
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    if (!job.data) {
        fprintf(stderr, "no memory for %zu bytes\n", options.largest);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Get_library_version(version, &length);
    if (job.rank == 0)
        peer_tell_version(version);
    run_rows(&options, &job);
    free(job.data);
    MPI_Finalize();
    return 0;
}
