/*
 * race.h - the race check (COHORT_CHECK=order): a forgotten barrier, wait, quiet or fence shows.
 *
 * Ranks that map each other write a put into the target's memory at once, so a program that forgets
 * to order it mostly gets away with it. In this mode a put goes into the target's log (race_log.h)
 * instead, and reaches memory when something orders it:
 *
 *   what the source does      what becomes of its earlier puts on that context
 *   quiet                     written at once
 *   barrier, and collectives  written inside the target's next call that could have learnt of it
 *   that begin with one
 *   fence                     written before whatever this source sends there next is
 *   put with signal           its own data is written before the signal
 *   atomic                    written at once, behind what is fenced off before it
 *
 * What else is in a log is brought by the target itself: a word or signal when a wait or test looks
 * at just that word; anything after up to 50 ms, counted from the first call of the target that
 * could have brought it, in a later call, or in one that waits for long. So a program that is right
 * goes on, and one that is not reads what was there before.
 *
 * The calls that learn of others are barriers, collectives, waits, tests, receives, locks, gets and
 * fetching atomics. Puts, signals, fence and quiet are not: they bring nothing to their caller.
 *
 * A get, put, atomic or collective that touches the range of a put that nothing has ordered is
 * refused with COH_RACE, with both accesses in the message; so is a quiet behind which the source
 * of a non-blocking put has changed. Words of up to 8 bytes may be polled and set by several ranks,
 * and signals are atomic, so these are named only where they cannot be meant so.
 */
#ifndef COHI_CORE_ONESIDED_RACE_H
#define COHI_CORE_ONESIDED_RACE_H

#include "core/onesided/atomic.h"
#include "core/onesided/rma.h"

/* Sets world->race. COH_UNSUPPORTED where the engine does not map the ranks' memory. Before others
 * can reach this rank. */
coh_status cohi_race_open(coh_world *world);
void cohi_race_close(coh_world *world);

/* The arguments have been checked. Of a non-blocking get the bytes come at quiet. */
coh_status cohi_race_transfer(coh_world *world, const cohi_transfer *transfer);
coh_status cohi_race_atomic(coh_world *world, const cohi_amo *amo);

/* `data` may have no bytes. */
coh_status cohi_race_signal(coh_world *world, const cohi_transfer *data, cohi_spot spot,
                            uint64_t value, coh_signal_op op);

/* At the end of a call by which this rank may have learnt what others did. */
void cohi_race_acquire(coh_world *world);

/* Brings one put or signal to these words of this rank, the oldest; false: there was none. For who
 * then looks at the words again. */
bool cohi_race_bring(coh_world *world, const void *words, uint64_t bytes);

/* A collective is about to read or write `bytes` of this rank at `pointer`, which may be anywhere. */
coh_status cohi_race_touch(coh_world *world, const char *call, const void *pointer, size_t bytes,
                           bool writes);

/* For the end of the job: warns of what only lateness brought to this rank; COH_RACE when a race was
 * named. */
coh_status cohi_race_verdict(coh_world *world, const char *call);

#endif
