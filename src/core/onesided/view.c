#include "core/onesided/rma.h"

static coh_status check_heap(const coh_world *world, const char *call)
{
    if (world->heap)
        return COH_OK;
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "engine %s has no one-sided memory, so there is no heap",
                           world->engine->name);
}

static coh_status enter_transfer(coh_world *world, const cohi_transfer *transfer)
{
    coh_status status = cohi_world_enter(world, transfer->call);
    if (status == COH_OK)
        status = check_heap(world, transfer->call);
    return status == COH_OK ? cohi_rma_transfer(world, transfer) : status;
}

/* ---- views of bytes ---- */

coh_status coh_view_of(coh_world *world, const void *pointer, size_t length, int rank,
                       coh_view *view)
{
    static const char call[] = "coh_view_of";
    uint64_t offset;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !view)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "view is NULL");
    if (status == COH_OK)
        status = cohi_world_check_rank(world, call, rank);
    if (status == COH_OK)
        status = cohi_heap_locate(world, call, pointer, &offset);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, rank, offset, length);
    if (status == COH_OK)
        *view = (coh_view){.rank = rank, .offset = offset, .length = length};
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
    *part = (coh_view){.rank = view.rank, .offset = view.offset + first, .length = length};
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
                              .offset = target.offset,
                              .source = source,
                              .bytes = bytes,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_length(world, transfer.call, target.length, bytes);
    return status == COH_OK ? enter_transfer(world, &transfer) : status;
}

coh_status coh_get_view(coh_world *world, void *target, size_t bytes, coh_view source)
{
    cohi_transfer transfer = {.call = "coh_get_view",
                              .op = COHI_OP_GET,
                              .rank = source.rank,
                              .offset = source.offset,
                              .target = target,
                              .bytes = bytes,
                              .blocking = true};
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = check_length(world, transfer.call, source.length, bytes);
    return status == COH_OK ? enter_transfer(world, &transfer) : status;
}

/* ---- typed ---- */

static coh_status check_dtype(const char *call, coh_dtype dtype)
{
    if (coh_dtype_size(dtype) > 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: %d is not a coh_dtype", call, (int)dtype);
}

static coh_status array_bytes(const char *call, coh_dtype dtype, uint64_t count, uint64_t *bytes)
{
    coh_status status = check_dtype(call, dtype);
    if (status != COH_OK)
        return status;
    if (__builtin_mul_overflow(count, (uint64_t)coh_dtype_size(dtype), bytes))
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %llu elements of %zu bytes overflow", call,
                         (unsigned long long)count, coh_dtype_size(dtype));
    return COH_OK;
}

coh_status coh_array_malloc(coh_world *world, coh_dtype dtype, size_t count, coh_array *array,
                            void **pointer)
{
    static const char call[] = "coh_array_malloc";
    uint64_t bytes;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = array_bytes(call, dtype, count, &bytes);
    if (status == COH_OK && !array)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "array is NULL");
    void *mine;
    if (status == COH_OK)
        status = coh_malloc(world, bytes, &mine);
    if (status != COH_OK)
        return status;
    *array = (coh_array){.dtype = dtype,
                         .offset = mine ? (uint64_t)((char *)mine - world->heap_base) : 0,
                         .count = count};
    if (pointer)
        *pointer = mine;
    return COH_OK;
}

coh_status coh_array_pointer(coh_world *world, coh_array array, void **pointer)
{
    static const char call[] = "coh_array_pointer";
    uint64_t bytes;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = array_bytes(call, array.dtype, array.count, &bytes);
    if (status == COH_OK && !pointer)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "pointer is NULL");
    if (status == COH_OK)
        status = check_heap(world, call);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, world->rank, array.offset, bytes);
    if (status == COH_OK)
        *pointer = array.count > 0 ? world->heap_base + array.offset : NULL;
    return status;
}

coh_status coh_array_free(coh_world *world, coh_array array)
{
    static const char call[] = "coh_array_free";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = check_dtype(call, array.dtype);
    if (status == COH_OK)
        status =
            cohi_heap_check_range(world, call, world->rank, array.offset, array.count > 0 ? 1 : 0);
    if (status != COH_OK || array.count == 0)
        return status;
    return coh_free(world, world->heap_base + array.offset);
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
    *part = (coh_array){.dtype = array.dtype, .offset = offset, .count = count};
    return COH_OK;
}

/* The caller's type and count against the array's; the bytes to move. */
static coh_status check_array(coh_world *world, const char *call, const coh_array *array,
                              coh_dtype dtype, size_t count, uint64_t *bytes)
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
    static const char call[] = "coh_put_array";
    uint64_t bytes;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = check_array(world, call, &target, dtype, count, &bytes);
    if (status != COH_OK)
        return status;
    return enter_transfer(world, &(cohi_transfer){.call = call,
                                                  .op = COHI_OP_PUT,
                                                  .rank = rank,
                                                  .offset = target.offset,
                                                  .source = source,
                                                  .bytes = bytes,
                                                  .blocking = true});
}

coh_status coh_get_array(coh_world *world, coh_dtype dtype, void *target, size_t count,
                         coh_array source, int rank)
{
    static const char call[] = "coh_get_array";
    uint64_t bytes;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = check_array(world, call, &source, dtype, count, &bytes);
    if (status != COH_OK)
        return status;
    return enter_transfer(world, &(cohi_transfer){.call = call,
                                                  .op = COHI_OP_GET,
                                                  .rank = rank,
                                                  .offset = source.offset,
                                                  .target = target,
                                                  .bytes = bytes,
                                                  .blocking = true});
}
