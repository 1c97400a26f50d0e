/*
 * Room: device.
 *
 * The lowest room of libcohort-ml: devices, buffers, streams, events, plans, arenas, handles,
 * copiers, pipelines.
 * Uses libcohort by its public interface alone, and the clock of base.
 * Hides kinds of devices behind rows (kind.h), and the threads that carry out streams and
 * copies.
 */
/*
 * device.h - a device in use: its kind, what still uses it, what it holds and has moved.
 *
 * Everything that is made upon a device calls cohi_device_hold when it is made and
 * cohi_device_release when it is gone; a device with holders cannot be closed.
 */
#ifndef COHI_DEVICE_DEVICE_H
#define COHI_DEVICE_DEVICE_H

#include "device/kind.h"

#include <pthread.h>
#include <stdatomic.h>

struct coh_device {
    coh_device_kind kind_value;
    const cohi_device_kind *kind;
    int index;
    uint64_t alignment;
    atomic_uint_least64_t holders;
    atomic_uint_least64_t held;  /* bytes in buffers */
    atomic_uint_least64_t moved; /* bytes that copies have moved */
    pthread_mutex_t lock;        /* of the handles */
    coh_handle *handles;         /* in order of making */
};

void cohi_device_hold(coh_device *device);
void cohi_device_release(coh_device *device);

/* Counts bytes that a copy has moved. */
void cohi_device_count_moved(coh_device *device, uint64_t bytes);

#endif
