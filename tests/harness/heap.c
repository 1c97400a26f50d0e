/* heap.c - the suite on a heap that is not the world's own (--heap). */
#include "page.h"

static int further; /* heaps that each world gets beside its own */

/* The heap that a world's allocations come from; each is set by the rank's own thread. */
static struct chosen {
    _Atomic(coh_world *) world;
    coh_heap *heap;
} chosen[TEST_RANKS_MAX];

void test_heaps_choose(int count)
{
    further = count;
}

bool test_uses_further_heap(void)
{
    return further > 0;
}

void test_heaps_make(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    struct chosen *mine = &chosen[self->rank];
    options.bytes = self->row->heap;
    for (int i = 0; i < further; i++)
        if (!CHECK_OK(coh_heap_create(self->world, &options, &mine->heap)))
            return;
    if (further > 0)
        mine->world = self->world;
}

static coh_heap *heap_of(const coh_world *world)
{
    for (int rank = 0; world && rank < TEST_RANKS_MAX; rank++)
        if (chosen[rank].world == world)
            return chosen[rank].heap;
    return NULL;
}

coh_status test_malloc(coh_world *world, size_t bytes, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_malloc(heap, bytes, pointer) : (coh_malloc)(world, bytes, pointer);
}

coh_status test_calloc(coh_world *world, size_t count, size_t size, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_calloc(heap, count, size, pointer)
                : (coh_calloc)(world, count, size, pointer);
}

coh_status test_align(coh_world *world, size_t alignment, size_t bytes, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_align(heap, alignment, bytes, pointer)
                : (coh_align)(world, alignment, bytes, pointer);
}

coh_status test_realloc(coh_world *world, void *pointer, size_t bytes, void **resized)
{
    coh_heap *heap = heap_of(world);
    return heap && !pointer ? coh_heap_malloc(heap, bytes, resized)
                            : (coh_realloc)(world, pointer, bytes, resized);
}

coh_status test_array_malloc(coh_world *world, coh_dtype dtype, size_t count, coh_array *array,
                             void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_array_malloc(heap, dtype, count, array, pointer)
                : (coh_array_malloc)(world, dtype, count, array, pointer);
}

coh_status test_heap_query(coh_world *world, coh_heap_stats *stats)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_usage(heap, stats) : (coh_heap_query)(world, stats);
}
