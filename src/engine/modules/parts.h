/*
 * parts.h - an operation of which several links carry a part, and which is done with the last of them.
 *
 * The parts of an op are a list behind op->internal. The engine holds one lock of its own around all of
 * these calls.
 */
#ifndef COHI_ENGINE_MODULES_PARTS_H
#define COHI_ENGINE_MODULES_PARTS_H

#include "engine/engine.h"

typedef struct cohi_part {
    cohi_op *op; /* NULL: nobody waits for it */
    struct cohi_part *next, *previous;
    int rank;
    bool excused; /* whoever waits for it does not wait for that rank */
} cohi_part;

/* Makes the part one of the op's; with a NULL op, of none. */
void cohi_part_join(cohi_part *part, cohi_op *op, int rank);

void cohi_part_excuse(cohi_part *part);

/* Whether the op is done with it, which core is to be told of. The first failure is the op's. */
bool cohi_part_end(cohi_part *part, coh_status status);

#endif
