/*
 * reductions.c - all_reduce, reduce and reduce_scatter on two levels: each host combines what its
 * members have, in their order, and the hosts combine that.
 *
 * All of it goes as results on their way (coll/message/accumulate.h), so that there is one rounding.
 * Until the hosts have combined something of all of them, no target is touched.
 */
#include "coll/call/blocks.h"
#include "coll/levels/levels.h"
#include "coll/levels/packing.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"

static cohi_call partials(const cohi_call *call, coh_team *level, coh_collective_kind kind,
                          size_t count)
{
    cohi_call part = cohi_part_of_partials((cohi_call *)call, level, kind);
    cohi_part_count(&part, count);
    return part;
}

static size_t partial_bytes(const cohi_call *call, size_t count)
{
    return cohi_part_bytes(count * cohi_partial_size(call));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* This member's elements as a partial: those of the source itself, or in `room`. */
static const char *load(const cohi_call *call, char *room, cohi_span span)
{
    const char *source = call->source + span.first * call->element;
    if (cohi_partial_is_source(call))
        return source;
    cohi_partial_load(call, room, source, span.count);
    return room;
}

static cohi_span whole_of(const cohi_call *call)
{
    return (cohi_span){0, call->count};
}

static size_t load_bytes(const cohi_call *call, size_t count)
{
    return cohi_partial_is_source(call) ? 0 : partial_bytes(call, count);
}

/* ---- all_reduce ---- */

/*
 * From so many bytes on every member of a host, up to as many as the smallest host has, reduces a share
 * with its counterparts. Below, one message a host is faster than several: on loopback, where one costs
 * some 15 us and a byte 0.3 ns, 32 KiB take as long to send as to announce.
 */
enum { SHARES_FROM = 32 << 10 };

static bool goes_by_shares(const cohi_call *call)
{
    return call->bytes >= SHARES_FROM && cohi_levels_narrowest(call->team->levels) > 1;
}

static size_t whole_workspace(const cohi_call *call)
{
    cohi_call between =
        partials(call, call->team->levels->bridge, COH_COLLECTIVE_ALL_REDUCE, call->count);
    return partial_bytes(call, call->count) + load_bytes(call, call->count)
           + cohi_part_workspace(&between);
}

/*
 * Bytes of a share that are reduced here, between hosts and gathered before the next are: they stay in the cache of the
 * core that has them. Not fewer, since each time the hosts wait for each other. 16 MiB (and 1) of 2 x 8 ranks on 16 cores, all
 * at once / 1 MiB / 512 / 256 / 128 KiB: 7.9 (0.43) / 7.2 (0.40) / 5.9 (0.45) / 5.7 (0.38) / 8.8 ms (0.55) (Sapphire
 * Rapids, TCP on the loopback).
 */
enum { ROUND_BYTES = 256 << 10 };

/* The elements of every round but the last, which may have some fewer. */
static size_t round_count(const cohi_call *call)
{
    size_t shares = (size_t)cohi_levels_narrowest(call->team->levels);
    size_t most = shares * (ROUND_BYTES / cohi_partial_size(call));
    size_t rounds = cohi_pieces_of(call->count, most);
    return rounds > 0 ? cohi_pieces_of(call->count, rounds) : 0;
}

/* The share of member `at` of the host in `count` elements; of a member without one it is empty. */
static cohi_span share_of(const cohi_call *call, size_t count, int at)
{
    int shares = cohi_levels_narrowest(call->team->levels);
    return at < shares ? cohi_slice(count, shares, at) : (cohi_span){count, 0};
}

static size_t bridge_workspace(const cohi_call *call, size_t share)
{
    cohi_call between =
        partials(call, call->team->levels->bridge, COH_COLLECTIVE_ALL_REDUCE, share);
    return cohi_part_workspace(&between);
}

/* Shares differ in length, and may go by different rows. */
static size_t round_workspace(const cohi_call *call, size_t count)
{
    int last = cohi_levels_narrowest(call->team->levels) - 1;
    size_t first = share_of(call, count, 0).count;
    return partial_bytes(call, first) + load_bytes(call, count)
           + larger(bridge_workspace(call, first),
                    bridge_workspace(call, share_of(call, count, last).count));
}

/* And so may the last round. */
static size_t shares_workspace(const cohi_call *call)
{
    size_t count = round_count(call);
    return larger(round_workspace(call, count), round_workspace(call, call->count % count));
}

size_t cohi_levels_all_reduce_workspace(const cohi_call *call)
{
    return goes_by_shares(call) ? shares_workspace(call) : whole_workspace(call);
}

/* The leader's target, to the other members of the host. */
static coh_status spread(cohi_call *call, int lead)
{
    cohi_call part = cohi_part_of(call, call->team->levels->local, COH_COLLECTIVE_BROADCAST);
    part.root = lead;
    part.source = part.target = call->target;
    cohi_part_count(&part, call->count);
    return cohi_part_run(&part, NULL);
}

/* What the members of the host have, into `sum` of member `lead`. */
static coh_status combine_here(cohi_call *call, const char *source, char *sum, size_t count,
                               int lead)
{
    cohi_call part = partials(call, call->team->levels->local, COH_COLLECTIVE_REDUCE, count);
    part.root = lead;
    part.source = source;
    part.target = sum;
    return cohi_part_run(&part, NULL);
}

static coh_status reduce_whole(cohi_call *call)
{
    const cohi_levels *levels = call->team->levels;
    bool leads = levels->local->index == 0;
    char *at = call->workspace;
    char *sum = cohi_part_take(&at, call->count * cohi_partial_size(call));
    const char *source = load(call, at, whole_of(call));
    at += load_bytes(call, call->count);
    coh_status status = combine_here(call, source, sum, call->count, 0);
    if (status == COH_OK && leads) {
        cohi_call part = partials(call, levels->bridge, COH_COLLECTIVE_ALL_REDUCE, call->count);
        cohi_levels_bridge(call->team, 0, -1);
        part.source = part.target = sum;
        status = cohi_part_run(&part, at);
        if (status == COH_OK)
            cohi_partial_store(call, call->target, sum, call->count);
    }
    return status == COH_OK ? spread(call, 0) : status;
}

/* The blocks of members that have a share; the others' are empty. */
static void cut_shares(const cohi_call *call, size_t count, cohi_call *part)
{
    const cohi_levels *levels = call->team->levels;
    size_t *counts = levels->scratch, *firsts = counts + levels->local->size;
    for (int i = 0; i < levels->local->size; i++) {
        cohi_span share = share_of(call, count, i);
        counts[i] = share.count;
        firsts[i] = share.first;
    }
    cohi_part_blocks(part, counts, firsts);
}

static coh_status reduce_share(cohi_call *call, char *sum, size_t count, char *target,
                               char *workspace)
{
    coh_team *team = call->team;
    cohi_call part = partials(call, team->levels->bridge, COH_COLLECTIVE_ALL_REDUCE, count);
    if (count == 0)
        return COH_OK;
    cohi_levels_bridge(team, team->levels->local->index, -1);
    part.source = part.target = sum;
    coh_status status = cohi_part_run(&part, workspace);
    if (status == COH_OK)
        cohi_partial_store(call, target, sum, count);
    return status;
}

static coh_status reduce_round(cohi_call *call, cohi_span span)
{
    coh_team *local = call->team->levels->local;
    cohi_span share = share_of(call, span.count, local->index);
    char *at = call->workspace, *target = call->target + span.first * call->element;
    char *sum = cohi_part_take(&at, share_of(call, span.count, 0).count * cohi_partial_size(call));
    cohi_call scatter = partials(call, local, COH_COLLECTIVE_REDUCE_SCATTER, 0);
    cut_shares(call, span.count, &scatter);
    scatter.source = load(call, at, span);
    scatter.target = sum;
    at += load_bytes(call, span.count);
    char *own = target + share.first * call->element;
    coh_status status = cohi_part_run(&scatter, NULL);
    if (status == COH_OK)
        status = reduce_share(call, sum, share.count, own, at);
    if (status != COH_OK)
        return status;
    cohi_call gather = cohi_part_of(call, local, COH_COLLECTIVE_ALL_GATHER);
    cut_shares(call, span.count, &gather);
    gather.source = own;
    gather.target = target;
    return cohi_part_run(&gather, NULL);
}

static coh_status reduce_by_shares(cohi_call *call)
{
    size_t most = round_count(call);
    coh_status status = COH_OK;
    for (size_t first = 0; first < call->count && status == COH_OK; first += most) {
        size_t left = call->count - first;
        status = reduce_round(call, (cohi_span){first, left < most ? left : most});
    }
    return status;
}

coh_status cohi_levels_all_reduce(cohi_call *call)
{
    return goes_by_shares(call) ? reduce_by_shares(call) : reduce_whole(call);
}

/* ---- reduce ---- */

size_t cohi_levels_reduce_workspace(const cohi_call *call)
{
    cohi_call between =
        partials(call, call->team->levels->bridge, COH_COLLECTIVE_REDUCE, call->count);
    between.root = call->team->levels->host_of[call->root];
    return partial_bytes(call, call->count) + load_bytes(call, call->count)
           + cohi_part_workspace(&between);
}

coh_status cohi_levels_reduce(cohi_call *call)
{
    coh_team *team = call->team;
    int lead = cohi_part_lead(call);
    char *at = call->workspace;
    char *sum = cohi_part_take(&at, call->count * cohi_partial_size(call));
    const char *source = load(call, at, whole_of(call));
    at += load_bytes(call, call->count);
    coh_status status = combine_here(call, source, sum, call->count, lead);
    if (status != COH_OK || team->levels->local->index != lead)
        return status;
    cohi_call part = partials(call, team->levels->bridge, COH_COLLECTIVE_REDUCE, call->count);
    cohi_levels_bridge(team, 0, call->root);
    part.root = team->levels->host_of[call->root];
    part.source = part.target = sum;
    status = cohi_part_run(&part, at);
    if (status == COH_OK && team->index == call->root)
        cohi_partial_store(call, call->target, sum, call->count);
    return status;
}

/* ---- reduce_scatter ---- */

static cohi_call scatter_between(const cohi_call *call, const cohi_packing *packing)
{
    cohi_call part = partials(call, call->team->levels->bridge, COH_COLLECTIVE_REDUCE_SCATTER, 0);
    cohi_packing_cut_hosts(packing, &part);
    return part;
}

size_t cohi_levels_reduce_scatter_workspace(const cohi_call *call)
{
    cohi_packing packing = cohi_packing_of(call, &call->from);
    cohi_call between = scatter_between(call, &packing);
    return 2 * partial_bytes(call, packing.total) + larger(partial_bytes(call, packing.here), 1)
           + cohi_part_workspace(&between);
}

/* Each block, by host, as a partial. */
static void load_packed(const cohi_packing *packing, char *packed)
{
    const cohi_call *call = packing->call;
    size_t first = 0, size = cohi_partial_size(call);
    for (int at = 0; at < call->team->size; at++) {
        int member;
        size_t next = cohi_packing_next(packing, at, first, &member);
        cohi_partial_load(call, packed + first * size,
                          call->source + cohi_block_at(call, packing->blocks, member),
                          next - first);
        first = next;
    }
}

/* The host's blocks of the result, from its leader to those whose they are. */
static coh_status hand_out(cohi_call *call, const cohi_packing *packing, const char *blocks)
{
    cohi_call part = cohi_part_of(call, call->team->levels->local, COH_COLLECTIVE_SCATTER);
    cohi_packing_cut_local(packing, &part);
    part.source = blocks;
    part.target = call->target;
    return cohi_part_run(&part, NULL);
}

coh_status cohi_levels_reduce_scatter(cohi_call *call)
{
    const cohi_levels *levels = call->team->levels;
    cohi_packing packing = cohi_packing_of(call, &call->from);
    size_t size = cohi_partial_size(call);
    char *at = call->workspace;
    char *mine = cohi_part_take(&at, packing.total * size);
    char *sum = cohi_part_take(&at, packing.total * size);
    char *blocks = cohi_part_take(&at, packing.here * size);
    load_packed(&packing, mine);
    coh_status status = combine_here(call, mine, sum, packing.total, 0);
    if (status == COH_OK && levels->local->index == 0) {
        cohi_call part = scatter_between(call, &packing);
        cohi_levels_bridge(call->team, 0, -1);
        part.source = sum;
        part.target = blocks;
        status = cohi_part_run(&part, at);
        if (status == COH_OK)
            cohi_partial_store(call, mine, blocks, packing.here);
    }
    return status == COH_OK ? hand_out(call, &packing, mine) : status;
}
