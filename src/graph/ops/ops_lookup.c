/* Rows by number, and numbers by row: embedding, argmax. */
#include "graph/ops/ops.h"

#include <string.h>

static coh_status shape_embedding(coh_op_call *call)
{
    const coh_shape *table = &call->inputs[0].shape, *ids = &call->inputs[1].shape;
    coh_status status = cohi_need_dtype(call, 1, COH_I32);
    if (status == COH_OK && table->dims != 2)
        status = cohi_fail_shape(call, 0, "[rows,width]");
    if (status == COH_OK && ids->dims != 1)
        status = cohi_fail_shape(call, 1, "[count]");
    call->output.dtype = call->inputs[0].dtype;
    if (status == COH_OK)
        call->output.shape = (coh_shape){2, {ids->dim[0], table->dim[1]}};
    return status;
}

static coh_status kernel_embedding(const coh_op_call *call)
{
    const coh_tensor *table = &call->inputs[0];
    const int32_t *ids = call->inputs[1].data;
    uint64_t count = call->output.shape.dim[0];
    size_t row = table->shape.dim[1] * coh_dtype_size(table->dtype);
    for (uint64_t i = 0; i < count; i++) {
        if (ids[i] < 0 || (uint64_t)ids[i] >= table->shape.dim[0])
            return coh_fail(COH_OUT_OF_BOUNDS, "id %d at %llu is not in a table of %llu rows",
                            (int)ids[i], (unsigned long long)i,
                            (unsigned long long)table->shape.dim[0]);
        memcpy((char *)call->output.data + i * row,
               (const char *)table->data + (size_t)ids[i] * row, row);
    }
    return COH_OK;
}

static coh_status shape_argmax(coh_op_call *call)
{
    coh_status status = cohi_need_dtypes(call, COH_F32);
    if (status == COH_OK)
        status = cohi_need_dims(call, 0, 1);
    if (status == COH_OK && cohi_last(&call->inputs[0].shape) > INT32_MAX)
        status = cohi_fail_shape(call, 0, "at most 2^31 - 1 in a row");
    if (status != COH_OK)
        return status;
    cohi_like_first(call);
    call->output.dtype = COH_I32;
    call->output.shape.dims--;
    return COH_OK;
}

static coh_status kernel_argmax(const coh_op_call *call)
{
    uint64_t width = cohi_last(&call->inputs[0].shape), rows = cohi_rows(&call->inputs[0].shape);
    int32_t *out = call->output.data;
    for (uint64_t row = 0; row < rows; row++) {
        const float *in = (const float *)call->inputs[0].data + row * width;
        uint64_t best = 0;
        for (uint64_t i = 1; i < width; i++)
            if (in[i] > in[best] || (in[best] != in[best] && in[i] == in[i]))
                best = i;
        out[row] = (int32_t)best;
    }
    return COH_OK;
}

static const cohi_builtin rows[] = {
    {COHI_OP("embedding", 2, 2, .shape = shape_embedding), .cpu = kernel_embedding},
    {COHI_OP("argmax", 1, 1, .shape = shape_argmax), .cpu = kernel_argmax},
};

const cohi_builtins cohi_lookup_ops = COHI_TABLE(rows);
