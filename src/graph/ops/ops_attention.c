/* What a decoder needs besides products and norms: rotary embedding, the cache, attention. */
#include "graph/cpu/blas.h"
#include "graph/cpu/vector.h"
#include "graph/ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The position of the first row, checked against the cache when the kernel runs. */
static coh_status need_position(const coh_op_call *call, int input)
{
    coh_status status = cohi_need_dtype(call, input, COH_I32);
    return status == COH_OK ? cohi_need_vector(call, input, 1) : status;
}

static coh_status read_position(const coh_op_call *call, int input, uint64_t rows, uint64_t most,
                                uint64_t *position)
{
    int32_t first = *(const int32_t *)call->inputs[input].data;
    if (first < 0 || rows > most || (uint64_t)first > most - rows)
        return coh_fail(COH_OUT_OF_BOUNDS,
                        "%llu rows from position %d on are not in a cache of %llu",
                        (unsigned long long)rows, (int)first, (unsigned long long)most);
    *position = (uint64_t)first;
    return COH_OK;
}

/* [rows, width] where width is a number of heads. */
static coh_status need_heads(const coh_op_call *call, int input, int64_t head)
{
    const coh_shape *shape = &call->inputs[input].shape;
    char wanted[64];
    coh_status status = cohi_need_dtype(call, input, COH_F32);
    if (status != COH_OK)
        return status;
    if (head > 0 && shape->dims == 2 && shape->dim[1] % (uint64_t)head == 0)
        return COH_OK;
    snprintf(wanted, sizeof wanted, "[rows,n*head] with head=%lld", (long long)head);
    return cohi_fail_shape(call, input, wanted);
}

/* ---- rotary ---- */

enum { ROTARY_HEAD, ROTARY_THETA };

static coh_status shape_rotary(coh_op_call *call)
{
    int64_t head = call->attributes[ROTARY_HEAD].integer;
    cohi_like_first(call);
    coh_status status = need_heads(call, 0, head);
    if (status == COH_OK && (head % 2 != 0 || !(call->attributes[ROTARY_THETA].real > 0)))
        status = coh_fail(COH_INVALID_ARGUMENT,
                          "head=%lld theta=%g: it takes an even head and a positive theta",
                          (long long)head, call->attributes[ROTARY_THETA].real);
    if (status == COH_OK)
        status = need_position(call, 1);
    if (status == COH_OK) /* rates, cosines, sines */
        call->scratch_bytes = 3 * (uint64_t)head / 2 * sizeof(float);
    return status;
}

static void find_rates(float *rates, size_t half, double theta)
{
    for (size_t i = 0; i < half; i++)
        rates[i] = (float)pow(theta, -(double)i / (double)half);
}

static coh_status kernel_rotary(const coh_op_call *call)
{
    const cohi_vector *vector = cohi_vector_best();
    size_t head = (size_t)call->attributes[ROTARY_HEAD].integer, half = head / 2;
    uint64_t rows = call->output.shape.dim[0], width = call->output.shape.dim[1];
    float *rates = call->scratch, *cosine = rates + half, *sine = cosine + half;
    int32_t position = *(const int32_t *)call->inputs[1].data;
    find_rates(rates, half, call->attributes[ROTARY_THETA].real);
    for (uint64_t row = 0; row < rows; row++) {
        const float *in = (const float *)call->inputs[0].data + row * width;
        float *out = (float *)call->output.data + row * width;
        for (size_t i = 0; i < half; i++)
            sincosf(((float)position + (float)row) * rates[i], &sine[i], &cosine[i]);
        for (size_t at = 0; at < width; at += head)
            vector->rotate(in + at, in + at + half, cosine, sine, out + at, out + at + half, half);
    }
    return COH_OK;
}

/* ---- cache_write ---- */

static coh_status shape_cache_write(coh_op_call *call)
{
    const coh_shape *cache = &call->inputs[0].shape, *rows = &call->inputs[1].shape;
    cohi_like_first(call);
    coh_status status = cohi_need_dtype(call, 1, call->inputs[0].dtype);
    if (status == COH_OK
        && (cache->dims != 2 || rows->dims != 2 || rows->dim[1] != cache->dim[1]
            || rows->dim[0] > cache->dim[0]))
        status = cohi_fail_shape(call, 1, "rows of the cache, not more than it has");
    if (status == COH_OK)
        status = need_position(call, 2);
    call->alias = 0;
    return status;
}

static coh_status kernel_cache_write(const coh_op_call *call)
{
    const coh_tensor *rows = &call->inputs[1];
    uint64_t position = 0;
    coh_status status =
        read_position(call, 2, rows->shape.dim[0], call->inputs[0].shape.dim[0], &position);
    if (status != COH_OK)
        return status;
    size_t row = rows->shape.dim[1] * coh_dtype_size(rows->dtype);
    memcpy((char *)call->output.data + position * row, rows->data, rows->shape.dim[0] * row);
    return COH_OK;
}

/* ---- attention ---- */

static coh_status shape_attention(coh_op_call *call)
{
    int64_t head = call->attributes[0].integer;
    coh_status status = need_heads(call, 0, head);
    cohi_like_first(call);
    for (int i = 1; i <= 2 && status == COH_OK; i++)
        status = need_heads(call, i, head);
    if (status == COH_OK)
        status = need_position(call, 3);
    if (status != COH_OK)
        return status;
    const coh_shape *q = &call->inputs[0].shape, *k = &call->inputs[1].shape;
    if (!cohi_shape_equal(k, &call->inputs[2].shape))
        return cohi_fail_shape(call, 2, "the shape of the keys");
    if (q->dim[1] % k->dim[1] != 0)
        return cohi_fail_shape(call, 1, "a number of heads that divides that of the queries");
    if (!cohi_matmul_fits(q->dim[0], k->dim[0], q->dim[1]))
        return cohi_fail_shape(call, 0, "less than 2^31 of each");
    if (__builtin_mul_overflow(q->dim[0], k->dim[0] * sizeof(float), &call->scratch_bytes))
        return cohi_fail_shape(call, 0, "fewer rows");
    return cohi_matmul_open();
}

/* One head: scores of all rows, their softmax up to each row's own position, the mix of values. */
static void attend(const coh_op_call *call, uint64_t position, size_t at, size_t group_at)
{
    const cohi_vector *vector = cohi_vector_best();
    size_t head = (size_t)call->attributes[0].integer;
    size_t rows = call->output.shape.dim[0], width = call->output.shape.dim[1];
    size_t stride = call->inputs[1].shape.dim[1], seen = position + rows;
    cohi_matrix q = {(const float *)call->inputs[0].data + at, width};
    cohi_matrix k = {(const float *)call->inputs[1].data + group_at, stride};
    cohi_matrix v = {(const float *)call->inputs[2].data + group_at, stride};
    float *scores = call->scratch;
    cohi_matmul(rows, seen, head, 1.0f / sqrtf((float)head), q, k, true, scores, seen);
    for (size_t row = 0; row < rows; row++) {
        size_t own = position + row + 1;
        vector->softmax(scores + row * seen, scores + row * seen, own);
        memset(scores + row * seen + own, 0, (seen - own) * sizeof *scores);
    }
    cohi_matmul(rows, head, seen, 1.0f, (cohi_matrix){scores, seen}, v, false,
                (float *)call->output.data + at, width);
}

static coh_status kernel_attention(const coh_op_call *call)
{
    size_t head = (size_t)call->attributes[0].integer;
    size_t width = call->output.shape.dim[1], stride = call->inputs[1].shape.dim[1];
    uint64_t position = 0;
    coh_status status =
        read_position(call, 3, call->output.shape.dim[0], call->inputs[1].shape.dim[0], &position);
    if (status != COH_OK)
        return status;
    size_t share = width / stride; /* heads of queries to one of keys */
    for (size_t at = 0; at < width; at += head)
        attend(call, position, at, at / head / share * head);
    return COH_OK;
}

static const coh_attribute_rule rotary_rules[] = {
    [ROTARY_HEAD] = {"head", COH_ATTRIBUTE_INTEGER, NULL},
    [ROTARY_THETA] = {"theta", COH_ATTRIBUTE_REAL, "10000"},
};
static const coh_attribute_rule attention_rules[] = {{"head", COH_ATTRIBUTE_INTEGER, NULL}};

static const cohi_builtin rows[] = {
    {COHI_OP("rotary", 2, 2, .shape = shape_rotary, .in_place = 1, COHI_RULES(rotary_rules)),
     .cpu = kernel_rotary},
    {COHI_OP("cache_write", 3, 3, .shape = shape_cache_write, .writes = 1),
     .cpu = kernel_cache_write},
    {COHI_OP("attention", 4, 4, .shape = shape_attention, COHI_RULES(attention_rules)),
     .cpu = kernel_attention},
};

const cohi_builtins cohi_attention_ops = COHI_TABLE(rows);
