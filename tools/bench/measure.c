#include "bench/bench.h"
#include "bench/load.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "base/error.h"

#include <sched.h>
#include <stdlib.h>

/* A piece is long beside the untimed repeat that it begins with, and short enough that a round ends
 * in time where a call now and then takes a thousand times as long. */
#define LOADED_ROUND_NS (COHI_BENCH_LOADED_MS * COHI_NS_PER_MS)
#define LOADED_PIECE_NS (2 * COHI_NS_PER_MS)

enum { LEAST_REPEATS = 16 };

void cohi_bench_add(cohi_bench_plan *plan, const char *name, const void *form,
                    double (*run)(void *context, const void *form, uint64_t repeats))
{
    if (plan->count < COHI_BENCH_CONTENDERS)
        plan->contenders[plan->count++] = (cohi_bench_contender){name, 0, form, run};
}

void cohi_bench_add_aside(cohi_bench_plan *plan, const char *name, const void *form,
                          double (*run)(void *context, const void *form, uint64_t repeats))
{
    cohi_bench_add(plan, name, form, run);
    plan->contenders[plan->count - 1].aside = 1;
}

static double run_contender(const cohi_bench_plan *plan, size_t index, uint64_t repeats)
{
    const cohi_bench_contender *contender = &plan->contenders[index];
    return contender->run(plan->context, contender->form, repeats);
}

uint64_t cohi_bench_repeats(const cohi_bench_plan *plan, double nanoseconds)
{
    uint64_t repeats = 1;
    for (;;) {
        double each = run_contender(plan, 0, repeats);
        if (each < 0)
            return 0;
        if (each * (double)repeats >= nanoseconds)
            return repeats;
        repeats *= 2;
    }
}

/* ---- rounds beside busy processes ---- */

int cohi_bench_tries(const cohi_bench_rank *self, int yields)
{
    return yields == self->crowded || (self->loaded && !self->crowded);
}

/* Rank 0's line, as it is mapped here, and the count that was seen last. */
struct decision {
    int rank;
    int yields; /* as all untimed waits do: where ranks share cores, and not for busy processes,
                   which would have the core for a whole time slice */
    cohi_limit_line *line;
    uint64_t seen;
};

static coh_status open_decision(cohi_bench_rank *self, struct decision *decision)
{
    decision->rank = self->rank;
    decision->yields = self->crowded;
    coh_status status = coh_ptr(self->world, &self->board->enough, 0, (void **)&decision->line);
    if (status == COH_OK)
        decision->seen = __atomic_load_n(&decision->line->count, __ATOMIC_ACQUIRE);
    return status;
}

/* What rank 0 says. It cannot say more before all have run once more, so none misses it. */
static int decide(struct decision *decision, int mine)
{
    uint64_t turn = ++decision->seen;
    if (decision->rank == 0) {
        decision->line->told = (uint64_t)mine;
        __atomic_store_n(&decision->line->count, turn, __ATOMIC_RELEASE);
        return mine;
    }
    while (__atomic_load_n(&decision->line->count, __ATOMIC_ACQUIRE) < turn) {
        if (decision->yields)
            sched_yield();
        else
            cohi_cpu_relax();
    }
    return (int)decision->line->told;
}

/* How many repeats make a piece of a round; 0: it failed. It must be long twice in a row: once may
 * be a rank that was not running. */
static uint64_t agree_on_repeats(const cohi_bench_plan *plan, size_t index,
                                 struct decision *decision)
{
    uint64_t least = plan->repeats < LEAST_REPEATS ? plan->repeats : LEAST_REPEATS;
    for (uint64_t repeats = least, times_long = 0;;) {
        uint64_t start = cohi_now_ns();
        if (run_contender(plan, index, repeats) < 0)
            return 0;
        int room = plan->most == 0 || repeats * 2 <= plan->most;
        int is_long = cohi_now_ns() - start >= LOADED_PIECE_NS || !room;
        times_long = (uint64_t)decide(decision, is_long ? (int)times_long + 1 : 0);
        if (times_long == 2)
            return repeats;
        repeats *= times_long ? 1 : 2;
    }
}

/* So many pieces that the round is long enough, however long each of them takes. */
static double run_long_round(const cohi_bench_plan *plan, size_t index, uint64_t repeats,
                             struct decision *decision)
{
    uint64_t start = cohi_now_ns();
    double sum = 0, pieces = 0;
    do {
        double time = run_contender(plan, index, repeats);
        if (time < 0)
            return -1;
        sum += time;
        pieces++;
    } while (!decide(decision, cohi_now_ns() - start >= LOADED_ROUND_NS));
    return sum / pieces;
}

/* How a plan's contenders are run. */
struct rounds {
    int loaded;
    struct decision decision;
    uint64_t repeats[COHI_BENCH_CONTENDERS];
};

static coh_status prepare_rounds(const cohi_bench_plan *plan, struct rounds *rounds)
{
    rounds->loaded = plan->self->loaded;
    for (size_t i = 0; i < plan->count; i++)
        rounds->repeats[i] = plan->repeats;
    coh_status status = rounds->loaded ? open_decision(plan->self, &rounds->decision) : COH_OK;
    for (size_t i = 0; i < plan->count && rounds->loaded && status == COH_OK; i++) {
        rounds->repeats[i] = agree_on_repeats(plan, i, &rounds->decision);
        status = rounds->repeats[i] ? COH_OK : COH_TRANSPORT;
    }
    return status;
}

static double run_round(const cohi_bench_plan *plan, size_t index, struct rounds *rounds)
{
    return rounds->loaded ? run_long_round(plan, index, rounds->repeats[index], &rounds->decision)
                          : run_contender(plan, index, rounds->repeats[index]);
}

/* ---- rounds ---- */

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Between the two nearest, where the share falls between two. */
static double quantile(const double *sorted, size_t count, double share)
{
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

void cohi_bench_spread(double *samples, size_t count, cohi_bench_figure *figure)
{
    qsort(samples, count, sizeof *samples, compare_doubles);
    figure->median = quantile(samples, count, 0.5);
    figure->low = quantile(samples, count, 0.25);
    figure->high = quantile(samples, count, 0.75);
}

double cohi_bench_each(coh_status status, uint64_t start_ns, uint64_t repeats)
{
    return status == COH_OK ? (double)(cohi_now_ns() - start_ns) / (double)repeats : -1;
}

/* One row of samples for each contender, and two more to sort in. */
struct samples {
    double *times;
    size_t rounds;
};

static double *samples_row(const struct samples *samples, size_t row)
{
    return samples->times + row * samples->rounds;
}

static void summarize(const cohi_bench_plan *plan, const struct samples *samples, size_t index,
                      cohi_bench_figure *figure)
{
    size_t rounds = samples->rounds;
    double *sorted = samples_row(samples, plan->count);
    double *ratios = samples_row(samples, plan->count + 1);
    for (size_t i = 0; i < rounds; i++) {
        sorted[i] = samples_row(samples, index)[i];
        ratios[i] = sorted[i] / samples_row(samples, 0)[i];
    }
    cohi_bench_figure of_ratios;
    cohi_bench_spread(sorted, rounds, figure);
    cohi_bench_spread(ratios, rounds, &of_ratios);
    figure->name = plan->contenders[index].name;
    figure->aside = plan->contenders[index].aside;
    figure->fraction = of_ratios.median;
}

/* Each round begins with another contender, so that none always follows the same one. */
static int run_rounds(const cohi_bench_plan *plan, struct rounds *rounds, struct samples *samples)
{
    for (size_t round = 0; round < samples->rounds; round++) {
        for (size_t turn = 0; turn < plan->count; turn++) {
            size_t index = (round + turn) % plan->count;
            double time = run_round(plan, index, rounds);
            if (time < 0)
                return -1;
            samples_row(samples, index)[round] = time;
        }
    }
    return 0;
}

void cohi_bench_find_best(cohi_bench_result *result)
{
    result->best = 1;
    for (size_t i = 2; i < result->count; i++) {
        if (!result->figures[i].aside
            && result->figures[i].median < result->figures[result->best].median)
            result->best = i;
    }
}

coh_status cohi_bench_measure(const cohi_bench_plan *plan, cohi_bench_result *result)
{
    struct samples samples = {NULL, plan->rounds};
    struct rounds rounds;
    coh_status status = prepare_rounds(plan, &rounds);
    if (status != COH_OK)
        return status;
    samples.times = calloc((plan->count + 2) * plan->rounds, sizeof *samples.times);
    if (!samples.times)
        return cohi_fail(COH_NO_MEMORY, "bench: no memory for %zu rounds of %zu", samples.rounds,
                         plan->count);
    if (run_rounds(plan, &rounds, &samples) != 0) {
        free(samples.times);
        return COH_TRANSPORT; /* the call that failed set the error message */
    }
    result->count = plan->count;
    for (size_t i = 0; i < plan->count; i++)
        summarize(plan, &samples, i, &result->figures[i]);
    cohi_bench_find_best(result);
    free(samples.times);
    return COH_OK;
}
