/*
 * tune.c - NVSHMEM's collectives beside the kernels here: which of them is taken, by kind and size.
 *
 * When the ranks have met they run each kind at a few sizes by both, on a team of all of them. Rank 0's times decide,
 * and its choice goes to all: members that chose each for themselves could differ, and would wait for each other.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/cuda/under_way.h"
#include "engine/nvshmem/nvshmem.h"

#include <stdlib.h>
#include <string.h>

/* Sizes of a member's longer buffer: below, between and above them the nearest one's choice holds. */
enum {
    SMALLEST_BYTES = 4 << 10,
    STEP = 16,
    SIZES = 3,
    LARGEST_BYTES = SMALLEST_BYTES * STEP * STEP
};

enum { BATCH = 16, BATCHES = 5 };

/* NVSHMEM sums 1 MiB in some 800 us on an H200: a batch that takes this long will not end. */
#define BATCH_LIMIT_NS (20 * COHI_NS_PER_S)

static const coh_collective_kind kinds[] = {COH_COLLECTIVE_BARRIER, COH_COLLECTIVE_ALL_REDUCE,
                                            COH_COLLECTIVE_REDUCE_SCATTER,
                                            COH_COLLECTIVE_ALL_GATHER, COH_COLLECTIVE_ALL_TO_ALL};

static const char *const names[] = {"barrier", "all_reduce", "reduce_scatter", "all_gather",
                                    "all_to_all"};

enum { KINDS = sizeof kinds / sizeof *kinds };

_Static_assert(KINDS *SIZES < 64, "a choice is a bit of a word");

/* ---- which bit ---- */

static int row_of(coh_collective_kind kind)
{
    int row = 0;
    while (row < KINDS && kinds[row] != kind)
        row++;
    return row;
}

static int column_of(uint64_t bytes)
{
    int column = 0;
    uint64_t most = (uint64_t)SMALLEST_BYTES * STEP / 4; /* half way on a scale of powers */
    while (column < SIZES - 1 && bytes > most) {
        column++;
        most *= STEP;
    }
    return column;
}

static uint64_t bit_of(int row, int column)
{
    return UINT64_C(1) << (row * SIZES + column);
}

static bool has_blocks(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_REDUCE_SCATTER || kind == COH_COLLECTIVE_ALL_GATHER
           || kind == COH_COLLECTIVE_ALL_TO_ALL;
}

bool cohi_nvshmem_prefers(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                          const cohi_stream_call *call)
{
    const cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    int row = row_of(call->kind);
    if (own->choice == 0 || row == KINDS || !cohi_nvshmem_has(endpoint, team, call))
        return false;
    uint64_t blocks = has_blocks(call->kind) ? (uint64_t)team->size : 1;
    uint64_t bytes = call->count * coh_dtype_size(call->dtype) * blocks;
    return (own->choice & bit_of(row, column_of(bytes))) != 0;
}

/* ---- measuring ---- */

/* Memory and members of the calls that are measured. */
struct bench {
    cohi_endpoint *endpoint;
    cohi_stream_team team;
    int segment;
};

static cohi_stream_call call_of(const struct bench *bench, coh_collective_kind kind, uint64_t bytes)
{
    CUdeviceptr base = cohi_cuda_base(bench->endpoint, bench->segment, bench->endpoint->rank);
    uint64_t blocks = has_blocks(kind) ? (uint64_t)bench->team.size : 1;
    cohi_stream_call call = {
        .kind = kind,
        .dtype = COH_F32,
        .op = COH_SUM,
        .scale = 1,
        .source = {(void *)(uintptr_t)base, bench->segment, 0},
        .target = {(void *)(uintptr_t)(base + LARGEST_BYTES), bench->segment, LARGEST_BYTES},
        .count = bytes / sizeof(float) / blocks,
        .fingerprint = (uint64_t)kind};
    if (kind == COH_COLLECTIVE_BARRIER)
        call.source = call.target = (cohi_stream_buffer){.segment = -1};
    return call;
}

static coh_status await(cohi_endpoint *endpoint, cohi_op *op)
{
    uint64_t until = cohi_now_ns() + BATCH_LIMIT_NS;
    while (!atomic_load_explicit(&op->done, memory_order_acquire)) {
        cohi_cuda_under_way_progress(endpoint);
        if (cohi_now_ns() > until) {
            cohi_cuda_under_way_cancel(endpoint, op);
            return cohi_fail(COH_TIMED_OUT,
                             "nvshmem: collectives that were to be measured have not ended after "
                             "%llu s",
                             (unsigned long long)(BATCH_LIMIT_NS / COHI_NS_PER_S));
        }
    }
    return op->status == COH_OK
               ? COH_OK
               : cohi_fail(COH_TRANSPORT, "nvshmem: a collective that was measured failed");
}

/* A batch, all of it: after a failure too, nothing of it is left that would write to the ops later. */
static coh_status run_batch(const struct bench *bench, const cohi_stream_call *call)
{
    cohi_endpoint *endpoint = bench->endpoint;
    cohi_op ops[BATCH];
    coh_status status = COH_OK;
    int issued = 0, ended = 0;
    while (issued < BATCH && status == COH_OK) {
        ops[issued] = (cohi_op)COHI_NEW_OP;
        status = cohi_cuda_stream.run(endpoint, &bench->team, call, &ops[issued]);
        issued += status == COH_OK;
    }
    for (; ended < issued && status == COH_OK; ended++)
        status = await(endpoint, &ops[ended]);
    for (; ended < issued; ended++)
        cohi_cuda_under_way_cancel(endpoint, &ops[ended]);
    return status;
}

/* Of one call, in ns: the best of some batches behind one that is not counted. */
static coh_status measure(const struct bench *bench, const cohi_stream_call *call, uint64_t *best)
{
    coh_status status = COH_OK;
    *best = UINT64_MAX;
    for (int batch = 0; batch <= BATCHES && status == COH_OK; batch++) {
        uint64_t start = cohi_now_ns();
        status = run_batch(bench, call);
        uint64_t each = (cohi_now_ns() - start) / BATCH;
        if (batch > 0 && each < *best)
            *best = each;
    }
    return status;
}

/* The bit is set in this rank's choice where NVSHMEM's took clearly less time: the host's clock is a rough one for
 * calls that take microseconds, and a wrong choice in its favour is the dearer one. */
static coh_status compare(const struct bench *bench, int row, int column, uint64_t *choice)
{
    cohi_nvshmem *own = cohi_nvshmem_of(bench->endpoint);
    uint64_t bytes = SMALLEST_BYTES, ours, theirs;
    for (int i = 0; i < column; i++)
        bytes *= STEP;
    cohi_stream_call call = call_of(bench, kinds[row], bytes);
    own->choice = 0;
    coh_status status = measure(bench, &call, &ours);
    own->choice = UINT64_MAX;
    if (status == COH_OK)
        status = measure(bench, &call, &theirs);
    own->choice = 0;
    if (status != COH_OK)
        return status;
    *choice |= theirs * 4 < ours * 3 ? bit_of(row, column) : 0;
    cohi_log(COH_LOG_DEBUG,
             "nvshmem: rank %d: %s of %llu bytes: %.1f us by kernels of Cohort, %.1f us by NVSHMEM",
             bench->endpoint->rank, names[row], (unsigned long long)bytes, (double)ours / 1e3,
             (double)theirs / 1e3);
    return COH_OK;
}

/* Rank 0's choice to all: it writes to their memory, and all meet. */
static coh_status share(const struct bench *bench, uint64_t *choice)
{
    cohi_endpoint *endpoint = bench->endpoint;
    coh_status status = COH_OK;
    cohi_stream_call meet = call_of(bench, COH_COLLECTIVE_BARRIER, 0);
    cohi_op met = COHI_NEW_OP;
    for (int rank = 0; endpoint->rank == 0 && rank < endpoint->size && status == COH_OK; rank++) {
        CUdeviceptr there = cohi_cuda_base(endpoint, bench->segment, rank);
        cohi_op done = COHI_NEW_OP;
        status = cohi_cuda_copy(endpoint, (void *)(uintptr_t)there, choice, sizeof *choice, &done);
        if (status == COH_OK)
            status = await(endpoint, &done);
    }
    if (status == COH_OK)
        status = cohi_cuda_stream.run(endpoint, &bench->team, &meet, &met);
    if (status == COH_OK)
        status = await(endpoint, &met);
    if (status != COH_OK)
        return status;
    cohi_op read = COHI_NEW_OP;
    CUdeviceptr here = cohi_cuda_base(endpoint, bench->segment, endpoint->rank);
    status = cohi_cuda_copy(endpoint, choice, (void *)(uintptr_t)here, sizeof *choice, &read);
    return status == COH_OK ? await(endpoint, &read) : status;
}

static coh_status measure_all(const struct bench *bench)
{
    cohi_nvshmem *own = cohi_nvshmem_of(bench->endpoint);
    uint64_t choice = 0, start = cohi_now_ns();
    coh_status status = COH_OK;
    for (int row = 0; row < KINDS && status == COH_OK; row++)
        for (int column = 0; column < SIZES && status == COH_OK; column++)
            if (column == 0 || kinds[row] != COH_COLLECTIVE_BARRIER)
                status = compare(bench, row, column, &choice);
    if (status == COH_OK)
        status = share(bench, &choice);
    if (status != COH_OK)
        return status;
    own->choice = choice;
    cohi_log(COH_LOG_INFO,
             "nvshmem: rank %d: NVSHMEM's collectives were faster in %d of %d cases, which took "
             "%.1f ms to find",
             bench->endpoint->rank, __builtin_popcountll(choice), KINDS * SIZES - SIZES + 1,
             (double)(cohi_now_ns() - start) / 1e6);
    return COH_OK;
}

/* The segment's number is a heap's, of which there is none yet. After a failure the card may still write to it, so that
 * it goes with the endpoint, which has then failed to open. */
static coh_status measure_on(cohi_endpoint *endpoint, int *ranks)
{
    const int id = COHI_SEGMENTS_MAX - 1;
    struct bench bench = {.endpoint = endpoint, .segment = id};
    bench.team = (cohi_stream_team){
        .life = 1, .index = endpoint->rank, .size = endpoint->size, .ranks = ranks};
    for (int rank = 0; rank < endpoint->size; rank++)
        ranks[rank] = rank;
    coh_status status = cohi_nvshmem_segment_try(endpoint, id, 2 * LARGEST_BYTES);
    if (status != COH_OK)
        return status;
    status = measure_all(&bench);
    if (status == COH_OK)
        cohi_nvshmem_memory.segment_remove(endpoint, id);
    return status;
}

coh_status cohi_nvshmem_tune(cohi_endpoint *endpoint)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    bool can = own->collectives && !own->has_far && endpoint->size > 1
               && endpoint->sharing != COHI_CUDA_TURNS;
    if (!can || own->wanted == COHI_NVSHMEM_OURS)
        return COH_OK;
    if (own->wanted == COHI_NVSHMEM_THEIRS) {
        own->choice = UINT64_MAX;
        return COH_OK;
    }
    int *ranks = calloc((size_t)endpoint->size, sizeof *ranks);
    if (!ranks)
        return cohi_fail(COH_NO_MEMORY, "nvshmem: out of memory for %d ranks", endpoint->size);
    coh_status status = measure_on(endpoint, ranks);
    free(ranks);
    return status;
}
