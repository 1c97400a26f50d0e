/*
 * ordered.c - reductions on two levels in the order of the members, with one rounding, whatever host
 * they are on: for functions that need not commute, for results whose bits must not depend on the
 * algorithm, and for scans. What the members have is gathered as it is, a chunk at a time, and combined
 * where it is needed.
 */
#include "coll/call/blocks.h"
#include "coll/levels/levels.h"
#include "coll/levels/part.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"

#include <string.h>

/* Bytes of a chunk of all members together: a few messages' worth, and still in a cache. */
enum { GATHERED_BYTES = 1 << 20 };

static size_t chunk_of(const cohi_call *call)
{
    size_t each = GATHERED_BYTES / ((size_t)call->team->size * call->element);
    size_t chunk = each > 0 ? each : 1;
    return call->count < chunk ? call->count : chunk;
}

/* The gathering of one chunk, as a call on the same team. */
static cohi_call gathering(const cohi_call *call, size_t count)
{
    bool rooted = call->kind == COH_COLLECTIVE_REDUCE;
    cohi_call gather = *call;
    gather.whole = (cohi_call *)call;
    gather.kind = rooted ? COH_COLLECTIVE_GATHER : COH_COLLECTIVE_ALL_GATHER;
    gather.count = gather.from.count = gather.to.count = count;
    return gather;
}

static size_t gathering_workspace(const cohi_call *gather)
{
    return gather->kind == COH_COLLECTIVE_GATHER ? cohi_levels_gather_workspace(gather)
                                                 : cohi_levels_all_gather_workspace(gather);
}

/* Of the longest chunk and of the last: their rows may be others. */
static size_t gatherings_workspace(const cohi_call *call)
{
    size_t chunk = chunk_of(call), rest = chunk > 0 ? call->count % chunk : 0;
    cohi_call longest = gathering(call, chunk), last = gathering(call, rest);
    size_t most = gathering_workspace(&longest), least = gathering_workspace(&last);
    return most > least ? most : least;
}

struct work {
    const void **sources; /* [size] */
    char *chunk;          /* [size] blocks */
    char *workspace;      /* of the gathering */
};

static struct work lay_out(const cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    char *at = call->workspace;
    struct work work = {.sources = (const void **)cohi_part_take(&at, size * sizeof(void *))};
    work.chunk = cohi_part_take(&at, size * chunk_of(call) * call->element);
    work.workspace = at;
    return work;
}

size_t cohi_ordered_workspace(const cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    return cohi_part_bytes(size * sizeof(void *))
           + cohi_part_bytes(size * chunk_of(call) * call->element) + gatherings_workspace(call);
}

/* Combines the first `members` of the chunk's blocks. */
static void fold(const cohi_call *call, const struct work *work, char *target, int members,
                 size_t count)
{
    for (int i = 0; i < members; i++)
        work->sources[i] = work->chunk + (size_t)i * count * call->element;
    if (members == 0)
        cohi_fill_identity(call, target, count);
    else
        cohi_partial_reduce(call, target, work->sources, members, count);
}

/* How many members' elements this one combines. */
static int combined(const cohi_call *call)
{
    const coh_team *team = call->team;
    if (call->kind == COH_COLLECTIVE_SCAN)
        return team->index + (call->exclusive ? 0 : 1);
    return team->size;
}

static coh_status reduce_chunk(cohi_call *call, const struct work *work, cohi_span span)
{
    cohi_call gather = gathering(call, span.count);
    bool rooted = call->kind == COH_COLLECTIVE_REDUCE;
    gather.source = call->source + span.first * call->element;
    gather.target = work->chunk;
    gather.workspace = work->workspace;
    coh_status status = rooted ? cohi_levels_gather(&gather) : cohi_levels_all_gather(&gather);
    if (status == COH_OK && (!rooted || call->team->index == call->root))
        fold(call, work, call->target + span.first * call->element, combined(call), span.count);
    return status;
}

static coh_status reduce_chunks(cohi_call *call)
{
    const struct work work = lay_out(call);
    size_t chunk = chunk_of(call), chunks = chunk > 0 ? cohi_pieces_of(call->count, chunk) : 0;
    coh_status status = COH_OK;
    for (size_t i = 0; i < chunks && status == COH_OK; i++)
        status = reduce_chunk(call, &work, cohi_span_piece((cohi_span){0, call->count}, i, chunk));
    return status;
}

coh_status cohi_ordered_all_reduce(cohi_call *call)
{
    return reduce_chunks(call);
}

coh_status cohi_ordered_reduce(cohi_call *call)
{
    return reduce_chunks(call);
}

coh_status cohi_ordered_scan(cohi_call *call)
{
    return reduce_chunks(call);
}

/* ---- reduce_scatter: each gets its block of all others, and combines them ---- */

/* The exchange, as a call on the same team; `counts` and `firsts` are of what comes. */
static cohi_call exchange_of(const cohi_call *call, size_t *counts, size_t *firsts)
{
    cohi_call exchange = *call;
    size_t block = cohi_block_count(&call->from, call->team->index);
    exchange.whole = (cohi_call *)call;
    exchange.kind = COH_COLLECTIVE_ALL_TO_ALL;
    for (int i = 0; counts && i < call->team->size; i++) {
        counts[i] = block;
        firsts[i] = (size_t)i * block;
    }
    exchange.to = (cohi_call_blocks){.count = call->from.count, .stride = 1};
    if (call->from.counts) {
        exchange.to.counts = counts;
        exchange.to.firsts = firsts;
    }
    return exchange;
}

size_t cohi_ordered_reduce_scatter_workspace(const cohi_call *call)
{
    size_t size = (size_t)call->team->size, longest = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t count = cohi_block_count(&call->from, i);
        longest = count > longest ? count : longest;
    }
    cohi_call exchange = exchange_of(call, NULL, NULL);
    exchange.to = exchange.from; /* as long as any that can come */
    exchange.target = NULL;
    return cohi_part_bytes(size * sizeof(void *)) + 2 * cohi_part_bytes(size * sizeof(size_t))
           + cohi_part_bytes(size * longest * call->element)
           + cohi_levels_all_to_all_workspace(&exchange);
}

coh_status cohi_ordered_reduce_scatter(cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    size_t block = cohi_block_count(&call->from, call->team->index);
    char *at = call->workspace;
    struct work work = {.sources = (const void **)cohi_part_take(&at, size * sizeof(void *))};
    size_t *counts = (size_t *)cohi_part_take(&at, size * sizeof(size_t));
    size_t *firsts = (size_t *)cohi_part_take(&at, size * sizeof(size_t));
    cohi_call exchange = exchange_of(call, counts, firsts);
    work.chunk = cohi_part_take(&at, size * block * call->element);
    exchange.target = work.chunk;
    exchange.workspace = at;
    coh_status status = cohi_levels_all_to_all(&exchange);
    if (status == COH_OK)
        fold(call, &work, call->target, call->team->size, block);
    return status;
}
