/* osh_onesided.c - puts, gets, atomics, flags and barriers of an OpenSHMEM library. */
#include "peer.h"

#include <shmem.h>

/* The tool says which library it means: a compiler of another one is no use to it. */
#if defined(PEER_OSHMEM) && !defined(OSHMEM_MAJOR_VERSION)
#error "this oshcc is not Open MPI's"
#endif

struct job {
    int rank, peer;
    size_t bytes;
    char *shared;  /* symmetric */
    char *private; /* of this rank alone */
    long *word;    /* symmetric, in a cache line of its own */
    long *flag;    /* likewise, with room for data behind it */
    long turn;     /* the last that was taken */
    struct peer_long_rounds longer;
};

/* The ranks that take part in what is measured, and the word by which the first tells the others
 * what it decided, 0 to 3, with the number of decisions before it. */
static struct {
    int ranks;
    long *word; /* symmetric */
    long turn;
} decision;

static int agree(int mine)
{
    long turn = 4 * ++decision.turn;
    if (shmem_my_pe() == 0) {
        for (int rank = 1; rank < decision.ranks; rank++)
            shmem_long_p(decision.word, turn + mine, rank);
        shmem_quiet();
        return mine;
    }
    shmem_long_wait_until(decision.word, SHMEM_CMP_GE, turn);
    return (int)(*decision.word - turn);
}

/* Some ranks did not take part in what was measured before, and have not counted. */
static void begin_deciding(int ranks)
{
    decision.ranks = ranks;
    decision.turn = 0;
    *decision.word = 0;
}

/* ---- rank 0 alone ---- */

static double run_quiet(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        shmem_putmem(job->shared, job->private, job->bytes, job->peer);
        shmem_quiet();
    }
    return peer_each(start, repeats);
}

static double run_get(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        shmem_getmem(job->private, job->shared, job->bytes, job->peer);
    return peer_each(start, repeats);
}

/* A word has calls of its own, which are the faster ones. */
static double run_quiet_word(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        shmem_long_p((long *)(void *)job->shared, (long)i, job->peer);
        shmem_quiet();
    }
    return peer_each(start, repeats);
}

static double run_get_word(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    volatile long got;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        got = shmem_long_g((long *)(void *)job->shared, job->peer);
    (void)got;
    return peer_each(start, repeats);
}

static double run_strided(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    size_t words = job->bytes < sizeof(long) ? 1 : job->bytes / sizeof(long);
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        shmem_long_iput((long *)(void *)job->shared, (const long *)(const void *)job->private, 2, 1,
                        words, job->peer);
    return peer_each(start, repeats);
}

static double run_fetch_add(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    volatile long old;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        old = shmem_long_atomic_fetch_add(job->word, 1, job->peer);
    (void)old;
    return peer_each(start, repeats);
}

static double run_compare_swap(void *arg, uint64_t repeats)
{
    const struct job *job = arg;
    long old = shmem_long_atomic_fetch(job->word, job->peer);
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        old = 1 + shmem_long_atomic_compare_swap(job->word, old, old + 1, job->peer);
    return peer_each(start, repeats);
}

/* ---- all ranks ---- */

static double run_barrier(void *arg, uint64_t repeats)
{
    (void)arg;
    uint64_t start = peer_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        shmem_barrier_all();
    return peer_each(start, repeats);
}

/* What a put with a signal is made of where there is none; the fence keeps the flag behind. */
static void put_and_tell(const struct job *job, long turn)
{
    shmem_long_p(job->flag + 1, turn, job->peer);
    shmem_fence();
    shmem_long_p(job->flag, turn, job->peer);
}

static double run_signal(void *arg, uint64_t repeats)
{
    struct job *job = arg;
    long last = job->turn + (long)repeats;
    uint64_t start = peer_now_ns();
    while (job->turn != last) {
        long turn = ++job->turn;
        if (job->rank == 0)
            put_and_tell(job, turn);
        shmem_long_wait_until(job->flag, SHMEM_CMP_GE, turn);
        if (job->rank == 1)
            put_and_tell(job, turn);
    }
    return peer_each(start, 2 * repeats);
}

/* ---- */

enum { ALONE, A_PAIR, ALL };

static int ranks_of(int who)
{
    return who == ALL ? shmem_n_pes() : who == A_PAIR ? 2 : 1;
}

static const struct row {
    const char *name;
    int sized;
    int who;
    peer_run *run;
    peer_run *run_word; /* for 8 bytes; NULL: the same */
} rows[] = {
    {"quiet", 1, ALONE, run_quiet, run_quiet_word},
    {"get", 1, ALONE, run_get, run_get_word},
    {"strided", 1, ALONE, run_strided, NULL},
    {"fetch_add", 0, ALONE, run_fetch_add, NULL},
    {"compare_swap", 0, ALONE, run_compare_swap, NULL},
    {"signal", 0, A_PAIR, run_signal, NULL},
    {"barrier", 0, ALL, run_barrier, NULL},
};

static uint64_t repeats_of(const struct row *row, struct job *job)
{
    return row->who == ALONE ? peer_repeats(row->run, job)
                             : peer_agreed_repeats(job->bytes, shmem_n_pes());
}

static void run_row(const struct row *row, struct job *job, size_t bytes)
{
    job->bytes = bytes;
    begin_deciding(ranks_of(row->who));
    shmem_barrier_all();
    if (job->rank < ranks_of(row->who)) {
        uint64_t repeats = repeats_of(row, job);
        double each = peer_measure(&job->longer, row->run, job, repeats);
        if (row->run_word && bytes == sizeof(long)) {
            double word = peer_measure(&job->longer, row->run_word, job, repeats);
            each = word < each ? word : each;
        }
        if (job->rank == 0)
            peer_tell(row->name, row->sized ? bytes : 0, each);
    }
    shmem_barrier_all();
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

static void tell_version(void)
{
    char name[SHMEM_MAX_NAME_LEN], text[SHMEM_MAX_NAME_LEN + 64];
    int major, minor;
    shmem_info_get_name(name);
    shmem_info_get_version(&major, &minor);
    snprintf(text, sizeof text, "OpenSHMEM %d.%d of %s", major, minor, name);
    peer_tell_version(text);
}

int main(int argc, char **argv)
{
    struct peer_options options;
    if (peer_parse(argc, argv, &options) != 0) {
        fprintf(stderr, "usage: %s BENCHMARKS SIZES [ROUND_MS]\n", argv[0]);
        return 2;
    }
    shmem_init();
    struct job job = {.rank = shmem_my_pe(),
                      .longer = {options.round_ns ? agree : NULL, options.round_ns, 0}};
    job.peer = job.rank == 0 ? 1 % shmem_n_pes() : 0;
    job.shared = shmem_align(4096, 2 * options.largest);
    job.word = shmem_align(64, 64);
    job.flag = shmem_align(64, 64);
    decision.word = shmem_align(64, 64);
    job.private = peer_memory(options.largest);
    if (!job.shared || !job.word || !job.flag || !decision.word || !job.private) {
        fprintf(stderr, "no memory for %zu bytes\n", options.largest);
        shmem_global_exit(1);
    }
    memset(job.shared, 1, 2 * options.largest);
    *job.word = *job.flag = 0;
    if (job.rank == 0)
        tell_version();
    run_rows(&options, &job);
    shmem_finalize();
    return 0;
}
