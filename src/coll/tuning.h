/* tuning.h - what the choice of algorithms goes by: the same on all ranks of a job. */
#ifndef COHI_COLL_TUNING_H
#define COHI_COLL_TUNING_H

#include "base/config.h"
#include "coll/call/algorithm.h"
#include "core/world/world.h"

typedef struct cohi_tuning {
    cohi_model model;            /* for algorithms that send messages */
    uint16_t forced[COHI_KINDS]; /* the number of the row, plus one; 0: as the model says */
    uint16_t deterministic;
} cohi_tuning;

static inline const cohi_tuning *cohi_tuning_of(const coh_world *world)
{
    return (const cohi_tuning *)(const void *)world->tuning;
}

/*
 * Fills `bytes`, a cohi_tuning as it travels to all ranks when they join, from the knobs and the
 * profile of this rank's host. COH_INVALID_ARGUMENT names the knob, its value and the names there
 * are.
 */
coh_status cohi_tuning_load(const cohi_config *config, const cohi_profile *profile,
                            unsigned char bytes[COHI_TUNING_BYTES]);

#endif
