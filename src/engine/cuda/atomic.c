/* atomic.c - atomics from the host, by a kernel of one thread (kernels/atomic.cu). */
#include "base/clock.h"
#include "base/error.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/under_way.h"

#include <sched.h>
#include <string.h>

/* Every atomic ends within microseconds, unless the card is stuck. */
#define WORD_WAIT_NS UINT64_C(10000000000)

static uint64_t read_value(const void *value, size_t bytes)
{
    uint64_t word = 0;
    if (value)
        memcpy(&word, value, bytes);
    return word;
}

coh_status cohi_cuda_launch_atomic(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *at,
                                   const cohi_remote_atomic *atomic, CUdeviceptr result)
{
    CUdeviceptr target = cohi_cuda_reach(endpoint, at);
    int kind = (int)atomic->kind, bytes = (int)coh_dtype_size(atomic->dtype);
    uint64_t operand = read_value(atomic->operand, (size_t)bytes);
    uint64_t compare = read_value(atomic->compare, (size_t)bytes);
    void *arguments[] = {&kind, &bytes, &target, &operand, &compare, &result};
    if (!target)
        return cohi_fail(COH_UNSUPPORTED, "cuda: the card of rank %d cannot be reached", at->rank);
    CUresult launched = endpoint->library->cuLaunchKernel(endpoint->atomic_kernel, 1, 1, 1, 1, 1, 1,
                                                          0, stream, arguments, NULL);
    return launched == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, launched, "an atomic cannot be started");
}

static coh_status post(cohi_endpoint *endpoint, cohi_remote at, const cohi_remote_atomic *atomic)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, at.context, &stream);
    if (status == COH_OK)
        status = cohi_cuda_launch_atomic(endpoint, stream, &at, atomic, 0);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

/* A word for the result; where all are under way, one of those ends soon. */
static coh_status await_word(cohi_endpoint *endpoint, int *word)
{
    uint64_t until = 0;
    while ((*word = cohi_cuda_word_take(endpoint)) < 0) {
        cohi_cuda_under_way_progress(endpoint);
        uint64_t now = cohi_now_ns();
        until = until ? until : now + WORD_WAIT_NS;
        if (now > until)
            return cohi_fail(COH_TRANSPORT, "cuda: %d atomics on card %d, %s, do not end",
                             (int)COHI_CUDA_WORDS, endpoint->device, endpoint->name);
        sched_yield();
    }
    return COH_OK;
}

static coh_status fetch_on(cohi_endpoint *endpoint, const cohi_remote *at,
                           const cohi_remote_atomic *atomic, void *result, cohi_op *op)
{
    CUstream stream;
    int word;
    coh_status status = cohi_cuda_lane(endpoint, at->context, &stream);
    if (status == COH_OK)
        status = await_word(endpoint, &word);
    if (status != COH_OK)
        return status;
    status = cohi_cuda_launch_atomic(endpoint, stream, at, atomic,
                                     endpoint->words_there + (CUdeviceptr)word * sizeof(uint64_t));
    if (status == COH_OK)
        status = cohi_cuda_follow_word(endpoint, stream, op, word, result,
                                       coh_dtype_size(atomic->dtype));
    if (status != COH_OK)
        cohi_cuda_word_give(endpoint, word);
    return status;
}

static coh_status fetch(cohi_endpoint *endpoint, cohi_remote at, const cohi_remote_atomic *atomic,
                        void *result, cohi_op *op)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = fetch_on(endpoint, &at, atomic, result, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

const cohi_engine_atomic cohi_cuda_atomic = {
    .size = sizeof cohi_cuda_atomic,
    .post = post,
    .fetch = fetch,
};
