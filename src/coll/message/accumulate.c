#include "coll/message/accumulate.h"

#include "coll/call/blocks.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"
#include "memory/convert.h"

size_t cohi_partial_size(const cohi_call *call)
{
    return call->own.function ? call->element : coh_dtype_size(cohi_reduce_partial(call->dtype));
}

bool cohi_partial_same(const cohi_call *call)
{
    return cohi_reduce_partial(call->dtype) == call->dtype;
}

bool cohi_partial_in_target(const cohi_call *call)
{
    return cohi_partial_same(call) && (call->team->mapped || call->whole);
}

bool cohi_partial_is_source(const cohi_call *call)
{
    return cohi_partial_same(call) && call->dtype != COH_BOOL;
}

static cohi_reduction between(const cohi_call *call, coh_reduce_op op)
{
    cohi_reduction how = cohi_call_reduction(call);
    how.dtype = cohi_reduce_partial(call->dtype);
    how.op = op;
    return how;
}

void cohi_partial_load(const cohi_call *call, void *partial, const void *source, size_t count)
{
    if (call->dtype == COH_BOOL)
        cohi_partial_reduce(call, partial, (const void *const[]){source}, 1, count);
    else if (cohi_partial_is_source(call))
        cohi_bring(partial, source, count * call->element);
    else
        cohi_convert(partial, COH_F32, source, call->dtype, count);
}

void cohi_partial_store(const cohi_call *call, void *target, void *partial, size_t count)
{
    bool same = cohi_partial_same(call);
    if (call->reduce == COH_MEAN) {
        const cohi_reduction divide = between(call, COH_MEAN);
        void *quotient = same ? target : partial;
        cohi_reduce(&divide, &quotient, 1, (const void *const[]){partial}, 1, count);
    } else if (same) {
        cohi_bring(target, partial, count * call->element);
    }
    if (!same)
        cohi_convert(target, call->dtype, partial, COH_F32, count);
}

void cohi_partial_combine(const cohi_call *call, void *target, const void *left, const void *right,
                          size_t count)
{
    const cohi_reduction how = between(call, call->reduce == COH_MEAN ? COH_SUM : call->reduce);
    if (count > 0)
        cohi_reduce(&how, &target, 1, (const void *const[]){left, right}, 2, count);
}

void cohi_partial_reduce(const cohi_call *call, void *target, const void *const *sources,
                         int source_count, size_t count)
{
    const cohi_reduction how = cohi_call_reduction(call);
    if (count > 0)
        cohi_reduce(&how, &target, 1, sources, source_count, count);
}

coh_status cohi_partial_alone(const cohi_call *call)
{
    cohi_partial_reduce(call, call->target, (const void *const[]){call->source}, 1, call->count);
    return COH_OK;
}
