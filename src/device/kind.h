/*
 * kind.h - the contract of a kind of device.
 *
 * A kind is one row of functions. A kind that this build cannot have fills `probe` alone, which
 * then says why; nothing else of it is called. Functions that can fail return a coh_status and have
 * set the last error.
 */
#ifndef COHI_DEVICE_KIND_H
#define COHI_DEVICE_KIND_H

#include <cohort-ml.h>
#include <stdbool.h>

typedef struct cohi_device_kind {
    /* NULL when devices of the kind can be used here and now; otherwise the reason, a phrase. */
    const char *(*probe)(void);

    /* How many there are; at least 1 where probe gives NULL. */
    int (*count)(void);

    /* Fills cores, memory and alignment of device `index`. */
    void (*describe)(int index, coh_device_info *info);

    /* Memory of device `index` that is zero, aligned to a power of two. `bytes` is not 0. */
    coh_status (*allocate)(int index, uint64_t bytes, uint64_t alignment, void **pointer);
    void (*release)(int index, void *pointer);

    /* Moves bytes between any two addresses that the device or the host knows; done on return, as
     * memmove. */
    coh_status (*copy)(int index, void *target, const void *source, uint64_t bytes);

    /* Where the host may load and store what is at `pointer`; NULL where it may not. */
    void *(*mapped)(int index, void *pointer);
} cohi_device_kind;

extern const cohi_device_kind cohi_device_kind_cpu;
extern const cohi_device_kind cohi_device_kind_cuda;

#endif
