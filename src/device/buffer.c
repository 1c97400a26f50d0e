#include "device/buffer.h"

#include "device/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

enum { HEAP_ALIGNMENT = 64 }; /* coh_calloc's */

/* Zero before anybody else can reach it: a peer's first put must not be wiped out. */
static coh_status allocate_symmetric(coh_world *world, uint64_t bytes, uint64_t alignment,
                                     void **pointer)
{
    if (alignment <= HEAP_ALIGNMENT)
        return coh_calloc(world, 1, bytes, pointer);
    void *memory;
    coh_status status = coh_align(world, alignment, bytes, &memory);
    if (status != COH_OK)
        return status;
    memset(memory, 0, bytes);
    status = coh_barrier(world);
    if (status == COH_OK)
        *pointer = memory;
    return status;
}

static coh_status allocate(coh_buffer *buffer, const coh_buffer_options *options,
                           uint64_t alignment)
{
    const coh_device *device = buffer->device;
    switch (buffer->place) {
    case COH_PLACE_BORROWED:
        buffer->pointer = options->memory;
        return COH_OK;
    case COH_PLACE_SYMMETRIC:
        return allocate_symmetric(options->world, buffer->bytes, alignment, &buffer->pointer);
    default:
        return device->kind->allocate(device->index, buffer->bytes, alignment, &buffer->pointer);
    }
}

static coh_status check_create(const char *call, coh_device *device, uint64_t bytes,
                               const coh_buffer_options *options, coh_buffer **buffer)
{
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = cohi_not_null(call, "buffer", buffer);
    if (status == COH_OK && bytes == 0)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: a buffer of 0 bytes; give at least 1", call);
    if (status == COH_OK && options->world && options->memory)
        status =
            coh_fail(COH_INVALID_ARGUMENT,
                     "%s: both world and memory are given; a buffer lies in one of them", call);
    return status;
}

coh_status coh_buffer_create(coh_device *device, uint64_t bytes, const coh_buffer_options *options,
                             coh_buffer **buffer)
{
    const char *call = "coh_buffer_create";
    coh_buffer_options chosen = COH_BUFFER_OPTIONS_INIT;
    uint64_t alignment = 0;
    coh_status status = cohi_options_take(call, options, &chosen, sizeof chosen);
    if (status == COH_OK)
        status = check_create(call, device, bytes, &chosen, buffer);
    if (status == COH_OK)
        status = cohi_alignment_take(call, chosen.alignment, device->alignment, &alignment);
    if (status != COH_OK)
        return status;
    coh_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    *made = (coh_buffer){
        .device = device,
        .place = chosen.memory  ? COH_PLACE_BORROWED
                 : chosen.world ? COH_PLACE_SYMMETRIC
                                : COH_PLACE_DEVICE,
        .bytes = bytes,
        .world = chosen.world,
    };
    status = allocate(made, &chosen, alignment);
    if (status != COH_OK) {
        free(made);
        return status;
    }
    cohi_device_hold(device);
    if (made->place != COH_PLACE_BORROWED)
        atomic_fetch_add(&device->held, bytes);
    *buffer = made;
    return COH_OK;
}

coh_status coh_buffer_destroy(coh_buffer *buffer)
{
    if (!buffer)
        return COH_OK;
    coh_device *device = buffer->device;
    coh_status status = COH_OK;
    if (buffer->place == COH_PLACE_SYMMETRIC)
        status = coh_free(buffer->world, buffer->pointer);
    if (buffer->place == COH_PLACE_DEVICE)
        device->kind->release(device->index, buffer->pointer);
    if (buffer->place != COH_PLACE_BORROWED)
        atomic_fetch_sub(&device->held, buffer->bytes);
    cohi_device_release(device);
    free(buffer);
    return status;
}

/* ---- facts ---- */

coh_status coh_buffer_query(const coh_buffer *buffer, coh_buffer_info *info)
{
    const char *call = "coh_buffer_query";
    coh_status status = cohi_not_null(call, "buffer", buffer);
    if (status == COH_OK)
        status = cohi_options_check(call, info, sizeof *info);
    if (status != COH_OK)
        return status;
    const coh_device *device = buffer->device;
    info->device = buffer->device;
    info->place = buffer->place;
    info->bytes = buffer->bytes;
    info->pointer = buffer->pointer;
    info->mapped = device->kind->mapped(device->index, buffer->pointer);
    info->world = buffer->world;
    return COH_OK;
}

void *coh_buffer_pointer(const coh_buffer *buffer)
{
    return buffer ? buffer->pointer : NULL;
}

/* ---- transfers ---- */

coh_status cohi_buffer_range(const char *call, const coh_buffer *buffer, uint64_t offset,
                             uint64_t bytes)
{
    coh_status status = cohi_not_null(call, "buffer", buffer);
    if (status != COH_OK)
        return status;
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset)
        return COH_OK;
    return coh_fail(COH_OUT_OF_BOUNDS,
                    "%s: %llu bytes from byte %llu on leave the buffer, which has %llu", call,
                    (unsigned long long)bytes, (unsigned long long)offset,
                    (unsigned long long)buffer->bytes);
}

coh_status cohi_buffer_move(coh_device *device, void *target, const void *source, uint64_t bytes)
{
    if (bytes == 0)
        return COH_OK;
    cohi_device_count_moved(device, bytes);
    return device->kind->copy(device->index, target, source, bytes);
}

coh_status coh_buffer_write(coh_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes)
{
    const char *call = "coh_buffer_write";
    coh_status status = cohi_buffer_range(call, buffer, offset, bytes);
    if (status == COH_OK && bytes > 0)
        status = cohi_not_null(call, "source", source);
    if (status != COH_OK)
        return status;
    return cohi_buffer_move(buffer->device, cohi_buffer_at(buffer, offset), source, bytes);
}

coh_status coh_buffer_read(const coh_buffer *buffer, uint64_t offset, void *target, uint64_t bytes)
{
    const char *call = "coh_buffer_read";
    coh_status status = cohi_buffer_range(call, buffer, offset, bytes);
    if (status == COH_OK && bytes > 0)
        status = cohi_not_null(call, "target", target);
    if (status != COH_OK)
        return status;
    return cohi_buffer_move(buffer->device, target, cohi_buffer_at(buffer, offset), bytes);
}

coh_status coh_buffer_copy(coh_buffer *target, uint64_t target_offset, const coh_buffer *source,
                           uint64_t source_offset, uint64_t bytes)
{
    const char *call = "coh_buffer_copy";
    coh_status status = cohi_buffer_range(call, target, target_offset, bytes);
    if (status == COH_OK)
        status = cohi_buffer_range(call, source, source_offset, bytes);
    if (status != COH_OK)
        return status;
    return cohi_buffer_move(target->device, cohi_buffer_at(target, target_offset),
                            cohi_buffer_at(source, source_offset), bytes);
}
