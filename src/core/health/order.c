#include "core/health/order.h"

#include "core/health/wait.h"

/* Puts to mapped peers are stores, which other ranks see in order once they are released;
 * ThreadSanitizer, which does not know fences, sees the release on each small store itself. */
static void order_stores(void)
{
#ifndef COHI_TSAN
    atomic_thread_fence(memory_order_release);
#endif
}

static coh_status quiet_of(coh_world *world, cohi_server server, const char *call, cohi_opcode op,
                           unsigned context)
{
    if (!server.engine->rma)
        return COH_OK;
    cohi_op done = COHI_NEW_OP;
    coh_status status = server.engine->rma->quiet(server.endpoint, context, &done);
    return status == COH_OK ? cohi_wait_op_of(world, server, call, op, -1, &done) : status;
}

coh_status cohi_order_quiet_context(coh_world *world, const char *call, cohi_opcode op,
                                    unsigned context)
{
    const cohi_device *device = cohi_world_device(world);
    cohi_full_fence();
    if (!world->delayed)
        return COH_OK;
    if (world->delays)
        return world->delays->quiet(world, call, op, context);
    coh_status status = quiet_of(world, cohi_world_server(world), call, op, context);
    if (status == COH_OK && device)
        status = quiet_of(world, device->server, call, op, context);
    return status;
}

coh_status cohi_order_quiet(coh_world *world, const char *call, cohi_opcode op)
{
    return cohi_order_quiet_context(world, call, op, COHI_CONTEXT_DEFAULT);
}

coh_status cohi_order_quiet_all(coh_world *world, const char *call, cohi_opcode op)
{
    pthread_mutex_lock(&world->context_lock);
    uint64_t open = ~world->free_contexts;
    pthread_mutex_unlock(&world->context_lock);
    open &= ~(UINT64_C(1) << COHI_CONTEXT_CONTROL);
    coh_status status = COH_OK;
    for (; status == COH_OK && open; open &= open - 1)
        status = cohi_order_quiet_context(world, call, op, (unsigned)__builtin_ctzll(open));
    return status;
}

coh_status cohi_order_fence_context(coh_world *world, unsigned context)
{
    order_stores();
    if (!world->delayed)
        return COH_OK;
    if (world->delays)
        world->delays->fence(world, context);
    /* One engine does not know what the other has under way, so nothing is. */
    if (COHI_UNLIKELY(cohi_world_device(world) != NULL))
        return cohi_order_quiet_context(world, "coh_fence", COHI_OP_FENCE, context);
    if (!world->engine->rma)
        return COH_OK;
    cohi_world_show_op(world, COHI_OP_FENCE);
    coh_status status = world->engine->rma->fence(world->endpoint, context);
    cohi_world_show_op(world, COHI_OP_NONE);
    return status;
}
