/*
 * staged.h - for contributions of private memory between mapped members: they go by parts through
 * the staging areas, in two buffers that take turns, so that one part is brought in while another
 * is taken. Members wait for each other's counts, never for all to be through.
 */
#ifndef COHI_COLL_MAPPED_STAGED_H
#define COHI_COLL_MAPPED_STAGED_H

#include "coll/call/algorithm.h"

double cohi_staged_all_reduce_cost(const cohi_model *model, int ranks, double bytes);
double cohi_staged_cost(const cohi_model *model, int ranks, double bytes);

/* The algorithm of every kind, by name; and once the members have entered, for those that found
 * that they must. */
coh_status cohi_staged(cohi_call *call);
coh_status cohi_stage(cohi_call *call);

/* Its part for all_reduce and reduce (staged_reduce.c). */
coh_status cohi_stage_reduction(cohi_call *call);

#endif
