/* bench/convert.c - conversions between f32 and smaller floats, beside loops that move as much. */
#include "bench/bench.h"

#include "base/clock.h"
#include "memory/convert.h"

/* Long enough that reading the clock twice is lost in it. */
#define ROUND_NS (1.0 * (double)COHI_NS_PER_MS)

enum { LEAST_BYTES = 4 * COHI_LIMIT_UNIT }; /* whole units on the smaller side */

struct context {
    coh_dtype from, to;
    char *source, *target;
    size_t count;
};

static size_t source_bytes(const struct context *c)
{
    return c->count * coh_dtype_size(c->from);
}

static double run_convert(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    bool can = cohi_convert(c->target, c->to, c->source, c->from, c->count);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && can; i++)
        can = cohi_convert(c->target, c->to, c->source, c->from, c->count);
    return cohi_bench_each(can ? COH_OK : COH_UNSUPPORTED, start, repeats);
}

static cohi_limit_resize *resize_of(const struct context *c, const cohi_limit_reduce_form *loop)
{
    bool narrows = c->from == COH_F32;
    if (coh_dtype_size(narrows ? c->to : c->from) == 1)
        return narrows ? loop->quarter : loop->fourfold;
    return narrows ? loop->halve : loop->twice;
}

static double run_loop(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    const cohi_limit_reduce_form *loop = form;
    cohi_limit_resize *resize = resize_of(c, loop);
    resize(c->target, c->source, source_bytes(c));
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        resize(c->target, c->source, source_bytes(c));
    return cohi_bench_each(COH_OK, start, repeats);
}

/* Rank 0 measures; the others wait for it in the barrier that the caller ends with. */
static coh_status measure(cohi_bench_rank *self, uint64_t bytes, coh_dtype from, coh_dtype to,
                          cohi_bench_result *result)
{
    size_t whole = bytes < LEAST_BYTES ? LEAST_BYTES : bytes / LEAST_BYTES * LEAST_BYTES;
    struct context c = {from, to, self->private, self->private + whole, whole / sizeof(float)};
    cohi_bench_plan plan = {.rounds = self->rounds, .self = self, .context = &c};
    const cohi_limit_reduce_form *form;
    if (self->rank != 0)
        return COH_OK;
    cohi_bench_add(&plan, "convert", NULL, run_convert);
    for (size_t i = 0; (form = cohi_limit_reduce_form_at(i)); i++)
        cohi_bench_add(&plan, form->name, form, run_loop);
    plan.repeats = cohi_bench_repeats(&plan, ROUND_NS);
    if (plan.repeats == 0)
        return COH_UNSUPPORTED;
    return cohi_bench_measure(&plan, result);
}

#define CONVERSIONS(name, dtype)                                             \
    coh_status cohi_bench_to_##name(cohi_bench_rank *self, uint64_t bytes,   \
                                    cohi_bench_result *result)               \
    {                                                                        \
        return measure(self, bytes, COH_F32, dtype, result);                 \
    }                                                                        \
    coh_status cohi_bench_from_##name(cohi_bench_rank *self, uint64_t bytes, \
                                      cohi_bench_result *result)             \
    {                                                                        \
        return measure(self, bytes, dtype, COH_F32, result);                 \
    }
CONVERSIONS(bf16, COH_BF16)
CONVERSIONS(f16, COH_F16)
CONVERSIONS(f8e4m3, COH_F8E4M3)
CONVERSIONS(f8e5m2, COH_F8E5M2)
