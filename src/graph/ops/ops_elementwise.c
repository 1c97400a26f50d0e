/* One element of the output from one element of each input; conversions too. */
#include "graph/cpu/vector.h"
#include "graph/ops/ops.h"

#include <string.h>

static coh_status shape_unary(coh_op_call *call)
{
    cohi_like_first(call);
    return cohi_need_dtypes(call, COH_F32);
}

static coh_status shape_binary(coh_op_call *call)
{
    char text[COHI_SHAPE_TEXT_BYTES];
    coh_status status = shape_unary(call);
    if (status != COH_OK)
        return status;
    if (!cohi_shape_equal(&call->inputs[0].shape, &call->inputs[1].shape))
        return cohi_fail_shape(call, 1, cohi_shape_text(&call->inputs[0].shape, text));
    return COH_OK;
}

static void range_add(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                      uint64_t count)
{
    (void)call, (void)first;
    cohi_vector_best()->add(in[0], in[1], out, count);
}

static void range_mul(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                      uint64_t count)
{
    (void)call, (void)first;
    cohi_vector_best()->mul(in[0], in[1], out, count);
}

static void range_scale(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                        uint64_t count)
{
    (void)first;
    cohi_vector_best()->scale(in[0], (float)call->attributes[0].real, out, count);
}

static void range_relu(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                       uint64_t count)
{
    (void)call, (void)first;
    cohi_vector_best()->relu(in[0], out, count);
}

static void range_silu(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                       uint64_t count)
{
    (void)call, (void)first;
    cohi_vector_best()->silu(in[0], out, count);
}

/* ---- gelu ---- */

static coh_status shape_gelu(coh_op_call *call)
{
    const char *kind = call->attributes[0].text;
    if (strcmp(kind, "none") != 0 && strcmp(kind, "tanh") != 0)
        return coh_fail(COH_INVALID_ARGUMENT, "approximate=%.64s: it takes none or tanh", kind);
    return shape_unary(call);
}

static void range_gelu(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                       uint64_t count)
{
    const cohi_vector *vector = cohi_vector_best();
    (void)first;
    (call->attributes[0].text[0] == 'n' ? vector->gelu : vector->gelu_tanh)(in[0], out, count);
}

/* ---- bias ---- */

static coh_status shape_bias(coh_op_call *call)
{
    coh_status status = shape_unary(call);
    if (status == COH_OK)
        status = cohi_need_dims(call, 0, 1);
    return status == COH_OK ? cohi_need_vector(call, 1, cohi_last(&call->inputs[0].shape)) : status;
}

/* The bias is passed whole, since its shape is another, unless there is only one row. */
static void range_bias(const coh_op_call *call, const void *const *in, void *out, uint64_t first,
                       uint64_t count)
{
    const cohi_vector *vector = cohi_vector_best();
    const float *left = in[0], *bias = in[1];
    float *result = out;
    uint64_t width = cohi_last(&call->output.shape), column = first % width;
    if (cohi_shape_equal(&call->inputs[1].shape, &call->output.shape)) {
        vector->add(left, bias, result, count);
        return;
    }
    for (uint64_t done = 0; done < count;) {
        uint64_t now = width - column < count - done ? width - column : count - done;
        vector->add(left + done, bias + column, result + done, now);
        done += now;
        column = 0;
    }
}

/* ---- convert ---- */

static coh_status find_dtype(const char *name, coh_dtype *dtype)
{
    static const coh_dtype all[] = {
#define ROW(constant, value, text, bytes) constant,
        COH_DTYPE_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(coh_dtype_name(all[i]), name) == 0) {
            *dtype = all[i];
            return COH_OK;
        }
    return coh_fail(COH_INVALID_ARGUMENT, "to=%.64s: there is no such type", name);
}

static coh_status shape_convert(coh_op_call *call)
{
    coh_dtype from = call->inputs[0].dtype, to = from;
    coh_status status = find_dtype(call->attributes[0].text, &to);
    if (status != COH_OK)
        return status;
    if (from != COH_F32 && to != COH_F32 && from != to)
        return coh_fail(COH_UNSUPPORTED, "from %s to %s: one of the two must be f32",
                        coh_dtype_name(from), coh_dtype_name(to));
    cohi_like_first(call);
    call->output.dtype = to;
    return COH_OK;
}

static coh_status kernel_convert(const coh_op_call *call)
{
    return coh_convert(call->output.data, call->output.dtype, call->inputs[0].data,
                       call->inputs[0].dtype, coh_shape_count(&call->output.shape));
}

static const coh_attribute_rule scale_rules[] = {{"by", COH_ATTRIBUTE_REAL, NULL}};
static const coh_attribute_rule gelu_rules[] = {{"approximate", COH_ATTRIBUTE_TEXT, "none"}};
static const coh_attribute_rule convert_rules[] = {{"to", COH_ATTRIBUTE_TEXT, NULL}};

static const cohi_builtin rows[] = {
    {COHI_OP("add", 2, 2, .shape = shape_binary, .range = range_add, .in_place = 3)},
    {COHI_OP("mul", 2, 2, .shape = shape_binary, .range = range_mul, .in_place = 3)},
    {COHI_OP("scale", 1, 1, .shape = shape_unary, .range = range_scale, .in_place = 1,
             COHI_RULES(scale_rules))},
    {COHI_OP("bias", 2, 2, .shape = shape_bias, .range = range_bias, .in_place = 1)},
    {COHI_OP("relu", 1, 1, .shape = shape_unary, .range = range_relu, .in_place = 1)},
    {COHI_OP("silu", 1, 1, .shape = shape_unary, .range = range_silu, .in_place = 1)},
    {COHI_OP("gelu", 1, 1, .shape = shape_gelu, .range = range_gelu, .in_place = 1,
             COHI_RULES(gelu_rules))},
    {COHI_OP("convert", 1, 1, .shape = shape_convert, COHI_RULES(convert_rules)),
     .cpu = kernel_convert},
};

const cohi_builtins cohi_elementwise_ops = COHI_TABLE(rows);
