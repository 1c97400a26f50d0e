/* The same elements in another order or shape: transpose, reshape, slice, concatenate. */
#include "graph/ops/ops.h"

#include <stdbool.h>
#include <string.h>

/* Elements before and behind a dimension. */
static uint64_t product_of(const coh_shape *shape, int from, int to)
{
    uint64_t product = 1;
    for (int i = from; i < to; i++)
        product *= shape->dim[i];
    return product;
}

/* ---- reshape ---- */

static coh_status shape_reshape(coh_op_call *call)
{
    const coh_attribute *wanted = &call->attributes[0];
    char text[COHI_SHAPE_TEXT_BYTES];
    cohi_like_first(call);
    call->output.shape.dims = wanted->count;
    for (int i = 0; i < wanted->count; i++)
        call->output.shape.dim[i] = wanted->list[i] > 0 ? (uint64_t)wanted->list[i] : 0;
    if (coh_shape_count(&call->output.shape) != coh_shape_count(&call->inputs[0].shape))
        return cohi_fail_shape(call, 0, cohi_shape_text(&call->output.shape, text));
    call->alias = 0;
    return COH_OK;
}

/* The output lies in the input: there is nothing to do. */
static coh_status kernel_nothing(const coh_op_call *call)
{
    (void)call;
    return COH_OK;
}

/* ---- slice ---- */

enum { SLICE_AXIS, SLICE_BEGIN, SLICE_END };

static coh_status shape_slice(coh_op_call *call)
{
    const coh_shape *in = &call->inputs[0].shape;
    int axis = cohi_axis(in, call->attributes[SLICE_AXIS].integer);
    int64_t begin = call->attributes[SLICE_BEGIN].integer;
    int64_t end = call->attributes[SLICE_END].integer;
    char text[COHI_SHAPE_TEXT_BYTES];
    if (axis < 0 || begin < 0 || end <= begin || (uint64_t)end > in->dim[axis])
        return coh_fail(COH_OUT_OF_BOUNDS, "axis=%lld begin=%lld end=%lld is out of bounds of %s",
                        (long long)call->attributes[SLICE_AXIS].integer, (long long)begin,
                        (long long)end, cohi_shape_text(in, text));
    cohi_like_first(call);
    call->output.shape.dim[axis] = (uint64_t)(end - begin);
    if (product_of(in, 0, axis) == 1) {
        call->alias = 0;
        call->alias_at = (uint64_t)begin * product_of(in, axis + 1, in->dims)
                         * coh_dtype_size(call->output.dtype);
    }
    return COH_OK;
}

static coh_status kernel_slice(const coh_op_call *call)
{
    if (call->alias != COH_NO_ALIAS)
        return COH_OK;
    const coh_shape *in = &call->inputs[0].shape, *out = &call->output.shape;
    int axis = cohi_axis(in, call->attributes[SLICE_AXIS].integer);
    size_t inner = product_of(in, axis + 1, in->dims) * coh_dtype_size(call->output.dtype);
    size_t from = in->dim[axis] * inner, to = out->dim[axis] * inner;
    const char *source =
        (const char *)call->inputs[0].data + (size_t)call->attributes[SLICE_BEGIN].integer * inner;
    for (uint64_t i = 0; i < product_of(in, 0, axis); i++)
        memcpy((char *)call->output.data + i * to, source + i * from, to);
    return COH_OK;
}

/* ---- concatenate ---- */

static bool same_but(const coh_shape *left, const coh_shape *right, int axis)
{
    bool same = left->dims == right->dims;
    for (int i = 0; same && i < left->dims; i++)
        same = i == axis || left->dim[i] == right->dim[i];
    return same;
}

static coh_status shape_concatenate(coh_op_call *call)
{
    int axis = cohi_axis(&call->inputs[0].shape, call->attributes[0].integer);
    if (axis < 0)
        return coh_fail(COH_OUT_OF_BOUNDS, "there is no axis %lld",
                        (long long)call->attributes[0].integer);
    cohi_like_first(call);
    for (int i = 1; i < call->input_count; i++) {
        coh_status status = cohi_need_dtype(call, i, call->output.dtype);
        if (status != COH_OK)
            return status;
        if (!same_but(&call->inputs[i].shape, &call->inputs[0].shape, axis))
            return cohi_fail_shape(call, i, "that of the first but for the axis");
        if (__builtin_add_overflow(call->output.shape.dim[axis], call->inputs[i].shape.dim[axis],
                                   &call->output.shape.dim[axis]))
            return cohi_fail_shape(call, i, "less");
    }
    return COH_OK;
}

static coh_status kernel_concatenate(const coh_op_call *call)
{
    int axis = cohi_axis(&call->inputs[0].shape, call->attributes[0].integer);
    const coh_shape *out = &call->output.shape;
    size_t inner = product_of(out, axis + 1, out->dims) * coh_dtype_size(call->output.dtype);
    char *target = call->output.data;
    for (uint64_t outer = 0; outer < product_of(out, 0, axis); outer++)
        for (int i = 0; i < call->input_count; i++) {
            size_t bytes = call->inputs[i].shape.dim[axis] * inner;
            memcpy(target, (const char *)call->inputs[i].data + outer * bytes, bytes);
            target += bytes;
        }
    return COH_OK;
}

/* ---- transpose ---- */

static coh_status shape_transpose(coh_op_call *call)
{
    const coh_attribute *axes = &call->attributes[0];
    const coh_shape *in = &call->inputs[0].shape;
    unsigned seen = 0;
    cohi_like_first(call);
    for (int i = 0; i < axes->count; i++) {
        if (axes->list[i] < 0 || axes->list[i] >= in->dims)
            break;
        seen |= 1u << axes->list[i];
        call->output.shape.dim[i] = in->dim[axes->list[i]];
    }
    if (axes->count != in->dims || seen != (1u << in->dims) - 1)
        return cohi_fail_shape(call, 0, "axes that name each dimension once");
    return COH_OK;
}

/* Bytes from one element to the next along each dimension of the output, in the input. */
static void find_strides(const coh_op_call *call, size_t *strides)
{
    const coh_shape *in = &call->inputs[0].shape;
    for (int i = 0; i < in->dims; i++) {
        int axis = (int)call->attributes[0].list[i];
        strides[i] = product_of(in, axis + 1, in->dims) * coh_dtype_size(call->output.dtype);
    }
}

static void copy_strided(char *target, const char *source, size_t count, size_t stride,
                         size_t bytes)
{
    if (bytes == sizeof(uint32_t))
        for (size_t i = 0; i < count; i++)
            memcpy(target + i * sizeof(uint32_t), source + i * stride, sizeof(uint32_t));
    else
        for (size_t i = 0; i < count; i++)
            memcpy(target + i * bytes, source + i * stride, bytes);
}

/* Row by row of the output; `at` counts through its outer dimensions like an odometer. */
static coh_status kernel_transpose(const coh_op_call *call)
{
    const coh_shape *out = &call->output.shape;
    size_t strides[COH_DIMS_MAX] = {0}, bytes = coh_dtype_size(call->output.dtype);
    uint64_t at[COH_DIMS_MAX] = {0}, width = cohi_last(out), rows = cohi_rows(out);
    const char *source = call->inputs[0].data;
    char *target = call->output.data;
    find_strides(call, strides);
    for (uint64_t row = 0; row < rows; row++) {
        copy_strided(target + row * width * bytes, source, width,
                     out->dims ? strides[out->dims - 1] : bytes, bytes);
        for (int i = out->dims - 2; i >= 0; i--) {
            source += strides[i];
            if (++at[i] < out->dim[i])
                break;
            source -= strides[i] * out->dim[i];
            at[i] = 0;
        }
    }
    return COH_OK;
}

static const coh_attribute_rule reshape_rules[] = {{"shape", COH_ATTRIBUTE_LIST, NULL}};
static const coh_attribute_rule transpose_rules[] = {{"axes", COH_ATTRIBUTE_LIST, NULL}};
static const coh_attribute_rule axis_rules[] = {{"axis", COH_ATTRIBUTE_INTEGER, "0"}};
static const coh_attribute_rule slice_rules[] = {
    [SLICE_AXIS] = {"axis", COH_ATTRIBUTE_INTEGER, "0"},
    [SLICE_BEGIN] = {"begin", COH_ATTRIBUTE_INTEGER, "0"},
    [SLICE_END] = {"end", COH_ATTRIBUTE_INTEGER, NULL},
};

static const cohi_builtin rows[] = {
    {COHI_OP("reshape", 1, 1, .shape = shape_reshape, COHI_RULES(reshape_rules)),
     .cpu = kernel_nothing},
    {COHI_OP("slice", 1, 1, .shape = shape_slice, COHI_RULES(slice_rules)), .cpu = kernel_slice},
    {COHI_OP("concatenate", 1, COH_OP_INPUTS_MAX, .shape = shape_concatenate,
             COHI_RULES(axis_rules)),
     .cpu = kernel_concatenate},
    {COHI_OP("transpose", 1, 1, .shape = shape_transpose, COHI_RULES(transpose_rules)),
     .cpu = kernel_transpose},
};

const cohi_builtins cohi_layout_ops = COHI_TABLE(rows);
