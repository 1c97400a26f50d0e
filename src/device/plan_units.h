/*
 * plan_units.h - which values of a plan lie together by nature, and the least that they need.
 *
 * A unit is a root and all that are written in place of it, of those, and so on: members at fixed
 * distances from its start. Only its offset has to be found.
 */
#ifndef COHI_DEVICE_PLAN_UNITS_H
#define COHI_DEVICE_PLAN_UNITS_H

#include "device/plan.h"

typedef struct cohi_unit {
    int member_first; /* index into members */
    int member_count;
    uint64_t bytes;
    uint64_t alignment;
    int first; /* the steps from the first member's first to the last one's last */
    int last;
    uint64_t offset; /* what is looked for */
} cohi_unit;

typedef struct cohi_units {
    coh_plan *plan;
    int *roots; /* the nodes that get bytes of their own, as they were added */
    int root_count;
    cohi_unit *units;
    int count;
    int *members; /* roots, those of a unit one behind the other */
    int *unit_of; /* by node, for roots */
} cohi_units;

/* False when there is no memory; cohi_units_free is due in any case. */
bool cohi_units_make(cohi_units *units, coh_plan *plan);
void cohi_units_free(cohi_units *units);

/* Forms the units anew, with values written in place or without. False: no memory. */
bool cohi_units_join(cohi_units *units, bool in_place);

/* A lower bound for any offsets of these units: the most bytes alive at one of the steps. False: no
 * memory. */
bool cohi_units_least(const cohi_units *units, int steps, uint64_t *least);

#endif
