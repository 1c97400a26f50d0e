/*
 * pause.h - how a thread of this layer waits for another: it looks for a while, then sleeps.
 *
 * Between looks it gives the core away, so that more threads than cores make progress. Sleeping is
 * not free for the other side: waking a thread on an idle core cost the waker 15 us on the virtual
 * machine where this was measured, as much as copying 100 KiB. So a worker that has just had work
 * looks for the next for longer than one that was idle.
 */
#ifndef COHI_DEVICE_PAUSE_H
#define COHI_DEVICE_PAUSE_H

#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define COHI_PAUSE_SHORT_NS (20 * COHI_NS_PER_US)
#define COHI_PAUSE_LONG_NS  COHI_NS_PER_MS

/* Whether *word reached `value` while it was looked at, for `nanoseconds`. */
static inline bool cohi_pause_for(const atomic_uint_least64_t *word, uint64_t value,
                                  uint64_t nanoseconds)
{
    uint64_t end = 0;
    for (;;) {
        for (int looks = 0; looks < 64; looks++) {
            if (atomic_load_explicit(word, memory_order_acquire) >= value)
                return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        sched_yield();
        uint64_t now = cohi_now_ns();
        end = end ? end : now + nanoseconds;
        if (now >= end)
            return false;
    }
}

/* How long a worker looks for its next work when the last came `waited_ns` after it was free. */
static inline uint64_t cohi_pause_after(uint64_t waited_ns)
{
    return waited_ns < COHI_PAUSE_LONG_NS ? COHI_PAUSE_LONG_NS : COHI_PAUSE_SHORT_NS;
}

#endif
