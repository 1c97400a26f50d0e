/*
 * tuning.h - what a job's collectives are chosen by, as core carries it: bytes that the layer above
 * makes of rank 0's environment, and that all ranks get when they join, so that all choose alike.
 */
#ifndef COHI_CORE_TUNING_H
#define COHI_CORE_TUNING_H

#include "base/config.h"
#include "bootstrap/group.h"
#include "memory/profile.h"

/*
 * Fills `bytes` from the knobs and the profile of this rank's host. Core's one call into the layer above it, which
 * alone knows the names of algorithms (coll/tuning.c). COH_INVALID_ARGUMENT names the knob, its
 * value and the names there are.
 */
coh_status cohi_tuning_load(const cohi_config *config, const cohi_profile *profile,
                            unsigned char bytes[COHI_TUNING_BYTES]);

#endif
