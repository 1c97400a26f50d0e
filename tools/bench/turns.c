/* bench/turns.c - signals back and forth, against a cache line that does the same. */
#include "bench/bench.h"

#include "base/clock.h"

/* Turns in one round: about a millisecond's worth. */
enum { REPEATS = 2000, CROWDED_REPEATS = 100 };

struct context {
    coh_world *world;
    int peer;
    cohi_bench_board *board;
    cohi_limit_pair pair;
    uint64_t turn; /* the last that was taken */
};

coh_status cohi_bench_pair(cohi_bench_rank *self, int peer, cohi_bench_board **theirs,
                           cohi_limit_pair *pair)
{
    coh_status status = coh_ptr(self->world, self->board, peer, (void **)theirs);
    if (status != COH_OK)
        return status;
    *pair = (cohi_limit_pair){.mine = &self->board->turn,
                              .theirs = &(*theirs)->turn,
                              .first = self->rank == 0,
                              .yields = self->crowded};
    return COH_OK;
}

uint64_t cohi_bench_agreed_repeats(uint64_t bytes)
{
    enum { ROUND_BYTES = 16 << 20, MOST = 2000, LEAST = 2 };
    uint64_t repeats = ROUND_BYTES / (bytes ? bytes : 1);
    return repeats > MOST ? MOST : repeats < LEAST ? LEAST : repeats;
}

static coh_status give_turn(const struct context *c, uint64_t turn)
{
    return coh_put_signal(c->world, &c->board->signalled.data, &turn, sizeof turn,
                          &c->board->signalled.signal, turn, COH_SIGNAL_SET, c->peer);
}

static coh_status await_turn(const struct context *c, uint64_t turn)
{
    return coh_wait_until(c->world, COH_U64, &c->board->signalled.signal, COH_GE, &turn, c->peer);
}

static coh_status take_turns(struct context *c, uint64_t repeats)
{
    uint64_t last = c->turn + repeats;
    coh_status status = COH_OK;
    while (c->turn != last && status == COH_OK) {
        uint64_t turn = ++c->turn;
        if (c->pair.first)
            status = give_turn(c, turn);
        if (status == COH_OK)
            status = await_turn(c, turn);
        if (status == COH_OK && !c->pair.first)
            status = give_turn(c, turn);
    }
    return status;
}

static double run_signal(void *context, const void *form, uint64_t repeats)
{
    (void)form;
    coh_status status = take_turns(context, 1);
    uint64_t start = cohi_now_ns();
    if (status == COH_OK)
        status = take_turns(context, repeats);
    return cohi_bench_each(status, start, 2 * repeats);
}

static double run_line(void *context, const void *form, uint64_t repeats)
{
    return cohi_limit_turns(form, &((struct context *)context)->pair, repeats);
}

coh_status cohi_bench_signal(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    (void)bytes;
    if (self->rank > 1)
        return COH_OK;
    struct context context = {.world = self->world, .peer = !self->rank, .board = self->board};
    cohi_bench_board *theirs;
    coh_status status = cohi_bench_pair(self, context.peer, &theirs, &context.pair);
    if (status != COH_OK)
        return status;
    context.turn =
        theirs->signalled.signal; /* the last that this rank gave: nobody else writes it */
    cohi_bench_plan plan = {.rounds = self->rounds,
                            .repeats = self->crowded ? CROWDED_REPEATS : REPEATS,
                            .self = self,
                            .context = &context};
    cohi_bench_add(&plan, "coh_put_signal, coh_wait_until", NULL, run_signal);
    const cohi_limit_turn_form *form;
    for (size_t i = 0; (form = cohi_limit_turn_form_at(i)); i++) {
        if (cohi_bench_tries(self, form->yields))
            cohi_bench_add(&plan, form->name, form, run_line);
    }
    return cohi_bench_measure(&plan, result);
}
