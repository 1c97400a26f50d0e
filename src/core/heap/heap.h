/*
 * Room: core/heap.
 *
 * Symmetric heaps: allocation in agreement, the record of blocks, further heaps, registered memory, and
 * the way from a pointer to a spot, which is a heap and an offset.
 * Uses base, memory, bootstrap, core/world, core/health and core/team. Moves no user data.
 * Hides where a peer's heaps are mapped and how allocations are kept equal.
 */
/*
 * heap.h - a symmetric heap: one range of offsets, allocated alike on every rank.
 *
 * A world has one of its own, number 0, and further ones that coh_heap_create makes. Heap n is the engine's
 * segment COHI_SEGMENT_HEAP + n.
 *
 * Each rank keeps its own map of blocks outside the heap. The maps cannot drift: every call
 * compares its arguments and its outcome with all others' before it takes effect, and the choice of
 * a block depends on the history of calls alone.
 */
#ifndef COHI_CORE_HEAP_HEAP_H
#define COHI_CORE_HEAP_HEAP_H

#include "core/heap/blocks.h"
#include "core/world/world.h"

/* Its handle. One that is destroyed stays as a tombstone, and serves the next heap of that number. */
struct coh_heap {
    coh_world *world;
    int number;
    coh_heap_kind kind; /* of its present memory, or its last */

    /* Others look at these while they change: `reserved` is stored last, and zeroed first. */
    _Atomic(char *) base;
    _Atomic uint64_t reserved; /* bytes that it can grow to; 0: it is not there */
    _Atomic uint64_t *limit;   /* bytes that put and get may touch: the next, or, of the world's own
                                * heap, world->heap_limit, which is on the way of every put */
    _Atomic uint64_t own_limit;
    char **peers; /* of a further heap, [size]: each rank's in this process, or NULL: by engine */
    char **addresses; /* of one on a card, [size]: each rank's for kernels, or NULL: out of reach */

    pthread_mutex_t lock; /* of `blocks`; collectives change it one at a time, others look */
    cohi_blocks *blocks;
    uint64_t backed; /* on this rank; beyond the limit only while a growth is agreed on */
    uint64_t turns;  /* allocation calls made, for driven ranks */
    uint64_t bare_from, bare_to; /* what a growth leaves without memory: see cohi_heap_take_bare */
    uint64_t refill_from,
        refill_to; /* of the block being made: was given back, gets memory again */
    uint64_t keep; /* free bytes that are not given back */
};

/* Bytes to reserve for each of `size` ranks: asked for, or as much as makes sense here. */
uint64_t cohi_heap_reservation(uint64_t asked, int size);

/* ---- opening and closing; further heaps are made in create.c ---- */

/* The handle of heap `number`, made if there was none before; NULL: out of memory. */
coh_heap *cohi_heap_handle(coh_world *world, int number);

/* Opens it over the segment at `base`; nothing is committed. */
coh_status cohi_heap_open(coh_heap *heap, char *base, uint64_t bytes);

/* The world's own, over the segment at world->heap_base. */
coh_status cohi_heap_open_own(coh_world *world, uint64_t bytes);

/* Closes it; the segment is the caller's to remove. The handle stays. */
void cohi_heap_close(coh_heap *heap);

/* All of a world that is being dissolved; their handles are freed with the world's. */
void cohi_heap_close_all(coh_world *world);
void cohi_heap_forget_all(coh_world *world);

/* ---- finding ---- */

/* Heap `number`, or NULL where there is none. */
static inline coh_heap *cohi_heap_numbered(coh_world *world, int number)
{
    coh_heap *heap = (unsigned)number < COHI_HEAPS_MAX ? world->heaps[number] : NULL;
    return heap && heap->reserved > 0 ? heap : NULL;
}

/* COH_UNSUPPORTED, unless the world has one of its own. */
coh_status cohi_heap_check_own(const coh_world *world, const char *call);

/* The gate of a call on a handle: NULL, destroyed and all that the world's gate refuses. */
coh_status cohi_heap_enter(coh_heap *heap, const char *call);

/* The live allocation around the spot, as it was asked for; false when there is none. */
bool cohi_heap_find(coh_world *world, cohi_spot spot, cohi_spot *start, uint64_t *bytes);

/* "the heap", "heap 2" */
typedef struct cohi_heap_text {
    char text[24];
} cohi_heap_text;

cohi_heap_text cohi_heap_name(const coh_heap *heap);

/* ---- allocating ---- */

/* What a new block is to be like. Of one that is bare see cohi_heap_take_bare. */
typedef enum cohi_content {
    COHI_CONTENT_ANY,
    COHI_CONTENT_ZERO,
    COHI_CONTENT_BARE,
} cohi_content;

/* Collective; arguments were checked, but for being the same on all ranks. `bytes` > 0. */
coh_status cohi_heap_allocate(coh_heap *heap, const char *call, cohi_opcode op, uint64_t bytes,
                              uint64_t alignment, cohi_content content, void **pointer);
coh_status cohi_heap_resize(coh_heap *heap, const char *call, uint64_t offset, uint64_t had,
                            uint64_t bytes, void **resized);
coh_status cohi_heap_release(coh_heap *heap, const char *call, cohi_opcode op, uint64_t offset);

/*
 * Collective, as coh_align and coh_free, for core's own use of the world's own heap: a block of
 * whole pages that only its offset names. Where the heap grows for it, the block gets no memory:
 * its pages have it when they are first written. Before it is given back it must be filled.
 */
coh_status cohi_heap_take_bare(coh_world *world, const char *call, cohi_opcode op, uint64_t bytes,
                               uint64_t alignment, uint64_t *offset);
coh_status cohi_heap_give(coh_world *world, const char *call, cohi_opcode op, uint64_t offset);

/* Backs all pages of a block of this rank with memory. Not collective. */
coh_status cohi_heap_fill(coh_heap *heap, uint64_t offset, uint64_t bytes);

/* Bytes that the world's own heap can grow to. */
uint64_t cohi_heap_reserved(const coh_world *world);

/* Gives back what was backed beyond the bound, after a growth that did not come about. */
void cohi_heap_trim(coh_heap *heap);

/* Backs the first `bytes` of this rank's heap. For a rank that allocates for it (driven.c). */
coh_status cohi_heap_commit(coh_heap *heap, uint64_t bytes);

#endif
