/*
 * accumulate.h - results on their way: what members combine step by step.
 *
 * Elements of f16, bf16 and f8 are combined and travel as f32, bool as 0 and 1, the others as they
 * are. A mean is a sum until the end. So there is one rounding and one division, when the result is
 * stored, and what was combined with nothing is a result too.
 */
#ifndef COHI_COLL_MESSAGE_ACCUMULATE_H
#define COHI_COLL_MESSAGE_ACCUMULATE_H

#include "coll/call/call.h"

/* Bytes of one element, and whether it is what the call's buffers hold. */
size_t cohi_partial_size(const cohi_call *call);
bool cohi_partial_same(const cohi_call *call);

/* Whether results on their way may lie in the target. Not while a member may still be found to be in
 * another call: the target is then as it was. */
bool cohi_partial_in_target(const cohi_call *call);

/* Whether a member's own elements are a partial as they are: they need not be loaded. */
bool cohi_partial_is_source(const cohi_call *call);

/* From a member's own elements; from there into the target, after which the partial is spent (it
 * may be the target). */
void cohi_partial_load(const cohi_call *call, void *partial, const void *source, size_t count);
void cohi_partial_store(const cohi_call *call, void *target, void *partial, size_t count);

/* target = left op right; the target may be either of them. */
void cohi_partial_combine(const cohi_call *call, void *target, const void *left, const void *right,
                          size_t count);

/* The call's whole reduction of several sources of its own type at once, in their order. */
void cohi_partial_reduce(const cohi_call *call, void *target, const void *const *sources,
                         int source_count, size_t count);

/* The result of a team of one. */
coh_status cohi_partial_alone(const cohi_call *call);

#endif
