/*
 * plan.h - values with lives, and the block of memory that they share.
 *
 *   plan.c         adding values, asking for slots
 *   plan_units.c   which values lie together by nature
 *   plan_solve.c   where everything goes
 *   plan_text.c    the plan as text
 *
 * A value that is another's alias lies in that one's bytes; the one that lies in nobody's is the
 * root. A root that is written in place of another lies where that one lies. Both make a unit:
 * members at fixed distances from its start, which is what gets an offset.
 */
#ifndef COHI_DEVICE_PLAN_H
#define COHI_DEVICE_PLAN_H

#include <cohort-ml.h>
#include <stdbool.h>

enum { COHI_PLAN_NAME_BYTES = 64 };

typedef struct cohi_plan_node {
    coh_plan_value value; /* its name is not the caller's any more */
    char name[COHI_PLAN_NAME_BYTES];
    int root;          /* itself, unless it is an alias */
    uint64_t at;       /* from which byte of the root on */
    int last;          /* of a root: the last step of it and its aliases */
    uint64_t room;     /* of a root with a slot: its bytes, rounded up to its alignment */
    int unit;          /* of a root with a slot: the first root of its unit; solved */
    uint64_t distance; /* from the unit's start */
    uint64_t offset;   /* of the value; solved */
} cohi_plan_node;

struct coh_plan {
    cohi_plan_node *nodes;
    int count;
    int room;
    bool solved;
    coh_plan_info info;
};

/* Whether the node's bytes are in the block: neither outside, nor none, nor in one that is. */
bool cohi_plan_in_block(const coh_plan *plan, int node);

/* A step is in both lives; both are roots. */
static inline bool cohi_plan_meet(const cohi_plan_node *a, const cohi_plan_node *b)
{
    return a->value.first <= b->last && b->value.first <= a->last;
}

#endif
