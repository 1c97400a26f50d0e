/* rma.c - one-sided operations from the host: copies on the stream of the context. */
#include "base/error.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/under_way.h"

#include <string.h>

coh_status cohi_cuda_move(cohi_endpoint *endpoint, CUstream stream, CUdeviceptr target,
                          CUdeviceptr source, size_t bytes)
{
    CUresult result = endpoint->library->cuMemcpyAsync(target, source, bytes, stream);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result,
                                "%zu bytes cannot be copied from %p to %p", bytes,
                                (void *)(uintptr_t)source, (void *)(uintptr_t)target);
}

/* Core sends nothing to ranks of other hosts by an engine that does not reach them. */
static coh_status locate(const cohi_endpoint *endpoint, const cohi_remote *at, CUdeviceptr *place)
{
    *place = cohi_cuda_reach(endpoint, at);
    return *place ? COH_OK
                  : cohi_fail(COH_UNSUPPORTED, "cuda: the card of rank %d cannot be reached",
                              at->rank);
}

/* A copy of what is short enough and in pinned memory, which the card would read later. */
static const void *settle_source(cohi_endpoint *endpoint, const void *source, size_t bytes,
                                 unsigned char *copied)
{
    if (bytes > COHI_INLINE_BYTES || cohi_cuda_place_of(endpoint, source) != COHI_PLACE_PINNED)
        return source;
    memcpy(copied, source, bytes);
    return copied;
}

static bool is_far(const cohi_endpoint *endpoint, const cohi_remote *at)
{
    return endpoint->far && !cohi_cuda_reach(endpoint, at);
}

/* It is over when it is at its target: the order of such puts and of what core sends by other ways is then that of
 * the calls. */
static coh_status put_far(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                          const void *source, size_t bytes)
{
    coh_status status = endpoint->far->put(endpoint, stream, to, source, bytes);
    return status == COH_OK ? endpoint->far->quiet(endpoint, stream) : status;
}

static coh_status put_on(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                         const void *source, size_t bytes)
{
    unsigned char copied[COHI_INLINE_BYTES];
    CUdeviceptr target;
    if (is_far(endpoint, to))
        return put_far(endpoint, stream, to, source, bytes);
    coh_status status = locate(endpoint, to, &target);
    if (status != COH_OK)
        return status;
    const void *settled = settle_source(endpoint, source, bytes, copied);
    return cohi_cuda_move(endpoint, stream, target, (CUdeviceptr)(uintptr_t)settled, bytes);
}

static coh_status put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                      cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, to.context, &stream);
    if (status == COH_OK)
        status = put_on(endpoint, stream, &to, source, bytes);
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static coh_status get_on(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *from,
                         void *target, size_t bytes)
{
    CUdeviceptr source;
    if (is_far(endpoint, from))
        return endpoint->far->get(endpoint, stream, from, target, bytes);
    coh_status status = locate(endpoint, from, &source);
    return status == COH_OK
               ? cohi_cuda_move(endpoint, stream, (CUdeviceptr)(uintptr_t)target, source, bytes)
               : status;
}

static coh_status get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                      cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, from.context, &stream);
    if (status == COH_OK)
        status = get_on(endpoint, stream, &from, target, bytes);
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static coh_status put_signal(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                             size_t bytes, const cohi_remote_signal *signal, cohi_op *op)
{
    CUstream stream;
    cohi_remote at = to;
    at.offset = signal->offset;
    cohi_remote_atomic raise = {.kind = signal->add ? COH_ATOMIC_ADD : COH_ATOMIC_SET,
                                .dtype = COH_U64,
                                .operand = &signal->value};
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, to.context, &stream);
    if (status == COH_OK && bytes > 0)
        status = put_on(endpoint, stream, &to, source, bytes);
    if (status == COH_OK)
        status = cohi_cuda_launch_atomic(endpoint, stream, &at, &raise, 0);
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

/* A stream does one after the other. */
static coh_status fence(cohi_endpoint *endpoint, unsigned context)
{
    (void)endpoint;
    (void)context;
    return COH_OK;
}

static void finish(cohi_op *op)
{
    op->status = COH_OK;
    atomic_store_explicit(&op->done, 1, memory_order_release);
}

static coh_status quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    coh_status status = COH_OK;
    pthread_mutex_lock(&endpoint->lock);
    CUstream stream = endpoint->lanes[context];
    pthread_mutex_unlock(&endpoint->lock);
    if (!stream) {
        finish(op);
        return COH_OK;
    }
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static void context_close(cohi_endpoint *endpoint, unsigned context)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    cohi_cuda_lane_close(endpoint, context);
    cohi_cuda_leave(endpoint, guard);
}

const cohi_engine_rma cohi_cuda_rma = {
    .size = sizeof cohi_cuda_rma,
    .context_close = context_close,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .fence = fence,
    .quiet = quiet,
};
