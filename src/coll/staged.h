/*
 * staged.h - for contributions of private memory between mapped members: they go by parts through
 * the staging areas, in two buffers that take turns, so that one part is brought in while another
 * is taken. Members wait for each other's counts, never for all to be through.
 */
#ifndef COHI_COLL_STAGED_H
#define COHI_COLL_STAGED_H

#include "coll/algorithm.h"

double cohi_staged_all_reduce_cost(const cohi_model *model, int ranks, double bytes);
double cohi_staged_cost(const cohi_model *model, int ranks, double bytes);

/* The algorithms by name. */
coh_status cohi_staged_all_reduce(cohi_call *call);
coh_status cohi_staged_reduce(cohi_call *call);
coh_status cohi_staged_reduce_scatter(cohi_call *call);
coh_status cohi_staged_all_gather(cohi_call *call);
coh_status cohi_staged_gather(cohi_call *call);
coh_status cohi_staged_scatter(cohi_call *call);
coh_status cohi_staged_broadcast(cohi_call *call);
coh_status cohi_staged_all_to_all(cohi_call *call);
coh_status cohi_staged_scan(cohi_call *call);

/* The same once the members have entered, for those that found that they must. */
coh_status cohi_stage_all_reduce(cohi_call *call);
coh_status cohi_stage_reduce(cohi_call *call);
coh_status cohi_stage_reduce_scatter(cohi_call *call);
coh_status cohi_stage_all_gather(cohi_call *call);
coh_status cohi_stage_gather(cohi_call *call);
coh_status cohi_stage_scatter(cohi_call *call);
coh_status cohi_stage_broadcast(cohi_call *call);
coh_status cohi_stage_all_to_all(cohi_call *call);
coh_status cohi_stage_scan(cohi_call *call);

#endif
