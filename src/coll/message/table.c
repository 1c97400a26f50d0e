/*
 * table.c - the rows of the algorithms made of messages, and what they should take.
 *
 * `bytes` is what each member brings: the whole vector of all_reduce, reduce, broadcast and scan;
 * one block of all_gather, gather and scatter; all blocks of the source in reduce_scatter and
 * all_to_all.
 */
#include "coll/message/messages.h"

#include "coll/message/pieces.h"

/* How many doublings it takes from one to all. */
static int doublings(int ranks)
{
    int count = 0;
    for (int reach = 1; reach < ranks; reach *= 2)
        count++;
    return count;
}

static bool is_power(int ranks)
{
    return (ranks & (ranks - 1)) == 0;
}

/* Messages one after the other, `bytes` in each. */
static double messages(const cohi_model *model, int count, double bytes)
{
    return count * cohi_model_message(model, bytes);
}

/* Messages that are under way together: all their bytes, and the latency of the first; each of the
 * others costs what it takes to be put on its way and taken off. */
static double burst(const cohi_model *model, int count, double bytes)
{
    return count < 1 ? 0
                     : messages(model, 1, bytes)
                           + (count - 1) * (model->message_further + bytes * model->message_byte);
}

/* What is long goes in chunks, each put on its way by itself while others are under way. */
static double chunks_behind(double bytes)
{
    return bytes <= COHI_CHUNK_BYTES ? 0 : bytes / COHI_CHUNK_BYTES - 1;
}

static double further(const cohi_model *model, double bytes)
{
    return chunks_behind(bytes) * model->message_further;
}

/* A vector that goes over `hops` members in chunks, one behind the other. */
static double pipeline(const cohi_model *model, int hops, double bytes)
{
    double chunk = bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES;
    return messages(model, hops, chunk) + (bytes - chunk) * model->message_byte
           + bytes / COHI_CHUNK_BYTES * model->message_further;
}

/*
 * What was reduced is sent next. A pair can do so part by part, while each part is in the cache nearest to the core
 * (pairwise). The others send it when all of it is there, and a long share is read from farther away by then. All_reduce
 * over TCP on the loopback, by ring / pairwise: 2 MiB 0.33 / 0.33 ms, 4 MiB 0.83 / 0.74, 16 MiB 4.7 / 3.6; while the cores
 * are far from each other 4 MiB 1.29 / 1.00, 16 MiB 6.2 / 5.0 (Zen 5, 1 MiB of cache for each core).
 */
static double sent_late(const cohi_model *model, int ranks, double share)
{
    enum { NEAR_BYTES = 1 << 20 };
    bool late = cohi_is_pair(ranks, model->frame) && share > NEAR_BYTES;
    return late ? share * model->reduce_stream : 0;
}

/* ---- all_reduce ---- */

/* A message and a reduction of everything each doubling; one more of both, and a message back, where members are
 * folded. */
static double doubling_all_reduce(const cohi_model *model, int ranks, double bytes)
{
    int steps = doublings(cohi_power_below(ranks)), folds = is_power(ranks) ? 0 : 1;
    return model->call + (steps + folds) * (cohi_model_reduce(model, bytes) + further(model, bytes))
           + messages(model, steps + 2 * folds, bytes);
}

/* Two messages each doubling, which halve and double from half of it: once all but a share is
 * reduced, and goes twice; where members are folded also a whole one each way. */
static double halving_all_reduce(const cohi_model *model, int ranks, double bytes)
{
    int group = cohi_power_below(ranks), folds = is_power(ranks) ? 0 : 1;
    double moved = bytes * (group - 1) / group;
    return model->call + folds * (messages(model, 2, bytes) + cohi_model_reduce(model, bytes))
           + messages(model, 2 * doublings(group), 0) + 2 * moved * model->message_byte
           + further(model, moved) + cohi_model_reduce(model, moved)
           + sent_late(model, ranks, bytes / ranks);
}

/* A message and a reduction of a share each step, then a message each step. */
static double ring_all_reduce(const cohi_model *model, int ranks, double bytes)
{
    double share = bytes / ranks;
    return model->call + messages(model, 2 * (ranks - 1), share)
           + (ranks - 1) * (cohi_model_reduce(model, share) + further(model, share))
           + sent_late(model, ranks, share);
}

/* Two bursts of a share to and from each, and one reduction of a share of all. */
static double pairwise_all_reduce(const cohi_model *model, int ranks, double bytes)
{
    double share = bytes / ranks;
    return model->call + 2 * burst(model, ranks - 1, share)
           + (ranks - 1) * (cohi_model_reduce(model, share) + 2 * further(model, share));
}

/* ---- reduce ---- */

/* The root's, as a whole message and reduction each doubling. */
static double binomial_reduce(const cohi_model *model, int ranks, double bytes)
{
    int steps = doublings(ranks);
    return model->call + messages(model, steps, bytes) + steps * cohi_model_reduce(model, bytes);
}

/* As all_reduce; the second burst goes to the root alone, with as many bytes. */
static double pairwise_reduce(const cohi_model *model, int ranks, double bytes)
{
    return pairwise_all_reduce(model, ranks, bytes);
}

/* ---- reduce_scatter ---- */

/* One burst of a block to and from each, and one reduction of a block of all. */
static double pairwise_reduce_scatter(const cohi_model *model, int ranks, double bytes)
{
    double block = bytes / ranks;
    return model->call + burst(model, ranks - 1, block)
           + (ranks - 1) * (cohi_model_reduce(model, block) + further(model, block));
}

/* A message and a reduction of a block each step. */
static double ring_reduce_scatter(const cohi_model *model, int ranks, double bytes)
{
    double block = bytes / ranks;
    return model->call + messages(model, ranks - 1, block)
           + (ranks - 1) * (cohi_model_reduce(model, block) + further(model, block));
}

/* ---- all_gather, gather, scatter ---- */

/* A copy of the own block, then a message of a block each step. */
static double ring_all_gather(const cohi_model *model, int ranks, double bytes)
{
    return model->call + cohi_model_copy(model, bytes) + messages(model, ranks - 1, bytes);
}

/* A message each doubling, all blocks but one in all of them together, and a copy of all. */
static double bruck_all_gather(const cohi_model *model, int ranks, double bytes)
{
    return model->call + messages(model, doublings(ranks), 0)
           + (ranks - 1) * bytes * model->message_byte + cohi_model_copy(model, ranks * bytes);
}

/* The root's: a message each doubling, all blocks but one together, and at worst a copy of all. */
static double binomial_blocks(const cohi_model *model, int ranks, double bytes)
{
    return model->call + messages(model, doublings(ranks), 0)
           + (ranks - 1) * bytes * model->message_byte + cohi_model_copy(model, ranks * bytes);
}

/* The root's: a burst of all blocks but one. */
static double linear_blocks(const cohi_model *model, int ranks, double bytes)
{
    return model->call + cohi_model_copy(model, bytes) + burst(model, ranks - 1, bytes);
}

/* ---- broadcast ---- */

/* The root sends everything each doubling, and the last member waits for as many hops. */
static double binomial_broadcast(const cohi_model *model, int ranks, double bytes)
{
    return model->call + messages(model, doublings(ranks), bytes);
}

/* Half, a quarter and so on down the tree, then a share each step around the ring. */
static double scatter_gather_broadcast(const cohi_model *model, int ranks, double bytes)
{
    double share = bytes / ranks;
    return model->call + messages(model, doublings(ranks), 0)
           + (ranks - 1) * share * model->message_byte + messages(model, ranks - 1, share);
}

/* Everything once, in chunks, one hop a member. */
static double chain_broadcast(const cohi_model *model, int ranks, double bytes)
{
    return model->call + pipeline(model, ranks - 1, bytes);
}

/* ---- all_to_all ---- */

/* A message each way of one block each step, of which there is one more without partners where the
 * members are no power of two. */
static double pairs_all_to_all(const cohi_model *model, int ranks, double bytes)
{
    int steps = is_power(ranks) ? ranks - 1 : ranks;
    return model->call + cohi_model_copy(model, bytes / ranks)
           + messages(model, steps, bytes / ranks);
}

/* Half of the blocks each doubling, packed and unpacked; two copies of all around it. */
static double bruck_all_to_all(const cohi_model *model, int ranks, double bytes)
{
    int steps = doublings(ranks);
    return model->call + messages(model, steps, bytes / 2)
           + (steps + 2) * cohi_model_copy(model, bytes);
}

/* ---- scan ---- */

/* A message and a reduction of everything each doubling, and one copy. */
static double doubling_scan(const cohi_model *model, int ranks, double bytes)
{
    int steps = doublings(ranks);
    return model->call + cohi_model_copy(model, bytes) + messages(model, steps, bytes)
           + steps * cohi_model_reduce(model, bytes);
}

/* Everything once, in chunks, one hop and one reduction of a chunk a member. */
static double chain_scan(const cohi_model *model, int ranks, double bytes)
{
    double chunk = bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES;
    return model->call + pipeline(model, ranks - 1, bytes) + cohi_model_reduce(model, bytes)
           + (ranks - 1) * cohi_model_reduce(model, chunk);
}

/* ---- the rows ---- */

#define ANY          NULL
#define NO_WORKSPACE NULL

/* Name, kind, traits, applies, workspace, cost, run. */
const cohi_algorithm cohi_message_algorithms[] = {
    {"recursive-doubling", COH_COLLECTIVE_ALL_REDUCE, 0, ANY, cohi_doubling_workspace,
     doubling_all_reduce, cohi_doubling_all_reduce},
    {"halving-doubling", COH_COLLECTIVE_ALL_REDUCE, 0, ANY, cohi_doubling_workspace,
     halving_all_reduce, cohi_halving_all_reduce},
    {"ring", COH_COLLECTIVE_ALL_REDUCE, 0, ANY, cohi_ring_workspace, ring_all_reduce,
     cohi_ring_all_reduce},
    {"pairwise", COH_COLLECTIVE_ALL_REDUCE, COHI_RANK_ORDER, ANY, cohi_pairwise_workspace,
     pairwise_all_reduce, cohi_pairwise_all_reduce},
    {"binomial", COH_COLLECTIVE_REDUCE, 0, ANY, cohi_binomial_reduce_workspace, binomial_reduce,
     cohi_binomial_reduce},
    {"pairwise", COH_COLLECTIVE_REDUCE, COHI_RANK_ORDER, ANY, cohi_pairwise_workspace,
     pairwise_reduce, cohi_pairwise_reduce},
    {"pairwise", COH_COLLECTIVE_REDUCE_SCATTER, COHI_RANK_ORDER, ANY, cohi_pairwise_workspace,
     pairwise_reduce_scatter, cohi_pairwise_reduce_scatter},
    {"ring", COH_COLLECTIVE_REDUCE_SCATTER, 0, ANY, cohi_ring_workspace, ring_reduce_scatter,
     cohi_ring_reduce_scatter},
    {"bruck", COH_COLLECTIVE_ALL_GATHER, COHI_RANK_ORDER, cohi_bruck_applies,
     cohi_bruck_gather_workspace, bruck_all_gather, cohi_bruck_all_gather},
    {"ring", COH_COLLECTIVE_ALL_GATHER, COHI_RANK_ORDER, ANY, NO_WORKSPACE, ring_all_gather,
     cohi_ring_all_gather},
    {"binomial", COH_COLLECTIVE_GATHER, COHI_RANK_ORDER, cohi_binomial_applies,
     cohi_binomial_workspace, binomial_blocks, cohi_binomial_gather},
    {"linear", COH_COLLECTIVE_GATHER, COHI_RANK_ORDER, ANY, cohi_linear_workspace, linear_blocks,
     cohi_linear_gather},
    {"binomial", COH_COLLECTIVE_SCATTER, COHI_RANK_ORDER, cohi_binomial_applies,
     cohi_binomial_workspace, binomial_blocks, cohi_binomial_scatter},
    {"linear", COH_COLLECTIVE_SCATTER, COHI_RANK_ORDER, ANY, cohi_linear_workspace, linear_blocks,
     cohi_linear_scatter},
    {"binomial", COH_COLLECTIVE_BROADCAST, COHI_RANK_ORDER, ANY, NO_WORKSPACE, binomial_broadcast,
     cohi_binomial_broadcast},
    {"scatter-gather", COH_COLLECTIVE_BROADCAST, COHI_RANK_ORDER, ANY, NO_WORKSPACE,
     scatter_gather_broadcast, cohi_scatter_gather_broadcast},
    {"chain", COH_COLLECTIVE_BROADCAST, COHI_RANK_ORDER, ANY, NO_WORKSPACE, chain_broadcast,
     cohi_chain_broadcast},
    {"bruck", COH_COLLECTIVE_ALL_TO_ALL, COHI_RANK_ORDER, cohi_bruck_applies,
     cohi_bruck_exchange_workspace, bruck_all_to_all, cohi_bruck_all_to_all},
    {"pairwise", COH_COLLECTIVE_ALL_TO_ALL, COHI_RANK_ORDER, ANY, cohi_pairs_workspace,
     pairs_all_to_all, cohi_pairs_all_to_all},
    {"recursive-doubling", COH_COLLECTIVE_SCAN, 0, ANY, cohi_doubling_scan_workspace, doubling_scan,
     cohi_doubling_scan},
    {"chain", COH_COLLECTIVE_SCAN, COHI_RANK_ORDER, ANY, cohi_chain_scan_workspace, chain_scan,
     cohi_chain_scan},
    {0},
};
