#include "base/cancel.h"
#include "base/error.h"
#include "core/health/order.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "core/heap/register.h"
#include "core/message/mailbox.h"
#include "core/onesided/race.h"
#include "core/team/enter.h"
#include "core/team/past.h"
#include "core/team/rounds.h"
#include "start/dissolve.h"
#include "start/init.h"

/* Completes and meets, as far as the others can still be met: first so that all have sent what they
 * send and made their last call on every team, then so that nobody leaves while another copies, or
 * compares those calls. */
static coh_status part(coh_world *world, const char *call)
{
    coh_status concluded = COH_OK;
    cohi_error found; /* a word to one that has left meanwhile may set another */
    cohi_mailbox_settle(world, call);
    if (world->driven)
        return cohi_order_quiet(world, call, COHI_OP_FINALIZE);
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_FINALIZE);
    coh_status status = cohi_team_enter(&entry);
    if (status != COH_OK)
        return status;
    status = cohi_order_quiet(world, call, COHI_OP_FINALIZE);
    if (status == COH_OK)
        status = cohi_team_meet(&entry);
    if (status == COH_OK)
        status = cohi_mailbox_finish(world, call);
    if (status == COH_OK)
        concluded = cohi_team_conclude_all(world, call);
    if (concluded != COH_OK)
        cohi_error_keep(&found);
    atomic_store(&world->parting, status == COH_OK);
    if (status == COH_OK)
        status = cohi_team_meet(&entry);
    if (status == COH_OK && concluded != COH_OK)
        status = cohi_fail_again(&found);
    return cohi_team_leave(world->team, status);
}

/* What this rank passed on to others, a verdict or a mismatch, is at them before its endpoint
 * closes. */
static void tell_before_leaving(coh_world *world, const char *call)
{
    cohi_error kept;
    cohi_error_keep(&kept);
    cohi_op done = COHI_NEW_OP;
    cohi_verdict_spread(world);
    if (world->engine->rma
        && world->engine->rma->quiet(world->endpoint, COHI_CONTEXT_CONTROL, &done) == COH_OK)
        (void)cohi_wait_op(world, call, COHI_OP_FINALIZE, -1, &done);
    (void)cohi_fail_again(&kept);
}

/* All that this rank issued is at its targets before its endpoint closes. Peers that are lost or
 * stuck were told of before, and this cannot change how the finalize ends. */
static void leave_engine(coh_world *world, cohi_server server, const char *call)
{
    cohi_error kept;
    cohi_op done = COHI_NEW_OP;
    cohi_error_keep(&kept);
    if (server.engine->lifecycle->leave
        && server.engine->lifecycle->leave(server.endpoint, &done) == COH_OK)
        (void)cohi_wait_op_of(world, server, call, COHI_OP_FINALIZE, -1, &done);
    (void)cohi_fail_again(&kept);
}

static void leave_engines(coh_world *world, const char *call)
{
    const cohi_device *device = cohi_world_device(world);
    if (device)
        leave_engine(world, device->server, call);
    if (world->remote)
        leave_engine(world, cohi_world_server(world), call);
}

static void abandon_engine(cohi_server server)
{
    if (server.engine->lifecycle->abandon)
        server.engine->lifecycle->abandon(server.endpoint);
}

static void abandon_engines(coh_world *world)
{
    const cohi_device *device = cohi_world_device(world);
    if (device)
        abandon_engine(device->server);
    abandon_engine(cohi_world_server(world));
}

/* All that takes the others, or the engine's library. */
static coh_status part_and_leave(coh_world *world, const char *call)
{
    (void)cohi_team_drain_all(world, call, COHI_OP_FINALIZE); /* their requests tell how they end */
    coh_status status = part(world, call);
    if (status == COH_BUSY)
        return status;
    if (status != COH_OK && world->remote)
        tell_before_leaving(world, call);
    if (status != COH_OK)
        abandon_engines(world);
    leave_engines(world, call);
    return status;
}

/* The library behind the engine goes, and with it the way to the others. A world that is busy in another
 * thread stays open, and that thread's calls fail. */
void cohi_finalize_ahead(void *given)
{
    static const char call[] = "coh_finalize";
    coh_world *world = given;
    cohi_error kept;
    cohi_error_keep(&kept);
    if (atomic_load(&world->parted) == 0 && cohi_world_enter(world, call) == COH_OK) {
        coh_status status = part_and_leave(world, call);
        if (status != COH_BUSY)
            atomic_store(&world->parted, (int)status + 1);
    }
    (void)cohi_fail_again(&kept);
}

static coh_status finalize(coh_world *world)
{
    static const char call[] = "coh_finalize";
    if (!world)
        return COH_OK;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_FINALIZED)
        return COH_OK;
    if (status != COH_OK)
        return status;
    int parted = atomic_load(&world->parted);
    status = parted ? (coh_status)(parted - 1) : part_and_leave(world, call);
    if (status == COH_BUSY)
        return status;
    if (parted > 1)
        (void)cohi_world_fail(world, call, status,
                              "this rank parted from the others when the program ended the library "
                              "behind engine %s, and that failed: %s",
                              world->engine->name, coh_status_text(status));
    if (status == COH_OK)
        cohi_register_keep_alone(world);
    else
        cohi_register_abandon(world);
    if (status == COH_OK)
        status = cohi_race_verdict(world, call);
    cohi_error found;
    cohi_error_keep(&found);
    atomic_store(&world->slot->phase, COHI_PHASE_LEFT);
    cohi_world_dissolve(world);
    (void)cohi_fail_again(&found);
    return status;
}

coh_status coh_finalize(coh_world *world)
{
    int held = cohi_cancel_hold();
    cohi_error before; /* others may be gone before a word to them that does not matter any more */
    cohi_error_keep(&before);
    coh_status status = finalize(world);
    if (status == COH_OK)
        (void)cohi_fail_again(&before);
    cohi_cancel_release(held);
    return status;
}
