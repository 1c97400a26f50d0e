/* buffer.h - memory of a device, as the other files of this layer use it. */
#ifndef COHI_DEVICE_BUFFER_H
#define COHI_DEVICE_BUFFER_H

#include "device/device.h"

struct coh_buffer {
    coh_device *device;
    coh_place place;
    uint64_t bytes;
    void *pointer;
    coh_world *world; /* of its symmetric heap, or NULL */
};

/* COH_OK when [offset, offset + bytes) lies in the buffer; otherwise names both. */
coh_status cohi_buffer_range(const char *call, const coh_buffer *buffer, uint64_t offset,
                             uint64_t bytes);

/* Moves and counts; ranges have been checked. */
coh_status cohi_buffer_move(coh_device *device, void *target, const void *source, uint64_t bytes);

/* The address of a byte, as kernels see it. */
static inline char *cohi_buffer_at(const coh_buffer *buffer, uint64_t offset)
{
    return (char *)buffer->pointer + offset;
}

#endif
