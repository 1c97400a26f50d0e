/* strided.c - blocks at regular distances, there and here. */
#include "core/onesided/strided.h"

#include "memory/host_copy.h"

static coh_status check_span(const coh_world *world, const cohi_strided *all, const char *which,
                             size_t stride, size_t *span)
{
    const char *call = all->block.call;
    if (cohi_strided_span(all->count, all->block.bytes, stride, span))
        return COH_OK;
    if (stride < all->block.bytes)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "the %s stride of %zu bytes is less than a block of %zu", which,
                               stride, all->block.bytes);
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                           "%zu blocks of %zu bytes, %zu bytes apart (%s), overflow", all->count,
                           all->block.bytes, stride, which);
}

static const void *here_of(const cohi_strided *all)
{
    return all->block.op == COHI_OP_PUT ? all->block.source : all->block.target;
}

static coh_status check(coh_world *world, cohi_strided *all)
{
    size_t span = 0, here_span = 0;
    cohi_transfer *block = &all->block;
    const char *there_name = block->op == COHI_OP_PUT ? "target" : "source";
    const char *here_name = block->op == COHI_OP_PUT ? "source" : "target";
    coh_status status = check_span(world, all, there_name, all->there_stride, &span);
    if (status == COH_OK)
        status = check_span(world, all, here_name, all->here_stride, &here_span);
    if (status == COH_OK && !here_of(all))
        status =
            cohi_world_fail(world, block->call, COH_INVALID_ARGUMENT, "the %s is NULL", here_name);
    if (status == COH_OK)
        status = cohi_heap_locate(world, block->call, all->there, &block->spot);
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

void cohi_strided_copy(char *to, size_t to_stride, const char *from, size_t from_stride,
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

static coh_status move(coh_world *world, const cohi_strided *all)
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

/* As cohi_strided_find, in a further heap. */
static char *find_further(coh_world *world, const cohi_strided *all)
{
    size_t block = all->block.bytes, span, here_span;
    if (!here_of(all) || block == 0 || all->count == 0
        || !cohi_strided_span(all->count, block, all->there_stride, &span)
        || !cohi_strided_span(all->count, block, all->here_stride, &here_span))
        return NULL;
    return cohi_heap_further_direct(world, all->there, span, all->block.rank);
}

static void copy_directly(char *there, const cohi_strided *all)
{
    const cohi_transfer *block = &all->block;
    if (block->op == COHI_OP_PUT)
        cohi_strided_copy(there, all->there_stride, block->source, all->here_stride, block->bytes,
                          all->count);
    else
        cohi_strided_copy(block->target, all->here_stride, there, all->there_stride, block->bytes,
                          all->count);
}

coh_status cohi_strided_checked(coh_world *world, cohi_strided all)
{
    char *further = find_further(world, &all);
    if (further) {
        copy_directly(further, &all);
        return COH_OK;
    }
    coh_status status = cohi_world_enter(world, all.block.call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, all.block.call, all.block.rank);
    if (status != COH_OK || all.count == 0 || all.block.bytes == 0)
        return status;
    status = check(world, &all);
    return status == COH_OK ? move(world, &all) : status;
}

coh_status coh_put_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
{
    return cohi_strided_put(world, (cohi_strided){.block = {.call = "coh_put_strided",
                                                            .op = COHI_OP_PUT,
                                                            .rank = rank,
                                                            .source = source,
                                                            .bytes = block,
                                                            .blocking = true},
                                                  .there = target,
                                                  .there_stride = target_stride,
                                                  .here_stride = source_stride,
                                                  .count = count});
}

coh_status coh_get_strided(coh_world *world, void *target, size_t target_stride, const void *source,
                           size_t source_stride, size_t block, size_t count, int rank)
{
    cohi_strided all = {.block = {.call = "coh_get_strided",
                                  .op = COHI_OP_GET,
                                  .rank = rank,
                                  .target = target,
                                  .bytes = block,
                                  .blocking = true},
                        .there = source,
                        .there_stride = source_stride,
                        .here_stride = target_stride,
                        .count = count};
    const char *there = cohi_strided_find(world, target, all);
    if (COHI_UNLIKELY(!there))
        return cohi_strided_checked(world, cohi_strided_fields(&all));
    cohi_strided_copy(target, target_stride, there, source_stride, block, count);
    return COH_OK;
}
