/* streams.h - streams that wait on a card while their rank is in no call. */
#ifndef COHI_CORE_HEALTH_STREAMS_H
#define COHI_CORE_HEALTH_STREAMS_H

#include "core/world/world.h"

/*
 * The watcher calls it at each look. A stream that has waited for COHORT_WARN for the same rank is told of in the
 * log. One that has waited for COHORT_STALL for a rank that is stopped ends, as a call of the host would: the
 * verdict is passed on that rank. A rank that runs may yet come, however late.
 */
void cohi_streams_look(coh_world *world);

#endif
