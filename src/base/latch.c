#include "base/latch.h"

#include "base/clock.h"
#include "base/os.h"

/* Looks before it sleeps: some microseconds, many times what a latch is held for. */
enum { LOOKS = 200 };

void cohi_latch_await(cohi_latch *latch)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        cohi_cpu_relax();
        if (!atomic_load_explicit(&latch->held, memory_order_relaxed) && cohi_latch_try(latch))
            return;
    }
    atomic_fetch_add(&latch->sleepers, 1);
    while (!cohi_latch_try(latch))
        cohi_os_futex_wait(&latch->held, 1, COHI_NS_PER_MS);
    atomic_fetch_sub(&latch->sleepers, 1);
}

void cohi_latch_wake(cohi_latch *latch)
{
    cohi_os_futex_wake(&latch->held);
}
