/* turns.c - collectives of processes that take turns on a card: streams wait, by values, and kernels do not. */
#include "engine/cuda/streams.h"

#include <string.h>

uint64_t cohi_cuda_value(uint32_t life, uint64_t tick)
{
    return ((uint64_t)life << 32) + tick;
}

/* Operations on words that a stream carries out one behind the other, enqueued together. */
typedef struct word_batch {
    CUstreamBatchMemOpParams operations[128];
    unsigned count;
    CUresult result;
} word_batch;

static void pass_batch(cohi_endpoint *endpoint, CUstream stream, word_batch *batch)
{
    if (batch->count > 0 && batch->result == CUDA_SUCCESS)
        batch->result =
            endpoint->library->cuStreamBatchMemOp(stream, batch->count, batch->operations, 0);
    batch->count = 0;
}

static CUstreamBatchMemOpParams *add_operation(cohi_endpoint *endpoint, CUstream stream,
                                               word_batch *batch)
{
    if (batch->count == sizeof batch->operations / sizeof *batch->operations)
        pass_batch(endpoint, stream, batch);
    CUstreamBatchMemOpParams *operation = &batch->operations[batch->count++];
    memset(operation, 0, sizeof *operation);
    return operation;
}

static void add_write(cohi_endpoint *endpoint, CUstream stream, word_batch *batch, CUdeviceptr word,
                      uint64_t value)
{
    CUstreamBatchMemOpParams *operation = add_operation(endpoint, stream, batch);
    operation->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation->writeValue.address = word;
    operation->writeValue.value64 = value;
    operation->writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT; /* the only one that is there */
}

static void add_wait(cohi_endpoint *endpoint, CUstream stream, word_batch *batch, CUdeviceptr word,
                     uint64_t value)
{
    CUstreamBatchMemOpParams *operation = add_operation(endpoint, stream, batch);
    operation->waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    operation->waitValue.address = word;
    operation->waitValue.value64 = value;
    operation->waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
}

/* This rank's post to a member, as a kernel would write it. */
static void add_post(cohi_endpoint *endpoint, CUstream stream, word_batch *batch,
                     const cohi_cuda_call *told, int member)
{
    uint64_t row = (uint64_t)told->team * told->layout.blocks * told->layout.ranks;
    CUdeviceptr post = told->members[member].control + told->layout.posts
                       + (row + told->members[told->index].rank) * sizeof(cohi_cuda_post);
    uint64_t scale;
    memcpy(&scale, &told->scale, sizeof scale);
    const struct {
        size_t offset;
        uint64_t value;
    } words[] = {{offsetof(cohi_cuda_post, flag), (uint64_t)told->life << 32 | told->tick},
                 {offsetof(cohi_cuda_post, flag.fingerprint), told->fingerprint},
                 {offsetof(cohi_cuda_post, source.data),
                  COHI_CUDA_WITH_BUFFERS(told->source_place, told->buffers)},
                 {offsetof(cohi_cuda_post, target.data), told->target_place},
                 {offsetof(cohi_cuda_post, scale.data), scale}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_write(endpoint, stream, batch, post + words[i].offset, words[i].value);
}

/* This rank's stream has come to `tick`, and goes on when all members' have. With `posts`, they learn what its post
 * has: so a call begins without a kernel, for which the card would have to switch to this process. */
static coh_status exchange(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                           const cohi_cuda_call *told, bool posts)
{
    uint64_t value = cohi_cuda_value(told->life, told->tick);
    uint64_t row = told->layout.values + (uint64_t)told->team * told->layout.ranks * sizeof value;
    CUdeviceptr own = told->members[told->index].control + row;
    word_batch batch = {.count = 0};
    for (int i = 0; i < told->size; i++) {
        if (i == told->index)
            continue;
        if (posts)
            add_post(endpoint, lineup->stream, &batch, told, i);
        add_write(endpoint, lineup->stream, &batch,
                  told->members[i].control + row + told->members[told->index].rank * sizeof value,
                  value);
    }
    for (int i = 0; i < told->size; i++)
        if (i != told->index)
            add_wait(endpoint, lineup->stream, &batch, own + told->members[i].rank * sizeof value,
                     value);
    pass_batch(endpoint, lineup->stream, &batch);
    return batch.result == CUDA_SUCCESS ? COH_OK
                                        : cohi_cuda_fail(endpoint->library, batch.result,
                                                         "a stream cannot wait for other ranks'");
}

coh_status cohi_cuda_run_in_turns(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                  CUfunction kernel, cohi_cuda_grid grid, cohi_cuda_call *told,
                                  cohi_cuda_team *team)
{
    bool direct = told->way == COHI_CUDA_DIRECT;
    coh_status status = COH_OK;
    told->phase = COHI_CUDA_BEGIN;
    told->tick = (uint32_t)++team->ticks;
    if (!direct)
        status =
            cohi_cuda_launch(endpoint, kernel, grid.blocks, grid.threads, lineup->stream, told);
    if (status == COH_OK)
        status = exchange(endpoint, lineup, told, direct);
    told->phase = COHI_CUDA_GO_ON;
    uint64_t steps = direct ? 1 : told->steps;
    for (told->step = 0; told->step < steps && status == COH_OK; told->step++) {
        status =
            cohi_cuda_launch(endpoint, kernel, grid.blocks, grid.threads, lineup->stream, told);
        if (status != COH_OK || (told->step + 1 == steps && !direct))
            break;
        told->tick = (uint32_t)++team->ticks;
        status = exchange(endpoint, lineup, told, false);
    }
    return status;
}
