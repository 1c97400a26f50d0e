#include "coll/run.h"

#include "coll/call/assemble.h"
#include "coll/call/blocks.h"
#include "coll/card.h"
#include "coll/check.h"
#include "coll/native.h"
#include "coll/select.h"
#include "core/team/enter.h"
#include "memory/scale.h"

/*
 * Whether this member puts something into a scratch: the counts of a variable all_to_all, or in one
 * shot what it gives that does not fit its post. Of variable blocks that goes by the longest, which
 * others may have. Stages are backed by the call that finds that it needs them (mapped/staged.c).
 */
static inline bool needs_scratch(const cohi_call *call)
{
    unsigned traits = call->algorithm->traits;
    if (traits & COHI_SHORT_IN_POST)
        return call->source_bytes > (call->variable ? 0 : COHI_POST_WIDE);
    return traits & COHI_MAPPED && call->variable && call->kind == COH_COLLECTIVE_ALL_TO_ALL;
}

/* Whether the scaled source can be made in the target, which is as long on each member. */
static bool scales_in_target(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_ALL_REDUCE || call->kind == COH_COLLECTIVE_SCAN;
}

/* Whether the scaled source is made here: the card does it by itself. */
static bool scales(const cohi_call *call)
{
    return call->scaled && call->algorithm != &cohi_card_algorithm;
}

/* Bytes of the workspace before the row's own, for the scaled source. */
static size_t scaled_room(const cohi_call *call)
{
    return scales(call) && !scales_in_target(call) ? cohi_part_bytes(call->source_bytes) : 0;
}

/* What the algorithm needs of this member. */
static coh_status provide(cohi_call *call)
{
    const cohi_algorithm *row = call->algorithm;
    size_t room = scaled_room(call);
    coh_status status = row->traits & COHI_NATIVE ? cohi_native_check(call) : COH_OK;
    if (COHI_UNLIKELY(status == COH_OK && (row->workspace || room > 0)))
        status = cohi_gear_workspace(call, room + (row->workspace ? row->workspace(call) : 0));
    return status == COH_OK && needs_scratch(call) ? cohi_gear_scratch(call) : status;
}

/* From here on the scaled source is the source. */
static void scale(cohi_call *call)
{
    char *scaled = scales_in_target(call) ? call->target : call->workspace;
    cohi_scale(call->dtype, scaled, call->source, call->scale, call->source_bytes / call->element);
    call->source = scaled;
    call->workspace += scaled_room(call);
}

/* Whether all that was found out and provided holds for the next call with the same arguments. The
 * arrays of counts are the caller's, and workspace may move. */
static bool is_repeatable(const cohi_call *call)
{
    return !call->variable && !call->apart && !call->own.function && !call->scaled && !call->group
           && call->from.stride == 1 && call->to.stride == 1
           && call->algorithm->traits & COHI_MAPPED;
}

static coh_status find_out(cohi_call *call)
{
    coh_status status = cohi_check(call);
    if (status == COH_OK)
        status = cohi_select(call);
    if (status == COH_OK)
        cohi_call_sign(call);
    return status;
}

/*
 * Of buffers that are in no cache the lines come while the call is prepared: the first as soon as
 * it is made (cohi_fetch_buffers), the others of a short one once its size is known. Two ranks, 8 B each in no cache, ns
 * without (with): all_reduce 780 (700), all_gather 720 (630), all_to_all 710 (625); with 512 B
 * all_to_all 1020 (940). From 1 KiB on it takes longer: 4 KiB all_reduce 2110 (2330).
 */
static inline void fetch_rest(const cohi_call *call)
{
    enum { FETCHED_MOST = 512 };
    if (call->bytes > FETCHED_MOST)
        return;
    for (size_t at = COHI_CACHE_LINE; at < FETCHED_MOST; at += COHI_CACHE_LINE) {
        if (at < call->source_bytes)
            __builtin_prefetch(call->source + at);
        if (at < call->target_bytes)
            __builtin_prefetch(call->target + at, 1);
    }
}

/* All that this member can find wrong by itself, and all that it needs: before it enters. */
static coh_status prepare(cohi_call *call)
{
    cohi_coll_gear *gear;
    coh_status status = cohi_gear_of(call->team, call->name, &gear);
    if (status == COH_OK)
        status = find_out(call);
    if (status != COH_OK)
        return status;
    fetch_rest(call);
    status = provide(call);
    if (status == COH_OK && is_repeatable(call))
        gear->last[call->kind] = *call;
    return status;
}

static coh_status carry_out(cohi_call *call)
{
    coh_status status = prepare(call);
    if (COHI_UNLIKELY(status == COH_OK && scales(call)))
        scale(call);
    bool mapped = status == COH_OK && call->algorithm->traits & COHI_MAPPED;
    if (COHI_UNLIKELY(!call->team->mapped))
        return cohi_run_apart(call, status);
    if (COHI_UNLIKELY(!mapped))
        status = cohi_assemble(call, status);
    return status == COH_OK ? call->algorithm->run(call) : status;
}

static coh_status enter(cohi_call *call)
{
    call->entry = cohi_entry_of(call->team, call->name, cohi_kind_op(call));
    return cohi_team_enter_waiting(&call->entry);
}

static coh_status run_here(cohi_call *call)
{
    coh_status status = enter(call);
    return status == COH_OK ? cohi_team_leave(call->team, carry_out(call)) : status;
}

coh_status cohi_run_now(cohi_call *call)
{
    if (COHI_UNLIKELY(cohi_card_has(call)) && !cohi_card_serves(call))
        return cohi_card_by_host(call, run_here);
    return run_here(call);
}

coh_status cohi_run_refused(cohi_call *call, coh_status refused)
{
    coh_status status = enter(call);
    if (status != COH_OK)
        return status;
    status = call->team->mapped ? cohi_assemble(call, refused) : cohi_run_apart(call, refused);
    return cohi_team_leave(call->team, status);
}

coh_status cohi_run(cohi_call *call)
{
    const coh_team *team = call->team;
    bool plain = team && team->open && cohi_world_plain(team->world);
    coh_status status = COHI_LIKELY(plain) ? COH_OK : cohi_team_gate(team, call->name);
    return status == COH_OK ? cohi_run_now(call) : status;
}

coh_status cohi_run_repeated(cohi_call *call)
{
    fetch_rest(call);
    return cohi_team_leave(call->team, call->algorithm->run(call));
}
