/* options.h - structs that begin with their size, and errors that come from the system. */
#ifndef COHI_DEVICE_OPTIONS_H
#define COHI_DEVICE_OPTIONS_H

#include <cohort.h>
#include <stddef.h>

/*
 * Copies the caller's options over `options`, which holds their INIT values and `bytes` bytes. NULL
 * leaves these. A struct of another size is refused.
 */
coh_status cohi_options_take(const char *call, const void *given, void *options, size_t bytes);

/* Refuses a struct that the caller wants filled and that has another size than `bytes`, or NULL. */
coh_status cohi_options_check(const char *call, const void *info, size_t bytes);

/* coh_fail with the errno's text at the end; COH_NO_MEMORY, COH_LIMIT or COH_SYSTEM. */
coh_status cohi_fail_errno(int error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* COH_OK, or COH_INVALID_ARGUMENT that says which argument of which call is NULL. */
coh_status cohi_not_null(const char *call, const char *what, const void *pointer);

/* The alignment that is meant, `usual` for 0; COH_BAD_ALIGNMENT for one that cannot be given. */
coh_status cohi_alignment_take(const char *call, uint64_t asked, uint64_t usual,
                               uint64_t *alignment);

/* value, rounded up to a multiple of a power of two. */
static inline uint64_t cohi_round_up(uint64_t value, uint64_t power)
{
    return (value + power - 1) & ~(power - 1);
}

#endif
