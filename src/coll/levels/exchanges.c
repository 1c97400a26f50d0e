/*
 * exchanges.c - collectives on two levels that move blocks and combine nothing. The blocks of a host go
 * between hosts as one.
 */
#include "coll/call/blocks.h"
#include "coll/levels/levels.h"
#include "coll/levels/packing.h"
#include "coll/message/messages.h"
#include "coll/message/pieces.h"

bool cohi_levels_apply(const cohi_call *call)
{
    const coh_team *team = call->team;
    return team->levels && team->levels->hosts < team->size;
}

static cohi_call part_on(const cohi_call *call, coh_team *level, coh_collective_kind kind)
{
    return cohi_part_of((cohi_call *)call, level, kind);
}

static cohi_call cut_between(const cohi_call *call, const cohi_packing *packing,
                             coh_collective_kind kind)
{
    cohi_call part = part_on(call, call->team->levels->bridge, kind);
    cohi_packing_cut_hosts(packing, &part);
    part.root = kind == COH_COLLECTIVE_ALL_GATHER ? 0 : call->team->levels->host_of[call->root];
    return part;
}

/* The blocks of this host's members, to `packed` of its lead. */
static coh_status collect_here(cohi_call *call, const cohi_packing *packing, char *packed, int lead)
{
    cohi_call part = part_on(call, call->team->levels->local, COH_COLLECTIVE_GATHER);
    cohi_packing_cut_local(packing, &part);
    part.root = lead;
    part.source = call->source;
    part.target = packed + packing->first * call->element;
    return cohi_part_run(&part, NULL);
}

/* ---- all_gather ---- */

/* Where the order by host is that of the target. */
static bool packs_in_target(const cohi_call *call)
{
    return !call->to.counts && !call->to.firsts && cohi_levels_are_runs(call->team);
}

size_t cohi_levels_all_gather_workspace(const cohi_call *call)
{
    cohi_packing packing = cohi_packing_of(call, &call->to);
    cohi_call between = cut_between(call, &packing, COH_COLLECTIVE_ALL_GATHER);
    size_t packed = packs_in_target(call) ? 0 : cohi_part_bytes(packing.total * call->element);
    return packed + cohi_part_workspace(&between);
}

coh_status cohi_levels_all_gather(cohi_call *call)
{
    const cohi_levels *levels = call->team->levels;
    cohi_packing packing = cohi_packing_of(call, &call->to);
    char *at = call->workspace, *packed = call->target;
    if (!packs_in_target(call))
        packed = cohi_part_take(&at, packing.total * call->element);
    coh_status status = collect_here(call, &packing, packed, 0);
    if (status == COH_OK && levels->local->index == 0) {
        cohi_call part = cut_between(call, &packing, COH_COLLECTIVE_ALL_GATHER);
        cohi_levels_bridge(call->team, 0, -1);
        part.source = packed + packing.first * call->element;
        part.target = packed;
        status = cohi_part_run(&part, at);
    }
    if (status != COH_OK)
        return status;
    cohi_call part = part_on(call, levels->local, COH_COLLECTIVE_BROADCAST);
    cohi_part_count(&part, packing.total);
    part.source = part.target = packed;
    status = cohi_part_run(&part, NULL);
    if (status == COH_OK && packed != call->target)
        cohi_packing_unpack(&packing, packed, call->target);
    return status;
}

/* ---- gather ---- */

size_t cohi_levels_gather_workspace(const cohi_call *call)
{
    cohi_packing packing = cohi_packing_of(call, &call->to);
    cohi_call between = cut_between(call, &packing, COH_COLLECTIVE_GATHER);
    return cohi_part_bytes(packing.total * call->element) + cohi_part_workspace(&between);
}

coh_status cohi_levels_gather(cohi_call *call)
{
    coh_team *team = call->team;
    cohi_packing packing = cohi_packing_of(call, &call->to);
    int lead = cohi_part_lead(call);
    char *at = call->workspace;
    char *packed = cohi_part_take(&at, packing.total * call->element);
    coh_status status = collect_here(call, &packing, packed, lead);
    if (status != COH_OK || team->levels->local->index != lead)
        return status;
    cohi_call part = cut_between(call, &packing, COH_COLLECTIVE_GATHER);
    cohi_levels_bridge(team, 0, call->root);
    part.source = packed + packing.first * call->element;
    part.target = packed;
    status = cohi_part_run(&part, at);
    if (status == COH_OK && team->index == call->root)
        cohi_packing_unpack(&packing, packed, call->target);
    return status;
}

/* ---- scatter ---- */

size_t cohi_levels_scatter_workspace(const cohi_call *call)
{
    cohi_packing packing = cohi_packing_of(call, &call->from);
    cohi_call between = cut_between(call, &packing, COH_COLLECTIVE_SCATTER);
    size_t all = call->team->index == call->root ? packing.total : 0;
    return cohi_part_bytes(all * call->element) + cohi_part_bytes(packing.here * call->element)
           + cohi_part_workspace(&between);
}

coh_status cohi_levels_scatter(cohi_call *call)
{
    coh_team *team = call->team;
    cohi_packing packing = cohi_packing_of(call, &call->from);
    bool root = team->index == call->root;
    int lead = cohi_part_lead(call);
    char *at = call->workspace;
    char *packed = cohi_part_take(&at, root ? packing.total * call->element : 0);
    char *blocks = cohi_part_take(&at, packing.here * call->element);
    coh_status status = COH_OK;
    if (root)
        cohi_packing_pack(&packing, packed, call->source);
    if (team->levels->local->index == lead) {
        cohi_call part = cut_between(call, &packing, COH_COLLECTIVE_SCATTER);
        cohi_levels_bridge(team, 0, call->root);
        part.source = packed;
        part.target = blocks;
        status = cohi_part_run(&part, at);
    }
    if (status != COH_OK)
        return status;
    cohi_call part = part_on(call, team->levels->local, COH_COLLECTIVE_SCATTER);
    cohi_packing_cut_local(&packing, &part);
    part.root = lead;
    part.source = blocks;
    part.target = call->target;
    return cohi_part_run(&part, NULL);
}

/* ---- broadcast ---- */

static cohi_call broadcast_on(const cohi_call *call, coh_team *level, int root)
{
    cohi_call part = part_on(call, level, COH_COLLECTIVE_BROADCAST);
    part.root = root;
    part.source = call->team->index == call->root ? call->source : call->target;
    part.target = call->target;
    cohi_part_count(&part, call->count);
    return part;
}

size_t cohi_levels_broadcast_workspace(const cohi_call *call)
{
    const cohi_levels *levels = call->team->levels;
    cohi_call between = broadcast_on(call, levels->bridge, levels->host_of[call->root]);
    return cohi_part_workspace(&between);
}

coh_status cohi_levels_broadcast(cohi_call *call)
{
    coh_team *team = call->team;
    const cohi_levels *levels = team->levels;
    int lead = cohi_part_lead(call);
    coh_status status = COH_OK;
    if (levels->local->index == lead) {
        cohi_call between = broadcast_on(call, levels->bridge, levels->host_of[call->root]);
        cohi_levels_bridge(team, 0, call->root);
        status = cohi_part_run(&between, call->workspace);
    }
    if (status != COH_OK)
        return status;
    cohi_call part = broadcast_on(call, levels->local, lead);
    return cohi_part_run(&part, NULL);
}

/* ---- all_to_all: inside by the mapping, between hosts each with each ---- */

size_t cohi_levels_all_to_all_workspace(const cohi_call *call)
{
    return cohi_pairs_workspace(call);
}

/* The blocks of this host's members, where they are in the call's buffers. */
static void cut_here(const cohi_call *call, cohi_call *part)
{
    const cohi_levels *levels = call->team->levels;
    int size = levels->local->size;
    size_t *from_counts = levels->scratch, *from_firsts = from_counts + size;
    size_t *to_counts = from_firsts + size, *to_firsts = to_counts + size;
    for (int at = 0; at < size; at++) {
        int member = cohi_levels_member(levels, levels->host, at);
        from_counts[at] = cohi_block_count(&call->from, member);
        from_firsts[at] = cohi_block_first(&call->from, member);
        to_counts[at] = cohi_block_count(&call->to, member);
        to_firsts[at] = cohi_block_first(&call->to, member);
    }
    bool own = call->from.counts != NULL;
    part->variable = own;
    part->count = own ? 0 : call->count;
    part->from =
        (cohi_call_blocks){part->count, own ? from_counts : NULL, from_firsts, call->from.stride};
    part->to = (cohi_call_blocks){part->count, own ? to_counts : NULL, to_firsts, call->to.stride};
}

coh_status cohi_levels_all_to_all(cohi_call *call)
{
    cohi_call part = part_on(call, call->team->levels->local, COH_COLLECTIVE_ALL_TO_ALL);
    cut_here(call, &part);
    part.source = call->source;
    part.target = call->target;
    coh_status status = cohi_part_run(&part, NULL);
    return status == COH_OK ? cohi_pairs_exchange(call) : status;
}
