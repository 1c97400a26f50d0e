/* onesided.c - put, get, signals, atomics and waits on a stream. */
#include "core/health/verdict.h"
#include "core/heap/heap.h"
#include "core/onesided/rma.h"
#include "core/onesided/strided.h"
#include "core/stream/stream.h"

/* ---- checks ---- */

static coh_status check_on_card(coh_world *world, const cohi_transfer *transfer)
{
    if (cohi_device_serves(world, transfer->spot))
        return COH_OK;
    return cohi_world_fail(world, transfer->call, COH_INVALID_ARGUMENT,
                           "%s is in a heap in memory of the host; a call with a stream takes "
                           "memory of a heap on a card",
                           cohi_spot_describe(transfer->spot).text);
}

/* From the symmetric pointer to a place that was found good. */
static coh_status check_transfer(coh_world *world, const void *symmetric, cohi_transfer *transfer)
{
    coh_status status = cohi_world_check_rank(world, transfer->call, transfer->rank);
    if (status == COH_OK)
        status = cohi_heap_locate(world, transfer->call, symmetric, &transfer->spot);
    if (status == COH_OK)
        status = cohi_rma_check(world, transfer);
    return status == COH_OK ? check_on_card(world, transfer) : status;
}

static cohi_remote remote_of(const cohi_transfer *transfer)
{
    return (cohi_remote){.context = COHI_CONTEXT_DEFAULT,
                         .rank = transfer->rank,
                         .segment = cohi_spot_segment(transfer->spot),
                         .offset = cohi_spot_offset(transfer->spot)};
}

/* An aligned 64-bit word of rank `rank`, in a heap on a card. */
static coh_status check_word(coh_world *world, const char *call, const void *word, size_t bytes,
                             int rank, cohi_remote *remote)
{
    cohi_transfer transfer = {
        .call = call, .op = COHI_OP_PUT, .rank = rank, .source = word, .bytes = bytes};
    coh_status status = check_transfer(world, word, &transfer);
    if (status != COH_OK)
        return status;
    *remote = remote_of(&transfer);
    if ((uintptr_t)word % bytes == 0)
        return COH_OK;
    return cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                           "the word at %p is not aligned to its %zu bytes", word, bytes);
}

/* ---- put and get ---- */

coh_status coh_cuda_put(coh_world *world, void *target, const void *source, size_t bytes, int rank,
                        coh_cuda_stream stream)
{
    cohi_stream_server server;
    cohi_transfer transfer = {
        .call = "coh_cuda_put", .op = COHI_OP_PUT, .rank = rank, .source = source, .bytes = bytes};
    coh_status status = cohi_stream_enter(world, transfer.call, &server);
    if (status == COH_OK && bytes == 0)
        return cohi_world_check_rank(world, transfer.call, rank);
    if (status == COH_OK)
        status = check_transfer(world, target, &transfer);
    if (status != COH_OK)
        return status;
    return cohi_stream_pass(
        world, transfer.call,
        server.stream->put(server.endpoint, stream, remote_of(&transfer), source, bytes));
}

coh_status coh_cuda_get(coh_world *world, void *target, const void *source, size_t bytes, int rank,
                        coh_cuda_stream stream)
{
    cohi_stream_server server;
    cohi_transfer transfer = {
        .call = "coh_cuda_get", .op = COHI_OP_GET, .rank = rank, .target = target, .bytes = bytes};
    coh_status status = cohi_stream_enter(world, transfer.call, &server);
    if (status == COH_OK && bytes == 0)
        return cohi_world_check_rank(world, transfer.call, rank);
    if (status == COH_OK)
        status = check_transfer(world, source, &transfer);
    if (status != COH_OK)
        return status;
    return cohi_stream_pass(
        world, transfer.call,
        server.stream->get(server.endpoint, stream, remote_of(&transfer), target, bytes));
}

/* ---- strided ---- */

struct blocks {
    size_t target_stride, source_stride, block, count;
};

static coh_status check_blocks(coh_world *world, const char *call, const struct blocks *blocks,
                               size_t there_stride, size_t here_stride, size_t *span)
{
    size_t here;
    if (cohi_strided_span(blocks->count, blocks->block, there_stride, span)
        && cohi_strided_span(blocks->count, blocks->block, here_stride, &here))
        return COH_OK;
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                           "%zu blocks of %zu bytes at distances of %zu and %zu overlap, or are "
                           "more bytes than there are",
                           blocks->count, blocks->block, there_stride, here_stride);
}

static coh_status move_strided(coh_world *world, const void *there, cohi_transfer transfer,
                               const struct blocks *blocks, coh_cuda_stream stream)
{
    cohi_stream_server server;
    bool puts = transfer.op == COHI_OP_PUT;
    size_t by[2] = {blocks->target_stride, blocks->source_stride};
    size_t each[2] = {blocks->block, blocks->count};
    coh_status status = cohi_stream_enter(world, transfer.call, &server);
    if (status == COH_OK && (blocks->block == 0 || blocks->count == 0))
        return cohi_world_check_rank(world, transfer.call, transfer.rank);
    if (status == COH_OK)
        status = check_blocks(world, transfer.call, blocks, by[!puts], by[puts], &transfer.bytes);
    if (status == COH_OK)
        status = check_transfer(world, there, &transfer);
    if (status != COH_OK)
        return status;
    status = puts ? server.stream->put_strided(server.endpoint, stream, remote_of(&transfer),
                                               transfer.source, by, each)
                  : server.stream->get_strided(server.endpoint, stream, remote_of(&transfer),
                                               transfer.target, by, each);
    return cohi_stream_pass(world, transfer.call, status);
}

coh_status coh_cuda_put_strided(coh_world *world, void *target, size_t target_stride,
                                const void *source, size_t source_stride, size_t block,
                                size_t count, int rank, coh_cuda_stream stream)
{
    struct blocks blocks = {target_stride, source_stride, block, count};
    cohi_transfer transfer = {
        .call = "coh_cuda_put_strided", .op = COHI_OP_PUT, .rank = rank, .source = source};
    return move_strided(world, target, transfer, &blocks, stream);
}

coh_status coh_cuda_get_strided(coh_world *world, void *target, size_t target_stride,
                                const void *source, size_t source_stride, size_t block,
                                size_t count, int rank, coh_cuda_stream stream)
{
    struct blocks blocks = {target_stride, source_stride, block, count};
    cohi_transfer transfer = {
        .call = "coh_cuda_get_strided", .op = COHI_OP_GET, .rank = rank, .target = target};
    return move_strided(world, source, transfer, &blocks, stream);
}

/* ---- order ---- */

static coh_status complete(coh_world *world, const char *call, coh_cuda_stream stream)
{
    cohi_stream_server server;
    coh_status status = cohi_stream_enter(world, call, &server);
    return status == COH_OK
               ? cohi_stream_pass(world, call, server.stream->quiet(server.endpoint, stream))
               : status;
}

/* A stream does one after the other, so that to order is to complete. */
coh_status coh_cuda_fence(coh_world *world, coh_cuda_stream stream)
{
    return complete(world, "coh_cuda_fence", stream);
}

coh_status coh_cuda_quiet(coh_world *world, coh_cuda_stream stream)
{
    return complete(world, "coh_cuda_quiet", stream);
}

/* ---- signals ---- */

struct signal {
    uint64_t *word;
    uint64_t value;
    coh_signal_op op;
};

static coh_status put_and_signal(coh_world *world, void *target, cohi_transfer transfer,
                                 const struct signal *signal, coh_cuda_stream stream)
{
    cohi_stream_server server;
    cohi_remote at = {0}, to = {.rank = transfer.rank};
    coh_status status = cohi_stream_enter(world, transfer.call, &server);
    if (status == COH_OK && signal->op != COH_SIGNAL_SET && signal->op != COH_SIGNAL_ADD)
        status = cohi_world_fail(world, transfer.call, COH_INVALID_ARGUMENT,
                                 "%d is not a coh_signal_op", (int)signal->op);
    if (status == COH_OK)
        status = check_word(world, transfer.call, signal->word, sizeof *signal->word, transfer.rank,
                            &at);
    if (status == COH_OK && transfer.bytes > 0)
        status = check_transfer(world, target, &transfer);
    if (status != COH_OK)
        return status;
    if (transfer.bytes > 0)
        to = remote_of(&transfer);
    cohi_remote_signal told = {at.offset, signal->value, signal->op == COH_SIGNAL_ADD};
    return cohi_stream_pass(world, transfer.call,
                            server.stream->put_signal(server.endpoint, stream, to, transfer.source,
                                                      transfer.bytes, at, &told));
}

coh_status coh_cuda_put_signal(coh_world *world, void *target, const void *source, size_t bytes,
                               uint64_t *signal, uint64_t value, coh_signal_op op, int rank,
                               coh_cuda_stream stream)
{
    struct signal told = {signal, value, op};
    cohi_transfer transfer = {.call = "coh_cuda_put_signal",
                              .op = COHI_OP_PUT,
                              .rank = rank,
                              .source = source,
                              .bytes = bytes};
    return put_and_signal(world, target, transfer, &told, stream);
}

coh_status coh_cuda_signal(coh_world *world, uint64_t *signal, uint64_t value, coh_signal_op op,
                           int rank, coh_cuda_stream stream)
{
    struct signal told = {signal, value, op};
    cohi_transfer transfer = {.call = "coh_cuda_signal", .op = COHI_OP_PUT, .rank = rank};
    return put_and_signal(world, NULL, transfer, &told, stream);
}

/* ---- waits ---- */

coh_status coh_cuda_wait_until(coh_world *world, const uint64_t *word, coh_compare compare,
                               uint64_t value, int from, coh_cuda_stream stream)
{
    static const char call[] = "coh_cuda_wait_until";
    cohi_stream_server server;
    cohi_remote at;
    coh_status status = cohi_stream_enter(world, call, &server);
    if (status == COH_OK && (compare < COH_EQ || compare > COH_LE))
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%d is not a coh_compare",
                                 (int)compare);
    if (status == COH_OK && from != COH_ANY_RANK)
        status = cohi_world_check_rank(world, call, from);
    if (status == COH_OK && from != COH_ANY_RANK)
        status = cohi_verdict_check(world, call, from);
    if (status == COH_OK)
        status = check_word(world, call, word, sizeof *word, world->rank, &at);
    if (status != COH_OK)
        return status;
    at.rank = from == COH_ANY_RANK ? -1 : from;
    return cohi_stream_pass(world, call,
                            server.stream->wait(server.endpoint, stream, at, compare, value));
}

/* ---- atomics ---- */

static coh_status check_atomic(const coh_world *world, const char *call, coh_atomic_op op,
                               coh_dtype dtype, const void *operand, const void *expected)
{
    bool integer = dtype == COH_I32 || dtype == COH_U32 || dtype == COH_I64 || dtype == COH_U64;
    bool moves = op == COH_ATOMIC_SET || op == COH_ATOMIC_FETCH;
    bool floats = dtype == COH_F32 || dtype == COH_F64;
    if (op < COH_ATOMIC_SET || op > COH_ATOMIC_COMPARE_SWAP || !(integer || (moves && floats)))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "there is no atomic %d of type %d", (int)op, (int)dtype);
    if (!operand && op != COH_ATOMIC_FETCH)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "operand is NULL");
    if ((expected != NULL) != (op == COH_ATOMIC_COMPARE_SWAP))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "expected is %s; it is for compare_swap, and for that alone",
                               expected ? "given" : "NULL");
    return COH_OK;
}

coh_status coh_cuda_atomic(coh_world *world, coh_atomic_op op, coh_dtype dtype, void *target,
                           const void *operand, const void *expected, void *result, int rank,
                           coh_cuda_stream stream)
{
    static const char call[] = "coh_cuda_atomic";
    cohi_stream_server server;
    cohi_remote at;
    cohi_remote_atomic atomic = {op, dtype, operand, expected};
    coh_status status = cohi_stream_enter(world, call, &server);
    if (status == COH_OK)
        status = check_atomic(world, call, op, dtype, operand, expected);
    if (status == COH_OK)
        status = check_word(world, call, target, coh_dtype_size(dtype), rank, &at);
    if (status != COH_OK)
        return status;
    return cohi_stream_pass(world, call,
                            server.stream->atomic(server.endpoint, stream, at, &atomic, result));
}

/* ---- barriers ---- */

static coh_status meet(const coh_team *team, const char *call, coh_cuda_stream stream)
{
    cohi_stream_server server;
    coh_status status = cohi_stream_enter_team(team, call, &server);
    if (status != COH_OK)
        return status;
    cohi_stream_team told = cohi_stream_team_of(team);
    cohi_stream_terms terms = {.kind = COH_COLLECTIVE_BARRIER};
    return cohi_stream_pass(
        team->world, call,
        server.stream->sync(server.endpoint, stream, &told, cohi_stream_fingerprint(&terms)));
}

coh_status coh_cuda_sync(coh_team *team, coh_cuda_stream stream)
{
    return meet(team, "coh_cuda_sync", stream);
}

/* What is on the stream before the meeting is complete when the others hear of it. */
coh_status coh_cuda_barrier(coh_team *team, coh_cuda_stream stream)
{
    return meet(team, "coh_cuda_barrier", stream);
}
