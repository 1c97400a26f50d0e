/* bench/word.c - atomics and strided puts, against the instructions on the same words. */
#include "bench/bench.h"

#include "base/clock.h"

#define ROUND_NS (1.0 * (double)COHI_NS_PER_MS)

struct context {
    coh_world *world;
    int peer;
    uint64_t *word;   /* this rank's copy */
    uint64_t *direct; /* the peer's, as it is mapped here */
    char *symmetric;
    char *direct_memory;
    char *private;
    size_t count; /* strided: words of 8 bytes */
};

static double run_fetch_add(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    uint64_t one = 1, old;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_atomic_fetch(c->world, COH_ATOMIC_ADD, COH_U64, c->word, &one, &old, c->peer);
    return cohi_bench_each(status, start, repeats);
}

static double run_compare_swap(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    uint64_t expected = *c->direct, desired = expected + 1, old;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++) {
        status =
            coh_atomic_compare_swap(c->world, COH_U64, c->word, &expected, &desired, &old, c->peer);
        expected = old + 1;
        desired = old + 2;
    }
    return cohi_bench_each(status, start, repeats);
}

static double run_raw_word(void *context, const void *form, uint64_t repeats)
{
    return cohi_limit_word(form, ((const struct context *)context)->direct, repeats);
}

enum { WORD = sizeof(uint64_t), APART = 2 * WORD };

static double run_strided(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_put_strided(c->world, c->symmetric, APART, c->private, WORD, WORD, c->count,
                                 c->peer);
    return cohi_bench_each(status, start, repeats);
}

static double run_raw_strided(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    return cohi_limit_strided(c->direct_memory, APART, c->private, WORD, c->count, repeats);
}

static coh_status make_context(cohi_bench_rank *self, uint64_t bytes, struct context *context)
{
    *context = (struct context){.world = self->world,
                                .peer = (self->rank + 1) % self->size,
                                .word = &self->board->word.count,
                                .symmetric = self->shared,
                                .private = self->private,
                                .count = bytes < WORD ? 1 : bytes / WORD};
    coh_status status =
        coh_ptr(self->world, context->word, context->peer, (void **)&context->direct);
    if (status != COH_OK)
        return status;
    return coh_ptr(self->world, self->shared, context->peer, (void **)&context->direct_memory);
}

typedef double run_contender(void *context, const void *form, uint64_t repeats);
typedef const cohi_limit_word_form *form_at(size_t index);

/* Rank 0 measures; the others wait for it in the barrier that the caller ends with. */
static coh_status measure_word(cohi_bench_rank *self, const char *name, run_contender *ours,
                               form_at *forms, cohi_bench_result *result)
{
    struct context context;
    if (self->rank != 0)
        return COH_OK;
    coh_status status = make_context(self, 0, &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {.rounds = self->rounds, .self = self, .context = &context};
    cohi_bench_add(&plan, name, NULL, ours);
    const cohi_limit_word_form *form;
    for (size_t i = 0; (form = forms(i)); i++)
        cohi_bench_add(&plan, form->name, form, run_raw_word);
    plan.repeats = cohi_bench_repeats(&plan, ROUND_NS);
    return plan.repeats ? cohi_bench_measure(&plan, result) : COH_TRANSPORT;
}

coh_status cohi_bench_fetch_add(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    (void)bytes;
    return measure_word(self, "coh_atomic_fetch", run_fetch_add, cohi_limit_add_form_at, result);
}

coh_status cohi_bench_compare_swap(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    (void)bytes;
    return measure_word(self, "coh_atomic_compare_swap", run_compare_swap, cohi_limit_swap_form_at,
                        result);
}

coh_status cohi_bench_strided(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    struct context context;
    if (self->rank != 0)
        return COH_OK;
    coh_status status = make_context(self, bytes, &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {.rounds = self->rounds, .self = self, .context = &context};
    cohi_bench_add(&plan, "coh_put_strided", NULL, run_strided);
    cohi_bench_add(&plan, "words", NULL, run_raw_strided);
    plan.repeats = cohi_bench_repeats(&plan, ROUND_NS);
    return plan.repeats ? cohi_bench_measure(&plan, result) : COH_TRANSPORT;
}
