/*
 * two_shot.h - for contributions that lie in the heaps: each member reduces its share of all
 * sources, in one pass and in the order of the members, straight into all targets. Nothing is
 * copied in or out. The members meet before and after.
 */
#ifndef COHI_COLL_MAPPED_TWO_SHOT_H
#define COHI_COLL_MAPPED_TWO_SHOT_H

#include "coll/call/algorithm.h"
#include "coll/call/blocks.h"

bool cohi_mapped_applies(const cohi_call *call);
double cohi_two_shot_cost(const cohi_model *model, int ranks, double bytes);
double cohi_two_shot_reduce_cost(const cohi_model *model, int ranks, double bytes);

coh_status cohi_two_shot_all_reduce(cohi_call *call);
coh_status cohi_two_shot_reduce(cohi_call *call);

/* Reduces `range` of gear->sources, of all members, into the first `targets` of gear->targets; of a
 * scan, into those of all members, each the sources up to its own or before it. */
void cohi_reduce_range(cohi_call *call, int targets, cohi_span range);

#endif
