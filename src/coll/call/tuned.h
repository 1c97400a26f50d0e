/* tuned.h - what the choice of algorithms goes by: the same on all ranks of a job. */
#ifndef COHI_COLL_CALL_TUNED_H
#define COHI_COLL_CALL_TUNED_H

#include "coll/call/kind.h"
#include "coll/call/model.h"
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

#endif
