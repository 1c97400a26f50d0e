/*
 * pair_exchange.c - all_to_all in which the members pair up anew in each step, and the two of a pair
 * exchange their blocks.
 *
 * That they do so with each other, not around a circle, is what makes it possible in place. One
 * member may work in place and another not: both go the same steps.
 */
#include "coll/call/assemble.h"
#include "coll/message/messages.h"
#include "coll/message/pieces.h"
#include "core/team/levels.h"
#include "core/team/mark.h"
#include "core/team/standing.h"

/* The parts of the workspace: what is packed to be sent, and what comes and is put elsewhere. */
struct pairs {
    cohi_call *call;
    size_t piece; /* elements */
    char *out, *in;
};

static size_t longest_block(const cohi_call *call)
{
    size_t longest = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t go = cohi_block_count(&call->from, i), come = cohi_block_count(&call->to, i);
        longest = go > longest ? go : longest;
        longest = come > longest ? come : longest;
    }
    return longest;
}

static size_t part_of(const cohi_call *call)
{
    size_t bytes = longest_block(call) * call->element;
    return cohi_part_bytes(bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES);
}

static bool packs(const cohi_call *call)
{
    return call->from.stride > 1;
}

/* What comes cannot go to its place at once: it is spread there, or is still to be sent from. */
static bool sets_aside(const cohi_call *call)
{
    return call->to.stride > 1 || call->target == call->source;
}

/* Requests, and what the others say that they send. */
static size_t compared_bytes(const cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    return cohi_part_bytes(2 * size * sizeof(coh_request)) + 2 * size * sizeof(uint64_t);
}

size_t cohi_pairs_workspace(const cohi_call *call)
{
    size_t compared = call->from.counts ? compared_bytes(call) : 0;
    size_t moved = part_of(call) * ((size_t)packs(call) + (size_t)sets_aside(call));
    return compared > moved ? compared : moved; /* one after the other */
}

/* Elements that are `stride` and `from_stride` elements apart. */
static void copy_strided(char *target, size_t stride, const char *source, size_t from_stride,
                         size_t count, size_t element)
{
    if (stride == 1 && from_stride == 1) {
        cohi_bring(target, source, count * element);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(target + i * stride * element, source + i * from_stride * element, element);
}

static size_t byte_of(const cohi_call *call, const cohi_call_blocks *blocks, int index,
                      size_t element)
{
    return (cohi_block_first(blocks, index) + element * blocks->stride) * call->element;
}

static coh_status exchange_piece(const struct pairs *pairs, int partner, size_t number)
{
    cohi_call *call = pairs->call;
    const cohi_call_blocks *from = &call->from, *to = &call->to;
    cohi_span go = {0, cohi_block_count(from, partner)}, come = {0, cohi_block_count(to, partner)};
    go = cohi_span_piece(go, number, pairs->piece);
    come = cohi_span_piece(come, number, pairs->piece);
    const char *out = call->source + byte_of(call, from, partner, go.first);
    char *target = call->target + byte_of(call, to, partner, come.first);
    char *in = sets_aside(call) ? pairs->in : target;
    if (packs(call)) {
        copy_strided(pairs->out, 1, out, from->stride, go.count, call->element);
        out = pairs->out;
    }
    coh_status status = cohi_exchange_both(call, partner, out, go.count * call->element, partner,
                                           in, come.count * call->element);
    if (status == COH_OK && in != target)
        copy_strided(target, to->stride, in, 1, come.count, call->element);
    return status;
}

static coh_status exchange(const struct pairs *pairs, int partner)
{
    const cohi_call *call = pairs->call;
    size_t go = cohi_block_count(&call->from, partner), come = cohi_block_count(&call->to, partner);
    size_t pieces = cohi_pieces_of(go > come ? go : come, pairs->piece);
    coh_status status = COH_OK;
    for (size_t i = 0; i < pieces && status == COH_OK; i++)
        status = exchange_piece(pairs, partner, i);
    return status;
}

static void keep_own(const cohi_call *call)
{
    int index = call->team->index;
    if (call->target != call->source)
        copy_strided(call->target + cohi_block_at(call, &call->to, index), call->to.stride,
                     call->source + cohi_block_at(call, &call->from, index), call->from.stride,
                     cohi_block_count(&call->from, index), call->element);
}

/* ---- the counts of the variable form ---- */

/* The others hear of it as of any call that differs; this member's error message has the counts. */
static coh_status refuse(cohi_call *call, int index, uint64_t sent)
{
    coh_team *team = call->team;
    (void)cohi_team_break(&call->entry, index, cohi_mark(team->epoch, call->entry.op));
    (void)cohi_world_fail(team->world, call->name, COH_MISMATCH,
                          "rank %d sends %llu elements where rank %d expects %zu",
                          team->ranks[index], (unsigned long long)sent, team->world->rank,
                          cohi_block_count(&call->to, index));
    cohi_fail_range(COH_MISMATCH, COH_NO_FACT, sent, cohi_block_count(&call->to, index));
    return cohi_fail_peer(COH_MISMATCH, team->ranks[index]);
}

/* Whether this member exchanges with that one by messages: not with itself, and by levels not with
 * those of its own host. */
static bool by_message(const cohi_call *call, int index)
{
    const coh_team *team = call->team;
    if (!(call->algorithm->traits & COHI_BY_LEVELS))
        return index != team->index;
    return team->levels->host_of[index] != team->levels->host;
}

/* Each tells each how many elements it sends: a message that is too long or that never comes would
 * be found too late. */
static coh_status compare_counts(cohi_call *call)
{
    int size = call->team->size, index = call->team->index, count = 0;
    char *at = call->workspace;
    coh_request *requests =
        (coh_request *)cohi_part_take(&at, 2 * (size_t)size * sizeof(coh_request));
    uint64_t *sent = (uint64_t *)at, *mine = sent + size;
    for (int k = 0; k < size; k++) {
        int from = (index + size - k) % size, to = (index + k) % size;
        mine[to] = cohi_block_count(&call->from, to);
        if (by_message(call, from))
            cohi_exchange_receive(call, &requests[count++], from, &sent[from], sizeof *sent);
        if (by_message(call, to))
            cohi_exchange_send(call, &requests[count++], to, &mine[to], sizeof *mine);
    }
    sent[index] = mine[index];
    coh_status status = cohi_exchange_finish(call, requests, count);
    for (int i = 0; i < size && status == COH_OK; i++)
        if ((i == index || by_message(call, i)) && sent[i] != cohi_block_count(&call->to, i))
            status = refuse(call, i, sent[i]);
    return status;
}

/* ---- the steps ---- */

/* In each step every member has one partner, or none: that is itself. */
static int partner_in(const coh_team *team, int step)
{
    bool power = (team->size & (team->size - 1)) == 0;
    return power ? team->index ^ step : (step - team->index + team->size) % team->size;
}

coh_status cohi_pairs_exchange(cohi_call *call)
{
    char *at = call->workspace;
    struct pairs pairs = {.call = call, .piece = COHI_CHUNK_BYTES / call->element};
    pairs.out = packs(call) ? cohi_part_take(&at, part_of(call)) : NULL;
    pairs.in = at;
    coh_status status = call->from.counts ? compare_counts(call) : COH_OK;
    for (int step = 0; step < call->team->size && status == COH_OK; step++) {
        int partner = partner_in(call->team, step);
        if (by_message(call, partner))
            status = exchange(&pairs, partner);
    }
    return status;
}

coh_status cohi_pairs_all_to_all(cohi_call *call)
{
    coh_status status = cohi_pairs_exchange(call);
    if (status == COH_OK)
        keep_own(call);
    return status;
}
