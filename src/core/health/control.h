/*
 * control.h - writing into a peer's slot: a store where it is mapped, a put by the engine, or a
 * message that the peer's core applies.
 */
#ifndef COHI_CORE_HEALTH_CONTROL_H
#define COHI_CORE_HEALTH_CONTROL_H

#include "core/world/world.h"

/* Writes up to COHI_INLINE_BYTES at `offset` of `rank`'s slot, and wakes it. Aligned 8 bytes arrive
 * whole; more than that arrive with the first 8 bytes last. Not ordered with later ones unless
 * cohi_control_fence is between. */
coh_status cohi_control_put(coh_world *world, int rank, size_t offset, const void *bytes,
                            size_t count);

/* Orders the writes to each peer. */
coh_status cohi_control_fence(coh_world *world);

/* Rings the bell of `slot`. One that sleeps may share its core with this rank without knowing, as
 * this one need not have waited: it is shown first which core that is. */
void cohi_control_ring(const coh_world *world, cohi_slot *slot);

/* Wakes a mapped peer that sleeps. */
static inline void cohi_control_wake(const coh_world *world, cohi_slot *slot)
{
    /* No full fence between the write and this load: a sleeper that is missed looks again within a
     * millisecond (core/health/wait.c), and the fence would cost each barrier a store's round trip. */
    atomic_signal_fence(memory_order_seq_cst);
    if (COHI_UNLIKELY(atomic_load_explicit(&slot->sleepers, memory_order_relaxed) > 0))
        cohi_control_ring(world, slot);
}

/* Wakes the sleepers of a mapped peer that wait for a word of its heap, after a write to that. */
static inline void cohi_control_wake_watcher(cohi_slot *slot)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (COHI_UNLIKELY(atomic_load_explicit(&slot->watchers, memory_order_relaxed) > 0))
        cohi_slot_ring(slot);
}

/* Rings, and returns COH_OK: for calls that end with it. */
coh_status cohi_control_ring_watcher(cohi_slot *slot);

/* cohi_control_wake_watcher as the last thing that a call does, COH_OK being its result: such a
 * call needs no frame of its own. */
static inline coh_status cohi_control_end(cohi_slot *slot)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (COHI_UNLIKELY(atomic_load_explicit(&slot->watchers, memory_order_relaxed) > 0))
        return cohi_control_ring_watcher(slot);
    return COH_OK;
}

/* What travels on a channel begins with its kind, a uint32_t: this one is a control write, all
 * others are messages (core/message/frame.h). */
enum { COHI_FRAME_CONTROL = 1 };

/* Applies a control write that came by channel. */
void cohi_control_deliver(coh_world *world, int from, const void *bytes, size_t count);

#endif
