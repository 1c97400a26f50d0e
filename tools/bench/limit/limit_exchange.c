#include "bench/limit/limit.h"

#include "base/atomics.h"
#include "base/clock.h"

#include <sched.h>

/* What to do between two looks. */
typedef void pause_function(void);

/* Nothing: leaves the loop soonest, where the waiting core has nothing else to do. */
static inline void look_again(void)
{
}

/* Lets another run: the only one that ends soon where there are more that meet than cores. */
static inline void yield_core(void)
{
    sched_yield();
}

/* The compiler makes a loop of its own for each of the forms below, without calls and choices. */
static inline __attribute__((always_inline)) void exchange(const cohi_limit_meeting *meeting,
                                                           uint64_t first, uint64_t last,
                                                           uint64_t parity_mask, int pauses_first,
                                                           pause_function *pause_between)
{
    for (uint64_t turn = first; turn != last; turn++) {
        size_t line = turn & parity_mask;
        __atomic_store_n(&meeting->lines[meeting->mine][line].count, turn, __ATOMIC_RELEASE);
        for (int i = 0; i < pauses_first; i++)
            cohi_cpu_relax();
        for (int i = 0; i < meeting->count; i++) {
            const uint64_t *theirs = &meeting->lines[i][line].count;
            while (__atomic_load_n(theirs, __ATOMIC_ACQUIRE) < turn)
                pause_between();
        }
    }
}

static void exchange_spin(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 0, 0, look_again);
}

static void exchange_pause(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 0, 0, cohi_cpu_relax);
}

/* Two lines each, in turns: nobody still looks at the one that is written next. */
static void exchange_spin_two(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 1, 0, look_again);
}

static void exchange_pause_two(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 1, 0, cohi_cpu_relax);
}

/* The first look comes late, when the answer may be there: an early one takes the other's line away
 * while it is about to be written. */
static void exchange_late(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 1, 1, cohi_cpu_relax);
}

static void exchange_later(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 1, 4, cohi_cpu_relax);
}

static void exchange_yield(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last)
{
    exchange(meeting, first, last, 0, 0, yield_core);
}

static const cohi_limit_exchange_form forms[] = {
    {"spin", 0, exchange_spin},
    {"pause", 0, exchange_pause},
    {"spin, 2 lines", 0, exchange_spin_two},
    {"pause, 2 lines", 0, exchange_pause_two},
    {"late, 2 lines", 0, exchange_late},
    {"later, 2 lines", 0, exchange_later},
    {"yield", 1, exchange_yield},
};

const cohi_limit_exchange_form *cohi_limit_exchange_form_at(size_t index)
{
    return index < sizeof forms / sizeof *forms ? &forms[index] : NULL;
}

double cohi_limit_exchange(const cohi_limit_exchange_form *form, const cohi_limit_meeting *meeting,
                           uint64_t repeats)
{
    const cohi_limit_line *mine = meeting->lines[meeting->mine];
    uint64_t before = mine[0].count > mine[1].count ? mine[0].count : mine[1].count;
    uint64_t first = before + 1, second = first + 1;
    form->exchange(meeting, first, second); /* so that all start together */
    uint64_t start = cohi_now_ns();
    form->exchange(meeting, second, second + repeats);
    return (double)(cohi_now_ns() - start) / (double)repeats;
}
