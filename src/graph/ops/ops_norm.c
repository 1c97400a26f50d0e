/* Over the last dimension, row by row: softmax, layer norm, RMS norm. */
#include "graph/cpu/vector.h"
#include "graph/ops/ops.h"

/* A row that is made in scratch memory first should stay in the second cache. */
enum { STREAMED_ROW_MOST = 256 << 10 };

static coh_status shape_rows(coh_op_call *call)
{
    cohi_like_first(call);
    coh_status status = cohi_need_dtypes(call, COH_F32);
    if (status == COH_OK)
        status = cohi_need_dims(call, 0, 1);
    for (int i = 1; i < call->input_count && status == COH_OK; i++)
        status = cohi_need_vector(call, i, cohi_last(&call->inputs[0].shape));
    uint64_t row = cohi_last(&call->inputs[0].shape) * sizeof(float);
    if (status == COH_OK && row % COHI_STREAM_LINE == 0 && row <= STREAMED_ROW_MOST
        && coh_shape_bytes(&call->output.shape, COH_F32) >= COHI_STREAMED_VALUE_BYTES)
        call->scratch_bytes = row;
    return status;
}

/* One row; `call` has the weights and eps. */
typedef void row_loop(const cohi_vector *vector, const coh_op_call *call, const float *in,
                      float *out, uint64_t width);

static void softmax_row(const cohi_vector *vector, const coh_op_call *call, const float *in,
                        float *out, uint64_t width)
{
    (void)call;
    vector->softmax(in, out, width);
}

static void layer_norm_row(const cohi_vector *vector, const coh_op_call *call, const float *in,
                           float *out, uint64_t width)
{
    vector->layer_norm(in, call->inputs[1].data, call->inputs[2].data,
                       (float)call->attributes[0].real, out, width);
}

static void rms_norm_row(const cohi_vector *vector, const coh_op_call *call, const float *in,
                         float *out, uint64_t width)
{
    vector->rms_norm(in, call->inputs[1].data, (float)call->attributes[0].real, out, width);
}

/* Large values are made row by row in the scratch, and streamed out. */
static coh_status each_row(const coh_op_call *call, row_loop *loop)
{
    const cohi_vector *vector = cohi_vector_best();
    uint64_t width = cohi_last(&call->output.shape), rows = cohi_rows(&call->output.shape);
    const float *in = call->inputs[0].data;
    float *out = call->output.data, *row = call->scratch;
    for (uint64_t i = 0; i < rows; i++) {
        loop(vector, call, in + i * width, row ? row : out + i * width, width);
        if (row)
            vector->stream(row, out + i * width, width * sizeof *row, in + (i + 1) * width);
    }
    if (row)
        vector->stream_end();
    return COH_OK;
}

static coh_status kernel_softmax(const coh_op_call *call)
{
    return each_row(call, softmax_row);
}

static coh_status kernel_layer_norm(const coh_op_call *call)
{
    return each_row(call, layer_norm_row);
}

static coh_status kernel_rms_norm(const coh_op_call *call)
{
    return each_row(call, rms_norm_row);
}

static const coh_attribute_rule norm_rules[] = {{"eps", COH_ATTRIBUTE_REAL, "1e-5"}};

static const cohi_builtin rows[] = {
    {COHI_OP("softmax", 1, 1, .shape = shape_rows, .in_place = 1), .cpu = kernel_softmax},
    {COHI_OP("layer_norm", 3, 3, .shape = shape_rows, .in_place = 1, COHI_RULES(norm_rules)),
     .cpu = kernel_layer_norm},
    {COHI_OP("rms_norm", 2, 2, .shape = shape_rows, .in_place = 1, COHI_RULES(norm_rules)),
     .cpu = kernel_rms_norm},
};

const cohi_builtins cohi_norm_ops = COHI_TABLE(rows);
