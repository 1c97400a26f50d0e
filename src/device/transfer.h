/* transfer.h - f32 at the host, any type in a buffer. */
#ifndef COHI_DEVICE_TRANSFER_H
#define COHI_DEVICE_TRANSFER_H

#include "device/buffer.h"

/*
 * Checks a transfer of `count` elements of `dtype` into `room` bytes; *bytes is what it takes.
 * COH_INVALID_ARGUMENT for an unknown type; `too_long` where it has no room, naming both lengths.
 */
coh_status cohi_transfer_check(const char *call, const char *what, coh_dtype dtype, size_t count,
                               uint64_t room, coh_status too_long, uint64_t *bytes);

/* Converts and counts; ranges have been checked. */
coh_status cohi_transfer_store(coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                               const float *source, size_t count);
coh_status cohi_transfer_load(const coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                              float *target, size_t count);

#endif
