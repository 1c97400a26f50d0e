#include "bench.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>

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
static int run_rounds(const cohi_bench_plan *plan, struct samples *samples)
{
    for (size_t round = 0; round < samples->rounds; round++) {
        for (size_t turn = 0; turn < plan->count; turn++) {
            size_t index = (round + turn) % plan->count;
            double time = run_contender(plan, index, plan->repeats);
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
    samples.times = calloc((plan->count + 2) * plan->rounds, sizeof *samples.times);
    if (!samples.times)
        return cohi_fail(COH_NO_MEMORY, "bench: no memory for %zu rounds of %zu", samples.rounds,
                         plan->count);
    if (run_rounds(plan, &samples) != 0) {
        free(samples.times);
        return COH_TRANSPORT; /* the call that failed left its sentence */
    }
    result->count = plan->count;
    for (size_t i = 0; i < plan->count; i++)
        summarize(plan, &samples, i, &result->figures[i]);
    cohi_bench_find_best(result);
    free(samples.times);
    return COH_OK;
}
