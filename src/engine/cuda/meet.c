/* meet.c - collectives on the caller's streams: what a kernel is told, and its launch. */
#include "engine/cuda/streams.h"

#include "base/error.h"
#include "engine/cuda/under_way.h"

#include <string.h>

/* Bytes that a block of threads has in flight at a time. */
enum { BLOCK_BYTES = COHI_CUDA_BLOCK_THREADS * 16 };

/* Bytes of data in a packet, and how many more a block may have than its part where pieces are rounded up. */
enum { PACKET_BYTES = 8, SPARE_PACKETS = 2 };

/* Packets of a block, where there are blocks enough: more of them would wait for each other's loads. */
enum { PACKETS_EACH = 256 };

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
    told->packets = streams->packets[team->number];
    told->packets_each = streams->packets_each[team->number];
    told->room = told->packets_each / (uint32_t)sizeof(cohi_cuda_packet) / (uint32_t)team->size;
    told->team = team->number;
    told->life = team->life;
    told->index = team->index;
    told->size = team->size;
    told->status = endpoint->status_there;
    told->delay = streams->delay;
    for (int i = 0; i < team->size; i++) {
        told->members[i].rank = (uint64_t)team->ranks[i];
        told->members[i].control = cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, team->ranks[i]);
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
        cohi_cuda_member *member = &told->members[i];
        member->count = call->counts ? call->counts[i] : call->count;
        member->first = first;
        first += member->count;
        longest = member->count > longest ? member->count : longest;
    }
    return is_blocked(call->kind) ? longest : call->count;
}

static uint64_t place_of(const cohi_stream_buffer *buffer)
{
    return buffer->segment >= 0 ? COHI_CUDA_PLACE(buffer->segment, buffer->offset) : 0;
}

static void describe_bases(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                           const cohi_stream_call *call, cohi_cuda_call *told)
{
    for (int i = 0; i < team->size; i++) {
        cohi_cuda_member *member = &told->members[i];
        if (call->source.segment >= 0)
            member->source_base = cohi_cuda_base(endpoint, call->source.segment, team->ranks[i]);
        if (call->target.segment >= 0)
            member->target_base = cohi_cuda_base(endpoint, call->target.segment, team->ranks[i]);
    }
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
    uint64_t blocks = has_blocked_source(call->kind) ? (uint64_t)told->size : 1;
    if (!cohi_cuda_takes_turns(endpoint))
        return longest * blocks * told->element >= call->direct_from;
    /* One exchange, of 150 us, is enough for what the scratch holds at once. */
    return told->steps > 1 && even && !call->counts && (told->buffers & shared) == shared;
}

/* ---- packets ---- */

/* What a packet has of the call and of the team's life: other calls' packets are not taken for it. */
static uint32_t tag_of(uint64_t fingerprint, uint32_t life)
{
    uint64_t hash = (fingerprint ^ life) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) | 1; /* never that of memory which nobody has written */
}

static uint64_t packets_of(uint64_t longest, uint64_t element)
{
    return rounds(longest * element, PACKET_BYTES);
}

/* What is short, and has room. Packets are waited for, so not where ranks take turns. */
static bool goes_by_packets(const cohi_endpoint *endpoint, const cohi_stream_call *call,
                            const cohi_cuda_call *told, uint64_t longest, unsigned most_blocks)
{
    uint64_t stored = longest * told->element * (uint64_t)told->size;
    uint64_t each = rounds(packets_of(longest, told->element), most_blocks);
    return !cohi_cuda_takes_turns(endpoint) && stored <= call->packets_to
           && each + SPARE_PACKETS <= told->room;
}

/* A thread for each packet, as far as there are. */
static cohi_cuda_grid divide_packets(uint64_t longest, unsigned most_blocks, cohi_cuda_call *told)
{
    enum { WARP = 32 };
    uint64_t lanes = 16 / told->element, packets = packets_of(longest, told->element);
    uint64_t fit = told->room > SPARE_PACKETS ? told->room - SPARE_PACKETS : 1;
    uint64_t each = least(PACKETS_EACH, fit);
    uint64_t blocks = least(rounds(packets, each), most_blocks);
    blocks = blocks > 0 ? blocks : 1;
    told->way = COHI_CUDA_PACKED;
    told->piece = rounds(rounds(longest, blocks), lanes) * lanes;
    told->steps = 1;
    uint64_t threads = least(packets_of(told->piece, told->element), COHI_CUDA_BLOCK_THREADS);
    threads = threads < (uint64_t)told->size ? (uint64_t)told->size : threads;
    return (cohi_cuda_grid){(unsigned)blocks, (unsigned)(rounds(threads, WARP) * WARP)};
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
                           const cohi_stream_call *call, cohi_cuda_call *told, cohi_cuda_grid *grid)
{
    coh_status status = check_team(endpoint, team);
    if (status != COH_OK)
        return status;
    memset(told, 0, offsetof(cohi_cuda_call, members));
    memset(told->members, 0, (size_t)team->size * sizeof *told->members);
    describe_team(endpoint, team, told);
    told->kind = (int32_t)call->kind;
    told->op = (int32_t)call->op;
    told->root = call->root;
    told->count = call->count;
    told->scale = call->scale;
    told->neutral = call->identity;
    told->fingerprint = call->fingerprint;
    told->tag = tag_of(call->fingerprint, team->life);
    told->element = (uint32_t)coh_dtype_size(call->dtype);
    told->element = told->element > 0 ? told->element : 1;
    uint64_t longest = describe_blocks(call, team->size, told);
    describe_buffers(call, told);
    describe_bases(endpoint, team, call, told);
    unsigned most = cohi_cuda_blocks_of(endpoint, team->number);
    if (goes_by_packets(endpoint, call, told, longest, most)) {
        *grid = divide_packets(longest, most, told);
        return COH_OK;
    }
    *grid = (cohi_cuda_grid){divide(call, longest, most, told), COHI_CUDA_BLOCK_THREADS};
    told->way = goes_direct(endpoint, call, told, longest) ? COHI_CUDA_DIRECT : COHI_CUDA_STAGED;
    return check_scratch(call, told);
}

/* Kernels that get no more than a few members, and have one way alone, are there for the most common calls. What is done
 * in turns is in those for the scratch. */
static CUfunction kernel_of(const cohi_endpoint *endpoint, const cohi_stream_call *call,
                            const cohi_cuda_call *told)
{
    const struct cohi_cuda_streams *streams = endpoint->streams;
    bool sums = call->op == COH_SUM && streams->sum[call->dtype].whole;
    const cohi_cuda_kernels *kernels = !reduces(call->kind) ? &streams->copy
                                       : sums               ? &streams->sum[call->dtype]
                                                            : &streams->any[call->dtype];
    if (told->size > COHI_CUDA_FEW || !kernels->staged)
        return kernels->whole;
    if (told->way == COHI_CUDA_PACKED)
        return kernels->packed;
    bool direct = told->way == COHI_CUDA_DIRECT && !cohi_cuda_takes_turns(endpoint);
    return direct ? kernels->direct : kernels->staged;
}

/* ---- slots ---- */

static coh_status enqueue(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                          const cohi_stream_team *team, CUfunction kernel, cohi_cuda_grid grid,
                          cohi_cuda_call *told)
{
    cohi_cuda_team *mine = NULL;
    coh_status status = cohi_cuda_chain(endpoint, lineup, team, &mine);
    if (status != COH_OK)
        return status;
    status =
        cohi_cuda_takes_turns(endpoint)
            ? cohi_cuda_run_in_turns(endpoint, lineup, kernel, grid, told, mine)
            : cohi_cuda_launch(endpoint, kernel, grid.blocks, grid.threads, lineup->stream, told);
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
    if (trouble == COHI_CUDA_REFUSED)
        return cohi_fail(COH_TRANSPORT,
                         "rank %d could not enqueue its part of an earlier call of the team on its "
                         "card, which ended the team there",
                         report->rank);
    if (trouble == COHI_CUDA_LOST)
        return cohi_fail(COH_PEER_LOST, "an earlier call of the team on a stream has lost rank %d",
                         report->rank);
    return cohi_fail(COH_MISMATCH,
                     "in an earlier call of the team on a stream rank %d was in another call than "
                     "this one; coh_cuda_status says in which",
                     report->rank);
}

/* ---- by another library's ---- */

/* Whether its collective is taken: a member is not mapped by this card, or it is the faster one. */
static bool goes_far(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                     const cohi_stream_call *call)
{
    bool mapped = true;
    if (!endpoint->far)
        return false;
    for (int i = 0; i < team->size; i++)
        mapped &= cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, team->ranks[i]) != 0;
    return !mapped || endpoint->far->prefers(endpoint, team, call);
}

static coh_status enqueue_far(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                              const cohi_stream_team *team, const cohi_stream_call *call)
{
    cohi_cuda_team *mine = NULL;
    coh_status status = cohi_cuda_chain(endpoint, lineup, team, &mine);
    if (status == COH_OK)
        status = endpoint->far->collective(endpoint, lineup->stream, team, call);
    return status == COH_OK ? cohi_cuda_chain_on(endpoint, lineup, mine) : status;
}

static coh_status enqueue_near(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                               const cohi_stream_team *team, const cohi_stream_call *call)
{
    cohi_cuda_call told;
    cohi_cuda_grid grid;
    coh_status status = describe(endpoint, team, call, &told, &grid);
    return status == COH_OK
               ? enqueue(endpoint, lineup, team, kernel_of(endpoint, call, &told), grid, &told)
               : status;
}

coh_status cohi_cuda_collective(cohi_endpoint *endpoint, cohi_stream stream,
                                const cohi_stream_team *team, const cohi_stream_call *call)
{
    cohi_cuda_lineup lineup;
    coh_status status = check_standing(endpoint, team);
    if (status == COH_OK)
        status = cohi_cuda_lineup_begin(endpoint, stream, team->size > 1, &lineup);
    if (status != COH_OK)
        return status;
    status = check_private(endpoint, call);
    if (status == COH_OK)
        status = (goes_far(endpoint, team, call) ? enqueue_far : enqueue_near)(endpoint, &lineup,
                                                                               team, call);
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

/* A rank may be refused in its first operation on a stream, before it needs to know where words are. */
static coh_status lay_out_at_last(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->streams->lock);
    coh_status status = cohi_cuda_streams_ready(endpoint);
    pthread_mutex_unlock(&endpoint->streams->lock);
    return status;
}

/* No kernel of this rank will find the refusal, so the host reports it. A report that a kernel has made stays. */
static void report_own(cohi_endpoint *endpoint, const cohi_stream_team *team)
{
    cohi_cuda_report *report = &cohi_cuda_status_of(endpoint)->reports[team->number];
    if (__atomic_load_n(&report->trouble, __ATOMIC_ACQUIRE) != COHI_CUDA_FINE
        && report->life == team->life)
        return;
    report->rank = endpoint->rank;
    report->life = team->life;
    __atomic_store_n(&report->trouble, (uint32_t)COHI_CUDA_REFUSED, __ATOMIC_RELEASE);
}

/*
 * The others have met this rank on the host and wait for it on their cards, where it will not come. They are told
 * where their kernels look: this ends the call, and the team's operations on cards, on all members. What cannot be
 * written is of a card that has failed, or of a rank that is lost.
 */
static void refuse_team(cohi_endpoint *endpoint, const cohi_stream_team *team)
{
    const cohi_cuda_layout *layout = &endpoint->streams->layout;
    uint64_t word = (uint64_t)(COHI_CUDA_REFUSED_BY + endpoint->rank) << 32 | team->life;
    uint64_t value = cohi_cuda_value(team->life, INT32_MAX); /* past all that is waited for */
    if (lay_out_at_last(endpoint) != COH_OK)
        return;
    uint64_t row = (uint64_t)team->number * layout->ranks + (uint64_t)endpoint->rank;
    report_own(endpoint, team);
    for (int i = 0; i < team->size; i++) {
        CUdeviceptr control = cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, team->ranks[i]);
        if (control)
            (void)cohi_cuda_write_now(endpoint,
                                      control + layout->broken + team->number * sizeof word, &word,
                                      sizeof word);
        if (control && cohi_cuda_takes_turns(endpoint))
            (void)cohi_cuda_write_now(endpoint, control + layout->values + row * sizeof value,
                                      &value, sizeof value);
    }
}

coh_status cohi_cuda_run(cohi_endpoint *endpoint, const cohi_stream_team *team,
                         const cohi_stream_call *call, cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = stream_of(endpoint, team->number, &stream);
    if (status == COH_OK)
        status = cohi_cuda_collective(endpoint, stream, team, call);
    if (status != COH_OK)
        refuse_team(endpoint, team);
    else
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}
