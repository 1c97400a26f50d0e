/* bench/copy.c - put and get, against plain copies between the same two mappings. */
#include "bench/bench.h"

#include "base/atomics.h"
#include "base/clock.h"

#include <sched.h>

/* Long enough that reading the clock twice (some 50 ns) is lost in it. */
#define ROUND_NS (1.0 * (double)COHI_NS_PER_MS)

struct context {
    coh_world *world;
    int peer;
    char *symmetric; /* this rank's copy of what is put to and got from */
    char *direct;    /* the peer's, as it is mapped here */
    char *private;
    uint64_t bytes;
    cohi_limit_line *mine; /* deliver: the counts by which the two take turns */
    cohi_limit_line *theirs;
    int crowded;
};

static double run_put(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    coh_status status = coh_put(c->world, c->symmetric, c->private, c->bytes, c->peer);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_put(c->world, c->symmetric, c->private, c->bytes, c->peer);
    return cohi_bench_each(status, start, repeats);
}

static double run_get(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    coh_status status = coh_get(c->world, c->private, c->symmetric, c->bytes, c->peer);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_get(c->world, c->private, c->symmetric, c->bytes, c->peer);
    return cohi_bench_each(status, start, repeats);
}

static coh_status put_and_quiet(const struct context *c)
{
    coh_status status = coh_put(c->world, c->symmetric, c->private, c->bytes, c->peer);
    return status == COH_OK ? coh_quiet(c->world) : status;
}

static double run_quiet(void *context, const void *form, uint64_t repeats)
{
    (void)form;
    coh_status status = put_and_quiet(context);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = put_and_quiet(context);
    return cohi_bench_each(status, start, repeats);
}

static double run_copy_there(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    return cohi_limit_copy(form, c->direct, c->private, c->bytes, repeats);
}

static double run_copy_here(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    return cohi_limit_copy(form, c->private, c->direct, c->bytes, repeats);
}

static double run_call_there(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    return cohi_limit_call(c->direct, c->private, repeats);
}

static double run_call_here(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    return cohi_limit_call(c->private, c->direct, repeats);
}

typedef double run_contender(void *context, const void *form, uint64_t repeats);

struct direction {
    const char *name;
    run_contender *ours;
    run_contender *copy;
    run_contender *call; /* for 8 bytes; NULL: `copy` for these too */
};

static void add_contenders(cohi_bench_plan *plan, const struct direction *direction, uint64_t bytes)
{
    cohi_bench_add(plan, direction->name, NULL, direction->ours);
    if (bytes == 8 && direction->call) {
        cohi_bench_add(plan, "memcpy", NULL, direction->call);
        return;
    }
    const cohi_limit_copy_form *form;
    for (size_t i = 0; (form = cohi_limit_copy_form_at(i)); i++)
        cohi_bench_add(plan, form->name, form, direction->copy);
}

static coh_status make_context(cohi_bench_rank *self, uint64_t bytes, struct context *context)
{
    *context = (struct context){.world = self->world,
                                .peer = (self->rank + 1) % self->size,
                                .symmetric = self->shared,
                                .private = self->private,
                                .bytes = bytes,
                                .mine = &self->board->delivered,
                                .crowded = self->crowded};
    coh_status status =
        coh_ptr(self->world, self->shared, context->peer, (void **)&context->direct);
    if (status != COH_OK)
        return status;
    return coh_ptr(self->world, &self->board->delivered, self->rank == 0 ? context->peer : 0,
                   (void **)&context->theirs);
}

/* Rank 0 measures; the others wait for it in the barrier that the caller ends with. */
static coh_status measure(cohi_bench_rank *self, uint64_t bytes, const struct direction *direction,
                          cohi_bench_result *result)
{
    if (self->rank != 0)
        return COH_OK;
    struct context context;
    coh_status status = make_context(self, bytes, &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {.rounds = self->rounds, .self = self, .context = &context};
    add_contenders(&plan, direction, bytes);
    plan.repeats = cohi_bench_repeats(&plan, ROUND_NS);
    if (plan.repeats == 0)
        return COH_TRANSPORT;
    return cohi_bench_measure(&plan, result);
}

coh_status cohi_bench_put(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    static const struct direction put = {"coh_put", run_put, run_copy_there, run_call_there};
    return measure(self, bytes, &put, result);
}

coh_status cohi_bench_get(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    static const struct direction get = {"coh_get", run_get, run_copy_here, run_call_here};
    return measure(self, bytes, &get, result);
}

coh_status cohi_bench_quiet(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    static const struct direction quiet = {"coh_put, coh_quiet", run_quiet, run_copy_there,
                                           run_call_there};
    return measure(self, bytes, &quiet, result);
}

/* ---- deliver: the peer reads what was put ---- */

static void await(const struct context *c, const cohi_limit_line *line, uint64_t count)
{
    while (__atomic_load_n(&line->count, __ATOMIC_ACQUIRE) < count) {
        if (c->crowded)
            sched_yield();
        else
            cohi_cpu_relax();
    }
}

static void announce(cohi_limit_line *line, uint64_t count)
{
    __atomic_store_n(&line->count, count, __ATOMIC_RELEASE);
}

/* One load from each line: what reading costs, without what is done with it. */
static void read_all(const char *memory, uint64_t bytes)
{
    const volatile char *at = memory;
    for (uint64_t i = 0; i < bytes; i += sizeof(cohi_limit_line))
        (void)at[i];
}

/* Tells the peer that the data is there, and waits until it has read all of it. */
static void hand_over(const struct context *c)
{
    uint64_t turn = c->mine->count + 1;
    announce(c->mine, turn);
    await(c, c->theirs, turn);
}

static double run_deliver(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++) {
        status = put_and_quiet(c);
        hand_over(c);
    }
    return cohi_bench_each(status, start, repeats);
}

static double run_copy_deliver(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    const cohi_limit_copy_form *copy = form;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        copy->copy(c->direct, c->private, c->bytes);
        hand_over(c);
    }
    return cohi_bench_each(COH_OK, start, repeats);
}

static double run_read(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        uint64_t turn = c->mine->count + 1;
        await(c, c->theirs, turn);
        read_all(c->symmetric, c->bytes);
        announce(c->mine, turn);
    }
    return cohi_bench_each(COH_OK, start, repeats);
}

coh_status cohi_bench_deliver(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    static const struct direction write = {"coh_put, read", run_deliver, run_copy_deliver, NULL};
    static const struct direction read = {"read", run_read, run_read, NULL};
    if (self->rank > 1)
        return COH_OK;
    struct context context;
    coh_status status = make_context(self, bytes, &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {.rounds = self->rounds,
                            .repeats = cohi_bench_agreed_repeats(bytes),
                            .self = self,
                            .context = &context};
    add_contenders(&plan, self->rank == 0 ? &write : &read, bytes);
    return cohi_bench_measure(&plan, result);
}
