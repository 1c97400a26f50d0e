/* locate.h - where in the symmetric heap an address is: the way from a pointer to an offset. */
#ifndef COHI_CORE_HEAP_LOCATE_H
#define COHI_CORE_HEAP_LOCATE_H

#include "core/world/world.h"

/* The heap offset of `pointer`; COH_NOT_SYMMETRIC when it is not in this rank's heap. */
coh_status cohi_heap_locate(coh_world *world, const char *call, const void *pointer,
                            uint64_t *offset);

/* COH_OUT_OF_BOUNDS, with rank, offset, length and heap size, unless the range is in the heap. */
coh_status cohi_heap_check_range(coh_world *world, const char *call, int rank, uint64_t offset,
                                 uint64_t bytes);

#define COHI_NO_WINDOW UINT64_MAX

/* The heap offset of `bytes` at `pointer` when they lie in registered memory, else COHI_NO_WINDOW.
 */
static inline uint64_t cohi_heap_window_offset(coh_world *world, const void *pointer, size_t bytes)
{
    int count = atomic_load_explicit(&world->window_count, memory_order_acquire);
    for (cohi_window *window = world->windows; window < world->windows + count; window++) {
        uint64_t all = window->bytes; /* read again below: if equal, base and offset belong to it */
        uint64_t inside = (uint64_t)((uintptr_t)pointer - (uintptr_t)window->base);
        uint64_t offset = window->offset + inside;
        if (all > 0 && bytes <= all && inside <= all - bytes && all == window->bytes)
            return offset;
    }
    return COHI_NO_WINDOW;
}

/* The heap offset of `bytes` at `pointer` when they lie in the heap or in registered memory, else
 * COHI_NO_WINDOW. */
static inline uint64_t cohi_heap_offset_of(coh_world *world, const void *pointer, size_t bytes)
{
    uint64_t limit = atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (world->heap_base && offset <= limit && bytes <= limit - offset)
        return offset;
    return cohi_heap_window_offset(world, pointer, bytes);
}

#endif
