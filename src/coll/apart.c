/*
 * apart.c - a call in a team whose members are not all mapped: how it begins and ends, whatever the
 * algorithm (core/team/apart.h).
 */
#include "coll/call/assemble.h"
#include "coll/run.h"
#include "core/message/match.h"
#include "core/team/apart.h"
#include "core/team/levels.h"
#include "core/team/standing.h"

/* Whether a member that is through has something that only all of them together can give: it knows
 * that all are in the same call. */
static bool depends_on_all(const cohi_call *call)
{
    bool from_all =
        call->kind == COH_COLLECTIVE_ALL_REDUCE || call->kind == COH_COLLECTIVE_REDUCE_SCATTER
        || call->kind == COH_COLLECTIVE_ALL_GATHER || call->kind == COH_COLLECTIVE_ALL_TO_ALL;
    return from_all && !call->variable && call->count > 0;
}

/* A failure that the others have to hear of from this member, since nothing else will tell them. */
static bool is_own(const cohi_call *call, coh_status status)
{
    bool known = status == COH_OK || status == COH_MISMATCH || status == COH_PEER_LOST
                 || status == COH_STALLED || status == COH_TIMED_OUT || status == COH_TRANSPORT;
    return !known && call->team->heard != call->team->epoch;
}

/* Tells the others of a failure of this member. */
static coh_status tell_failure(cohi_call *call, coh_status failed)
{
    cohi_error kept;
    cohi_error_keep(&kept);
    cohi_post_change(call, failed);
    (void)cohi_apart_tell_refusal(&call->entry);
    (void)cohi_fail_again(&kept);
    return failed;
}

/* The end of a call that some member was refused in: all know it when the leaders have met. */
static coh_status end_refused(cohi_call *call, coh_status refused, bool told)
{
    coh_team *team = call->team;
    cohi_error kept;
    cohi_error_keep(&kept);
    bool any = true;
    coh_status status = told ? cohi_apart_tell_refusal(&call->entry) : COH_OK;
    if (status == COH_OK)
        status = cohi_apart_meet(&call->entry, &any);
    if (status != COH_OK)
        return status;
    cohi_match_discard_calls(team->world->mailbox, team, team->epoch);
    team->refused = true;
    team->settled = team->epoch;
    if (refused == COH_OK)
        return cohi_apart_explain_refusal(&call->entry);
    (void)cohi_fail_again(&kept);
    return refused;
}

static coh_status end(cohi_call *call)
{
    coh_team *team = call->team;
    bool any = false;
    coh_status status = depends_on_all(call) ? COH_OK : cohi_apart_meet(&call->entry, &any);
    if (status == COH_OK && any) {
        team->settled = team->epoch;
        return cohi_apart_explain_refusal(&call->entry);
    }
    if (status == COH_OK)
        team->settled = team->epoch;
    return status;
}

/*
 * A library's own collective hangs where calls differ, so that all meet before it. Then nothing is left to find
 * out at its end; but where it fails on one member alone, the others wait in it until they hear of that. Those that are
 * through already hear it from this member in their next one (cohi_native_check).
 */
static coh_status run_native(cohi_call *call)
{
    coh_team *team = call->team;
    bool any = false;
    coh_status status = cohi_apart_meet(&call->entry, &any);
    if (status == COH_OK)
        status = cohi_apart_release(&call->entry, &any);
    if (status != COH_OK)
        return status;
    team->settled = team->epoch;
    if (any)
        return cohi_apart_explain_refusal(&call->entry);
    status = call->algorithm->run(call);
    bool alone = status == COH_TRANSPORT || is_own(call, status);
    return alone && team->heard != team->epoch ? tell_failure(call, status) : status;
}

coh_status cohi_run_apart(cohi_call *call, coh_status refused)
{
    cohi_error kept; /* this member's own refusal, while waiting may set another error */
    if (refused != COH_OK)
        cohi_error_keep(&kept);
    bool here = false;
    if (call->team->refused)
        cohi_match_discard_calls(call->team->world->mailbox, call->team, call->team->epoch - 1);
    cohi_post_apart(call, refused);
    coh_status status = cohi_apart_gather(&call->entry, &here);
    if (status != COH_OK)
        return status;
    if (refused != COH_OK) {
        (void)cohi_fail_again(&kept);
        return end_refused(call, refused, true);
    }
    if (here)
        return end_refused(call, COH_OK, false);
    if (call->algorithm->traits & COHI_NATIVE)
        return run_native(call);
    status = cohi_levels_enter(call);
    if (status == COH_OK)
        status = call->algorithm->run(call);
    if (status == COH_OK)
        return end(call);
    bool own = is_own(call, status);
    if (own)
        cohi_post_change(call, status);
    if (own || call->team->heard == call->team->epoch)
        return end_refused(call, status, own);
    return status;
}
