/* One dimension less: sum, mean, max, min along it. */
#include "graph/cpu/vector.h"
#include "graph/ops/ops.h"

#include <string.h>

enum { REDUCE_OP, REDUCE_AXIS };

typedef float reduce_row(const float *in, size_t count);
typedef void reduce_into(const float *in, float *out, size_t count);

/* A row of the input to one value, and a row into a row. */
typedef struct reducer {
    const char *name;
    reduce_row *row;
    reduce_into *into;
} reducer;

static void add_into(const float *in, float *out, size_t count)
{
    cohi_vector_best()->add(in, out, out, count);
}

static int find_reducer(const char *name, reducer *found)
{
    const cohi_vector *vector = cohi_vector_best();
    const reducer rows[] = {{"sum", vector->sum, add_into},
                            {"mean", vector->sum, add_into},
                            {"max", vector->max, vector->max_into},
                            {"min", vector->min, vector->min_into}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) {
            *found = rows[i];
            return 1;
        }
    return 0;
}

static coh_status shape_reduce(coh_op_call *call)
{
    const coh_shape *in = &call->inputs[0].shape;
    const char *op = call->attributes[REDUCE_OP].text;
    int axis = cohi_axis(in, call->attributes[REDUCE_AXIS].integer);
    reducer unused;
    coh_status status = cohi_need_dtypes(call, COH_F32);
    if (status == COH_OK && !find_reducer(op, &unused))
        status = coh_fail(COH_INVALID_ARGUMENT, "op=%.64s: it takes sum, mean, max or min", op);
    if (status == COH_OK && axis < 0)
        status = cohi_fail_shape(call, 0, "an axis that it has");
    if (status != COH_OK)
        return status;
    cohi_like_first(call);
    call->output.shape.dims--;
    memmove(&call->output.shape.dim[axis], &call->output.shape.dim[axis + 1],
            (size_t)(in->dims - 1 - axis) * sizeof in->dim[0]);
    return COH_OK;
}

static void reduce_columns(const reducer *how, const float *in, float *out, size_t rows,
                           size_t width)
{
    memcpy(out, in, width * sizeof *out);
    for (size_t i = 1; i < rows; i++)
        how->into(in + i * width, out, width);
}

static coh_status kernel_reduce(const coh_op_call *call)
{
    const cohi_vector *vector = cohi_vector_best();
    const coh_shape *in = &call->inputs[0].shape;
    int axis = cohi_axis(in, call->attributes[REDUCE_AXIS].integer);
    size_t length = in->dim[axis], inner = 1;
    reducer how;
    find_reducer(call->attributes[REDUCE_OP].text, &how);
    for (int i = axis + 1; i < in->dims; i++)
        inner *= in->dim[i];
    size_t outer = coh_shape_count(in) / length / inner;
    for (size_t i = 0; i < outer; i++) {
        const float *source = (const float *)call->inputs[0].data + i * length * inner;
        float *target = (float *)call->output.data + i * inner;
        if (inner == 1)
            *target = how.row(source, length);
        else
            reduce_columns(&how, source, target, length, inner);
    }
    if (strcmp(how.name, "mean") == 0)
        vector->scale(call->output.data, 1.0f / (float)length, call->output.data, outer * inner);
    return COH_OK;
}

static const coh_attribute_rule rules[] = {
    [REDUCE_OP] = {"op", COH_ATTRIBUTE_TEXT, "sum"},
    [REDUCE_AXIS] = {"axis", COH_ATTRIBUTE_INTEGER, "-1"},
};

static const cohi_builtin rows[] = {
    {COHI_OP("reduce", 1, 1, .shape = shape_reduce, COHI_RULES(rules)), .cpu = kernel_reduce},
};

const cohi_builtins cohi_reduce_ops = COHI_TABLE(rows);
