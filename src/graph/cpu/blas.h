/* blas.h - matrix products, by cblas. Row-major f32. */
#ifndef COHI_GRAPH_CPU_BLAS_H
#define COHI_GRAPH_CPU_BLAS_H

#include <cohort.h>
#include <stdbool.h>

/* `rows` x `columns` of a larger matrix whose rows are `stride` elements apart. */
typedef struct cohi_matrix {
    const float *data;
    size_t stride;
} cohi_matrix;

/* Before the first product: opens OpenBLAS. COH_UNSUPPORTED: it is not there. */
coh_status cohi_matmul_open(void);

/* The core type whose kernels are used, as OpenBLAS names it, once it is open. */
const char *cohi_matmul_core(void);

/* out[m,n] = scale * left[m,k] * right, which is [k,n], or [n,k] when transposed. */
void cohi_matmul(size_t m, size_t n, size_t k, float scale, cohi_matrix left, cohi_matrix right,
                 bool transposed, float *out, size_t out_stride);

/* Whether each dimension can be passed to cblas, which counts with int. */
bool cohi_matmul_fits(size_t m, size_t n, size_t k);

#endif
