#include "core/heap/heap.h"
#include "core/onesided/rma.h"

/* ---- what names a range ---- */

static coh_status fail_heap(const coh_world *world, const char *call, int heap)
{
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                           "there is no heap %d; it may have been destroyed", heap);
}

/* The spot that a view or array names; its range is still to be checked, but for an offset that no spot can
 * have. */
static coh_status find_spot(coh_world *world, const char *call, int rank, int heap, uint64_t offset,
                            uint64_t bytes, cohi_spot *spot)
{
    coh_status status = cohi_heap_check_own(world, call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, call, rank);
    if (status == COH_OK && !cohi_heap_numbered(world, heap))
        status = fail_heap(world, call, heap);
    if (status == COH_OK && offset >> COHI_SPOT_BITS != 0 && bytes > 0)
        status = cohi_heap_fail_bounds(world, call, rank, heap, offset, bytes);
    if (status == COH_OK)
        *spot = cohi_spot_make(heap, bytes > 0 ? offset : 0);
    return status;
}

/* Moves the whole of transfer->bytes at `offset` of that heap. */
static coh_status move(coh_world *world, cohi_transfer *transfer, int heap, uint64_t offset)
{
    coh_status status = find_spot(world, transfer->call, transfer->rank, heap, offset,
                                  transfer->bytes, &transfer->spot);
    return status == COH_OK ? cohi_rma_transfer(world, transfer) : status;
}

/* ---- views of bytes ---- */

coh_status coh_view_of(coh_world *world, const void *pointer, size_t length, int rank,
                       coh_view *view)
{
    static const char call[] = "coh_view_of";
    cohi_spot spot;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !view)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "view is NULL");
    if (status == COH_OK)
        status = cohi_world_check_rank(world, call, rank);
    if (status == COH_OK)
        status = cohi_heap_locate(world, call, pointer, &spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, rank, spot, length);
    if (status == COH_OK)
        *view = (coh_view){.rank = rank,
                           .offset = cohi_spot_offset(spot),
                           .length = length,
                           .heap = cohi_spot_heap(spot)};
    return status;
}

coh_status coh_view_part(coh_view view, uint64_t first, uint64_t length, coh_view *part)
{
    if (!part)
        return cohi_fail(COH_INVALID_ARGUMENT, "coh_view_part: part is NULL");
    if (first > view.length || length > view.length - first)
        return cohi_fail_range(
            cohi_fail(COH_OUT_OF_BOUNDS,
                      "coh_view_part: %llu bytes from byte %llu on: the view has %llu bytes",
                      (unsigned long long)length, (unsigned long long)first,
                      (unsigned long long)view.length),
            first, length, view.length);
    if (view.offset + first < view.offset)
        return cohi_fail(COH_OUT_OF_BOUNDS, "coh_view_part: offset %llu + %llu overflows",
                         (unsigned long long)view.offset, (unsigned long long)first);
    *part = view;
    part->offset += first;
    part->length = length;
    return COH_OK;
}

static coh_status check_length(coh_world *world, const char *call, uint64_t expected, uint64_t got)
{
    if (expected == got)
        return COH_OK;
    return cohi_fail_range(
        cohi_world_fail(world, call, COH_LENGTH_MISMATCH,
                        "the view has %llu bytes (expected), the caller's memory %llu (got)",
                        (unsigned long long)expected, (unsigned long long)got),
        COH_NO_FACT, got, expected);
}

coh_status coh_put_view(coh_world *world, coh_view target, const void *source, size_t bytes)
{
    cohi_transfer transfer = {.call = "coh_put_view",
                              .op = COHI_OP_PUT,
                              .rank = target.rank,
                              .source = source,
                              .bytes = bytes,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_length(world, transfer.call, target.length, bytes);
    return status == COH_OK ? move(world, &transfer, target.heap, target.offset) : status;
}

coh_status coh_get_view(coh_world *world, void *target, size_t bytes, coh_view source)
{
    cohi_transfer transfer = {.call = "coh_get_view",
                              .op = COHI_OP_GET,
                              .rank = source.rank,
                              .target = target,
                              .bytes = bytes,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_length(world, transfer.call, source.length, bytes);
    return status == COH_OK ? move(world, &transfer, source.heap, source.offset) : status;
}

/* ---- typed ---- */

static coh_status check_dtype(const char *call, coh_dtype dtype)
{
    if (coh_dtype_size(dtype) > 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: %d is not a coh_dtype", call, (int)dtype);
}

static coh_status array_bytes(const char *call, coh_dtype dtype, uint64_t count, size_t *bytes)
{
    coh_status status = check_dtype(call, dtype);
    if (status != COH_OK)
        return status;
    if (__builtin_mul_overflow(count, coh_dtype_size(dtype), bytes))
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %llu elements of %zu bytes overflow", call,
                         (unsigned long long)count, coh_dtype_size(dtype));
    return COH_OK;
}

static coh_status allocate(coh_heap *heap, const char *call, coh_dtype dtype, size_t count,
                           coh_array *array, void **pointer)
{
    size_t bytes;
    void *mine = NULL;
    coh_status status = array_bytes(call, dtype, count, &bytes);
    if (status == COH_OK && !array)
        status = cohi_world_fail(heap->world, call, COH_INVALID_ARGUMENT, "array is NULL");
    if (status == COH_OK && bytes > 0)
        status = cohi_heap_allocate(heap, call, COHI_OP_MALLOC, bytes, COHI_BLOCK_BYTES,
                                    COHI_CONTENT_ANY, &mine);
    if (status != COH_OK)
        return status;
    *array = (coh_array){.dtype = dtype,
                         .offset = mine ? (uint64_t)((char *)mine - heap->base) : 0,
                         .count = count,
                         .heap = heap->number};
    if (pointer)
        *pointer = mine;
    return COH_OK;
}

coh_status coh_array_malloc(coh_world *world, coh_dtype dtype, size_t count, coh_array *array,
                            void **pointer)
{
    static const char call[] = "coh_array_malloc";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = cohi_heap_check_own(world, call);
    return status == COH_OK ? allocate(world->heaps[0], call, dtype, count, array, pointer)
                            : status;
}

coh_status coh_heap_array_malloc(coh_heap *heap, coh_dtype dtype, size_t count, coh_array *array,
                                 void **pointer)
{
    static const char call[] = "coh_heap_array_malloc";
    coh_status status = cohi_heap_enter(heap, call);
    return status == COH_OK ? allocate(heap, call, dtype, count, array, pointer) : status;
}

/* This rank's copy of the first `bytes` of an array. */
static coh_status find_array(coh_world *world, const char *call, const coh_array *array,
                             uint64_t bytes, char **mine)
{
    cohi_spot spot;
    coh_status status =
        find_spot(world, call, world->rank, array->heap, array->offset, bytes, &spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, world->rank, spot, bytes);
    if (status == COH_OK)
        *mine = world->heaps[array->heap]->base + cohi_spot_offset(spot);
    return status;
}

coh_status coh_array_pointer(coh_world *world, coh_array array, void **pointer)
{
    static const char call[] = "coh_array_pointer";
    size_t bytes;
    char *mine;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = array_bytes(call, array.dtype, array.count, &bytes);
    if (status == COH_OK && !pointer)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "pointer is NULL");
    if (status == COH_OK)
        status = find_array(world, call, &array, bytes, &mine);
    if (status == COH_OK)
        *pointer = array.count > 0 ? mine : NULL;
    return status;
}

coh_status coh_array_free(coh_world *world, coh_array array)
{
    static const char call[] = "coh_array_free";
    char *mine;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = check_dtype(call, array.dtype);
    if (status == COH_OK)
        status = find_array(world, call, &array, array.count > 0 ? 1 : 0, &mine);
    if (status != COH_OK || array.count == 0)
        return status;
    return coh_free(world, mine);
}

coh_status coh_array_part(coh_array array, uint64_t first, uint64_t count, coh_array *part)
{
    static const char call[] = "coh_array_part";
    coh_status status = check_dtype(call, array.dtype);
    if (status != COH_OK)
        return status;
    if (!part)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: part is NULL", call);
    if (first > array.count || count > array.count - first)
        return cohi_fail_range(
            cohi_fail(COH_OUT_OF_BOUNDS,
                      "%s: %llu elements from element %llu on: the array has %llu", call,
                      (unsigned long long)count, (unsigned long long)first,
                      (unsigned long long)array.count),
            first, count, array.count);
    uint64_t skipped, offset;
    if (__builtin_mul_overflow(first, (uint64_t)coh_dtype_size(array.dtype), &skipped)
        || __builtin_add_overflow(array.offset, skipped, &offset))
        return cohi_fail(COH_OUT_OF_BOUNDS, "%s: the offset of element %llu overflows", call,
                         (unsigned long long)first);
    *part = array;
    part->offset = offset;
    part->count = count;
    return COH_OK;
}

/* The caller's type and count against the array's; the bytes to move. */
static coh_status check_array(coh_world *world, const char *call, const coh_array *array,
                              coh_dtype dtype, size_t count, size_t *bytes)
{
    coh_status status = check_dtype(call, dtype);
    if (status == COH_OK)
        status = array_bytes(call, array->dtype, array->count, bytes);
    if (status != COH_OK)
        return status;
    if (dtype != array->dtype)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "the array is of %s (expected), the caller's memory of %s (got)",
                               coh_dtype_name(array->dtype), coh_dtype_name(dtype));
    if (count != array->count)
        return cohi_fail_range(
            cohi_world_fail(world, call, COH_LENGTH_MISMATCH,
                            "the array has %llu elements (expected), the caller's memory %zu "
                            "(got)",
                            (unsigned long long)array->count, count),
            COH_NO_FACT, count, array->count);
    return COH_OK;
}

coh_status coh_put_array(coh_world *world, coh_array target, int rank, coh_dtype dtype,
                         const void *source, size_t count)
{
    cohi_transfer transfer = {.call = "coh_put_array",
                              .op = COHI_OP_PUT,
                              .rank = rank,
                              .source = source,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_array(world, transfer.call, &target, dtype, count, &transfer.bytes);
    return status == COH_OK ? move(world, &transfer, target.heap, target.offset) : status;
}

coh_status coh_get_array(coh_world *world, coh_dtype dtype, void *target, size_t count,
                         coh_array source, int rank)
{
    cohi_transfer transfer = {.call = "coh_get_array",
                              .op = COHI_OP_GET,
                              .rank = rank,
                              .target = target,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_array(world, transfer.call, &source, dtype, count, &transfer.bytes);
    return status == COH_OK ? move(world, &transfer, source.heap, source.offset) : status;
}
