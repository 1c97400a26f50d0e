/*
 * Room: coll/message.
 *
 * Algorithms that are made of messages, for members that are not mapped.
 * Uses coll/call, base, memory, and the core rooms world, team and message. An algorithm is a
 * row of table.c and fails only when a member does.
 * Hides how data is cut into messages.
 */
/*
 * messages.h - the algorithms that are made of messages alone (exchange.h): they run on every
 * engine. Their rows, with what each is expected to take, are in table.c.
 */
#ifndef COHI_COLL_MESSAGE_MESSAGES_H
#define COHI_COLL_MESSAGE_MESSAGES_H

#include "coll/call/algorithm.h"

/* doubling.c */
coh_status cohi_doubling_all_reduce(cohi_call *call);
coh_status cohi_halving_all_reduce(cohi_call *call);
size_t cohi_doubling_workspace(const cohi_call *call); /* of both */

/* ring.c */
coh_status cohi_ring_all_reduce(cohi_call *call);
coh_status cohi_ring_reduce_scatter(cohi_call *call);
size_t cohi_ring_workspace(const cohi_call *call); /* of both */
coh_status cohi_ring_all_gather(cohi_call *call);

/* shard_reduce.c */
coh_status cohi_pairwise_all_reduce(cohi_call *call);
coh_status cohi_pairwise_reduce(cohi_call *call);
coh_status cohi_pairwise_reduce_scatter(cohi_call *call);
size_t cohi_pairwise_workspace(const cohi_call *call); /* of all three */

/* binomial.c */
coh_status cohi_binomial_gather(cohi_call *call);
coh_status cohi_binomial_scatter(cohi_call *call);
bool cohi_binomial_applies(const cohi_call *call);     /* of both: blocks of equal length */
size_t cohi_binomial_workspace(const cohi_call *call); /* of both */
coh_status cohi_binomial_reduce(cohi_call *call);
size_t cohi_binomial_reduce_workspace(const cohi_call *call);
coh_status cohi_scatter_gather_broadcast(cohi_call *call);

/* tree.c */
coh_status cohi_binomial_broadcast(cohi_call *call);
coh_status cohi_chain_broadcast(cohi_call *call);

/* linear.c */
coh_status cohi_linear_gather(cohi_call *call);
coh_status cohi_linear_scatter(cohi_call *call);
size_t cohi_linear_workspace(const cohi_call *call); /* of both */

/* bruck.c */
bool cohi_bruck_applies(const cohi_call *call); /* of both: blocks of equal length side by side */
coh_status cohi_bruck_all_gather(cohi_call *call);
size_t cohi_bruck_gather_workspace(const cohi_call *call);
coh_status cohi_bruck_all_to_all(cohi_call *call);
size_t cohi_bruck_exchange_workspace(const cohi_call *call);

/* pair_exchange.c */
coh_status cohi_pairs_all_to_all(cohi_call *call);
coh_status
cohi_pairs_exchange(cohi_call *call); /* without the own block; by levels, between hosts */
size_t cohi_pairs_workspace(const cohi_call *call);

/* scan.c */
coh_status cohi_doubling_scan(cohi_call *call);
size_t cohi_doubling_scan_workspace(const cohi_call *call);
coh_status cohi_chain_scan(cohi_call *call);
size_t cohi_chain_scan_workspace(const cohi_call *call);

#endif
