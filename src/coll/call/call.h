/*
 * Room: coll/call.
 *
 * One call as algorithms see it, how its members come together, and what a team keeps for
 * collectives.
 * Uses base, memory, bootstrap, and the core rooms world, health, team and message.
 * Hides posts, marks and staging from the algorithms.
 */
/*
 * call.h - one collective call, as the algorithms see it.
 *
 * The public functions fill it in (collective.c). run.c has it checked (check.c), chooses the
 * algorithm (select.c), brings the members together (assemble.h) and runs the row. By then every
 * member is known to have made the same call, and the buffers, counts and workspace are good: an
 * algorithm fails only when a member does, or has no memory for its stages, which it tells the others
 * before anything moves.
 */
#ifndef COHI_COLL_CALL_CALL_H
#define COHI_COLL_CALL_CALL_H

#include "coll/call/kind.h"
#include "core/team/entry.h"
#include "core/world/world.h"
#include "memory/own.h"

struct cohi_algorithm;

/* How a buffer is cut into one block for each member. */
typedef struct cohi_call_blocks {
    size_t count;         /* elements of each block, where counts is NULL */
    const size_t *counts; /* [size] of the variable forms, else NULL */
    const size_t *firsts; /* [size]: the element at which a block begins; NULL: index * count */
    size_t stride; /* elements from one to the next; more than 1 in strided all_to_all only */
} cohi_call_blocks;

typedef struct cohi_call {
    coh_team *team;
    const char *name; /* of the public function, for errors */
    coh_collective_kind kind;
    bool exclusive; /* the scan that leaves this member out */
    bool variable;  /* blocks have counts of their own */
    bool apart;     /* source and target may not be the same */
    coh_dtype dtype;
    size_t element; /* bytes of one */
    coh_reduce_op reduce;
    cohi_own own; /* a function in place of type and reduction; function NULL: none */
    bool scaled;  /* the source is multiplied by the scale first */
    bool grouped; /* the next three are what there is to do: see coh_all_reduce_group */
    double scale;
    const coh_group_part *parts;
    size_t part_count;
    uint64_t group; /* a hash of the parts, for each of the calls that are made of them; else 0 */
    const char *wrong; /* why the description cannot be taken; NULL: it can */
    int root;          /* index in the team; 0 where there is none */
    const char *source;
    char *target;
    size_t count; /* elements of all_reduce, reduce, broadcast, scan; else of a uniform block */

    /*
     * reduce_scatter: the blocks of the source. all_gather: of the target. gather: of the root's
     * target; scatter: of the root's source. all_to_all: both. Of variable calls, firsts may be
     * NULL until check.c has set it.
     */
    cohi_call_blocks from, to;

    /* What this is a part of, on a level of that call's team (core/team/levels.h); or NULL. */
    struct cohi_call *whole;

    /* Set by run.c, check.c, select.c, assemble.c and gear.c. */
    cohi_entry entry; /* of the above; with the fingerprint of the terms, once the call is signed */
    size_t source_bytes, target_bytes; /* that the buffers span on this member; 0: not used */
    size_t bytes;                      /* that each member contributes; decides the choice */
    const struct cohi_algorithm *algorithm;
    unsigned algorithm_number; /* of that row; the members compare it */
    bool forced;               /* by name */
    cohi_terms terms;          /* what the members compare in full */
    uint64_t serial; /* of the terms in this team, from 1: says which of them a post has */
    char *workspace; /* private memory, as much as the row asked for, aligned to 64 */
} cohi_call;

/* A row of the profile that all members share, since they are on one host. */
static inline size_t cohi_call_bytes(const cohi_call *call, cohi_row row)
{
    return cohi_profile_bytes(&call->team->world->profile, row);
}

static inline size_t cohi_block_count(const cohi_call_blocks *blocks, int index)
{
    return blocks->counts ? blocks->counts[index] : blocks->count;
}

static inline size_t cohi_block_first(const cohi_call_blocks *blocks, int index)
{
    return blocks->firsts ? blocks->firsts[index] : (size_t)index * blocks->count * blocks->stride;
}

/* Bytes of a block, and where it begins. */
static inline size_t cohi_block_bytes(const cohi_call *call, const cohi_call_blocks *blocks,
                                      int index)
{
    return cohi_block_count(blocks, index) * call->element;
}

static inline size_t cohi_block_at(const cohi_call *call, const cohi_call_blocks *blocks, int index)
{
    return cohi_block_first(blocks, index) * call->element;
}

#endif
