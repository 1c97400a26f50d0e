/* atomic.h - read-modify-writes by rank and spot, for those that build on them. */
#ifndef COHI_CORE_ONESIDED_ATOMIC_H
#define COHI_CORE_ONESIDED_ATOMIC_H

#include "core/world/world.h"

typedef struct cohi_amo {
    const char *call;
    cohi_opcode doing; /* what to publish while it is waited for */
    unsigned context;
    coh_atomic_op op;
    coh_dtype dtype;
    int rank;
    cohi_spot spot;
    const void *operand;
    const void *compare;
    void *result; /* NULL: none is wanted, and completion is at quiet */
    bool blocking;
} cohi_amo;

/* Checks nothing but that the rank lives; everything else was. */
coh_status cohi_atomic_apply(coh_world *world, const cohi_amo *amo);

#endif
