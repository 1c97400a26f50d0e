/* strided.c - blocks at regular distances, there and here. */
#include "core/onesided/strided.h"

#include "core/onesided/rma.h"
#include "memory/host_copy.h"

/* One strided transfer. "There" is the symmetric side, whose spot is in `block`. */
struct strided {
    cohi_transfer block; /* the first block */
    size_t there_stride;
    size_t here_stride;
    size_t count;
};

/* Bytes from the start of the first block to the end of the last. False where blocks would overlap,
 * or the sum overflows. */
static inline bool span_of(size_t count, size_t block, size_t stride, size_t *span)
{
    return (count == 1 || stride >= block) && !__builtin_mul_overflow(count - 1, stride, span)
           && !__builtin_add_overflow(*span, block, span);
}

static coh_status check_span(const coh_world *world, const struct strided *all, const char *which,
                             size_t stride, size_t *span)
{
    const char *call = all->block.call;
    if (span_of(all->count, all->block.bytes, stride, span))
        return COH_OK;
    if (stride < all->block.bytes)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "the %s stride of %zu bytes is less than a block of %zu", which,
                               stride, all->block.bytes);
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                           "%zu blocks of %zu bytes, %zu bytes apart (%s), overflow", all->count,
                           all->block.bytes, stride, which);
}

static coh_status check(coh_world *world, struct strided *all, const void *there, const void *here,
                        const char *there_name, const char *here_name)
{
    size_t span = 0, here_span = 0;
    cohi_transfer *block = &all->block;
    coh_status status = check_span(world, all, there_name, all->there_stride, &span);
    if (status == COH_OK)
        status = check_span(world, all, here_name, all->here_stride, &here_span);
    if (status == COH_OK && !here)
        status =
            cohi_world_fail(world, block->call, COH_INVALID_ARGUMENT, "the %s is NULL", here_name);
    if (status == COH_OK)
        status = cohi_heap_locate(world, block->call, there, &block->spot);
    if (status != COH_OK)
        return status;
    cohi_transfer whole = *block;
    whole.bytes = span;
    return cohi_rma_check(world, &whole);
}

static bool aligned(const void *at, size_t stride, size_t bytes)
{
    return ((uintptr_t)at | stride) % bytes == 0;
}

/* X(width in bits): words of this size, all of them aligned, are a load and a store each. A loop of
 * cohi_host_copy, which looks at every address, takes 2.5 times as long where they are in the
 * caches. */
#define WORDS(X) X(64) X(32)
#define DEFINE_COPY(bits)                                                                          \
    static void copy_words##bits(char *to, size_t to_stride, const char *from, size_t from_stride, \
                                 size_t count)                                                     \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            cohi_host_copy##bits(to + i * to_stride,                                               \
                                 __builtin_assume_aligned(from + i * from_stride, bits / 8));      \
    }
WORDS(DEFINE_COPY)

static inline void copy_blocks(char *to, size_t to_stride, const char *from, size_t from_stride,
                               size_t bytes, size_t count)
{
#define COPY_IF_WORDS(bits)                                                                        \
    if (bytes == bits / 8 && aligned(to, to_stride, bytes) && aligned(from, from_stride, bytes)) { \
        copy_words##bits(to, to_stride, from, from_stride, count);                                 \
        return;                                                                                    \
    }
    WORDS(COPY_IF_WORDS)
    for (size_t i = 0; i < count; i++)
        cohi_host_copy(to + i * to_stride, from + i * from_stride, bytes);
}

static coh_status move(coh_world *world, const struct strided *all)
{
    cohi_transfer block = all->block;
    for (size_t i = 0; i < all->count; i++) {
        coh_status status = cohi_rma_transfer(world, &block);
        if (status != COH_OK)
            return status;
        block.spot += all->there_stride;
        if (block.op == COHI_OP_PUT)
            block.source = (const char *)block.source + all->here_stride;
        else
            block.target = (char *)block.target + all->here_stride;
    }
    return COH_OK;
}

static coh_status transfer_long(coh_world *world, struct strided *all, const void *there,
                                const void *here, const char *there_name, const char *here_name)
{
    coh_status status = cohi_world_enter(world, all->block.call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, all->block.call, all->block.rank);
    if (status != COH_OK || all->count == 0 || all->block.bytes == 0)
        return status;
    status = check(world, all, there, here, there_name, here_name);
    return status == COH_OK ? move(world, all) : status;
}

/* Where the blocks are in this process when nothing about the call is special; else NULL, and the
 * long way finds out what is. */
static inline __attribute__((always_inline)) char *find_blocks(coh_world *world, const void *there,
                                                               size_t there_stride,
                                                               const void *here, size_t here_stride,
                                                               size_t block, size_t count, int rank)
{
    size_t span, here_span;
    if (!here || block == 0 || count == 0 || !span_of(count, block, there_stride, &span)
        || !span_of(count, block, here_stride, &here_span))
        return NULL;
    return cohi_rma_direct(world, there, span, rank);
}

/* The same in a further heap. */
static char *find_further(coh_world *world, const void *there, const struct strided *all)
{
    const cohi_transfer *block = &all->block;
    const void *here = block->op == COHI_OP_PUT ? block->source : block->target;
    size_t span, here_span;
    if (!here || block->bytes == 0 || all->count == 0
        || !span_of(all->count, block->bytes, all->there_stride, &span)
        || !span_of(all->count, block->bytes, all->here_stride, &here_span))
        return NULL;
    return cohi_heap_further_direct(world, there, span, block->rank);
}

static __attribute__((noinline)) coh_status put_long(coh_world *world, const char *call,
                                                     void *target, size_t target_stride,
                                                     const void *source, size_t source_stride,
                                                     size_t block, size_t count, int rank)
{
    struct strided all = {.block = {.call = call,
                                    .op = COHI_OP_PUT,
                                    .rank = rank,
                                    .source = source,
                                    .bytes = block,
                                    .blocking = true},
                          .there_stride = target_stride,
                          .here_stride = source_stride,
                          .count = count};
    char *there = find_further(world, target, &all);
    if (!there)
        return transfer_long(world, &all, target, source, "target", "source");
    copy_blocks(there, target_stride, source, source_stride, block, count);
    return COH_OK;
}

static __attribute__((noinline)) coh_status get_long(coh_world *world, void *target,
                                                     size_t target_stride, const void *source,
                                                     size_t source_stride, size_t block,
                                                     size_t count, int rank)
{
    struct strided all = {.block = {.call = "coh_get_strided",
                                    .op = COHI_OP_GET,
                                    .rank = rank,
                                    .target = target,
                                    .bytes = block,
                                    .blocking = true},
                          .there_stride = source_stride,
                          .here_stride = target_stride,
                          .count = count};
    const char *there = find_further(world, source, &all);
    if (!there)
        return transfer_long(world, &all, source, target, "source", "target");
    copy_blocks(target, target_stride, there, source_stride, block, count);
    return COH_OK;
}

static inline __attribute__((always_inline)) coh_status
put(coh_world *world, const char *call, void *target, size_t target_stride, const void *source,
    size_t source_stride, size_t block, size_t count, int rank)
{
    char *there =
        find_blocks(world, target, target_stride, source, source_stride, block, count, rank);
    if (COHI_UNLIKELY(!there))
        return put_long(world, call, target, target_stride, source, source_stride, block, count,
                        rank);
    copy_blocks(there, target_stride, source, source_stride, block, count);
    return COH_OK;
}

coh_status cohi_strided_put(coh_world *world, const char *call, void *target, size_t target_stride,
                            const void *source, size_t source_stride, size_t block, size_t count,
                            int rank)
{
    return put(world, call, target, target_stride, source, source_stride, block, count, rank);
}

coh_status coh_put_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
{
    return put(world, "coh_put_strided", target, target_stride, source, source_stride, block, count,
               rank);
}

coh_status coh_get_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
{
    const char *there =
        find_blocks(world, source, source_stride, target, target_stride, block, count, rank);
    if (COHI_UNLIKELY(!there))
        return get_long(world, target, target_stride, source, source_stride, block, count, rank);
    copy_blocks(target, target_stride, there, source_stride, block, count);
    return COH_OK;
}
