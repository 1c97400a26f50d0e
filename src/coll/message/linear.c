/*
 * linear.c - gather and scatter in which the root speaks with every member itself: all at the same
 * time, a piece of each at once.
 */
#include "coll/message/messages.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

size_t cohi_linear_workspace(const cohi_call *call)
{
    bool root = call->team->index == call->root;
    return root ? (size_t)call->team->size * sizeof(coh_request) : 0;
}

static const cohi_call_blocks *rooted_blocks(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_GATHER ? &call->to : &call->from;
}

static char *rooted_buffer(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_GATHER ? call->target : (char *)call->source;
}

static void start(cohi_call *call, coh_request *request, int member, size_t piece)
{
    const cohi_call_blocks *blocks = rooted_blocks(call);
    cohi_span whole = {cohi_block_at(call, blocks, member), cohi_block_bytes(call, blocks, member)};
    cohi_span part = cohi_span_piece(whole, piece, COHI_PIECE_BYTES);
    char *data = rooted_buffer(call) + part.first;
    if (call->kind == COH_COLLECTIVE_GATHER)
        cohi_exchange_receive(call, request, member, data, part.count);
    else
        cohi_exchange_send(call, request, member, data, part.count);
}

static coh_status exchange_piece(cohi_call *call, size_t piece)
{
    coh_request *requests = (coh_request *)call->workspace;
    int count = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t bytes = cohi_block_bytes(call, rooted_blocks(call), i);
        if (i != call->root && piece < cohi_pieces_of(bytes, COHI_PIECE_BYTES))
            start(call, &requests[count++], i, piece);
    }
    return cohi_exchange_finish_each(call, requests, count);
}

static coh_status exchange_all(cohi_call *call)
{
    size_t longest = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t bytes = cohi_block_bytes(call, rooted_blocks(call), i);
        longest = bytes > longest ? bytes : longest;
    }
    coh_status status = COH_OK;
    for (size_t i = 0; i < cohi_pieces_of(longest, COHI_PIECE_BYTES) && status == COH_OK; i++)
        status = exchange_piece(call, i);
    return status;
}

coh_status cohi_linear_gather(cohi_call *call)
{
    int index = call->team->index;
    size_t bytes = cohi_block_bytes(call, &call->to, index);
    if (index != call->root)
        return cohi_pieces_send(call, call->root, call->source, bytes);
    coh_status status = exchange_all(call);
    if (status == COH_OK)
        cohi_bring(call->target + cohi_block_at(call, &call->to, index), call->source, bytes);
    return status;
}

coh_status cohi_linear_scatter(cohi_call *call)
{
    int index = call->team->index;
    size_t bytes = cohi_block_bytes(call, &call->from, index);
    if (index != call->root)
        return cohi_pieces_receive(call, call->root, call->target, bytes);
    cohi_bring(call->target, call->source + cohi_block_at(call, &call->from, index), bytes);
    return exchange_all(call);
}
