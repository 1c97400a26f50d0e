/*
 * latch.h - a lock between the threads of a process that is held for moments.
 *
 * Unlike a mutex it is given back by a plain store. A mutex's read-modify-write would wait until
 * what was stored under it is everywhere, and where a message is sent that is a line of another
 * rank's memory. A thread that finds a latch taken looks again for a while, then sleeps. The thread
 * that gives it back does not fence before it looks for sleepers; a sleeper that it misses looks
 * again within a millisecond.
 */
#ifndef COHI_BASE_LATCH_H
#define COHI_BASE_LATCH_H

#include "base/atomics.h"

#include <stdbool.h>

/* Zeroed: free. */
typedef struct cohi_latch {
    atomic_uint held;
    atomic_uint sleepers;
} cohi_latch;

/* The rest of taking one that is held, and of giving back one that is slept for. */
void cohi_latch_await(cohi_latch *latch);
void cohi_latch_wake(cohi_latch *latch);

static inline bool cohi_latch_try(cohi_latch *latch)
{
    return !atomic_exchange_explicit(&latch->held, 1, memory_order_acquire);
}

static inline void cohi_latch_take(cohi_latch *latch)
{
    if (COHI_UNLIKELY(!cohi_latch_try(latch)))
        cohi_latch_await(latch);
}

static inline void cohi_latch_give(cohi_latch *latch)
{
    atomic_store_explicit(&latch->held, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    if (COHI_UNLIKELY(atomic_load_explicit(&latch->sleepers, memory_order_relaxed) > 0))
        cohi_latch_wake(latch);
}

#endif
