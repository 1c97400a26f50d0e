/* describe.h - from the public description of a collective to the call that is carried out. */
#ifndef COHI_COLL_DESCRIBE_H
#define COHI_COLL_DESCRIBE_H

#include "coll/call/call.h"

/*
 * The call that is described, of a kind on data that is in the table; `name` is the public
 * function's. What is wrong with it otherwise is found in the call's turn, so that the others hear
 * of it.
 */
cohi_call cohi_describe(const char *name, const coh_collective *collective);

/* COH_INVALID_ARGUMENT for a description from which no call can be made: NULL, of another size, or of
 * no kind that there is. */
coh_status cohi_describe_check(const char *name, const coh_collective *collective);

/* Whether it is a call with equal blocks, one behind the other, and a reduction by its name. */
static inline bool cohi_describes_uniform(const coh_collective *collective)
{
    return !collective->counts && !collective->source_parts && !collective->target_parts
           && !collective->how && collective->source_stride == 1 && collective->target_stride == 1;
}

#endif
