#include "coll/message/pieces.h"

#include "base/error.h"
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

size_t cohi_chunk_length(const cohi_call *call, size_t count, size_t size)
{
    size_t piece = call->team->world->mailbox->piece / COHI_ALIGN * COHI_ALIGN;
    size_t most = larger(piece, COHI_CHUNK_BYTES); /* what is longer than a frame is asked for */
    bool is_short = count * size <= 2 * COHI_CHUNK_BYTES;
    return is_short ? cohi_piece_length(count, size, COHI_CHUNK_BYTES / size) : most / size;
}

/* So many pieces, or chunks, are under way at most: the next is asked for, or comes, while one does. */
enum { PIECES_UNDER_WAY = 2, UNDER_WAY = 4 };

/* One direction of an exchange. */
struct half {
    int peer;
    char *data;
    size_t bytes;
    size_t apart; /* from one piece to the next; both sides must take the same */
};

static cohi_span piece_of(const struct half *half, size_t number)
{
    return cohi_span_piece((cohi_span){0, half->bytes}, number, half->apart);
}

static void post_piece(cohi_call *call, const struct half *go, const struct half *come,
                       size_t number, coh_request *requests)
{
    cohi_span out = piece_of(go, number), in = piece_of(come, number);
    cohi_exchange_receive(call, &requests[0], come->peer, come->data + in.first, in.count);
    cohi_exchange_send(call, &requests[1], go->peer, go->data + out.first, out.count);
}

/* What was posted is waited for, or withdrawn, also when something has failed. */
static coh_status exchange(cohi_call *call, const struct half *go, const struct half *come)
{
    coh_request requests[UNDER_WAY][2];
    size_t pieces =
        larger(cohi_pieces_of(go->bytes, go->apart), cohi_pieces_of(come->bytes, come->apart));
    bool in_chunks = go->apart < COHI_PIECE_BYTES || come->apart < COHI_PIECE_BYTES;
    size_t ahead = in_chunks ? UNDER_WAY : PIECES_UNDER_WAY, posted = 0;
    coh_status status = COH_OK;
    cohi_error first;
    for (size_t done = 0; done < (status == COH_OK ? pieces : posted); done++) {
        for (; status == COH_OK && posted < pieces && posted < done + ahead; posted++)
            post_piece(call, go, come, posted, requests[posted % UNDER_WAY]);
        coh_status ended = cohi_exchange_finish(call, requests[done % UNDER_WAY], 2);
        status = cohi_error_first(status, ended, &first);
    }
    return status == COH_OK ? COH_OK : cohi_fail_again(&first);
}

/*
 * What a piece holds goes in chunks: they are not asked for, and the answer would take about as long. All_reduce of 256
 * KiB and 1 MiB by a ring of two over TCP on the loopback, with pieces / chunks of 63 KiB: 72 and 244 / 59 and 210 us; of
 * 16 MiB, 5.0 / 5.4 ms (Zen 5).
 */
static size_t apart_of(const cohi_call *call, size_t bytes)
{
    return bytes <= COHI_PIECE_BYTES ? cohi_chunk_length(call, bytes, 1) : COHI_PIECE_BYTES;
}

coh_status cohi_pieces_both(cohi_call *call, int to, const char *out, size_t out_bytes, int from,
                            char *in, size_t in_bytes)
{
    struct half go = {to, (char *)(uintptr_t)out, out_bytes, apart_of(call, out_bytes)};
    struct half come = {from, in, in_bytes, apart_of(call, in_bytes)};
    return exchange(call, &go, &come);
}

coh_status cohi_pieces_send(cohi_call *call, int to, const char *out, size_t bytes)
{
    struct half go = {to, (char *)(uintptr_t)out, bytes, COHI_PIECE_BYTES};
    return exchange(call, &go, &(struct half){.peer = to, .apart = COHI_PIECE_BYTES});
}

coh_status cohi_pieces_receive(cohi_call *call, int from, char *in, size_t bytes)
{
    struct half come = {from, in, bytes, COHI_PIECE_BYTES};
    return exchange(call, &(struct half){.peer = from, .apart = COHI_PIECE_BYTES}, &come);
}

/* ---- combining what comes ---- */

/* With a buffer for each chunk that is under way: four take about as long as an answer from the other host, and stay in
 * the cache until they are combined. */
struct stream {
    cohi_call *call;
    const cohi_flow *flow;
    size_t size;     /* of a partial element */
    size_t come, go; /* elements of a chunk */
    char *buffers;
    size_t apart; /* from one of them to the next */
    coh_request requests[UNDER_WAY][2];
};

/* What goes as one chunk needs no cutting, which takes about as long as all else that is done for a short message. */
static bool fits_chunk(size_t count, size_t size)
{
    return count <= COHI_CHUNK_BYTES / size;
}

static size_t buffer_bytes(const cohi_call *call, size_t in_count)
{
    size_t size = cohi_partial_size(call), chunk = cohi_chunk_length(call, in_count, size);
    return cohi_part_bytes((in_count < chunk ? in_count : chunk) * size);
}

size_t cohi_flow_bytes(const cohi_call *call, size_t in_count)
{
    size_t size = cohi_partial_size(call);
    if (fits_chunk(in_count, size))
        return cohi_part_bytes(in_count * size);
    size_t chunk = cohi_chunk_length(call, in_count, size);
    size_t chunks = cohi_pieces_of(in_count, chunk);
    return (chunks < UNDER_WAY ? chunks : UNDER_WAY) * buffer_bytes(call, in_count);
}

static char *buffer_of(const struct stream *stream, size_t number)
{
    return stream->buffers + number % UNDER_WAY * stream->apart;
}

static cohi_span coming(const struct stream *stream, size_t number)
{
    return cohi_span_piece((cohi_span){0, stream->flow->in_count}, number, stream->come);
}

static cohi_span going(const struct stream *stream, size_t number)
{
    return cohi_span_piece((cohi_span){0, stream->flow->out_count}, number, stream->go);
}

static void post(struct stream *stream, size_t number)
{
    const cohi_flow *flow = stream->flow;
    coh_request *requests = stream->requests[number % UNDER_WAY];
    cohi_span come = coming(stream, number), go = going(stream, number);
    cohi_exchange_receive(stream->call, &requests[0], flow->from, buffer_of(stream, number),
                          come.count * stream->size);
    cohi_exchange_send(stream->call, &requests[1], flow->to, flow->out + go.first * stream->size,
                       go.count * stream->size);
}

/* What came in `in` with this member's own elements from `at` bytes on. */
static void combine(const cohi_call *call, const cohi_flow *flow, const char *in, size_t at,
                    size_t count)
{
    const char *own = flow->own + at;
    cohi_partial_combine(call, flow->into + at, flow->in_first ? in : own,
                         flow->in_first ? own : in, count);
}

static coh_status run_single(cohi_call *call, const cohi_flow *flow, size_t size, char *buffer)
{
    coh_status status = cohi_exchange_both(call, flow->to, flow->out, flow->out_count * size,
                                           flow->from, buffer, flow->in_count * size);
    if (status == COH_OK)
        combine(call, flow, buffer, 0, flow->in_count);
    return status;
}

coh_status cohi_flow_run(cohi_call *call, const cohi_flow *flow, char *buffers)
{
    size_t size = cohi_partial_size(call), posted = 0;
    if (fits_chunk(flow->in_count, size) && fits_chunk(flow->out_count, size))
        return run_single(call, flow, size, buffers);
    struct stream stream = {.call = call,
                            .flow = flow,
                            .size = size,
                            .come = cohi_chunk_length(call, flow->in_count, size),
                            .go = cohi_chunk_length(call, flow->out_count, size),
                            .buffers = buffers,
                            .apart = buffer_bytes(call, flow->in_count)};
    size_t chunks = larger(cohi_pieces_of(flow->in_count, stream.come),
                           cohi_pieces_of(flow->out_count, stream.go));
    coh_status status = COH_OK;
    cohi_error first;
    for (size_t done = 0; done < (status == COH_OK ? chunks : posted); done++) {
        for (; status == COH_OK && posted < chunks && posted < done + UNDER_WAY; posted++)
            post(&stream, posted);
        coh_status ended = cohi_exchange_finish(call, stream.requests[done % UNDER_WAY], 2);
        status = cohi_error_first(status, ended, &first);
        if (status != COH_OK)
            continue;
        cohi_span come = coming(&stream, done);
        combine(call, flow, buffer_of(&stream, done), come.first * size, come.count);
    }
    return status == COH_OK ? COH_OK : cohi_fail_again(&first);
}
