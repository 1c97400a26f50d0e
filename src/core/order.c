#include "core/crew.h"
#include "core/order.h"
#include "core/fault.h"
#include "core/rma.h"
#include "core/wait.h"

/* Puts to mapped peers are stores, which other ranks see in order once they are released;
 * ThreadSanitizer, which does not know fences, sees the release on each small store itself. */
static void order_stores(void)
{
#ifndef COHI_TSAN
    atomic_thread_fence(memory_order_release);
#endif
}

coh_status cohi_order_quiet(coh_world *world, const char *call, cohi_opcode op)
{
    cohi_full_fence();
    if (!world->remote || !world->engine->rma)
        return COH_OK;
    cohi_op done = {.status = COH_OK};
    coh_status status = world->engine->rma->quiet(world->endpoint, COHI_CONTEXT_DEFAULT, &done);
    return status == COH_OK ? cohi_wait_op(world, call, op, -1, &done) : status;
}

static coh_status begin(coh_world *world, const char *call, cohi_opcode op)
{
    if (cohi_world_plain(world))
        return COH_OK;
    coh_status status = cohi_world_enter(world, call);
    return status == COH_OK ? cohi_fault_strike(world->fault, op) : status;
}

coh_status coh_fence(coh_world *world)
{
    static const char call[] = "coh_fence";
    coh_status status = begin(world, call, COHI_OP_FENCE);
    if (status != COH_OK)
        return status;
    order_stores();
    if (!world->remote || !world->engine->rma)
        return COH_OK;
    cohi_rma_publish(world, COHI_OP_FENCE);
    status = world->engine->rma->fence(world->endpoint, COHI_CONTEXT_DEFAULT);
    cohi_rma_publish(world, COHI_OP_NONE);
    return status;
}

coh_status coh_quiet(coh_world *world)
{
    static const char call[] = "coh_quiet";
    coh_status status = begin(world, call, COHI_OP_QUIET);
    if (status != COH_OK || !world->remote)
        return status == COH_OK ? cohi_order_quiet(world, call, COHI_OP_QUIET) : status;
    cohi_rma_publish(world, COHI_OP_QUIET);
    status = cohi_order_quiet(world, call, COHI_OP_QUIET);
    cohi_rma_publish(world, COHI_OP_NONE);
    return status;
}

static coh_status refuse_driven(const coh_world *world, const char *call)
{
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "this world is driven in turn with the %d others of its process by a "
                           "single thread (options.driven), so nobody could arrive",
                           world->size - 1);
}

static coh_status enter_meeting(coh_world *world, const char *call, cohi_opcode op)
{
    if (COHI_UNLIKELY(!cohi_world_plain(world))) {
        coh_status status = cohi_world_enter(world, call);
        if (status != COH_OK)
            return status;
    }
    if (COHI_UNLIKELY(world->crew && world->crew->driven && world->size > 1))
        return refuse_driven(world, call);
    return cohi_team_enter(&world->team, call, op);
}

coh_status coh_sync(coh_world *world)
{
    static const char call[] = "coh_sync";
    coh_status status = enter_meeting(world, call, COHI_OP_SYNC);
    if (status != COH_OK)
        return status;
    return cohi_team_leave(&world->team, cohi_team_meet(&world->team, call, COHI_OP_SYNC));
}

coh_status coh_barrier(coh_world *world)
{
    static const char call[] = "coh_barrier";
    coh_status status = enter_meeting(world, call, COHI_OP_BARRIER);
    if (status != COH_OK)
        return status;
    /* Between mapped ranks the marks of the meeting are released behind all earlier stores. */
    if (world->remote)
        status = cohi_order_quiet(world, call, COHI_OP_BARRIER);
    if (status == COH_OK)
        status = cohi_team_meet(&world->team, call, COHI_OP_BARRIER);
    return cohi_team_leave(&world->team, status);
}
