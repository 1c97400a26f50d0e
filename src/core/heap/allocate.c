/* allocate.c - the public calls that allocate and free, in the world's own heap and in further ones. */
#include "core/heap/blocks.h"
#include "core/heap/heap.h"
#include "core/heap/locate.h"
#include "core/heap/register.h"
#include "memory/host_region.h"

#define MOST_ALIGNMENT ((size_t)COHI_REGION_ALIGNMENT) /* where every rank's heap starts */

/* ---- entering ---- */

static coh_status check_output(const coh_world *world, const char *call, const void *output)
{
    if (output)
        return COH_OK;
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "the place for the result is NULL");
}

static coh_status enter_own(coh_world *world, const char *call, const void *output)
{
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = cohi_heap_check_own(world, call);
    return status == COH_OK ? check_output(world, call, output) : status;
}

static coh_status enter(coh_heap *heap, const char *call, const void *output)
{
    coh_status status = cohi_heap_enter(heap, call);
    return status == COH_OK ? check_output(heap->world, call, output) : status;
}

/* ---- allocating ---- */

static coh_status allocate(coh_heap *heap, const char *call, cohi_opcode op, size_t bytes,
                           size_t alignment, cohi_content content, void **pointer)
{
    if (bytes > 0)
        return cohi_heap_allocate(heap, call, op, bytes, alignment, content, pointer);
    *pointer = NULL;
    return COH_OK;
}

static coh_status allocate_any(coh_heap *heap, const char *call, size_t bytes, void **pointer)
{
    return allocate(heap, call, COHI_OP_MALLOC, bytes, COHI_BLOCK_BYTES, COHI_CONTENT_ANY, pointer);
}

static coh_status allocate_zero(coh_heap *heap, const char *call, size_t count, size_t size,
                                void **pointer)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return cohi_world_fail(heap->world, call, COH_INVALID_ARGUMENT,
                               "%zu elements of %zu bytes overflow", count, size);
    return allocate(heap, call, COHI_OP_CALLOC, bytes, COHI_BLOCK_BYTES, COHI_CONTENT_ZERO,
                    pointer);
}

static coh_status allocate_aligned(coh_heap *heap, const char *call, size_t alignment, size_t bytes,
                                   void **pointer)
{
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > MOST_ALIGNMENT)
        return cohi_world_fail(heap->world, call, COH_BAD_ALIGNMENT,
                               "the alignment %zu is not a power of two from 1 to %zu", alignment,
                               MOST_ALIGNMENT);
    size_t at_least = alignment < COHI_BLOCK_BYTES ? COHI_BLOCK_BYTES : alignment;
    return allocate(heap, call, COHI_OP_ALIGN, bytes, at_least, COHI_CONTENT_ANY, pointer);
}

coh_status coh_malloc(coh_world *world, size_t bytes, void **pointer)
{
    static const char call[] = "coh_malloc";
    coh_status status = enter_own(world, call, pointer);
    return status == COH_OK ? allocate_any(world->heaps[0], call, bytes, pointer) : status;
}

coh_status coh_heap_malloc(coh_heap *heap, size_t bytes, void **pointer)
{
    static const char call[] = "coh_heap_malloc";
    coh_status status = enter(heap, call, pointer);
    return status == COH_OK ? allocate_any(heap, call, bytes, pointer) : status;
}

coh_status coh_calloc(coh_world *world, size_t count, size_t size, void **pointer)
{
    static const char call[] = "coh_calloc";
    coh_status status = enter_own(world, call, pointer);
    return status == COH_OK ? allocate_zero(world->heaps[0], call, count, size, pointer) : status;
}

coh_status coh_heap_calloc(coh_heap *heap, size_t count, size_t size, void **pointer)
{
    static const char call[] = "coh_heap_calloc";
    coh_status status = enter(heap, call, pointer);
    return status == COH_OK ? allocate_zero(heap, call, count, size, pointer) : status;
}

coh_status coh_align(coh_world *world, size_t alignment, size_t bytes, void **pointer)
{
    static const char call[] = "coh_align";
    coh_status status = enter_own(world, call, pointer);
    return status == COH_OK ? allocate_aligned(world->heaps[0], call, alignment, bytes, pointer)
                            : status;
}

coh_status coh_heap_align(coh_heap *heap, size_t alignment, size_t bytes, void **pointer)
{
    static const char call[] = "coh_heap_align";
    coh_status status = enter(heap, call, pointer);
    return status == COH_OK ? allocate_aligned(heap, call, alignment, bytes, pointer) : status;
}

/* For core's own use of the world's own heap. */

coh_status cohi_heap_take_bare(coh_world *world, const char *call, cohi_opcode op, uint64_t bytes,
                               uint64_t alignment, uint64_t *offset)
{
    void *pointer = NULL;
    coh_status status = enter_own(world, call, offset);
    if (status == COH_OK)
        status = cohi_heap_allocate(world->heaps[0], call, op, bytes, alignment, COHI_CONTENT_BARE,
                                    &pointer);
    if (status == COH_OK)
        *offset = (uint64_t)((char *)pointer - world->heap_base);
    return status;
}

coh_status cohi_heap_give(coh_world *world, const char *call, cohi_opcode op, uint64_t offset)
{
    return cohi_heap_release(world->heaps[0], call, op, offset);
}

/* ---- freeing and resizing: the pointer says which heap ---- */

/* A live allocation. */
struct block {
    coh_heap *heap;
    uint64_t offset, bytes;
};

/* The one that starts at `pointer`. */
static coh_status find_block(coh_world *world, const char *call, const void *pointer,
                             struct block *block)
{
    cohi_spot spot, start;
    coh_status status = cohi_heap_locate(world, call, pointer, &spot);
    if (status == COH_OK && cohi_register_holds(world, spot))
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                 "%p is registered memory, not an allocation", pointer);
    if (status != COH_OK)
        return status;
    if (!cohi_heap_find(world, spot, &start, &block->bytes))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%p (%s) is not a live allocation; it may have been freed before",
                               pointer, cohi_spot_describe(spot).text);
    if (start != spot)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%p (%s) is %llu bytes inside the allocation at offset %llu, not "
                               "its start",
                               pointer, cohi_spot_describe(spot).text,
                               (unsigned long long)(spot - start),
                               (unsigned long long)cohi_spot_offset(start));
    block->heap = world->heaps[cohi_spot_heap(spot)];
    block->offset = cohi_spot_offset(spot);
    return COH_OK;
}

coh_status coh_free(coh_world *world, void *pointer)
{
    static const char call[] = "coh_free";
    struct block block;
    coh_status status = enter_own(world, call, call); /* it has no result */
    if (status != COH_OK || !pointer)
        return status;
    status = find_block(world, call, pointer, &block);
    return status == COH_OK ? cohi_heap_release(block.heap, call, COHI_OP_FREE, block.offset)
                            : status;
}

coh_status coh_realloc(coh_world *world, void *pointer, size_t bytes, void **resized)
{
    static const char call[] = "coh_realloc";
    struct block block;
    coh_status status = enter_own(world, call, resized);
    if (status == COH_OK && !pointer)
        return allocate(world->heaps[0], call, COHI_OP_REALLOC, bytes, COHI_BLOCK_BYTES,
                        COHI_CONTENT_ANY, resized);
    if (status == COH_OK)
        status = find_block(world, call, pointer, &block);
    if (status != COH_OK)
        return status;
    if (bytes > 0)
        return cohi_heap_resize(block.heap, call, block.offset, block.bytes, bytes, resized);
    status = cohi_heap_release(block.heap, call, COHI_OP_REALLOC, block.offset);
    if (status == COH_OK)
        *resized = NULL;
    return status;
}

/* ---- statistics ---- */

static coh_status fill_stats(coh_heap *heap, const char *call, coh_heap_stats *stats)
{
    if (stats->size < sizeof *stats)
        return cohi_world_fail(heap->world, call, COH_INVALID_ARGUMENT,
                               "stats->size is %zu; set it to sizeof(coh_heap_stats), %zu",
                               stats->size, sizeof *stats);
    pthread_mutex_lock(&heap->lock);
    stats->reserved = heap->reserved;
    stats->committed = atomic_load(heap->limit);
    stats->used = cohi_blocks_used(heap->blocks);
    stats->largest = cohi_blocks_largest(heap->blocks);
    stats->count = cohi_blocks_count(heap->blocks);
    pthread_mutex_unlock(&heap->lock);
    return COH_OK;
}

coh_status coh_heap_query(coh_world *world, coh_heap_stats *stats)
{
    static const char call[] = "coh_heap_query";
    coh_status status = enter_own(world, call, stats);
    return status == COH_OK ? fill_stats(world->heaps[0], call, stats) : status;
}

coh_status coh_heap_usage(coh_heap *heap, coh_heap_stats *stats)
{
    static const char call[] = "coh_heap_usage";
    coh_status status = enter(heap, call, stats);
    return status == COH_OK ? fill_stats(heap, call, stats) : status;
}
