/*
 * Room: core/heap.
 *
 * The symmetric heap: allocation in agreement, the record of blocks, registered memory, and the
 * way from a pointer to an offset.
 * Uses base, memory, core/world, core/health and core/team. Moves no user data.
 * Hides where a peer's heap is mapped and how allocations are kept equal.
 */
/*
 * heap.h - the symmetric heap: one range of offsets, allocated alike on every rank.
 *
 * Each rank keeps its own map of blocks outside the heap. The maps cannot drift: every call
 * compares its arguments and its outcome with all others' before it takes effect, and the choice of
 * a block depends on the history of calls alone.
 */
#ifndef COHI_CORE_HEAP_HEAP_H
#define COHI_CORE_HEAP_HEAP_H

#include "core/world/world.h"

/* Bytes to reserve for each of `size` ranks: asked for, or as much as makes sense here. */
uint64_t cohi_heap_reservation(uint64_t asked, int size);

/* The heap of `world` over the segment at world->heap_base, `bytes` long; nothing is committed. */
coh_status cohi_heap_open(coh_world *world, uint64_t bytes, bool checks);
void cohi_heap_close(coh_world *world);

/* The live allocation around `offset`, as it was asked for; false when there is none. */
bool cohi_heap_find(coh_world *world, uint64_t offset, uint64_t *start, uint64_t *bytes);

/*
 * Collective, as coh_align and coh_free, for core's own use of the heap: a block of
 * whole pages that only its offset names. Where the heap grows for it, the block gets no memory:
 * its pages have it when they are first written. Before it is given back it must be filled.
 */
coh_status cohi_heap_take_bare(coh_world *world, const char *call, cohi_opcode op, uint64_t bytes,
                               uint64_t alignment, uint64_t *offset);
coh_status cohi_heap_give(coh_world *world, const char *call, cohi_opcode op, uint64_t offset);

/* Backs all pages of a block of this rank with memory. Not collective. */
coh_status cohi_heap_fill(coh_world *world, uint64_t offset, uint64_t bytes);

/* Bytes that the heap can grow to. */
uint64_t cohi_heap_reserved(const coh_world *world);

/* Whether put and get are to be checked against the allocations (COHORT_CHECK). */
bool cohi_heap_checks(const coh_world *world);

/* Gives back what was backed beyond the bound, after a growth that did not come about. */
void cohi_heap_trim(coh_world *world);

/* Backs the first `bytes` of this rank's heap. For a rank that allocates for it (core/world/crew.c). */
coh_status cohi_heap_commit(coh_world *world, uint64_t bytes);

#endif
