/* far.c - ranks that the card does not map: NVSHMEM's own calls on the stream carry what is for them. */
#include "base/error.h"
#include "engine/nvshmem/nvshmem.h"

/* NVSHMEM lets one thread in at a time. */
static pthread_mutex_t entrance = PTHREAD_MUTEX_INITIALIZER;

void cohi_nvshmem_enter(void)
{
    pthread_mutex_lock(&entrance);
}

void cohi_nvshmem_leave(void)
{
    pthread_mutex_unlock(&entrance);
}

/* A place of another rank is named by the address that this rank has of the same offset. */
static void *name_of(const cohi_endpoint *endpoint, const cohi_remote *at)
{
    CUdeviceptr base = cohi_cuda_base(endpoint, at->segment, endpoint->rank);
    return (void *)(uintptr_t)(base + at->offset);
}

bool cohi_nvshmem_is_symmetric(const cohi_endpoint *endpoint, const void *pointer, size_t bytes)
{
    uintptr_t from = (uintptr_t)pointer;
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++) {
        const cohi_cuda_region *own = &endpoint->segments[id].own;
        if (endpoint->segments[id].there && from >= own->base && bytes <= own->bytes
            && from - own->base <= own->bytes - bytes)
            return true;
    }
    return false;
}

/* NVSHMEM's transports between hosts read and write memory that they know. */
static coh_status check_local(const cohi_endpoint *endpoint, const char *what, const void *local,
                              size_t bytes, int rank)
{
    if (cohi_nvshmem_is_symmetric(endpoint, local, bytes))
        return COH_OK;
    return cohi_fail(COH_UNSUPPORTED,
                     "the %s (%p) is private memory, and rank %d is not mapped by this card: "
                     "NVSHMEM takes memory of a heap on a card for it",
                     what, local, rank);
}

static coh_status put(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                      const void *source, size_t bytes)
{
    coh_status status = check_local(endpoint, "source", source, bytes, to->rank);
    if (status != COH_OK)
        return status;
    cohi_nvshmem_enter();
    cohi_nvshmem_of(endpoint)->library->put(name_of(endpoint, to), source, bytes, to->rank, stream);
    cohi_nvshmem_leave();
    return COH_OK;
}

static coh_status get(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *from,
                      void *target, size_t bytes)
{
    coh_status status = check_local(endpoint, "target", target, bytes, from->rank);
    if (status != COH_OK)
        return status;
    cohi_nvshmem_enter();
    cohi_nvshmem_of(endpoint)->library->get(target, name_of(endpoint, from), bytes, from->rank,
                                            stream);
    cohi_nvshmem_leave();
    return COH_OK;
}

static coh_status put_signal(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                             const void *source, size_t bytes, const cohi_remote *at,
                             const cohi_remote_signal *signal)
{
    const cohi_nvshmem_library *library = cohi_nvshmem_of(endpoint)->library;
    int op = signal->add ? COHI_NVSHMEM_SIGNAL_ADD : COHI_NVSHMEM_SIGNAL_SET;
    uint64_t *word = name_of(endpoint, at);
    coh_status status =
        bytes > 0 ? check_local(endpoint, "source", source, bytes, to->rank) : COH_OK;
    if (status != COH_OK)
        return status;
    cohi_nvshmem_enter();
    if (bytes > 0)
        library->put_signal(name_of(endpoint, to), source, bytes, word, signal->value, op, to->rank,
                            stream);
    else
        library->signal(word, signal->value, op, at->rank, stream);
    cohi_nvshmem_leave();
    return COH_OK;
}

/* Where all ranks are mapped nothing was given to NVSHMEM. */
static coh_status quiet(cohi_endpoint *endpoint, CUstream stream)
{
    const cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    if (!own->has_far)
        return COH_OK;
    cohi_nvshmem_enter();
    own->library->quiet(stream);
    cohi_nvshmem_leave();
    return COH_OK;
}

const cohi_cuda_far cohi_nvshmem_far = {
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .quiet = quiet,
    .collective = cohi_nvshmem_collective,
    .prefers = cohi_nvshmem_prefers,
};
