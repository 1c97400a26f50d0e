/* bench/meet.c - barrier and sync, against cache lines that go back and forth. */
#include "bench/bench.h"

#include "base/clock.h"

/* Meetings in one round: about a millisecond's worth, and where ranks take turns on the cores
 * fewer, since each is then some switches of the processor. */
enum { REPEATS = 5000, CROWDED_REPEATS = 100 };

struct context {
    coh_world *world;
    cohi_limit_meeting meeting;
    cohi_limit_line *lines[COHI_BENCH_RANKS];
};

static double run_barrier(void *context, const void *form, uint64_t repeats)
{
    coh_world *world = ((struct context *)context)->world;
    (void)form;
    coh_status status = coh_barrier(world);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_barrier(world);
    return cohi_bench_each(status, start, repeats);
}

static double run_sync(void *context, const void *form, uint64_t repeats)
{
    coh_world *world = ((struct context *)context)->world;
    (void)form;
    coh_status status = coh_sync(world);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_sync(world);
    return cohi_bench_each(status, start, repeats);
}

static double run_exchange(void *context, const void *form, uint64_t repeats)
{
    return cohi_limit_exchange(form, &((struct context *)context)->meeting, repeats);
}

static coh_status map_lines(cohi_bench_rank *self, struct context *context)
{
    context->world = self->world;
    context->meeting = (cohi_limit_meeting){context->lines, self->size, self->rank};
    coh_status status = COH_OK;
    for (int rank = 0; rank < self->size && status == COH_OK; rank++)
        status = coh_ptr(self->world, self->board->meeting, rank, (void **)&context->lines[rank]);
    return status;
}

static coh_status measure(cohi_bench_rank *self, const char *name,
                          double (*run)(void *context, const void *form, uint64_t repeats),
                          cohi_bench_result *result)
{
    struct context context;
    coh_status status = map_lines(self, &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {.rounds = self->rounds,
                            .repeats = self->crowded ? CROWDED_REPEATS : REPEATS,
                            .self = self,
                            .context = &context};
    cohi_bench_add(&plan, name, NULL, run);
    const cohi_limit_exchange_form *form;
    for (size_t i = 0; (form = cohi_limit_exchange_form_at(i)); i++) {
        if (cohi_bench_tries(self, form->yields))
            cohi_bench_add(&plan, form->name, form, run_exchange);
    }
    return cohi_bench_measure(&plan, result);
}

coh_status cohi_bench_barrier(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    (void)bytes;
    return measure(self, "coh_barrier", run_barrier, result);
}

coh_status cohi_bench_sync(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    (void)bytes;
    return measure(self, "coh_sync", run_sync, result);
}
