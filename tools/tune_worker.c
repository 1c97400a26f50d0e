/*
 * tune_worker.c - measures the rows of the profile that take two ranks.
 *
 * What one reads is written by the other before each sample. Each is the median of some samples.
 */
#include "tune.h"

#include "bench/bench.h"

#include "base/clock.h"
#include "base/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRESH_BYTES = 16 << 10,
    SAMPLES = 31,
    TURNS = 2000,
};

struct tuner {
    coh_world *world;
    int rank;
    char *mine, *theirs; /* FRESH_BYTES of the heap each */
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

/* ---- bytes that the other rank wrote just now ---- */

/* Nanoseconds for a byte by this loop, on rank 0. */
static double time_form(struct tuner *tuner, const cohi_limit_copy_form *form)
{
    double samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        memset(tuner->mine, 0, FRESH_BYTES);
        meet(tuner);
        uint64_t start = cohi_now_ns();
        if (tuner->rank == 0)
            form->copy(tuner->target, tuner->theirs, FRESH_BYTES);
        samples[i] = (double)(cohi_now_ns() - start) / FRESH_BYTES;
        meet(tuner);
    }
    return median_of(samples, SAMPLES);
}

/* By the best loop there is. */
static double time_fresh(struct tuner *tuner)
{
    double best = HUGE_VAL;
    for (size_t i = 0; cohi_limit_copy_form_at(i); i++)
        best = fmin(best, time_form(tuner, cohi_limit_copy_form_at(i)));
    return best;
}

/* ---- calls ---- */

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

static coh_status measure(struct tuner *tuner)
{
    double call = 0;
    coh_status status = time_call(tuner, &call);
    if (status != COH_OK)
        return status;
    double take = time_fresh(tuner);
    if (tuner->rank == 0)
        printf("call %.6g\ntake %.6g\n", call, take);
    fflush(stdout);
    return COH_OK;
}

static coh_status make_memory(struct tuner *tuner)
{
    coh_status status = coh_align(tuner->world, 4096, FRESH_BYTES, (void **)&tuner->mine);
    if (status == COH_OK)
        status = coh_calloc(tuner->world, 1, sizeof *tuner->board, (void **)&tuner->board);
    if (status == COH_OK)
        status = coh_ptr(tuner->world, tuner->mine, !tuner->rank, (void **)&tuner->theirs);
    for (int rank = 0; rank < 2 && status == COH_OK; rank++)
        status = coh_ptr(tuner->world, tuner->board->meeting, rank, (void **)&tuner->lines[rank]);
    tuner->meeting = (cohi_limit_meeting){tuner->lines, 2, tuner->rank};
    tuner->target = aligned_alloc(4096, FRESH_BYTES);
    if (!tuner->target)
        return COH_NO_MEMORY;
    memset(tuner->target, 0, FRESH_BYTES);
    return status;
}

static coh_status run(coh_world *world)
{
    struct tuner tuner = {.world = world, .rank = coh_rank(world)};
    coh_status status = make_memory(&tuner);
    if (status == COH_OK)
        status = measure(&tuner);
    free(tuner.target);
    if (status == COH_OK)
        status = cohi_tune_card(world);
    coh_status left = coh_finalize(world);
    return status == COH_OK ? left : status;
}

/* What the user forces on collectives is no fact of the host. */
void cohi_tune_forget_choices(void)
{
    static const char *const forcing[] = {"COHORT_DETERMINISTIC",
#define VARIABLE(field, type, variable, default_text, help) variable,
                                          COHI_ALGORITHM_KNOBS(VARIABLE)
#undef VARIABLE
    };
    for (size_t i = 0; i < sizeof forcing / sizeof *forcing; i++)
        unsetenv(forcing[i]);
}

int cohi_tune_worker(void)
{
    coh_world *world;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "shm";
    cohi_tune_forget_choices();
    coh_status status = coh_init(&options, &world);
    if (status == COH_OK && coh_size(world) == 2)
        status = run(world);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort tune: %s\n", coh_last_error());
    return EXIT_FAILURE;
}
