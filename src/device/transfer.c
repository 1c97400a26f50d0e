#include "device/transfer.h"

#include "device/options.h"

coh_status cohi_transfer_check(const char *call, const char *what, coh_dtype dtype, size_t count,
                               uint64_t room, coh_status too_long, uint64_t *bytes)
{
    size_t each = coh_dtype_size(dtype);
    if (each == 0)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %s: %d is not a type of elements", call, what,
                        (int)dtype);
    if (count > room / each)
        return coh_fail(too_long, "%s: %s: %zu elements of %s (%zu bytes each) into %llu bytes",
                        call, what, count, coh_dtype_name(dtype), each, (unsigned long long)room);
    *bytes = (uint64_t)count * each;
    return COH_OK;
}

coh_status cohi_transfer_store(coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                               const float *source, size_t count)
{
    cohi_device_count_moved(buffer->device, count * coh_dtype_size(dtype));
    return coh_convert(cohi_buffer_at(buffer, offset), dtype, source, COH_F32, count);
}

coh_status cohi_transfer_load(const coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                              float *target, size_t count)
{
    cohi_device_count_moved(buffer->device, count * coh_dtype_size(dtype));
    return coh_convert(target, COH_F32, cohi_buffer_at(buffer, offset), dtype, count);
}

static coh_status check_typed(const char *call, const coh_buffer *buffer, uint64_t offset,
                              coh_dtype dtype, const float *host, size_t count)
{
    uint64_t bytes;
    coh_status status = cohi_buffer_range(call, buffer, offset, 0);
    if (status == COH_OK)
        status = cohi_transfer_check(call, "the buffer from the offset on", dtype, count,
                                     buffer->bytes - offset, COH_OUT_OF_BOUNDS, &bytes);
    if (status == COH_OK && offset % coh_dtype_size(dtype) != 0)
        status = coh_fail(COH_BAD_ALIGNMENT,
                          "%s: byte %llu is not where an element of %s (%zu bytes) can be", call,
                          (unsigned long long)offset, coh_dtype_name(dtype), coh_dtype_size(dtype));
    if (status == COH_OK && count > 0)
        status = cohi_not_null(call, "the host's memory", host);
    return status;
}

coh_status coh_buffer_store(coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                            const float *source, size_t count)
{
    coh_status status = check_typed("coh_buffer_store", buffer, offset, dtype, source, count);
    return status == COH_OK ? cohi_transfer_store(buffer, offset, dtype, source, count) : status;
}

coh_status coh_buffer_load(const coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                           float *target, size_t count)
{
    coh_status status = check_typed("coh_buffer_load", buffer, offset, dtype, target, count);
    return status == COH_OK ? cohi_transfer_load(buffer, offset, dtype, target, count) : status;
}
