/*
 * mpi_collectives.c - collectives of an MPI library.
 *
 * A benchmark is named COLLECTIVE/TYPE/CACHES with /in-place behind it, such as
 * all_reduce/f32/cold. Sizes are bytes contributed per rank. They are timed as Cohort's are: where
 * all ranks wait for each other anyway and the caches are warm, calls one after the other; else the
 * ranks meet before each call, over a line of shared memory each, and it is timed by itself and
 * the median taken. The time is that of the rank that took longest.
 */
#include "peer.h"

#include <mpi.h>
#include <sched.h>

#if defined(PEER_OPENMPI) && !defined(OPEN_MPI)
#error "this mpicc is not Open MPI's"
#endif
#if defined(PEER_MPICH) && !defined(MPICH_VERSION)
#error "this mpicc is not MPICH's"
#endif

struct line {
    _Alignas(64) uint64_t count;
};

struct job {
    int rank, size, yields;
    struct line **lines; /* one for each rank, which it alone writes */
    MPI_Win window;
    const struct row *row;
    MPI_Datatype type;
    size_t element;
    int in_place, cold;
    int count, block; /* elements */
    size_t source_bytes, target_bytes;
    char *source, *target;
    struct peer_long_rounds longer;
};

/* ---- the calls ---- */

static const void *source_of(const struct job *job)
{
    return job->in_place ? MPI_IN_PLACE : job->source;
}

/* In place at the root, whose data is where the result goes. */
static const void *root_source(const struct job *job)
{
    return job->in_place && job->rank == 0 ? MPI_IN_PLACE : job->source;
}

static void all_reduce(struct job *job)
{
    MPI_Allreduce(source_of(job), job->target, job->count, job->type, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(struct job *job)
{
    MPI_Reduce(root_source(job), job->target, job->count, job->type, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void reduce_scatter(struct job *job)
{
    MPI_Reduce_scatter_block(source_of(job), job->target, job->block, job->type, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void all_gather(struct job *job)
{
    MPI_Allgather(source_of(job), job->count, job->type, job->target, job->count, job->type,
                  MPI_COMM_WORLD);
}

static void gather(struct job *job)
{
    MPI_Gather(root_source(job), job->count, job->type, job->target, job->count, job->type, 0,
               MPI_COMM_WORLD);
}

static void scatter(struct job *job)
{
    void *target = job->in_place && job->rank == 0 ? MPI_IN_PLACE : job->target;
    MPI_Scatter(job->source, job->block, job->type, target, job->block, job->type, 0,
                MPI_COMM_WORLD);
}

static void broadcast(struct job *job)
{
    MPI_Bcast(job->rank == 0 ? job->source : job->target, job->count, job->type, 0, MPI_COMM_WORLD);
}

static void all_to_all(struct job *job)
{
    MPI_Alltoall(source_of(job), job->block, job->type, job->target, job->block, job->type,
                 MPI_COMM_WORLD);
}

static void scan(struct job *job)
{
    MPI_Scan(source_of(job), job->target, job->count, job->type, MPI_SUM, MPI_COMM_WORLD);
}

static const struct row {
    const char *name;
    void (*call)(struct job *job);
    int apart;  /* ranks do not wait for each other by nature */
    int blocks; /* bytes are cut into one block for each rank */
    int gathers;
} rows[] = {
    {"all_reduce", all_reduce, 0, 0, 0},
    {"reduce", reduce, 1, 0, 0},
    {"reduce_scatter", reduce_scatter, 0, 1, 0},
    {"all_gather", all_gather, 0, 0, 1},
    {"gather", gather, 1, 0, 1},
    {"scatter", scatter, 1, 1, 0},
    {"broadcast", broadcast, 1, 0, 0},
    {"all_to_all", all_to_all, 0, 1, 0},
    {"scan", scan, 1, 0, 0},
};

static const struct type {
    const char *name;
    MPI_Datatype type;
    size_t bytes;
} * types_of(size_t *count)
{
    static struct type types[12];
    const struct type all[] = {{"f32", MPI_FLOAT, 4},    {"f64", MPI_DOUBLE, 8},
                               {"i8", MPI_INT8_T, 1},    {"i16", MPI_INT16_T, 2},
                               {"i32", MPI_INT32_T, 4},  {"i64", MPI_INT64_T, 8},
                               {"u8", MPI_UINT8_T, 1},   {"u16", MPI_UINT16_T, 2},
                               {"u32", MPI_UINT32_T, 4}, {"u64", MPI_UINT64_T, 8}};
    *count = sizeof all / sizeof *all;
    memcpy(types, all, sizeof all);
    return types;
}

/* ---- timing ---- */

static void meet(struct job *job)
{
    uint64_t *mine = &job->lines[job->rank]->count, turn = *mine + 1;
    __atomic_store_n(mine, turn, __ATOMIC_RELEASE);
    for (int i = 0; i < job->size; i++) {
        while (__atomic_load_n(&job->lines[i]->count, __ATOMIC_ACQUIRE) < turn) {
            if (job->yields)
                sched_yield();
        }
    }
}

enum { MOST_REPEATS = 1000, APART_REPEATS = 200 };

/* Of each call the longest of all ranks' times, and of these the median. */
static double longest(double *times, int count)
{
    double most[APART_REPEATS];
    MPI_Allreduce(times, most, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(most, (size_t)count, sizeof *most, peer_compare);
    return count % 2 ? most[count / 2] : (most[count / 2 - 1] + most[count / 2]) / 2;
}

static double run_together(struct job *job, uint64_t repeats)
{
    meet(job);
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        job->row->call(job);
    double each = peer_each(start, repeats);
    return longest(&each, 1);
}

static double run_apart(struct job *job, uint64_t repeats)
{
    double times[APART_REPEATS];
    for (uint64_t i = 0; i < repeats; i++) {
        if (job->cold) {
            peer_flush(job->source, job->source_bytes);
            peer_flush(job->target, job->target_bytes);
        }
        meet(job);
        uint64_t start = peer_now_ns();
        job->row->call(job);
        times[i] = (double)(peer_now_ns() - start);
    }
    return longest(times, (int)repeats);
}

static int is_apart(const struct job *job)
{
    return job->row->apart || job->cold;
}

static double run(void *arg, uint64_t repeats)
{
    struct job *job = arg;
    return is_apart(job) ? run_apart(job, repeats) : run_together(job, repeats);
}

static int agree(int mine)
{
    MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return mine;
}

/* The median of rounds of about a millisecond; of three calls where one takes much longer. All
 * ranks go by the longest time, so they agree. */
static double measure(struct job *job)
{
    enum { ROUND_NS = 1000000, LONG_NS = 5000000, FEW = 3 };
    double times[FEW];
    job->longer.most = is_apart(job) ? APART_REPEATS : 0;
    if (job->longer.agree)
        return peer_measure(&job->longer, run, job,
                            peer_agreed_repeats(job->source_bytes, job->size));
    run(job, 1);
    for (int i = 0; i < FEW; i++)
        times[i] = run(job, 1);
    qsort(times, FEW, sizeof *times, peer_compare);
    double each = times[FEW / 2], most = is_apart(job) ? APART_REPEATS : MOST_REPEATS;
    double repeats = ROUND_NS / each;
    if (each > LONG_NS)
        return each;
    return peer_measure(&job->longer, run, job,
                        (uint64_t)(repeats > most ? most
                                   : repeats < 1  ? 1
                                                  : repeats));
}

/* ---- one benchmark ---- */

static void size_job(struct job *job, size_t bytes)
{
    size_t total = bytes / job->element ? bytes / job->element : 1, size = (size_t)job->size;
    size_t block = total / size ? total / size : 1;
    job->count = (int)total;
    job->block = (int)block;
    job->source_bytes = (job->row->blocks ? block * size : total) * job->element;
    job->target_bytes = job->row->gathers ? job->source_bytes * size : job->source_bytes;
}

static void run_size(struct job *job, const char *name, size_t bytes)
{
    size_job(job, bytes);
    job->source = peer_memory(job->source_bytes);
    job->target = peer_memory(job->target_bytes);
    if (!job->source || !job->target) {
        fprintf(stderr, "error: no memory for %zu bytes\n", job->source_bytes + job->target_bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(job->source, 0x3c, job->source_bytes); /* as the benchmark's own buffers: no zeros */
    memset(job->target, 0x3c, job->target_bytes);
    double each = measure(job);
    if (job->rank == 0)
        peer_tell(name, bytes, each);
    free(job->source);
    free(job->target);
}

/* Fills in what the name says; -1 for what MPI does not have. */
static int read_name(struct job *job, const char *name)
{
    char collective[32], type[16], caches[16];
    size_t count;
    const struct type *types = types_of(&count);
    if (sscanf(name, "%31[^/]/%15[^/]/%15[^/]", collective, type, caches) != 3)
        return -1;
    job->row = NULL;
    job->element = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, collective) == 0)
            job->row = &rows[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(types[i].name, type) == 0) {
            job->type = types[i].type;
            job->element = types[i].bytes;
        }
    }
    job->cold = strcmp(caches, "cold") == 0;
    job->in_place = strstr(name, "/in-place") != NULL;
    return job->row && job->element ? 0 : -1;
}

static void run_names(const struct peer_options *options, struct job *job)
{
    char names[1024], *rest = names, *name;
    snprintf(names, sizeof names, "%s", options->benchmarks);
    while ((name = strsep(&rest, ","))) {
        for (size_t i = 0; read_name(job, name) == 0 && i < options->count; i++)
            run_size(job, name, options->sizes[i]);
    }
}

/* ---- */

static void make_lines(struct job *job)
{
    struct line *mine;
    MPI_Aint bytes;
    int unit;
    job->lines = calloc((size_t)job->size, sizeof *job->lines);
    MPI_Win_allocate_shared(sizeof *mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &job->window);
    for (int i = 0; i < job->size; i++)
        MPI_Win_shared_query(job->window, i, &bytes, &unit, &job->lines[i]);
    mine->count = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tell_version(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    peer_tell_version(version);
}

int main(int argc, char **argv)
{
    struct peer_options options;
    if (peer_parse(argc, argv, &options) != 0 || options.largest > (size_t)1 << 30) {
        fprintf(stderr, "usage: %s BENCHMARKS SIZES (each at most 1 GiB) [ROUND_MS]\n", argv[0]);
        return 2;
    }
    MPI_Init(&argc, &argv);
    struct job job = {.longer = {options.round_ns ? agree : NULL, options.round_ns, 0}};
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    job.yields = job.size > sysconf(_SC_NPROCESSORS_ONLN);
    make_lines(&job);
    if (job.rank == 0)
        tell_version();
    run_names(&options, &job);
    MPI_Win_free(&job.window);
    free(job.lines);
    MPI_Finalize();
    return 0;
}
