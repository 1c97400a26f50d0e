/* locate.h - where in symmetric memory an address is, and where a spot is in this process. */
#ifndef COHI_CORE_HEAP_LOCATE_H
#define COHI_CORE_HEAP_LOCATE_H

#include "core/world/world.h"

/* ---- from a pointer to a spot ---- */

/* The spot of `pointer`; COH_NOT_SYMMETRIC when it is in no heap of this rank. */
coh_status cohi_heap_locate(coh_world *world, const char *call, const void *pointer,
                            cohi_spot *spot);

/* COH_OUT_OF_BOUNDS, with rank, offset, length and heap size, unless the range is in its heap. */
coh_status cohi_heap_check_range(coh_world *world, const char *call, int rank, cohi_spot spot,
                                 uint64_t bytes);

/* COH_OUT_OF_BOUNDS, with all that: `bytes` at `offset` of that heap, which is there. */
coh_status cohi_heap_fail_bounds(coh_world *world, const char *call, int rank, int heap,
                                 uint64_t offset, uint64_t bytes);

/* Notes the facts of a failure about a range of rank `rank`, and returns `status`. */
coh_status cohi_heap_note_range(coh_status status, int rank, cohi_spot spot, uint64_t bytes,
                                uint64_t limit);

#define COHI_NO_WINDOW COHI_NO_SPOT

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

/* The offset in the world's own heap of `bytes` at `pointer` when they lie in it or in registered memory,
 * else COHI_NO_WINDOW. */
static inline uint64_t cohi_heap_offset_of(coh_world *world, const void *pointer, size_t bytes)
{
    uint64_t limit = atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (world->heap_base && offset <= limit && bytes <= limit - offset)
        return offset;
    return cohi_heap_window_offset(world, pointer, bytes);
}

/* The spot of `bytes` at `pointer` when they lie in a further heap, else COHI_NO_SPOT. */
cohi_spot cohi_heap_further_spot(coh_world *world, const void *pointer, size_t bytes);

/* The same for memory of any heap, or registered. */
static inline cohi_spot cohi_heap_spot_of(coh_world *world, const void *pointer, size_t bytes)
{
    uint64_t offset = cohi_heap_offset_of(world, pointer, bytes);
    return COHI_LIKELY(offset != COHI_NO_WINDOW) ? offset
                                                 : cohi_heap_further_spot(world, pointer, bytes);
}

/* ---- from a spot to an address ---- */

/* Rank `rank`'s copy in this process of a spot that is not of the world's own heap; NULL: by engine. */
char *cohi_heap_reach_further(const coh_world *world, int rank, cohi_spot spot);

/* The same of any spot whose heap is there. */
static inline char *cohi_heap_reach(const coh_world *world, int rank, cohi_spot spot)
{
    if (COHI_UNLIKELY(cohi_spot_heap(spot) > 0))
        return cohi_heap_reach_further(world, rank, spot);
    char *heap = world->peers[rank].heap;
    return heap ? heap + spot : NULL;
}

/* Rank `rank`'s copy for kernels of this rank's card, of a spot in a heap on one; NULL: out of reach. */
char *cohi_heap_reach_card(const coh_world *world, int rank, cohi_spot spot);

/*
 * The same of `bytes` at a spot that a peer has told, or NULL. The peer may have grown its heap before
 * this rank has: all that is reserved is mapped.
 */
char *cohi_heap_reach_told(coh_world *world, int rank, cohi_spot spot, uint64_t bytes);

/*
 * The address in this process of `bytes` at `pointer`, in a further heap, of the mapped rank `rank`, when
 * nothing about the call is special; else NULL. For the slow path of calls whose fast path knows
 * the world's own heap alone.
 */
char *cohi_heap_further_direct(coh_world *world, const void *pointer, size_t bytes, int rank);

#endif
