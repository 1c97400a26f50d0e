/*
 * strided.h - blocks at regular distances. The fast path is inline, for the public calls and for
 * those that do more than put.
 */
#ifndef COHI_CORE_ONESIDED_STRIDED_H
#define COHI_CORE_ONESIDED_STRIDED_H

#include "core/onesided/rma.h"

/* One strided transfer. "There" is the symmetric side, "here" the other. */
typedef struct cohi_strided {
    cohi_transfer block; /* the first block; its offset is the slow path's */
    const void *there;
    size_t there_stride;
    size_t here_stride;
    size_t count;
} cohi_strided;

/* The slow path: everything is checked, and says what is wrong. */
coh_status cohi_strided_checked(coh_world *world, cohi_strided all);

void cohi_strided_copy(char *to, size_t to_stride, const char *from, size_t from_stride,
                       size_t bytes, size_t count);

/* Bytes from the start of the first block to the end of the last. False where blocks would overlap,
 * or the sum overflows. */
static inline bool cohi_strided_span(size_t count, size_t block, size_t stride, size_t *span)
{
    return (count == 1 || stride >= block) && !__builtin_mul_overflow(count - 1, stride, span)
           && !__builtin_add_overflow(*span, block, span);
}

/* Where the blocks are in this process when nothing about the call is special; else NULL, and the
 * slow path finds out what is. */
static inline __attribute__((always_inline)) char *
cohi_strided_find(coh_world *world, const void *here, cohi_strided all)
{
    size_t block = all.block.bytes, span, here_span;
    if (!here || block == 0 || all.count == 0
        || !cohi_strided_span(all.count, block, all.there_stride, &span)
        || !cohi_strided_span(all.count, block, all.here_stride, &here_span))
        return NULL;
    return cohi_rma_direct(world, all.there, span, all.block.rank);
}

/* See cohi_transfer_fields. */
static inline __attribute__((always_inline)) cohi_strided
cohi_strided_fields(const cohi_strided *all)
{
    return (cohi_strided){.block = cohi_transfer_fields(&all->block),
                          .there = all->there,
                          .there_stride = all->there_stride,
                          .here_stride = all->here_stride,
                          .count = all->count};
}

/* coh_put_strided, in the name of `all.block.call`. */
static inline __attribute__((always_inline)) coh_status cohi_strided_put(coh_world *world,
                                                                         cohi_strided all)
{
    char *there = cohi_strided_find(world, all.block.source, all);
    if (COHI_UNLIKELY(!there))
        return cohi_strided_checked(world, cohi_strided_fields(&all));
    cohi_strided_copy(there, all.there_stride, all.block.source, all.here_stride, all.block.bytes,
                      all.count);
    return COH_OK;
}

#endif
