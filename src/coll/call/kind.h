/* kind.h - the collectives, as COH_COLLECTIVE_TABLE has them. */
#ifndef COHI_COLL_CALL_KIND_H
#define COHI_COLL_CALL_KIND_H

#include "base/opcode.h"

#include <cohort.h>
#include <stdbool.h>

/* The first and the last that have a choice of algorithms. Both scans share one, and the variable and
 * strided forms differ only in how their blocks are cut. */
#define COHI_KIND_FIRST COH_COLLECTIVE_ALL_REDUCE
#define COHI_KIND_LAST  COH_COLLECTIVE_SCAN

enum { COHI_KINDS = COHI_KIND_LAST + 1 }; /* of arrays by kind */

/* Who the root is. */
typedef enum cohi_root { COHI_NO_ROOT = 0, COHI_ROOT_GIVES = 1, COHI_ROOT_GETS = 2 } cohi_root;

/* A row of the table. */
typedef struct cohi_kind_row {
    const char *name;
    bool reduces;
    cohi_root root;
    bool source_blocks, target_blocks; /* one for each member */
} cohi_kind_row;

/* By kind; all of them, the barrier and both scans too. */
enum { COHI_KIND_ROWS = COH_COLLECTIVE_SCAN_EXCLUSIVE + 1 };
extern const cohi_kind_row cohi_kind_rows[COHI_KIND_ROWS];

/* The row of a kind, or NULL. */
static inline const cohi_kind_row *cohi_kind_row_of(coh_collective_kind kind)
{
    return (unsigned)kind < COHI_KIND_ROWS ? &cohi_kind_rows[kind] : NULL;
}

/* What is published while a call of the kind runs. */
static inline cohi_opcode cohi_kind_opcode(coh_collective_kind kind, bool exclusive)
{
    return exclusive ? COHI_OP_SCAN_EXCLUSIVE : (cohi_opcode)(COHI_OP_COLLECTIVE + kind);
}

#endif
