/* fence.c - the calls that order and complete what was issued: coh_fence, coh_quiet, coh_sync and
 * coh_barrier. */
#include "core/onesided/context.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/team/enter.h"
#include "core/team/rounds.h"

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
    return status == COH_OK ? cohi_order_fence_context(world, COHI_CONTEXT_DEFAULT) : status;
}

/* A quiet of its own, not part of a collective that is published already. */
static coh_status quiet_seen(coh_world *world, const char *call, unsigned context)
{
    if (world->remote)
        cohi_world_show_op(world, COHI_OP_QUIET);
    coh_status status = cohi_order_quiet_context(world, call, COHI_OP_QUIET, context);
    if (world->remote)
        cohi_world_show_op(world, COHI_OP_NONE);
    return status;
}

static __attribute__((noinline)) coh_status quiet_long(coh_world *world)
{
    static const char call[] = "coh_quiet";
    coh_status status = begin(world, call, COHI_OP_QUIET);
    return status == COH_OK ? quiet_seen(world, call, COHI_CONTEXT_DEFAULT) : status;
}

/* The fence waits for all stores, so the fast path saves no registers. */
coh_status coh_quiet(coh_world *world)
{
    if (COHI_UNLIKELY(!cohi_world_plain(world) || world->remote))
        return quiet_long(world);
    cohi_full_fence();
    return COH_OK;
}

coh_status coh_context_fence(coh_context *context)
{
    coh_status status = cohi_context_gate(context, "coh_context_fence");
    return status == COH_OK ? cohi_order_fence_context(context->world, context->number) : status;
}

coh_status coh_context_quiet(coh_context *context)
{
    static const char call[] = "coh_context_quiet";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? quiet_seen(context->world, call, context->number) : status;
}

static inline coh_status pass_gate(coh_world *world, const char *call)
{
    return COHI_LIKELY(cohi_world_plain(world)) ? COH_OK : cohi_world_enter(world, call);
}

coh_status coh_sync(coh_world *world)
{
    static const char call[] = "coh_sync";
    coh_status status = pass_gate(world, call);
    if (COHI_UNLIKELY(status != COH_OK))
        return status;
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_SYNC);
    status = cohi_team_enter_waiting(&entry);
    return status == COH_OK ? cohi_team_leave(world->team, cohi_team_line_up(&entry)) : status;
}

coh_status coh_barrier(coh_world *world)
{
    static const char call[] = "coh_barrier";
    coh_status status = pass_gate(world, call);
    if (COHI_UNLIKELY(status != COH_OK))
        return status;
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_BARRIER);
    status = cohi_team_enter_waiting(&entry);
    if (COHI_UNLIKELY(status != COH_OK))
        return status;
    /* Between mapped ranks the marks of the meeting are released behind all earlier stores. */
    if (world->delayed)
        status = cohi_order_quiet(world, call, COHI_OP_BARRIER);
    if (status == COH_OK)
        status = cohi_team_line_up(&entry);
    return cohi_team_leave(world->team, status);
}
