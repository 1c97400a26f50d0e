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

/* Two pieces are under way, so that the next is asked for while one comes. */
struct both {
    cohi_call *call;
    int to, from;
    const char *out;
    size_t out_bytes;
    char *in;
    size_t in_bytes;
    coh_request requests[2][2];
};

static void post_piece(struct both *both, size_t number)
{
    coh_request *requests = both->requests[number % 2];
    cohi_span go = cohi_span_piece((cohi_span){0, both->out_bytes}, number, COHI_PIECE_BYTES);
    cohi_span come = cohi_span_piece((cohi_span){0, both->in_bytes}, number, COHI_PIECE_BYTES);
    cohi_exchange_receive(both->call, &requests[0], both->from, both->in + come.first, come.count);
    cohi_exchange_send(both->call, &requests[1], both->to, both->out + go.first, go.count);
}

/* What was posted is waited for, or withdrawn, also when something has failed. */
coh_status cohi_pieces_both(cohi_call *call, int to, const char *out, size_t out_bytes, int from,
                            char *in, size_t in_bytes)
{
    size_t pieces = cohi_pieces_of(larger(out_bytes, in_bytes), COHI_PIECE_BYTES), posted = 0;
    struct both both = {.call = call,
                        .to = to,
                        .from = from,
                        .out = out,
                        .out_bytes = out_bytes,
                        .in = in,
                        .in_bytes = in_bytes};
    coh_status status = COH_OK;
    for (size_t done = 0; done < (status == COH_OK ? pieces : posted); done++) {
        for (; status == COH_OK && posted < pieces && posted < done + 2; posted++)
            post_piece(&both, posted);
        coh_status ended = cohi_exchange_finish(call, both.requests[done % 2], 2);
        status = status == COH_OK ? ended : status;
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

/* So many chunks are under way at most, one in each buffer: with 64 KiB each they take about as long
 * as an answer from the other host, and stay in the cache until they are combined. */
enum { UNDER_WAY = 4 };

struct stream {
    cohi_call *call;
    const cohi_flow *flow;
    size_t size;  /* of a partial element */
    size_t chunk; /* elements */
    char *buffers;
    size_t apart; /* from one of them to the next */
    coh_request requests[UNDER_WAY][2];
};

static size_t buffer_bytes(const cohi_call *call, size_t in_count)
{
    size_t bytes = in_count * cohi_partial_size(call);
    return cohi_part_bytes(bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES);
}

size_t cohi_flow_bytes(const cohi_call *call, size_t in_count)
{
    size_t chunks = cohi_pieces_of(in_count, COHI_CHUNK_BYTES / cohi_partial_size(call));
    return (chunks < UNDER_WAY ? chunks : UNDER_WAY) * buffer_bytes(call, in_count);
}

static char *buffer_of(const struct stream *stream, size_t number)
{
    return stream->buffers + number % UNDER_WAY * stream->apart;
}

static void post(struct stream *stream, size_t number)
{
    const cohi_flow *flow = stream->flow;
    coh_request *requests = stream->requests[number % UNDER_WAY];
    cohi_span come = cohi_span_piece((cohi_span){0, flow->in_count}, number, stream->chunk);
    cohi_span go = cohi_span_piece((cohi_span){0, flow->out_count}, number, stream->chunk);
    cohi_exchange_receive(stream->call, &requests[0], flow->from, buffer_of(stream, number),
                          come.count * stream->size);
    cohi_exchange_send(stream->call, &requests[1], flow->to, flow->out + go.first * stream->size,
                       go.count * stream->size);
}

static void combine(const struct stream *stream, size_t number)
{
    const cohi_flow *flow = stream->flow;
    cohi_span come = cohi_span_piece((cohi_span){0, flow->in_count}, number, stream->chunk);
    char *into = flow->into + come.first * stream->size;
    const char *in = buffer_of(stream, number);
    cohi_partial_combine(stream->call, into, flow->in_first ? in : into, flow->in_first ? into : in,
                         come.count);
}

coh_status cohi_flow_run(cohi_call *call, const cohi_flow *flow, char *buffers)
{
    size_t size = cohi_partial_size(call), posted = 0;
    struct stream stream = {.call = call,
                            .flow = flow,
                            .size = size,
                            .chunk = COHI_CHUNK_BYTES / size,
                            .buffers = buffers,
                            .apart = buffer_bytes(call, flow->in_count)};
    size_t chunks = cohi_pieces_of(larger(flow->in_count, flow->out_count), stream.chunk);
    coh_status status = COH_OK;
    for (size_t done = 0; done < (status == COH_OK ? chunks : posted); done++) {
        for (; status == COH_OK && posted < chunks && posted < done + UNDER_WAY; posted++)
            post(&stream, posted);
        coh_status ended = cohi_exchange_finish(call, stream.requests[done % UNDER_WAY], 2);
        status = status == COH_OK ? ended : status;
        if (status == COH_OK)
            combine(&stream, done);
    }
    return status;
}
