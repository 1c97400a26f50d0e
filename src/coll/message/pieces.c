#include "coll/message/pieces.h"

#include "coll/message/accumulate.h"
#include "core/team/team.h"

cohi_span cohi_shard(const cohi_call *call, int index)
{
    if (call->kind != COH_COLLECTIVE_REDUCE_SCATTER && call->kind != COH_COLLECTIVE_ALL_GATHER)
        return cohi_slice(call->count, call->team->size, index);
    const cohi_call_blocks *blocks =
        call->kind == COH_COLLECTIVE_ALL_GATHER ? &call->to : &call->from;
    return (cohi_span){cohi_block_first(blocks, index), cohi_block_count(blocks, index)};
}

size_t cohi_shard_longest(const cohi_call *call)
{
    size_t longest = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t count = cohi_shard(call, i).count;
        longest = count > longest ? count : longest;
    }
    return longest;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

coh_status cohi_pieces_both(cohi_call *call, int to, const char *out, size_t out_bytes, int from,
                            char *in, size_t in_bytes)
{
    size_t pieces = cohi_pieces_of(larger(out_bytes, in_bytes), COHI_PIECE_BYTES);
    coh_status status = COH_OK;
    for (size_t i = 0; i < pieces && status == COH_OK; i++) {
        cohi_span go = cohi_span_piece((cohi_span){0, out_bytes}, i, COHI_PIECE_BYTES);
        cohi_span come = cohi_span_piece((cohi_span){0, in_bytes}, i, COHI_PIECE_BYTES);
        status = cohi_exchange_both(call, to, out + go.first, go.count, from, in + come.first,
                                    come.count);
    }
    return status;
}

coh_status cohi_pieces_send(cohi_call *call, int to, const char *out, size_t bytes)
{
    return cohi_pieces_both(call, to, out, bytes, to, NULL, 0);
}

coh_status cohi_pieces_receive(cohi_call *call, int from, char *in, size_t bytes)
{
    return cohi_pieces_both(call, from, NULL, 0, from, in, bytes);
}

/* ---- combining what comes ---- */

/* Two chunks are under way at most, one in each buffer. */
struct stream {
    cohi_call *call;
    const cohi_flow *flow;
    size_t size;  /* of a partial element */
    size_t chunk; /* elements */
    char *buffers[2];
    coh_request requests[2][2];
};

size_t cohi_flow_bytes(const cohi_call *call, size_t in_count)
{
    size_t bytes = in_count * cohi_partial_size(call);
    return 2 * cohi_part_bytes(bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES);
}

static void post(struct stream *stream, size_t number)
{
    const cohi_flow *flow = stream->flow;
    coh_request *requests = stream->requests[number % 2];
    cohi_span come = cohi_span_piece((cohi_span){0, flow->in_count}, number, stream->chunk);
    cohi_span go = cohi_span_piece((cohi_span){0, flow->out_count}, number, stream->chunk);
    cohi_exchange_receive(stream->call, &requests[0], flow->from, stream->buffers[number % 2],
                          come.count * stream->size);
    cohi_exchange_send(stream->call, &requests[1], flow->to, flow->out + go.first * stream->size,
                       go.count * stream->size);
}

static void combine(const struct stream *stream, size_t number)
{
    const cohi_flow *flow = stream->flow;
    cohi_span come = cohi_span_piece((cohi_span){0, flow->in_count}, number, stream->chunk);
    char *into = flow->into + come.first * stream->size;
    const char *in = stream->buffers[number % 2];
    cohi_partial_combine(stream->call, into, flow->in_first ? in : into, flow->in_first ? into : in,
                         come.count);
}

coh_status cohi_flow_run(cohi_call *call, const cohi_flow *flow, char *buffers)
{
    size_t size = cohi_partial_size(call), half = cohi_flow_bytes(call, flow->in_count) / 2;
    struct stream stream = {.call = call,
                            .flow = flow,
                            .size = size,
                            .chunk = COHI_CHUNK_BYTES / size,
                            .buffers = {buffers, buffers + half}};
    size_t chunks = cohi_pieces_of(larger(flow->in_count, flow->out_count), stream.chunk);
    coh_status status = COH_OK;
    if (chunks > 0)
        post(&stream, 0);
    for (size_t i = 0; i < chunks && status == COH_OK; i++) {
        status = cohi_exchange_finish(call, stream.requests[i % 2], 2);
        if (status == COH_OK && i + 1 < chunks)
            post(&stream, i + 1);
        if (status == COH_OK)
            combine(&stream, i);
    }
    return status;
}
