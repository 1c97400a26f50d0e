/*
 * register.h - memory that the program had before, made symmetric.
 *
 * A block of the heap is taken on all ranks, the pages of the memory become a view of it, and an
 * address inside is an offset of the heap: what reaches a peer's heap reaches its copy, whatever
 * the engine, and nothing new is mapped or exchanged.
 */
#ifndef COHI_CORE_HEAP_REGISTER_H
#define COHI_CORE_HEAP_REGISTER_H

#include "core/world/world.h"

/* Whether the heap's `offset` belongs to registered memory. */
bool cohi_register_holds(const coh_world *world, uint64_t offset);

/* Makes the pages the process's own again, with what is in them; those that were prepared
 * (memory/prepared.h) stay as they are for the next world. Not collective. */
void cohi_register_close(coh_world *world);

/* Before that, where others may still write to the heap: nothing stays prepared. */
void cohi_register_abandon(coh_world *world);

/* Gives the memory of the heap back that is not registered, which would else stay until the pages
 * are unmapped. For a rank whose heap nobody looks at any more. */
void cohi_register_keep_alone(coh_world *world);

/* Around fork: the child gets the memory as it was when it was made, and as its own. */
void cohi_register_before_fork(coh_world *world);
void cohi_register_in_parent(coh_world *world);
void cohi_register_in_child(coh_world *world);

#endif
