/* place.c - where segments are, and what is in them: the same for all engines whose memory is on a card. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/under_way.h"

CUmemAllocationProp cohi_cuda_allocation(const cohi_endpoint *endpoint)
{
    CUmemAllocationProp kind = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = endpoint->device}};
    kind.requestedHandleTypes =
        endpoint->in_process ? CU_MEM_HANDLE_TYPE_NONE : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return kind;
}

/* ---- where it is ---- */

CUdeviceptr cohi_cuda_base(const cohi_endpoint *endpoint, int id, int rank)
{
    const cohi_cuda_segment *segment = &endpoint->segments[id];
    if (!segment->there)
        return 0;
    return rank == endpoint->rank ? segment->own.base : segment->peers[rank].base;
}

CUdeviceptr cohi_cuda_reach(const cohi_endpoint *endpoint, const cohi_remote *at)
{
    CUdeviceptr base = cohi_cuda_base(endpoint, at->segment, at->rank);
    return base ? base + at->offset : 0;
}

void *cohi_cuda_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    (void)endpoint;
    (void)id;
    (void)rank;
    return NULL;
}

void *cohi_cuda_peer_address(cohi_endpoint *endpoint, int id, int rank)
{
    return (void *)(uintptr_t)cohi_cuda_base(endpoint, id, rank);
}

cohi_memory_place cohi_cuda_place_of(cohi_endpoint *endpoint, const void *pointer)
{
    unsigned type = 0;
    int device = -1, managed = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &device, &managed};
    if (endpoint->library->cuPointerGetAttributes(3, names, values, (CUdeviceptr)(uintptr_t)pointer)
        != CUDA_SUCCESS)
        return COHI_PLACE_HOST;
    if (type == CU_MEMORYTYPE_HOST || managed)
        return COHI_PLACE_PINNED;
    if (type != CU_MEMORYTYPE_DEVICE)
        return COHI_PLACE_HOST;
    return device == endpoint->device ? COHI_PLACE_CARD : COHI_PLACE_OTHER;
}

uint64_t cohi_cuda_available(cohi_endpoint *endpoint)
{
    size_t left = 0, all = 0;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    CUresult result = endpoint->library->cuMemGetInfo(&left, &all);
    cohi_cuda_leave(endpoint, guard);
    return result == CUDA_SUCCESS ? left : COHI_UNKNOWN_BYTES;
}

/* ---- contents ---- */

coh_status cohi_cuda_zero(cohi_endpoint *endpoint, int id, uint64_t offset, uint64_t bytes,
                          cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, COHI_CONTEXT_CONTROL, &stream);
    CUdeviceptr at = endpoint->segments[id].own.base + offset;
    if (status == COH_OK) {
        CUresult result = endpoint->library->cuMemsetD8Async(at, 0, bytes, stream);
        status = result == CUDA_SUCCESS
                     ? cohi_cuda_follow(endpoint, stream, op)
                     : cohi_cuda_fail(endpoint->library, result, "%llu bytes cannot be set to zero",
                                      (unsigned long long)bytes);
    }
    cohi_cuda_leave(endpoint, guard);
    return status;
}

coh_status cohi_cuda_copy(cohi_endpoint *endpoint, void *target, const void *source, size_t bytes,
                          cohi_op *op)
{
    CUstream stream;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, COHI_CONTEXT_CONTROL, &stream);
    if (status == COH_OK)
        status = cohi_cuda_move(endpoint, stream, (CUdeviceptr)(uintptr_t)target,
                                (CUdeviceptr)(uintptr_t)source, bytes);
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, stream, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}
