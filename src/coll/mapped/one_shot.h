/*
 * one_shot.h - for small contributions between mapped members: each posts a copy of its own, and
 * takes what it needs of the others', in the order of the members. One line travels from each to
 * each, and nobody waits for readers: the copy stays until all are in the next call.
 */
#ifndef COHI_COLL_MAPPED_ONE_SHOT_H
#define COHI_COLL_MAPPED_ONE_SHOT_H

#include "coll/call/algorithm.h"

bool cohi_one_shot_applies(const cohi_call *call);
double cohi_one_shot_cost(const cohi_model *model, int ranks, double bytes);
double cohi_one_shot_to_root_cost(const cohi_model *model, int ranks, double bytes);
double cohi_one_shot_share_cost(const cohi_model *model, int ranks, double bytes);
double cohi_one_shot_root_cost(const cohi_model *model, int ranks, double bytes);

coh_status cohi_one_shot_all_reduce(cohi_call *call);
coh_status cohi_one_shot_reduce(cohi_call *call);
coh_status cohi_one_shot_reduce_scatter(cohi_call *call);
coh_status cohi_one_shot_all_gather(cohi_call *call);
coh_status cohi_one_shot_gather(cohi_call *call);
coh_status cohi_one_shot_scatter(cohi_call *call);
coh_status cohi_one_shot_broadcast(cohi_call *call);
coh_status cohi_one_shot_all_to_all(cohi_call *call);
coh_status cohi_one_shot_scan(cohi_call *call);

#endif
