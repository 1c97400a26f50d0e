/* rma.h - put and get by offset, for those that name the target otherwise than by pointer. */
#ifndef COHI_CORE_RMA_H
#define COHI_CORE_RMA_H

#include "core/world.h"

/* One transfer, as the long way sees it. */
typedef struct cohi_transfer {
    const char *call;
    cohi_opcode op;   /* COHI_OP_PUT or COHI_OP_GET */
    unsigned context; /* COHI_CONTEXT_* or a user's */
    int rank;
    uint64_t offset;
    void *target;       /* of a get */
    const void *source; /* of a put */
    size_t bytes;
    bool blocking;
} cohi_transfer;

/* Checks everything but the gate. `bytes` > 0. */
coh_status cohi_rma_check(coh_world *world, const cohi_transfer *transfer);

/* The same, then moves. */
coh_status cohi_rma_transfer(coh_world *world, const cohi_transfer *transfer);

/* Around an operation of an engine that is waited for: what this rank is doing, for others to
 * see. */
void cohi_rma_publish(coh_world *world, cohi_opcode op);

/* The heap offset of `pointer`; COH_NOT_SYMMETRIC when it is not in this rank's heap. */
coh_status cohi_rma_locate(coh_world *world, const char *call, const void *pointer,
                           uint64_t *offset);

/* COH_OUT_OF_BOUNDS, with rank, offset, length and heap size, unless the range is in the heap. */
coh_status cohi_rma_check_range(coh_world *world, const char *call, int rank, uint64_t offset,
                                uint64_t bytes);

#define COHI_NO_WINDOW UINT64_MAX

/* The heap offset of `bytes` at `pointer` when they lie in registered memory, else COHI_NO_WINDOW.
 */
static inline uint64_t cohi_rma_window_offset(coh_world *world, const void *pointer, size_t bytes)
{
    int count = atomic_load_explicit(&world->window_count, memory_order_acquire);
    for (cohi_window *window = world->windows; window < world->windows + count; window++) {
        uint64_t all = window->bytes; /* and the same again below: the rest belongs to it */
        uint64_t inside = (uint64_t)((uintptr_t)pointer - (uintptr_t)window->base);
        uint64_t offset = window->offset + inside;
        if (all > 0 && bytes <= all && inside <= all - bytes && all == window->bytes)
            return offset;
    }
    return COHI_NO_WINDOW;
}

/* The same for memory of the heap, or registered. */
static inline uint64_t cohi_rma_offset_of(coh_world *world, const void *pointer, size_t bytes)
{
    uint64_t limit = atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (world->heap_base && offset <= limit && bytes <= limit - offset)
        return offset;
    return cohi_rma_window_offset(world, pointer, bytes);
}

/*
 * The aligned word of `bytes` (a power of two) at `pointer`, in this rank's heap, of the mapped
 * peer `rank`, when nothing about the call is special; else NULL. The heap begins and ends at a
 * page, so an aligned word that begins in it ends in it. Registered memory is for the long way:
 * beside one store, looking through it would cost saved registers. `bits` are those of the world's
 * state that do not matter.
 */
static inline __attribute__((always_inline)) char *
cohi_rma_word(const coh_world *world, const void *pointer, size_t bytes, int rank, unsigned bits)
{
    if (!cohi_world_plain_but(world, bits) || (unsigned)rank >= (unsigned)world->size)
        return NULL;
    uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    if (offset >= atomic_load_explicit(&((coh_world *)world)->heap_limit, memory_order_relaxed)
        || (offset & (bytes - 1)) != 0)
        return NULL;
    char *peer = world->peers[rank].heap;
    return peer ? peer + offset : NULL;
}

/*
 * The address in this process of `bytes` at the symmetric `pointer` of `rank`, when nothing about
 * the call is special; else NULL, and the long way finds out what is.
 */
static inline __attribute__((always_inline)) char *
cohi_rma_direct(coh_world *world, const void *pointer, size_t bytes, int rank)
{
    if (!cohi_world_plain(world) || (unsigned)rank >= (unsigned)world->size)
        return NULL;
    uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)world->heap_base);
    uint64_t limit = atomic_load_explicit(&world->heap_limit, memory_order_relaxed);
    char *peer = world->peers[rank].heap;
    bool inside = bytes <= limit && offset <= limit - bytes;
    if (COHI_UNLIKELY(!inside))
        offset = cohi_rma_window_offset(world, pointer, bytes);
    return peer && offset != COHI_NO_WINDOW ? peer + offset : NULL;
}

#endif
