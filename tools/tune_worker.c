/*
 * tune_worker.c - measures the constants of the model between two ranks.
 *
 * What is to be fresh is written by the other rank before each sample; what is to be cached is then
 * read once; what is to come out of the memory is flushed. Each is the median of some samples.
 */
#include "tune.h"

#include "bench.h"

#include "base/clock.h"
#include "base/config.h"
#include "coll/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRESH_BYTES = 16 << 10,
    CACHED_BYTES = 256 << 10,
    STREAMED_BYTES = 16 << 20,
    SAMPLES = 31,
    STREAMED_SAMPLES = 5,
    TURNS = 2000,
    MESSAGES = 200,
    TAG = 1,
};

struct tuner {
    coh_world *world;
    int rank;
    char *mine, *theirs; /* STREAMED_BYTES of the heap each */
    char *target;        /* private */
    cohi_bench_board *board;
    cohi_limit_line *lines[2];
    cohi_limit_meeting meeting;
};

static double median_of(double *samples, size_t count)
{
    cohi_bench_figure figure;
    cohi_bench_spread(samples, count, &figure);
    return figure.median;
}

static void meet(const struct tuner *tuner)
{
    cohi_limit_meet(&tuner->meeting, COHI_LIMIT_SPIN);
}

/* ---- bytes ---- */

/* Whether what is read was written by the other rank just now, was read before, or is in no
 * cache. */
enum state { FRESH, CACHED, COLD };

struct job {
    size_t bytes;
    enum state state;
    size_t samples;
};

static const struct job fresh = {FRESH_BYTES, FRESH, SAMPLES};
static const struct job cached = {CACHED_BYTES, CACHED, SAMPLES};
static const struct job streamed = {STREAMED_BYTES, COLD, STREAMED_SAMPLES};

/* Both make their memory what it is to be when rank 0 reads rank 1's. */
static void prepare(struct tuner *tuner, const struct job *job)
{
    memset(tuner->mine, 0, job->bytes);
    if (job->state == COLD) {
        cohi_limit_flush(tuner->mine, job->bytes);
        cohi_limit_flush(tuner->target, job->bytes);
    }
    meet(tuner);
}

static void run_kernel(struct tuner *tuner, const struct job *job, const cohi_limit_kernel *kernel)
{
    char *const sources[] = {tuner->mine, tuner->theirs};
    if (kernel->copy)
        kernel->copy->copy(tuner->target, tuner->theirs, job->bytes);
    else
        kernel->reduce->sum[COHI_LIMIT_F32](&tuner->target, 1, sources, 2, 0, job->bytes);
}

/* Nanoseconds for a byte by this kernel, on rank 0. */
static double time_kernel(struct tuner *tuner, const struct job *job,
                          const cohi_limit_kernel *kernel)
{
    double samples[SAMPLES];
    for (size_t i = 0; i < job->samples; i++) {
        prepare(tuner, job);
        if (tuner->rank == 0 && job->state == CACHED)
            run_kernel(tuner, job, kernel);
        uint64_t start = cohi_now_ns();
        if (tuner->rank == 0)
            run_kernel(tuner, job, kernel);
        samples[i] = (double)(cohi_now_ns() - start) / (double)job->bytes;
        meet(tuner);
    }
    return median_of(samples, job->samples);
}

static cohi_limit_kernel kernel_at(int reduces, size_t index)
{
    return reduces ? (cohi_limit_kernel){NULL, cohi_limit_reduce_form_at(index)}
                   : (cohi_limit_kernel){cohi_limit_copy_form_at(index), NULL};
}

/* By the best kernel there is. */
static double time_bytes(struct tuner *tuner, const struct job *job, int reduces)
{
    double best = HUGE_VAL;
    for (size_t i = 0;; i++) {
        cohi_limit_kernel kernel = kernel_at(reduces, i);
        if (!kernel.copy && !kernel.reduce)
            return best;
        best = fmin(best, time_kernel(tuner, job, &kernel));
    }
}

/* The largest size that copies more like cached than like streamed data. Both ranks go through all
 * sizes, since both take part. */
static double find_cache(struct tuner *tuner, double copy, double stream)
{
    enum { SMALLEST = 128 << 10 };
    double found = SMALLEST;
    int is_cached = 1;
    cohi_limit_kernel plain = kernel_at(0, 0);
    for (size_t bytes = SMALLEST; bytes < STREAMED_BYTES; bytes *= 2) {
        struct job job = {bytes, CACHED, STREAMED_SAMPLES};
        is_cached = time_kernel(tuner, &job, &plain) < sqrt(copy * stream) && is_cached;
        if (is_cached)
            found = (double)bytes;
    }
    return found;
}

/* ---- lines, calls, messages ---- */

static coh_status time_line(struct tuner *tuner, double *line)
{
    cohi_bench_rank self = {
        .world = tuner->world, .rank = tuner->rank, .size = 2, .board = tuner->board};
    cohi_bench_board *theirs;
    cohi_limit_pair pair;
    coh_status status = cohi_bench_pair(&self, !tuner->rank, &theirs, &pair);
    if (status != COH_OK)
        return status;
    double samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = cohi_limit_turns(cohi_limit_turn_form_at(0), &pair, TURNS);
    *line = median_of(samples, SAMPLES);
    return COH_OK;
}

/* In a team of one nobody is waited for: what is left is the call. */
static coh_status time_call(struct tuner *tuner, double *call)
{
    coh_team *alone;
    coh_status status = coh_team_split_color(coh_team_world(tuner->world), tuner->rank, 0, &alone);
    double samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES && status == COH_OK; i++) {
        uint64_t start = cohi_now_ns();
        for (int turn = 0; turn < TURNS && status == COH_OK; turn++)
            status = coh_all_reduce(alone, COH_F32, COH_SUM, tuner->mine, tuner->mine + 64, 2);
        samples[i] = cohi_bench_each(status, start, TURNS);
    }
    if (status != COH_OK)
        return status;
    *call = median_of(samples, SAMPLES);
    return coh_team_destroy(alone);
}

static coh_status bounce(struct tuner *tuner, size_t bytes)
{
    coh_team *team = coh_team_world(tuner->world);
    int peer = !tuner->rank;
    coh_status status = COH_OK;
    if (tuner->rank == 0)
        status = coh_send(team, peer, TAG, tuner->mine, bytes);
    if (status == COH_OK)
        status = coh_receive(team, peer, TAG, tuner->mine, bytes, NULL);
    if (status == COH_OK && tuner->rank == 1)
        status = coh_send(team, peer, TAG, tuner->mine, bytes);
    return status;
}

/* One way. */
static coh_status time_message(struct tuner *tuner, size_t bytes, int messages, double *each)
{
    double samples[STREAMED_SAMPLES];
    coh_status status = bounce(tuner, bytes);
    for (size_t i = 0; i < STREAMED_SAMPLES && status == COH_OK; i++) {
        uint64_t start = cohi_now_ns();
        for (int turn = 0; turn < messages && status == COH_OK; turn++)
            status = bounce(tuner, bytes);
        samples[i] = cohi_bench_each(status, start, 2 * (uint64_t)messages);
    }
    if (status == COH_OK)
        *each = median_of(samples, STREAMED_SAMPLES);
    return status;
}

/* ---- */

static coh_status measure(struct tuner *tuner, cohi_model *model)
{
    enum { LONG_BYTES = 4 << 20, FEW = 4 };
    double long_message = 0;
    coh_status status = time_line(tuner, &model->line);
    if (status == COH_OK)
        status = time_call(tuner, &model->call);
    if (status == COH_OK)
        status = time_message(tuner, sizeof(uint64_t), MESSAGES, &model->message);
    if (status == COH_OK)
        status = time_message(tuner, LONG_BYTES, FEW, &long_message);
    if (status != COH_OK)
        return status;
    model->message_byte = fmax(long_message - model->message, 1) / LONG_BYTES;
    model->take = time_bytes(tuner, &fresh, 0);
    model->copy = time_bytes(tuner, &cached, 0);
    model->stream = time_bytes(tuner, &streamed, 0);
    model->reduce = time_bytes(tuner, &cached, 1);
    model->reduce_stream = time_bytes(tuner, &streamed, 1);
    model->cache = find_cache(tuner, model->copy, model->stream);
    return COH_OK;
}

static void tell(const cohi_model *model)
{
#define TELL(field, otherwise, unit, what) printf("%s %.6g\n", #field, model->field);
    COHI_MODEL_TABLE(TELL)
#undef TELL
    fflush(stdout);
}

static coh_status make_memory(struct tuner *tuner)
{
    coh_status status = coh_align(tuner->world, 4096, STREAMED_BYTES, (void **)&tuner->mine);
    if (status == COH_OK)
        status = coh_calloc(tuner->world, 1, sizeof *tuner->board, (void **)&tuner->board);
    if (status == COH_OK)
        status = coh_ptr(tuner->world, tuner->mine, !tuner->rank, (void **)&tuner->theirs);
    for (int rank = 0; rank < 2 && status == COH_OK; rank++)
        status = coh_ptr(tuner->world, tuner->board->meeting, rank, (void **)&tuner->lines[rank]);
    tuner->meeting = (cohi_limit_meeting){tuner->lines, 2, tuner->rank};
    tuner->target = aligned_alloc(4096, STREAMED_BYTES);
    if (!tuner->target)
        return COH_NO_MEMORY;
    memset(tuner->target, 0, STREAMED_BYTES);
    return status;
}

static coh_status run(coh_world *world)
{
    struct tuner tuner = {.world = world, .rank = coh_rank(world)};
    cohi_model model;
    coh_status status = make_memory(&tuner);
    if (status == COH_OK)
        status = measure(&tuner, &model);
    if (status == COH_OK && tuner.rank == 0)
        tell(&model);
    free(tuner.target);
    coh_status left = coh_finalize(world);
    return status == COH_OK ? left : status;
}

/* What is measured is to take the place of the tuning file, which may be damaged or not there yet;
 * and what the user forces on collectives is no fact of the host. */
static void forget_choices(void)
{
    static const char *const forcing[] = {"COHORT_DETERMINISTIC",
#define VARIABLE(field, type, variable, otherwise, help) variable,
                                          COHI_ALGORITHM_KNOBS(VARIABLE)
#undef VARIABLE
    };
    setenv("COHORT_TUNING", "off", 1);
    for (size_t i = 0; i < sizeof forcing / sizeof *forcing; i++)
        unsetenv(forcing[i]);
}

int cohi_tune_worker(void)
{
    coh_world *world;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "shm";
    forget_choices();
    coh_status status = coh_init(&options, &world);
    if (status == COH_OK && coh_size(world) == 2)
        status = run(world);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort tune: %s\n", coh_last_error());
    return EXIT_FAILURE;
}
