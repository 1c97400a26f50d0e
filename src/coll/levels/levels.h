/* levels.h - the algorithms on two levels. Their rows, with what each should take, are in table.c. */
#ifndef COHI_COLL_LEVELS_LEVELS_H
#define COHI_COLL_LEVELS_LEVELS_H

#include "coll/call/algorithm.h"

/* Some members share a host, and not all. */
bool cohi_levels_apply(const cohi_call *call);

/* reductions.c: in the order of the hosts */
coh_status cohi_levels_all_reduce(cohi_call *call);
size_t cohi_levels_all_reduce_workspace(const cohi_call *call);
coh_status cohi_levels_reduce(cohi_call *call);
size_t cohi_levels_reduce_workspace(const cohi_call *call);
coh_status cohi_levels_reduce_scatter(cohi_call *call);
size_t cohi_levels_reduce_scatter_workspace(const cohi_call *call);

/* ordered.c: in the order of the members */
coh_status cohi_ordered_all_reduce(cohi_call *call);
coh_status cohi_ordered_reduce(cohi_call *call);
coh_status cohi_ordered_scan(cohi_call *call);
size_t cohi_ordered_workspace(const cohi_call *call); /* of all three */
coh_status cohi_ordered_reduce_scatter(cohi_call *call);
size_t cohi_ordered_reduce_scatter_workspace(const cohi_call *call);

/* exchanges.c */
coh_status cohi_levels_all_gather(cohi_call *call);
size_t cohi_levels_all_gather_workspace(const cohi_call *call);
coh_status cohi_levels_gather(cohi_call *call);
size_t cohi_levels_gather_workspace(const cohi_call *call);
coh_status cohi_levels_scatter(cohi_call *call);
size_t cohi_levels_scatter_workspace(const cohi_call *call);
coh_status cohi_levels_broadcast(cohi_call *call);
size_t cohi_levels_broadcast_workspace(const cohi_call *call);
coh_status cohi_levels_all_to_all(cohi_call *call);
size_t cohi_levels_all_to_all_workspace(const cohi_call *call);

#endif
