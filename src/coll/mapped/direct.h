/*
 * direct.h - for contributions that lie in the heaps: each member copies, or reduces, straight from
 * the others' sources or into their targets, whichever can be reached. The members meet before and
 * after.
 */
#ifndef COHI_COLL_MAPPED_DIRECT_H
#define COHI_COLL_MAPPED_DIRECT_H

#include "coll/call/algorithm.h"

double cohi_direct_cost(const cohi_model *model, int ranks, double bytes);
double cohi_direct_all_gather_cost(const cohi_model *model, int ranks, double bytes);
double cohi_direct_reduce_scatter_cost(const cohi_model *model, int ranks, double bytes);

coh_status cohi_direct_reduce_scatter(cohi_call *call);
coh_status cohi_direct_all_gather(cohi_call *call);
coh_status cohi_direct_gather(cohi_call *call);
coh_status cohi_direct_scatter(cohi_call *call);
coh_status cohi_direct_broadcast(cohi_call *call);
coh_status cohi_direct_all_to_all(cohi_call *call);
coh_status cohi_direct_scan(cohi_call *call);

#endif
