/* tuning.h - making what the choice of algorithms goes by (coll/call/tuned.h). */
#ifndef COHI_COLL_TUNING_H
#define COHI_COLL_TUNING_H

#include "base/config.h"
#include "coll/call/algorithm.h"
#include "coll/call/tuned.h"

/*
 * Fills `bytes`, a cohi_tuning as it travels to all ranks when they join, from the knobs and the
 * profile of this rank's host. COH_INVALID_ARGUMENT names the knob, its value and the names there
 * are.
 */
coh_status cohi_tuning_load(const cohi_config *config, const cohi_profile *profile,
                            unsigned char bytes[COHI_TUNING_BYTES]);

/* For `cohort tune`, which tries them: between two barriers of all ranks, the same on each. */
void cohi_tuning_set_card(coh_world *world, cohi_card_tuning card);

#endif
