/*
 * Collectives as operations. They work on the values where these are: with the arena in the
 * symmetric heap nothing is copied on the way in or out.
 */
#include "graph/ops/ops.h"

#include <string.h>

enum { TEAM, DETAIL };

static coh_status find_op(const char *name, coh_reduce_op *op)
{
    static const coh_reduce_op all[] = {
#define ROW(constant, value, text) constant,
        COH_REDUCE_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(coh_reduce_op_name(all[i]), name) == 0) {
            *op = all[i];
            return COH_OK;
        }
    return coh_fail(COH_INVALID_ARGUMENT, "op=%.64s: there is no such reduction", name);
}

static coh_status shape_reduction(coh_op_call *call)
{
    coh_reduce_op op = COH_SUM;
    cohi_like_first(call);
    return find_op(call->attributes[DETAIL].text, &op);
}

static uint64_t team_size(const coh_op_call *call)
{
    return (uint64_t)coh_team_size(call->team);
}

/* The first dimension in as many equal parts as the team has members. */
static coh_status need_divisible(const coh_op_call *call)
{
    const coh_shape *shape = &call->inputs[0].shape;
    char text[COHI_SHAPE_TEXT_BYTES];
    if (shape->dims > 0 && shape->dim[0] % team_size(call) == 0)
        return COH_OK;
    return coh_fail(COH_LENGTH_MISMATCH,
                    "the first dimension of %s cannot be divided among the %d members of '%s'",
                    cohi_shape_text(shape, text), coh_team_size(call->team),
                    call->attributes[TEAM].text);
}

/* ---- shapes ---- */

static coh_status shape_all_gather(coh_op_call *call)
{
    cohi_like_first(call);
    coh_status status = cohi_need_dims(call, 0, 1);
    if (status == COH_OK
        && __builtin_mul_overflow(call->output.shape.dim[0], team_size(call),
                                  &call->output.shape.dim[0]))
        status = cohi_fail_shape(call, 0, "less");
    return status;
}

static coh_status shape_reduce_scatter(coh_op_call *call)
{
    coh_status status = shape_reduction(call);
    if (status == COH_OK)
        status = need_divisible(call);
    if (status == COH_OK)
        call->output.shape.dim[0] /= team_size(call);
    return status;
}

static coh_status shape_broadcast(coh_op_call *call)
{
    int64_t root = call->attributes[DETAIL].integer;
    cohi_like_first(call);
    if (root < 0 || root >= coh_team_size(call->team))
        return coh_fail(COH_UNKNOWN_RANK, "root=%lld: the team '%s' has %d members",
                        (long long)root, call->attributes[TEAM].text, coh_team_size(call->team));
    return COH_OK;
}

static coh_status shape_all_to_all(coh_op_call *call)
{
    cohi_like_first(call);
    return need_divisible(call);
}

/* ---- kernels ---- */

static coh_status kernel_all_reduce(const coh_op_call *call)
{
    coh_reduce_op op = COH_SUM;
    coh_status status = find_op(call->attributes[DETAIL].text, &op);
    return status == COH_OK
               ? coh_all_reduce(call->team, call->output.dtype, op, call->inputs[0].data,
                                call->output.data, coh_shape_count(&call->output.shape))
               : status;
}

static coh_status kernel_all_gather(const coh_op_call *call)
{
    return coh_all_gather(call->team, call->output.dtype, call->inputs[0].data, call->output.data,
                          coh_shape_count(&call->inputs[0].shape));
}

static coh_status kernel_reduce_scatter(const coh_op_call *call)
{
    coh_reduce_op op = COH_SUM;
    coh_status status = find_op(call->attributes[DETAIL].text, &op);
    return status == COH_OK
               ? coh_reduce_scatter(call->team, call->output.dtype, op, call->inputs[0].data,
                                    call->output.data, coh_shape_count(&call->output.shape))
               : status;
}

static coh_status kernel_broadcast(const coh_op_call *call)
{
    return coh_broadcast(call->team, call->output.dtype, call->inputs[0].data, call->output.data,
                         coh_shape_count(&call->output.shape),
                         (int)call->attributes[DETAIL].integer);
}

static coh_status kernel_all_to_all(const coh_op_call *call)
{
    return coh_all_to_all(call->team, call->output.dtype, call->inputs[0].data, call->output.data,
                          coh_shape_count(&call->output.shape) / team_size(call));
}

static const coh_attribute_rule reduce_rules[] = {
    [TEAM] = {"team", COH_ATTRIBUTE_TEXT, "world"},
    [DETAIL] = {"op", COH_ATTRIBUTE_TEXT, "sum"},
};
static const coh_attribute_rule root_rules[] = {
    [TEAM] = {"team", COH_ATTRIBUTE_TEXT, "world"},
    [DETAIL] = {"root", COH_ATTRIBUTE_INTEGER, "0"},
};
static const coh_attribute_rule team_rules[] = {[TEAM] = {"team", COH_ATTRIBUTE_TEXT, "world"}};

static const cohi_builtin rows[] = {
    {COHI_OP("collective.all_reduce", 1, 1, .shape = shape_reduction, .in_place = 1,
             .communicates = 1, COHI_RULES(reduce_rules)),
     .cpu = kernel_all_reduce},
    {COHI_OP("collective.all_gather", 1, 1, .shape = shape_all_gather, .communicates = 1,
             COHI_RULES(team_rules)),
     .cpu = kernel_all_gather},
    {COHI_OP("collective.reduce_scatter", 1, 1, .shape = shape_reduce_scatter, .communicates = 1,
             COHI_RULES(reduce_rules)),
     .cpu = kernel_reduce_scatter},
    {COHI_OP("collective.broadcast", 1, 1, .shape = shape_broadcast, .in_place = 1,
             .communicates = 1, COHI_RULES(root_rules)),
     .cpu = kernel_broadcast},
    /* Not in place: others would read what is being overwritten, so it would have to be staged. */
    {COHI_OP("collective.all_to_all", 1, 1, .shape = shape_all_to_all, .communicates = 1,
             COHI_RULES(team_rules)),
     .cpu = kernel_all_to_all},
};

const cohi_builtins cohi_collective_ops = COHI_TABLE(rows);

coh_status cohi_collective_refuse(coh_op_kernel *kernel, const coh_op_call *call)
{
    for (size_t i = 0; i < cohi_collective_ops.count; i++) {
        if (rows[i].cpu != kernel)
            continue;
        coh_tensor nothing = {call->inputs[0].dtype, call->inputs[0].shape, NULL};
        coh_op_call refused = *call;
        refused.inputs = &nothing;
        refused.output.data = NULL;
        coh_status status = kernel(&refused);
        return status == COH_INVALID_ARGUMENT ? COH_OK : status;
    }
    return COH_OK;
}
