/* strided.c - blocks at regular distances, there and here. */
#include "core/rma.h"
#include "memory/host_copy.h"

/* One strided transfer. "There" is the symmetric side, whose offset is in `block`. */
struct strided {
    cohi_transfer block; /* the first block */
    size_t there_stride;
    size_t here_stride;
    size_t count;
};

/* Bytes from the start of the first block to the end of the last. False where blocks would overlap,
 * or the sum overflows. */
static bool span_of(const struct strided *all, size_t stride, size_t *span)
{
    return (all->count == 1 || stride >= all->block.bytes)
           && !__builtin_mul_overflow(all->count - 1, stride, span)
           && !__builtin_add_overflow(*span, all->block.bytes, span);
}

static coh_status check_span(const coh_world *world, const struct strided *all, const char *which,
                             size_t stride, size_t *span)
{
    const char *call = all->block.call;
    if (span_of(all, stride, span))
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
    size_t span, here_span;
    cohi_transfer *block = &all->block;
    coh_status status = check_span(world, all, there_name, all->there_stride, &span);
    if (status == COH_OK)
        status = check_span(world, all, here_name, all->here_stride, &here_span);
    if (status == COH_OK && !here)
        status =
            cohi_world_fail(world, block->call, COH_INVALID_ARGUMENT, "the %s is NULL", here_name);
    if (status == COH_OK)
        status = cohi_rma_locate(world, block->call, there, &block->offset);
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

static void copy_blocks(char *to, size_t to_stride, const char *from, size_t from_stride,
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

/* Between mapped ranks; `there` is the symmetric side of the other. */
static void copy_all(const struct strided *all, char *there)
{
    const cohi_transfer *block = &all->block;
    if (block->op == COHI_OP_PUT)
        copy_blocks(there, all->there_stride, block->source, all->here_stride, block->bytes,
                    all->count);
    else
        copy_blocks(block->target, all->here_stride, there, all->there_stride, block->bytes,
                    all->count);
}

static coh_status move(coh_world *world, const struct strided *all)
{
    cohi_transfer block = all->block;
    for (size_t i = 0; i < all->count; i++) {
        coh_status status = cohi_rma_transfer(world, &block);
        if (status != COH_OK)
            return status;
        block.offset += all->there_stride;
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

static inline coh_status transfer(coh_world *world, struct strided *all, const void *there,
                                  const void *here, const char *there_name, const char *here_name)
{
    size_t span, here_span;
    bool plain = here && all->count > 0 && all->block.bytes > 0
                 && span_of(all, all->there_stride, &span)
                 && span_of(all, all->here_stride, &here_span);
    char *direct = plain ? cohi_rma_direct(world, there, span, all->block.rank) : NULL;
    if (!direct)
        return transfer_long(world, all, there, here, there_name, here_name);
    copy_all(all, direct);
    return COH_OK;
}

coh_status coh_put_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
{
    struct strided all = {.block = {.call = "coh_put_strided",
                                    .op = COHI_OP_PUT,
                                    .rank = rank,
                                    .source = source,
                                    .bytes = block,
                                    .blocking = true},
                          .there_stride = target_stride,
                          .here_stride = source_stride,
                          .count = count};
    return transfer(world, &all, target, source, "target", "source");
}

coh_status coh_get_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
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
    return transfer(world, &all, source, target, "source", "target");
}
