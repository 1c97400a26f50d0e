/*
 * verdict.h - what stands against a rank. A verdict is one word in the slot of each rank that knows
 * of it; it is passed once and stays.
 */
#ifndef COHI_CORE_HEALTH_VERDICT_H
#define COHI_CORE_HEALTH_VERDICT_H

#include "core/world/world.h"

typedef enum cohi_verdict_kind {
    COHI_VERDICT_NONE = 0,
    COHI_VERDICT_LOST = 1,      /* cause: cohi_loss, with its detail */
    COHI_VERDICT_STOPPED = 2,   /* it was stopped; detail: the operation */
    COHI_VERDICT_STUCK = 3,     /* inside one call; detail: the operation */
    COHI_VERDICT_TIMED_OUT = 4, /* COHORT_TIMEOUT passed; detail: the operation */
    COHI_VERDICT_MUTE = 5, /* its host answers and it does not; detail: what it was last seen in */
} cohi_verdict_kind;

/* kind in bits 0-7, cause in 8-15, detail in 32-63 */
static inline uint64_t cohi_verdict(cohi_verdict_kind kind, unsigned cause, int detail)
{
    return (uint64_t)kind | (uint64_t)(cause & 0xff) << 8 | (uint64_t)(uint32_t)detail << 32;
}

/* Whether it holds for all ranks alike, whoever finds it: what one found of a rank that is stalled, which it tells all,
 * and the signal that killed one. Other losses are as seen from one rank, or because of another. */
static inline bool cohi_verdict_is_for_all(uint64_t verdict)
{
    cohi_verdict_kind kind = (cohi_verdict_kind)(verdict & 0xff);
    return (kind >= COHI_VERDICT_STOPPED && kind <= COHI_VERDICT_MUTE)
           || (kind == COHI_VERDICT_LOST && (verdict >> 8 & 0xff) == COHI_LOSS_SIGNALED);
}

/* Notes it in this rank's own slot and wakes its sleepers. The first verdict on a rank stands. */
void cohi_verdict_note(coh_world *world, int rank, uint64_t verdict);

/* Notes it as cohi_verdict_note does, and tells every other rank. */
void cohi_verdict_pass(coh_world *world, int rank, uint64_t verdict);

/* Passes several verdicts at once, [size], 0 for a rank without one: a rank that learns of one
 * learns of all. Those that were known before become 0. */
void cohi_verdict_pass_all(coh_world *world, uint64_t *verdicts);

/* Tells every other rank all that is known, for one that leaves because of it. */
void cohi_verdict_spread(coh_world *world);

/* The verdict that this rank knows of on `rank`; 0: none. */
uint64_t cohi_verdict_on(const coh_world *world, int rank);

/* The same for a call that tells the user of it: from now on all calls of this rank look, though the alarm
 * of the rank that passed it may not have come yet. One that did not would enter a meeting that those
 * who are in it take for another call. */
uint64_t cohi_verdict_heed(coh_world *world, int rank);

/* The error for a call that needs `rank`; COH_OK when nothing stands against it. */
coh_status cohi_verdict_check(coh_world *world, const char *call, int rank);

/* "killed by signal 9 (Killed)", "stopped in barrier" */
void cohi_verdict_describe(uint64_t verdict, char *text, size_t room);

coh_status cohi_verdict_status(uint64_t verdict);

/* Notes what a rank that has left knew of, where it can be read: it may have left because of that
 * before this rank was told. */
void cohi_verdict_learn(coh_world *world, int rank);

/* The rank to blame when `rank` does not do its part, or when this rank gives up: the first of
 * `rank`, this rank and all others that something stands against; -1 when nothing is known. */
int cohi_verdict_cause(const coh_world *world, int rank);

/* As cohi_verdict_heed, of a rank that another rank knows to be lost; the verdict is waited for a moment. 0: it
 * has not come. */
uint64_t cohi_verdict_await(coh_world *world, int rank);

/* The rank at which it began: one that is lost may have ended because of another, that it knew of before this rank
 * does. */
int cohi_verdict_origin(coh_world *world, int rank);

/*
 * `rank` cannot be reached any more: an operation on it ended with COH_PEER_LOST, or it has left.
 * The error is the one that is known to be behind it: what stands against this rank itself, or
 * against another because of which `rank` has left. Else `rank` counts as lost from
 * now on, though nobody may have said so yet; `loss` is what that looks like.
 */
coh_status cohi_verdict_presume(coh_world *world, const char *call, int rank, cohi_loss loss);

/* Streams wait on a card while their rank is in no call: makes them go on that wait for a rank against which something
 * stands, whoever has told it. Nothing to do where no heap is on a card. */
void cohi_verdict_let_go(coh_world *world);

/* The engine's upcalls: a rank is lost; nothing was heard of one or its host, which counts as lost
 * after COHORT_LINK_TIMEOUT. */
void cohi_verdict_lost(void *world, int rank, cohi_loss loss, int detail) __attribute__((cold));
void cohi_verdict_silent(void *world, int rank, uint64_t silent_ns);

#endif
