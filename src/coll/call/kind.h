/* kind.h - the collectives that have a choice of algorithms. */
#ifndef COHI_COLL_CALL_KIND_H
#define COHI_COLL_CALL_KIND_H

#include "base/opcode.h"

#include <stdbool.h>

/*
 * X(constant, name and knob, operation, reduces, has a root). The variable and strided forms are of
 * the same kind: they differ in how their blocks are cut. A forced algorithm is named by the knob
 * of the same name, COHORT_ALL_REDUCE for all_reduce; both scans share one.
 */
#define COHI_KIND_TABLE(X)                                                      \
    X(COHI_ALL_REDUCE, all_reduce, COHI_OP_ALL_REDUCE, true, false)             \
    X(COHI_REDUCE, reduce, COHI_OP_REDUCE, true, true)                          \
    X(COHI_REDUCE_SCATTER, reduce_scatter, COHI_OP_REDUCE_SCATTER, true, false) \
    X(COHI_ALL_GATHER, all_gather, COHI_OP_ALL_GATHER, false, false)            \
    X(COHI_GATHER, gather, COHI_OP_GATHER, false, true)                         \
    X(COHI_SCATTER, scatter, COHI_OP_SCATTER, false, true)                      \
    X(COHI_BROADCAST, broadcast, COHI_OP_BROADCAST, false, true)                \
    X(COHI_ALL_TO_ALL, all_to_all, COHI_OP_ALL_TO_ALL, false, false)            \
    X(COHI_SCAN, scan, COHI_OP_SCAN, true, false)

typedef enum cohi_kind {
#define COHI_KIND_ENUM(constant, name, op, reduces, rooted) constant,
    COHI_KIND_TABLE(COHI_KIND_ENUM)
#undef COHI_KIND_ENUM
        COHI_KINDS
} cohi_kind;

/* What is published while a call of the kind runs. */
static inline cohi_opcode cohi_kind_opcode(cohi_kind kind, bool exclusive)
{
    static const cohi_opcode ops[] = {
#define COHI_KIND_ROW(constant, name, op, reduces, rooted) [constant] = op,
        COHI_KIND_TABLE(COHI_KIND_ROW)
#undef COHI_KIND_ROW
    };
    return exclusive ? COHI_OP_SCAN_EXCLUSIVE : ops[kind];
}

#endif
