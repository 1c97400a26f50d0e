/*
 * company.h - whom a waiting rank shares its core with, and what it does about it.
 *
 * A rank that waits can look on, give its core away (sched_yield), or sleep until its bell rings.
 * Which of them is right depends on who wants the core: nobody, a rank that is waited for, or a
 * process that has nothing to do with the job. The reasons and the figures are in wait.c. What is
 * known here is a hint: threads of one rank may overwrite each other's, and a wrong one costs time
 * only.
 */
#ifndef COHI_CORE_WORLD_COMPANY_H
#define COHI_CORE_WORLD_COMPANY_H

#include "base/clock.h"
#include "bootstrap/board.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A yield that takes longer gave the core to somebody for a time slice. Slices are 1.4 to 4 ms; a
 * turn of another rank that waits takes microseconds. */
#define COHI_LONG_YIELD_NS COHI_NS_PER_MS

/* Strangers are where this many yields were long, with fewer than so many short ones between each
 * two. One or two may be due to the kernel moving a rank onto the core of a lone stranger, and back. */
enum { COHI_LONG_YIELDS = 4, COHI_NEAR_YIELDS = 16 };

/* For how long a rank then sleeps instead of yielding, before it tries again. */
#define COHI_AVOID_NS (50 * COHI_NS_PER_MS)

/* A sleeper that came back to a core which the awaited rank is on too was not given an idle one.
 * It takes this long, some ticks, until it is worth while to sleep for one again. */
#define COHI_PLACED_NS (5 * COHI_NS_PER_MS)

typedef struct cohi_company {
    /* Fixed at init. */
    bool own_core;   /* each rank of this host can have one, and COHORT_SPIN leaves it to us */
    unsigned spins;  /* looks before anything else, while the awaited rank is on another core */
    unsigned yields; /* before a wait sleeps */

    /* How long a rank with a core of its own looks before it sleeps. It must be longer than a wake
     * takes, or two ranks that sleep make each other sleep on: 5 to 50 us, more in a virtual
     * machine. A peer that lost its core is away for a time slice of 3 ms or more, of which this is
     * little. */
    uint64_t look_ns;

    atomic_uint yielded;        /* counts yields */
    atomic_uint near;           /* how many more are near to the last long one */
    atomic_uint long_ones;      /* how many were, each near to the one before */
    _Atomic uint64_t avoid_ns;  /* no yields until then; 0: no strangers are known of */
    _Atomic uint64_t placed_ns; /* on one core with the awaited rank: yields until then */
} cohi_company;

typedef enum cohi_rung { COHI_RUNG_LOOK = 0, COHI_RUNG_YIELD, COHI_RUNG_SLEEP } cohi_rung;

/* What one wait knows. */
typedef struct cohi_scene {
    bool together;      /* the awaited rank was last seen on this rank's core */
    unsigned yields;    /* made in this wait */
    uint64_t looked_ns; /* since its looks were counted in time */
    uint64_t now_ns;    /* may be 0 if cohi_company_needs_time is false */
} cohi_scene;

static inline bool cohi_company_needs_time(cohi_company *company)
{
    return company->own_core || atomic_load_explicit(&company->avoid_ns, memory_order_relaxed) != 0;
}

/* What to do next. Changes nothing. */
cohi_rung cohi_company_rung(cohi_company *company, const cohi_scene *scene);

/* Whether the next yield is to be timed; counts it. One in eight is, and all that are near to a long
 * one: reading the clock twice costs a twentieth of a yield. */
bool cohi_company_times(cohi_company *company);

/* A timed yield began and ended. */
void cohi_company_yielded(cohi_company *company, uint64_t begin_ns, uint64_t end_ns);

/* A sleeper woke on the core that the awaited rank was last seen on. */
void cohi_company_placed(cohi_company *company, uint64_t now_ns);

/* Shows peers which core the rank is on: the calling thread's. */
void cohi_company_show(cohi_slot *slot);

/* Shows the rank's core, and returns whether `theirs` was last seen on it. */
bool cohi_company_together(cohi_slot *mine, cohi_slot *theirs);

#endif
