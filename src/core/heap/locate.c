#include "core/heap/locate.h"

#include "core/heap/heap.h"

coh_status cohi_heap_locate(coh_world *world, const char *call, const void *pointer,
                            uint64_t *offset)
{
    if (!world->heap)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "engine %s has no one-sided memory, so there is no heap",
                               world->engine->name);
    uint64_t reserved = cohi_heap_reserved(world);
    uint64_t distance = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (distance >= reserved)
        distance = cohi_heap_window_offset(world, pointer, 1);
    if (distance == COHI_NO_WINDOW)
        return cohi_world_fail(world, call, COH_NOT_SYMMETRIC,
                               "address %p is not in the symmetric heap of this rank (%p, %llu "
                               "bytes), nor in memory that was registered",
                               pointer, (void *)world->heap_base, (unsigned long long)reserved);
    *offset = distance;
    return COH_OK;
}

static bool in_range(coh_world *world, uint64_t offset, uint64_t bytes)
{
    uint64_t limit = atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    return offset <= limit && bytes <= limit - offset;
}

coh_status cohi_heap_check_range(coh_world *world, const char *call, int rank, uint64_t offset,
                                 uint64_t bytes)
{
    if (COHI_LIKELY(in_range(world, offset, bytes)))
        return COH_OK;
    uint64_t limit = atomic_load(&world->heap_limit);
    (void)cohi_world_fail(world, call, COH_OUT_OF_BOUNDS,
                          "rank %d, offset %llu, length %llu: out of bounds, its heap has %llu "
                          "bytes",
                          rank, (unsigned long long)offset, (unsigned long long)bytes,
                          (unsigned long long)limit);
    cohi_fail_range(COH_OUT_OF_BOUNDS, offset, bytes, limit);
    return cohi_fail_peer(COH_OUT_OF_BOUNDS, rank);
}
