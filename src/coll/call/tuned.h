/* tuned.h - what the choice of algorithms goes by: the same on all ranks of a job. */
#ifndef COHI_COLL_CALL_TUNED_H
#define COHI_COLL_CALL_TUNED_H

#include "coll/call/kind.h"
#include "coll/call/model.h"
#include "core/world/world.h"

/* How collectives on a card go: rows of the profile. The kernels of all members must go the same way. */
typedef struct cohi_card_tuning {
    uint32_t packets_to, direct_from;
} cohi_card_tuning;

/* What the library behind rank 0's engine offers: cohi_native_offer. */
typedef struct cohi_tuned_native {
    uint16_t kinds, types;
    uint8_t integer_ops, float_ops;
    uint8_t same_bits;
} cohi_tuned_native;

typedef struct cohi_tuning {
    cohi_model model;            /* for algorithms that send messages */
    uint16_t forced[COHI_KINDS]; /* the number of the row, plus one; 0: as the model says */
    uint16_t deterministic;
    cohi_card_tuning card;
    cohi_tuned_native native;
} cohi_tuning;

static inline const cohi_tuning *cohi_tuning_of(const coh_world *world)
{
    return (const cohi_tuning *)(const void *)world->tuning;
}

#endif
