/* meet.c - collectives on the caller's streams: what a kernel is told, and its launch. */
#include "engine/cuda/streams.h"

#include "base/error.h"
#include "engine/cuda/under_way.h"

#include <string.h>

/* Bytes of each member from which on members read each other's buffers in place: below, one meeting and a
 * copy are faster than two meetings. */
enum { DIRECT_BYTES = 128 << 10 };

/* Bytes that a block of threads has in flight at a time. */
enum { BLOCK_BYTES = COHI_CUDA_BLOCK_THREADS * 16 };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t rounds(uint64_t all, uint64_t each)
{
    return (all + each - 1) / each;
}

/* ---- what a kind is like ---- */

static bool has_blocked_source(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_REDUCE_SCATTER || kind == COH_COLLECTIVE_SCATTER
           || kind == COH_COLLECTIVE_ALL_TO_ALL;
}

static bool is_blocked(coh_collective_kind kind)
{
    return has_blocked_source(kind) || kind == COH_COLLECTIVE_ALL_GATHER
           || kind == COH_COLLECTIVE_GATHER;
}

static bool reduces(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_ALL_REDUCE || kind == COH_COLLECTIVE_REDUCE
           || kind == COH_COLLECTIVE_REDUCE_SCATTER || kind == COH_COLLECTIVE_SCAN
           || kind == COH_COLLECTIVE_SCAN_EXCLUSIVE;
}

/* ---- what the kernel is told ---- */

static void describe_team(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                          cohi_cuda_call *told)
{
    const struct cohi_cuda_streams *streams = endpoint->streams;
    told->layout = streams->layout;
    told->scratch = streams->scratch[team->number];
    told->scratch_each = streams->scratch_each[team->number];
    told->team = team->number;
    told->life = team->life;
    told->index = team->index;
    told->size = team->size;
    told->status = endpoint->status_there;
    told->delay = streams->delay;
    for (int i = 0; i < team->size; i++) {
        told->ranks[i] = (uint16_t)team->ranks[i];
        told->control[i] = cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, team->ranks[i]);
    }
}

static coh_status check_team(const cohi_endpoint *endpoint, const cohi_stream_team *team)
{
    if (team->size > COHI_CUDA_MEMBERS)
        return cohi_fail(COH_UNSUPPORTED, "a team of %d ranks; up to %d can meet on a stream",
                         team->size, (int)COHI_CUDA_MEMBERS);
    for (int i = 0; i < team->size; i++)
        if (!cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, team->ranks[i]))
            return cohi_fail(COH_UNSUPPORTED,
                             "rank %d is on another host, and its card cannot be reached by a "
                             "stream; the call without a stream can",
                             team->ranks[i]);
    return COH_OK;
}

/* Every block's count and place; the longest count. */
static uint64_t describe_blocks(const cohi_stream_call *call, int size, cohi_cuda_call *told)
{
    uint64_t first = 0, longest = 0;
    for (int i = 0; i < size; i++) {
        told->counts[i] = call->counts ? call->counts[i] : call->count;
        told->firsts[i] = first;
        first += told->counts[i];
        if (told->counts[i] > longest)
            longest = told->counts[i];
    }
    return is_blocked(call->kind) ? longest : call->count;
}

static uint64_t place_of(const cohi_stream_buffer *buffer)
{
    return buffer->segment >= 0 ? COHI_CUDA_PLACE(buffer->segment, buffer->offset) : 0;
}

static void describe_bases(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                           const cohi_stream_buffer *buffer, uint64_t *bases)
{
    for (int i = 0; buffer->segment >= 0 && i < team->size; i++)
        bases[i] = cohi_cuda_base(endpoint, buffer->segment, team->ranks[i]);
}

static void describe_buffers(const cohi_stream_call *call, cohi_cuda_call *told)
{
    const cohi_stream_buffer *source = &call->source, *target = &call->target;
    bool source_shared = !source->local || source->segment >= 0;
    bool target_shared = !target->local || target->segment >= 0;
    told->source = (uintptr_t)source->local;
    told->target = (uintptr_t)target->local;
    told->source_place = place_of(source);
    told->target_place = place_of(target);
    told->buffers = (source->local == target->local ? COHI_CUDA_IN_PLACE : 0u)
                    | (source_shared ? COHI_CUDA_SOURCE_SHARED : 0u)
                    | (target_shared ? COHI_CUDA_TARGET_SHARED : 0u);
}

/* How the longest block is cut for the scratch; `told` has the team. */
static unsigned divide(const cohi_stream_call *call, uint64_t longest, uint64_t most_blocks,
                       cohi_cuda_call *told)
{
    uint64_t element = told->element, lanes = 16 / element;
    uint64_t pieces = has_blocked_source(call->kind) ? (uint64_t)told->size : 1;
    uint64_t most = told->scratch_each / pieces / 16 * 16 / element;
    uint64_t bytes = longest * element * pieces;
    uint64_t blocks = least(rounds(bytes, BLOCK_BYTES), most_blocks);
    blocks = blocks > 0 ? blocks : 1;
    uint64_t each = rounds(rounds(longest, blocks), lanes) * lanes;
    told->piece = each < most ? each : most;
    told->piece = told->piece > 0 ? told->piece : lanes;
    told->steps = rounds(longest, told->piece * blocks);
    told->steps = told->steps > 0 ? told->steps : 1;
    return (unsigned)blocks;
}

/* Whether the members' buffers are used in place. Where ranks take turns this is decided here, from what the
 * fingerprint has; else the kernels decide when they know all buffers. */
static bool goes_direct(const cohi_endpoint *endpoint, const cohi_stream_call *call,
                        const cohi_cuda_call *told, uint64_t longest)
{
    unsigned shared = COHI_CUDA_SOURCE_SHARED | COHI_CUDA_TARGET_SHARED;
    bool even = call->kind == COH_COLLECTIVE_ALL_REDUCE || call->kind == COH_COLLECTIVE_ALL_GATHER
                || call->kind == COH_COLLECTIVE_REDUCE_SCATTER;
    if (!cohi_cuda_takes_turns(endpoint))
        return longest * told->element >= DIRECT_BYTES;
    /* One exchange, of 150 us, is enough for what the scratch holds at once. */
    return told->steps > 1 && even && !call->counts && (told->buffers & shared) == shared;
}

/* Fewer bytes than a scratch has for a block. */
static coh_status check_scratch(const cohi_stream_call *call, const cohi_cuda_call *told)
{
    if (!has_blocked_source(call->kind) || told->scratch_each / (unsigned)told->size >= 16)
        return COH_OK;
    return cohi_fail(COH_LIMIT, "a team of %d ranks has no room to exchange %d blocks on a stream",
                     told->size, told->size);
}

static coh_status describe(cohi_endpoint *endpoint, const cohi_stream_team *team,
                           const cohi_stream_call *call, cohi_cuda_call *told, unsigned *blocks)
{
    coh_status status = check_team(endpoint, team);
    if (status != COH_OK)
        return status;
    memset(told, 0, sizeof *told);
    describe_team(endpoint, team, told);
    told->kind = (int32_t)call->kind;
    told->op = (int32_t)call->op;
    told->root = call->root;
    told->count = call->count;
    told->scale = call->scale;
    told->neutral = call->identity;
    told->fingerprint = call->fingerprint;
    told->element = (uint32_t)coh_dtype_size(call->dtype);
    told->element = told->element > 0 ? told->element : 1;
    uint64_t longest = describe_blocks(call, team->size, told);
    describe_buffers(call, told);
    describe_bases(endpoint, team, &call->source, told->source_bases);
    describe_bases(endpoint, team, &call->target, told->target_bases);
    *blocks = divide(call, longest, cohi_cuda_blocks_of(endpoint, team->number), told);
    told->way = COHI_CUDA_STAGED;
    if (goes_direct(endpoint, call, told, longest))
        told->way = COHI_CUDA_DIRECT;
    return check_scratch(call, told);
}

static CUfunction kernel_of(const cohi_endpoint *endpoint, const cohi_stream_call *call)
{
    const struct cohi_cuda_streams *streams = endpoint->streams;
    if (!reduces(call->kind))
        return streams->copy;
    bool sums = call->op == COH_SUM && streams->sum[call->dtype];
    return sums ? streams->sum[call->dtype] : streams->any[call->dtype];
}

/* ---- ranks that take turns ---- */

uint64_t cohi_cuda_value(uint32_t life, uint64_t tick)
{
    return ((uint64_t)life << 32) + tick;
}

/* This rank's stream has come to `tick`, and goes on when all members' have. */
static coh_status exchange(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                           const cohi_cuda_call *told)
{
    const cohi_cuda_library *library = endpoint->library;
    uint64_t value = cohi_cuda_value(told->life, told->tick);
    uint64_t row = told->layout.values + (uint64_t)told->team * told->layout.ranks * sizeof value;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < told->size && result == CUDA_SUCCESS; i++)
        if (i != told->index)
            result = library->cuStreamWriteValue64(
                lineup->stream, told->control[i] + row + told->ranks[told->index] * sizeof value,
                value, CU_STREAM_WRITE_VALUE_DEFAULT);
    for (int i = 0; i < told->size && result == CUDA_SUCCESS; i++)
        if (i != told->index)
            result = library->cuStreamWaitValue64(
                lineup->stream, told->control[told->index] + row + told->ranks[i] * sizeof value,
                value, CU_STREAM_WAIT_VALUE_GEQ);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(library, result, "a stream cannot wait for other ranks'");
}

static coh_status run_in_turns(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                               CUfunction kernel, unsigned blocks, cohi_cuda_call *told,
                               cohi_cuda_team *team)
{
    told->phase = COHI_CUDA_BEGIN;
    told->tick = (uint32_t)++team->ticks;
    coh_status status =
        cohi_cuda_launch(endpoint, kernel, blocks, COHI_CUDA_BLOCK_THREADS, lineup->stream, told);
    if (status == COH_OK)
        status = exchange(endpoint, lineup, told);
    told->phase = COHI_CUDA_GO_ON;
    uint64_t steps = told->way == COHI_CUDA_DIRECT ? 1 : told->steps;
    for (told->step = 0; told->step < steps && status == COH_OK; told->step++) {
        status = cohi_cuda_launch(endpoint, kernel, blocks, COHI_CUDA_BLOCK_THREADS, lineup->stream,
                                  told);
        if (status != COH_OK || (told->step + 1 == steps && told->way != COHI_CUDA_DIRECT))
            break;
        told->tick = (uint32_t)++team->ticks;
        status = exchange(endpoint, lineup, told);
    }
    return status;
}

/* ---- slots ---- */

static coh_status enqueue(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                          const cohi_stream_team *team, CUfunction kernel, unsigned blocks,
                          cohi_cuda_call *told)
{
    cohi_cuda_team *mine = NULL;
    coh_status status = cohi_cuda_chain(endpoint, lineup, team, &mine);
    if (status != COH_OK)
        return status;
    status = cohi_cuda_takes_turns(endpoint)
                 ? run_in_turns(endpoint, lineup, kernel, blocks, told, mine)
                 : cohi_cuda_launch(endpoint, kernel, blocks, COHI_CUDA_BLOCK_THREADS,
                                    lineup->stream, told);
    return status == COH_OK ? cohi_cuda_chain_on(endpoint, lineup, mine) : status;
}

static coh_status check_private(cohi_endpoint *endpoint, const cohi_stream_call *call)
{
    coh_status status = COH_OK;
    if (call->source.local && call->source.segment < 0)
        status = cohi_cuda_check_buffer(endpoint, "source", call->source.local);
    if (status == COH_OK && call->target.local && call->target.segment < 0)
        status = cohi_cuda_check_buffer(endpoint, "target", call->target.local);
    return status;
}

/* A team that a kernel has given up stays so. */
static coh_status check_standing(const cohi_endpoint *endpoint, const cohi_stream_team *team)
{
    const cohi_cuda_report *report = &cohi_cuda_status_of(endpoint)->reports[team->number];
    uint32_t trouble = __atomic_load_n(&report->trouble, __ATOMIC_ACQUIRE);
    if (trouble == COHI_CUDA_FINE || report->life != team->life)
        return COH_OK;
    if (trouble == COHI_CUDA_LOST)
        return cohi_fail(COH_PEER_LOST, "an earlier call of the team on a stream has lost rank %d",
                         report->rank);
    return cohi_fail(COH_MISMATCH,
                     "in an earlier call of the team on a stream rank %d was in another call than "
                     "this one; coh_cuda_status says in which",
                     report->rank);
}

coh_status cohi_cuda_collective(cohi_endpoint *endpoint, cohi_stream stream,
                                const cohi_stream_team *team, const cohi_stream_call *call)
{
    cohi_cuda_call told;
    unsigned blocks;
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, team->size > 1, &lineup);
    if (status != COH_OK)
        return status;
    status = check_standing(endpoint, team);
    if (status == COH_OK)
        status = check_private(endpoint, call);
    if (status == COH_OK)
        status = describe(endpoint, team, call, &told, &blocks);
    if (status == COH_OK)
        status = enqueue(endpoint, &lineup, team, kernel_of(endpoint, call), blocks, &told);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

coh_status cohi_cuda_sync(cohi_endpoint *endpoint, cohi_stream stream, const cohi_stream_team *team,
                          uint64_t fingerprint)
{
    cohi_stream_call call = {.kind = COH_COLLECTIVE_BARRIER,
                             .dtype = COH_U8,
                             .scale = 1,
                             .source.segment = -1,
                             .target.segment = -1,
                             .fingerprint = fingerprint};
    return cohi_cuda_collective(endpoint, stream, team, &call);
}

static coh_status stream_of(cohi_endpoint *endpoint, unsigned team, CUstream *stream)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&streams->lock);
    if (!streams->calls[team])
        result = endpoint->library->cuStreamCreateWithPriority(&streams->calls[team],
                                                               CU_STREAM_NON_BLOCKING, 0);
    *stream = streams->calls[team];
    pthread_mutex_unlock(&streams->lock);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "a stream cannot be made");
}

coh_status cohi_cuda_run(cohi_endpoint *endpoint, const cohi_stream_team *team,
                         const cohi_stream_call *call, cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = stream_of(endpoint, team->number, &stream);
    if (status == COH_OK)
        status = cohi_cuda_collective(endpoint, stream, team, call);
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}
