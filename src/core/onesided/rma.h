/*
 * Room: core/onesided.
 *
 * One-sided calls: put, get, strided copies, atomics, signals, waits for words, fence, quiet and
 * barrier, contexts, locks, views, and the race check.
 * Uses base, memory, bootstrap and the core rooms world, health, team and heap.
 * Hides whether a peer is mapped or reached by the engine.
 */
/* rma.h - put and get by spot, for callers that do not name the target by a pointer. */
#ifndef COHI_CORE_ONESIDED_RMA_H
#define COHI_CORE_ONESIDED_RMA_H

#include "core/heap/locate.h"

/* One transfer, as the slow path sees it. */
typedef struct cohi_transfer {
    const char *call;
    cohi_opcode op;   /* COHI_OP_PUT or COHI_OP_GET */
    unsigned context; /* COHI_CONTEXT_* or a user's */
    int rank;
    cohi_spot spot;
    void *target;       /* of a get */
    const void *source; /* of a put */
    size_t bytes;
    bool blocking;
} cohi_transfer;

/*
 * A copy made field by field. An inlined fast path takes its operation as a struct by value and hands
 * such a copy to the slow path: gcc then keeps the original in registers. A struct that is copied
 * whole it stores before the first branch, which cost 9 to 25 instructions a call.
 */
static inline __attribute__((always_inline)) cohi_transfer
cohi_transfer_fields(const cohi_transfer *transfer)
{
    return (cohi_transfer){.call = transfer->call,
                           .op = transfer->op,
                           .context = transfer->context,
                           .rank = transfer->rank,
                           .spot = transfer->spot,
                           .target = transfer->target,
                           .source = transfer->source,
                           .bytes = transfer->bytes,
                           .blocking = transfer->blocking};
}

/* Checks everything but the gate. `bytes` > 0. */
coh_status cohi_rma_check(coh_world *world, const cohi_transfer *transfer);

/* Checks likewise, then moves the bytes. No bytes are only checked for the rank. */
coh_status cohi_rma_transfer(coh_world *world, const cohi_transfer *transfer);

/*
 * The aligned word of `bytes` (a power of two) at `pointer`, in this rank's heap, of the mapped
 * peer `rank`, when nothing about the call is special; else NULL. The heap begins and ends at a
 * page, so an aligned word that begins in it ends in it. Registered memory and further heaps take the
 * slow path: searching them here would cost saved registers around a single store. `bits` are those of the
 * world's state that do not matter.
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
 * the call is special; else NULL, and the slow path finds out what is.
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
        offset = cohi_heap_window_offset(world, pointer, bytes);
    return peer && offset != COHI_NO_WINDOW ? peer + offset : NULL;
}

#endif
