#include "graph/ops/ops.h"

#include <string.h>

coh_status cohi_need_dtype(const coh_op_call *call, int input, coh_dtype dtype)
{
    coh_dtype got = call->inputs[input].dtype;
    if (got == dtype)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "its input %d has the type %s; it takes %s", input,
                    coh_dtype_name(got), coh_dtype_name(dtype));
}

coh_status cohi_need_dtypes(const coh_op_call *call, coh_dtype dtype)
{
    coh_status status = COH_OK;
    for (int i = 0; i < call->input_count && status == COH_OK; i++)
        status = cohi_need_dtype(call, i, dtype);
    return status;
}

coh_status cohi_fail_shape(const coh_op_call *call, int input, const char *wanted)
{
    char text[COHI_SHAPE_TEXT_BYTES];
    return coh_fail(COH_LENGTH_MISMATCH, "its input %d has the shape %s; it takes %s", input,
                    cohi_shape_text(&call->inputs[input].shape, text), wanted);
}

coh_status cohi_need_dims(const coh_op_call *call, int input, int least)
{
    if (call->inputs[input].shape.dims >= least)
        return COH_OK;
    return cohi_fail_shape(call, input, least > 1 ? "two dimensions or more" : "a dimension");
}

coh_status cohi_need_vector(const coh_op_call *call, int input, uint64_t length)
{
    const coh_shape wanted = {1, {length}};
    char text[COHI_SHAPE_TEXT_BYTES];
    if (cohi_shape_equal(&call->inputs[input].shape, &wanted))
        return COH_OK;
    return cohi_fail_shape(call, input, cohi_shape_text(&wanted, text));
}
