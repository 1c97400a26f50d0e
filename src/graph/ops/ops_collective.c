/*
 * Collectives as operations. They work on the values where these are: with the arena in the
 * symmetric heap nothing is copied on the way in or out. The shape function describes the call, so
 * that attributes are read when the graph is compiled, and the kernel of all of them is the call.
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

/* What all have: the output is like the input, and the call is of the whole of it. */
static void describe(coh_op_call *call, coh_collective_kind kind)
{
    cohi_like_first(call);
    call->collective.kind = kind;
    call->collective.team = call->team;
    call->collective.dtype = call->inputs[0].dtype;
    call->collective.count = coh_shape_count(&call->inputs[0].shape);
}

static coh_status describe_reduction(coh_op_call *call, coh_collective_kind kind)
{
    describe(call, kind);
    return find_op(call->attributes[DETAIL].text, &call->collective.op);
}

static coh_status shape_all_reduce(coh_op_call *call)
{
    return describe_reduction(call, COH_COLLECTIVE_ALL_REDUCE);
}

static coh_status shape_all_gather(coh_op_call *call)
{
    describe(call, COH_COLLECTIVE_ALL_GATHER);
    coh_status status = cohi_need_dims(call, 0, 1);
    if (status == COH_OK
        && __builtin_mul_overflow(call->output.shape.dim[0], team_size(call),
                                  &call->output.shape.dim[0]))
        status = cohi_fail_shape(call, 0, "less");
    return status;
}

static coh_status shape_reduce_scatter(coh_op_call *call)
{
    coh_status status = describe_reduction(call, COH_COLLECTIVE_REDUCE_SCATTER);
    if (status == COH_OK)
        status = need_divisible(call);
    if (status != COH_OK)
        return status;
    call->output.shape.dim[0] /= team_size(call);
    call->collective.count /= team_size(call);
    return COH_OK;
}

static coh_status shape_broadcast(coh_op_call *call)
{
    int64_t root = call->attributes[DETAIL].integer;
    describe(call, COH_COLLECTIVE_BROADCAST);
    if (root < 0 || root >= coh_team_size(call->team))
        return coh_fail(COH_UNKNOWN_RANK, "root=%lld: the team '%s' has %d members",
                        (long long)root, call->attributes[TEAM].text, coh_team_size(call->team));
    call->collective.root = (int)root;
    return COH_OK;
}

static coh_status shape_all_to_all(coh_op_call *call)
{
    describe(call, COH_COLLECTIVE_ALL_TO_ALL);
    coh_status status = need_divisible(call);
    if (status == COH_OK)
        call->collective.count /= team_size(call);
    return status;
}

/* ---- the kernel ---- */

static coh_status run_on(const coh_op_call *call, const void *source, void *target)
{
    coh_collective collective = call->collective;
    collective.source = source;
    collective.target = target;
    return coh_collective_run(&collective);
}

static coh_status kernel_collective(const coh_op_call *call)
{
    return run_on(call, call->inputs[0].data, call->output.data);
}

coh_status cohi_collective_refuse(const coh_op_call *call)
{
    if (!call->collective.team)
        return COH_OK;
    coh_status status = run_on(call, NULL, NULL);
    return status == COH_INVALID_ARGUMENT ? COH_OK : status;
}

/* ---- the rows ---- */

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
    {COHI_OP("collective.all_reduce", 1, 1, .shape = shape_all_reduce, .in_place = 1,
             .communicates = 1, COHI_RULES(reduce_rules)),
     .cpu = kernel_collective},
    {COHI_OP("collective.all_gather", 1, 1, .shape = shape_all_gather, .communicates = 1,
             COHI_RULES(team_rules)),
     .cpu = kernel_collective},
    {COHI_OP("collective.reduce_scatter", 1, 1, .shape = shape_reduce_scatter, .communicates = 1,
             COHI_RULES(reduce_rules)),
     .cpu = kernel_collective},
    {COHI_OP("collective.broadcast", 1, 1, .shape = shape_broadcast, .in_place = 1,
             .communicates = 1, COHI_RULES(root_rules)),
     .cpu = kernel_collective},
    /* Not in place: others would read what is being overwritten, so it would have to be staged. */
    {COHI_OP("collective.all_to_all", 1, 1, .shape = shape_all_to_all, .communicates = 1,
             COHI_RULES(team_rules)),
     .cpu = kernel_collective},
};

const cohi_builtins cohi_collective_ops = COHI_TABLE(rows);
