/*
 * survey.h - whether a wait can ever end.
 *
 * The waits of all ranks are one graph. A thread that waits for one rank needs that rank to go on;
 * one that waits for any of several needs one of them. A rank can go on if one of its threads can,
 * or does anything else than wait. A rank that waits long starts from itself, follows the ranks
 * that are waited for, and removes every rank that can go on, until nothing changes. The ranks that
 * remain will wait for ever.
 *
 * What is read is never one moment: so a rank counts as held only if it showed the same waits in
 * looks some time apart, and each of its threads has looked again between them and found nothing.
 *
 * Two degrees. Where all is seen (every thread of each rank is in a wait, and every rank is mapped)
 * there is no way out, and that is told within a second. Where something is presumed (a stopped
 * rank may be continued; a thread asleep elsewhere may be woken; what a channel carries is not
 * seen) it is told after COHORT_STALL.
 */
#ifndef COHI_CORE_HEALTH_SURVEY_H
#define COHI_CORE_HEALTH_SURVEY_H

#include "core/world/world.h"

/* Called by a thread that waits and has shown its wait. COH_OK: go on waiting; if others are to
 * blame, a verdict is passed on them that will end the wait. COH_STALLED: the wait is this rank's
 * own affair, and ends. `hint` says more about the wait, or is NULL. */
coh_status cohi_survey_look(coh_world *world, const char *call, const char *hint);

void cohi_survey_close(coh_world *world);

#endif
