/*
 * traffic.h - what went between a rank and one of another host, as the engine counts it and tools show it.
 *
 * A rank has one for each rank of the world, behind its slot on the board. It is written by one thread at a time,
 * and read by tools at any moment.
 */
#ifndef COHI_BOOTSTRAP_TRAFFIC_H
#define COHI_BOOTSTRAP_TRAFFIC_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct cohi_traffic {
    _Atomic uint64_t operations; /* of this rank: puts, gets, words, messages */
    _Atomic uint64_t sent;       /* bytes, those of frames included */
    _Atomic uint64_t received;
    _Atomic uint64_t waits; /* times that the network took no more */
} cohi_traffic;

/* For the one thread that writes at the moment: cheaper than an atomic addition. */
static inline void cohi_traffic_add(_Atomic uint64_t *count, uint64_t more)
{
    uint64_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, now + more, memory_order_relaxed);
}

#endif
