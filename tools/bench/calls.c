/* bench/calls.c - the calls of the collectives and what must come of them, one row each. */
#include "bench/bench.h"

#include "base/error.h"

#include <string.h>

enum { ROOT = 0, CHECKED_ELEMENTS = 61 };

static coh_status run_all_reduce(const cohi_bench_call *c)
{
    return coh_all_reduce(c->team, c->variant.dtype, COH_SUM, c->source, c->target, c->count);
}

static coh_status run_reduce(const cohi_bench_call *c)
{
    return coh_reduce(c->team, c->variant.dtype, COH_SUM, c->source, c->target, c->count, ROOT);
}

static coh_status run_reduce_scatter(const cohi_bench_call *c)
{
    return coh_reduce_scatter(c->team, c->variant.dtype, COH_SUM, c->source, c->target, c->count);
}

static coh_status run_all_gather(const cohi_bench_call *c)
{
    return coh_all_gather(c->team, c->variant.dtype, c->source, c->target, c->count);
}

static coh_status run_gather(const cohi_bench_call *c)
{
    return coh_gather(c->team, c->variant.dtype, c->source, c->target, c->count, ROOT);
}

static coh_status run_scatter(const cohi_bench_call *c)
{
    return coh_scatter(c->team, c->variant.dtype, c->source, c->target, c->count, ROOT);
}

static coh_status run_broadcast(const cohi_bench_call *c)
{
    return coh_broadcast(c->team, c->variant.dtype, c->source, c->target, c->count, ROOT);
}

static coh_status run_all_to_all(const cohi_bench_call *c)
{
    return coh_all_to_all(c->team, c->variant.dtype, c->source, c->target, c->count);
}

static coh_status run_scan(const cohi_bench_call *c)
{
    return coh_scan(c->team, c->variant.dtype, COH_SUM, c->source, c->target, c->count);
}

/* ---- what comes of filled sources ---- */

static float value_of(int rank, size_t index)
{
    return (float)((size_t)rank + 1 + index % 5);
}

static float sum_to(int last, size_t index)
{
    float sum = 0;
    for (int rank = 0; rank <= last; rank++)
        sum += value_of(rank, index);
    return sum;
}

/* Where this rank's block begins in a source that is cut into blocks. */
static size_t own_block(const cohi_bench_call *c)
{
    return (size_t)c->rank * c->count;
}

static float expect_sum(const cohi_bench_call *c, size_t index)
{
    return sum_to(c->size - 1, index);
}

static float expect_block_of_sum(const cohi_bench_call *c, size_t index)
{
    return sum_to(c->size - 1, own_block(c) + index);
}

static float expect_all(const cohi_bench_call *c, size_t index)
{
    return value_of((int)(index / c->count), index % c->count);
}

static float expect_block_of_root(const cohi_bench_call *c, size_t index)
{
    return value_of(ROOT, own_block(c) + index);
}

static float expect_root(const cohi_bench_call *c, size_t index)
{
    (void)c;
    return value_of(ROOT, index);
}

static float expect_block_of_each(const cohi_bench_call *c, size_t index)
{
    return value_of((int)(index / c->count), own_block(c) + index % c->count);
}

static float expect_sum_so_far(const cohi_bench_call *c, size_t index)
{
    return sum_to(c->rank, index);
}

/* ---- */

static const cohi_bench_collective collectives[] = {
    {"all_reduce", 0, 0, 0, 0, 0, run_all_reduce, expect_sum},
    {"reduce", 1, 1, 0, 0, 0, run_reduce, expect_sum},
    {"reduce_scatter", 0, 0, 1, 0, 1, run_reduce_scatter, expect_block_of_sum},
    {"all_gather", 0, 0, 0, 1, 0, run_all_gather, expect_all},
    {"gather", 1, 1, 0, 1, 0, run_gather, expect_all},
    {"scatter", 1, 0, 1, 0, 1, run_scatter, expect_block_of_root},
    {"broadcast", 1, 0, 0, 0, 0, run_broadcast, expect_root},
    {"all_to_all", 0, 0, 1, 0, 0, run_all_to_all, expect_block_of_each},
    {"scan", 1, 0, 0, 0, 0, run_scan, expect_sum_so_far},
};

const cohi_bench_collective *cohi_bench_collective_named(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    }
    return NULL;
}

void cohi_bench_fill(const cohi_bench_call *call, char *source)
{
    float *at = (void *)source;
    for (size_t i = 0; i < call->source_bytes / sizeof *at; i++)
        at[i] = value_of(call->rank, i);
}

coh_status cohi_bench_compare(const cohi_bench_collective *collective, const cohi_bench_call *call,
                              const char *target, const char *who)
{
    const float *got = (const void *)target;
    size_t elements = call->target_bytes / sizeof *got, step = elements / CHECKED_ELEMENTS + 1;
    if (collective->to_root && call->rank != ROOT)
        return COH_OK;
    for (size_t i = 0; i < elements; i += step) {
        size_t at = elements - 1 - i;
        float wanted = collective->expected(call, at);
        if (got[at] != wanted)
            return cohi_fail(COH_TRANSPORT,
                             "bench: %s of %zu bytes by %s: element %zu is %g, not %g, on rank %d",
                             collective->name, call->source_bytes, who, at, (double)got[at],
                             (double)wanted, call->rank);
    }
    return COH_OK;
}
