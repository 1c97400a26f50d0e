/* Matrix products: of any number of rows with one matrix, or matrix by matrix. */
#include "graph/cpu/blas.h"
#include "graph/ops/ops.h"

#include <string.h>

typedef struct product {
    uint64_t batch; /* 1: all rows of the first input at once */
    uint64_t m, n, k;
    bool transposed;
} product;

/* The second input's two dimensions, as [k,n]. */
static void inner_dims(const coh_op_call *call, product *p)
{
    const coh_shape *b = &call->inputs[1].shape;
    p->transposed = call->attributes[0].integer != 0;
    p->k = b->dim[b->dims - (p->transposed ? 1 : 2)];
    p->n = b->dim[b->dims - (p->transposed ? 2 : 1)];
}

static product product_of(const coh_op_call *call)
{
    const coh_shape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    product p;
    inner_dims(call, &p);
    if (b->dims == 2) {
        p.batch = 1;
        p.m = cohi_rows(a);
    } else {
        p.m = a->dim[a->dims - 2];
        p.batch = cohi_rows(a) / p.m;
    }
    return p;
}

static bool same_outer(const coh_shape *a, const coh_shape *b)
{
    return a->dims == b->dims
           && memcmp(a->dim, b->dim, (size_t)(a->dims - 2) * sizeof a->dim[0]) == 0;
}

static coh_status shape_matmul(coh_op_call *call)
{
    const coh_shape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    char left[COHI_SHAPE_TEXT_BYTES], right[COHI_SHAPE_TEXT_BYTES];
    coh_status status = cohi_need_dtypes(call, COH_F32);
    if (status == COH_OK)
        status = cohi_need_dims(call, 0, b->dims == 2 ? 1 : 2);
    if (status == COH_OK)
        status = cohi_need_dims(call, 1, 2);
    if (status != COH_OK)
        return status;
    product p;
    inner_dims(call, &p);
    if (cohi_last(a) != p.k || (b->dims > 2 && !same_outer(a, b)))
        return coh_fail(COH_LENGTH_MISMATCH, "%s and %s%s cannot be multiplied",
                        cohi_shape_text(a, left), cohi_shape_text(b, right),
                        p.transposed ? " transposed" : "");
    p = product_of(call);
    if (!cohi_matmul_fits(p.m, p.n, p.k))
        return coh_fail(COH_UNSUPPORTED,
                        "%s times %s: a dimension is more than cblas can count, 2^31 - 1",
                        cohi_shape_text(a, left), cohi_shape_text(b, right));
    cohi_like_first(call);
    call->output.shape.dim[a->dims - 1] = p.n;
    return cohi_matmul_open();
}

static coh_status kernel_matmul(const coh_op_call *call)
{
    product p = product_of(call);
    const float *left = call->inputs[0].data, *right = call->inputs[1].data;
    float *out = call->output.data;
    size_t stride = p.transposed ? p.k : p.n;
    for (uint64_t i = 0; i < p.batch; i++)
        cohi_matmul(p.m, p.n, p.k, 1.0f, (cohi_matrix){left + i * p.m * p.k, p.k},
                    (cohi_matrix){right + i * p.k * p.n, stride}, p.transposed, out + i * p.m * p.n,
                    p.n);
    return COH_OK;
}

static const coh_attribute_rule rules[] = {{"transpose_b", COH_ATTRIBUTE_INTEGER, "0"}};

static const cohi_builtin rows[] = {
    {COHI_OP("matmul", 2, 2, .shape = shape_matmul, COHI_RULES(rules)), .cpu = kernel_matmul},
};

const cohi_builtins cohi_matmul_ops = COHI_TABLE(rows);
