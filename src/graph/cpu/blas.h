/*
 * blas.h - matrix products, by cblas. Row-major f32.
 *
 * OpenBLAS would start a thread for each core; ranks share the cores already. The first product of
 * the process sets it to one thread, unless OPENBLAS_NUM_THREADS says otherwise.
 */
#ifndef COHI_GRAPH_CPU_BLAS_H
#define COHI_GRAPH_CPU_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* `rows` x `columns` of a larger matrix whose rows are `stride` elements apart. */
typedef struct cohi_matrix {
    const float *data;
    size_t stride;
} cohi_matrix;

/* out[m,n] = scale * left[m,k] * right, which is [k,n], or [n,k] when transposed. */
void cohi_matmul(size_t m, size_t n, size_t k, float scale, cohi_matrix left, cohi_matrix right,
                 bool transposed, float *out, size_t out_stride);

/* Whether each dimension can be passed to cblas, which counts with int. */
bool cohi_matmul_fits(size_t m, size_t n, size_t k);

#endif
