#include "core/heap/locate.h"

#include "core/heap/heap.h"

/* ---- from a pointer to a spot ---- */

/* The further heap that `pointer` is in, which may not have grown so far yet; NULL: none. */
static coh_heap *find_further(coh_world *world, const void *pointer, uint64_t *offset)
{
    int count = atomic_load_explicit(&world->heap_count, memory_order_acquire);
    for (int number = 1; number < count; number++) {
        coh_heap *heap = cohi_heap_numbered(world, number);
        *offset = heap ? (uint64_t)((uintptr_t)pointer - (uintptr_t)heap->base) : UINT64_MAX;
        if (heap && *offset < heap->reserved)
            return heap;
    }
    return NULL;
}

cohi_spot cohi_heap_further_spot(coh_world *world, const void *pointer, size_t bytes)
{
    uint64_t offset;
    const coh_heap *heap = find_further(world, pointer, &offset);
    uint64_t limit = heap ? atomic_load_explicit(heap->limit, memory_order_relaxed) : 0;
    if (!heap || offset > limit || bytes > limit - offset)
        return COHI_NO_SPOT;
    return cohi_spot_make(heap->number, offset);
}

static cohi_spot locate_further(coh_world *world, const void *pointer)
{
    uint64_t offset;
    const coh_heap *heap = find_further(world, pointer, &offset);
    return heap ? cohi_spot_make(heap->number, offset) : COHI_NO_SPOT;
}

coh_status cohi_heap_locate(coh_world *world, const char *call, const void *pointer,
                            cohi_spot *spot)
{
    coh_status status = cohi_heap_check_own(world, call);
    if (status != COH_OK)
        return status;
    uint64_t reserved = cohi_heap_reserved(world);
    cohi_spot found = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (found >= reserved)
        found = cohi_heap_window_offset(world, pointer, 1);
    if (found == COHI_NO_WINDOW)
        found = locate_further(world, pointer);
    if (found == COHI_NO_SPOT)
        return cohi_world_fail(world, call, COH_NOT_SYMMETRIC,
                               "address %p is not in the symmetric heap of this rank (%p, %llu "
                               "bytes), nor in memory that was registered%s",
                               pointer, (void *)world->heap_base, (unsigned long long)reserved,
                               world->heap_count > 1 ? ", nor in another heap" : "");
    *spot = found;
    return COH_OK;
}

static uint64_t limit_of(coh_world *world, int number)
{
    if (COHI_LIKELY(number == 0))
        return atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    const coh_heap *heap = cohi_heap_numbered(world, number);
    return heap ? atomic_load_explicit(heap->limit, memory_order_relaxed) : 0;
}

static coh_status note(coh_status status, int rank, int heap, uint64_t offset, uint64_t bytes,
                       uint64_t limit)
{
    cohi_fail_range(status, offset, bytes, limit);
    cohi_fail_heap(status, heap);
    return cohi_fail_peer(status, rank);
}

coh_status cohi_heap_note_range(coh_status status, int rank, cohi_spot spot, uint64_t bytes,
                                uint64_t limit)
{
    return note(status, rank, cohi_spot_heap(spot), cohi_spot_offset(spot), bytes, limit);
}

coh_status cohi_heap_fail_bounds(coh_world *world, const char *call, int rank, int heap,
                                 uint64_t offset, uint64_t bytes)
{
    uint64_t limit = limit_of(world, heap);
    (void)cohi_world_fail(world, call, COH_OUT_OF_BOUNDS,
                          "rank %d, %s, length %llu: out of bounds, its heap has %llu bytes", rank,
                          cohi_spot_describe_in(heap, offset).text, (unsigned long long)bytes,
                          (unsigned long long)limit);
    return note(COH_OUT_OF_BOUNDS, rank, heap, offset, bytes, limit);
}

coh_status cohi_heap_check_range(coh_world *world, const char *call, int rank, cohi_spot spot,
                                 uint64_t bytes)
{
    int heap = cohi_spot_heap(spot);
    uint64_t offset = cohi_spot_offset(spot), limit = limit_of(world, heap);
    if (COHI_LIKELY(offset <= limit && bytes <= limit - offset))
        return COH_OK;
    return cohi_heap_fail_bounds(world, call, rank, heap, offset, bytes);
}

/* ---- from a spot to an address ---- */

char *cohi_heap_reach_further(const coh_world *world, int rank, cohi_spot spot)
{
    const coh_heap *heap = cohi_heap_numbered((coh_world *)world, cohi_spot_heap(spot));
    char *there = heap ? heap->peers[rank] : NULL;
    return there ? there + cohi_spot_offset(spot) : NULL;
}

char *cohi_heap_reach_card(const coh_world *world, int rank, cohi_spot spot)
{
    const coh_heap *heap = cohi_heap_numbered((coh_world *)world, cohi_spot_heap(spot));
    char *there = heap ? heap->addresses[rank] : NULL;
    return there ? there + cohi_spot_offset(spot) : NULL;
}

char *cohi_heap_reach_told(coh_world *world, int rank, cohi_spot spot, uint64_t bytes)
{
    coh_heap *heap = cohi_heap_numbered(world, cohi_spot_heap(spot));
    uint64_t limit = heap ? heap->reserved : 0, offset = cohi_spot_offset(spot);
    return offset <= limit && bytes <= limit - offset ? cohi_heap_reach(world, rank, spot) : NULL;
}

char *cohi_heap_further_direct(coh_world *world, const void *pointer, size_t bytes, int rank)
{
    if (!cohi_world_plain(world) || (unsigned)rank >= (unsigned)world->size)
        return NULL;
    cohi_spot spot = cohi_heap_further_spot(world, pointer, bytes);
    return spot == COHI_NO_SPOT ? NULL : cohi_heap_reach_further(world, rank, spot);
}
