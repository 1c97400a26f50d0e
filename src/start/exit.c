#include "base/clock.h"
#include "bootstrap/elsewhere.h"
#include "core/health/control.h"
#include "core/health/far.h"

#include <stdlib.h>
#include <time.h>

/* How long to wait until the word has come to ranks of other hosts. Agents bring it too; without them a
 * rank that computes has no other way to learn of it, and connections may have to be made first. */
#define TELLING_NS       (300 * COHI_NS_PER_MS)
#define TELLING_ALONE_NS (3 * COHI_NS_PER_S)

static void await(const coh_world *world, cohi_op *op)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    bool alone = world->board->head->launcher == 0;
    uint64_t until = cohi_now_ns() + (alone ? TELLING_ALONE_NS : TELLING_NS);
    while (!atomic_load_explicit(&op->done, memory_order_acquire) && cohi_now_ns() < until) {
        if (world->engine->lifecycle->progress)
            world->engine->lifecycle->progress(world->endpoint);
        nanosleep(&moment, NULL);
    }
}

/* Ranks of this host look at the board, those of others at their own slots. */
static void tell_far(coh_world *world, int code)
{
    static cohi_op op; /* the engine may still have it when this process ends */
    uint64_t asked = COHI_ENDED | (uint64_t)code;
    for (int to = 0; to < world->size; to++)
        if (cohi_far(world, to))
            (void)cohi_control_put(world, to, offsetof(cohi_slot, global_exit), &asked,
                                   sizeof asked);
    op = (cohi_op)COHI_NEW_OP;
    if (world->engine->rma
        && world->engine->rma->quiet(world->endpoint, COHI_CONTEXT_CONTROL, &op) == COH_OK)
        await(world, &op);
}

coh_status coh_global_exit(coh_world *world, int code)
{
    static const char call[] = "coh_global_exit";
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    if (code < 0 || code > 255)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%d is not an exit code; a process can have 0 to 255", code);
    cohi_board_tell_exit(world->board, code);
    if (world->hosts > 1)
        tell_far(world, code);
    exit(code);
}
