#include "graph/cpu/blas.h"

#include "graph/cpu/blas_library.h"

#include <limits.h>

coh_status cohi_matmul_open(void)
{
    return cohi_blas_open();
}

const char *cohi_matmul_core(void)
{
    return cohi_blas_functions()->openblas_get_corename();
}

bool cohi_matmul_fits(size_t m, size_t n, size_t k)
{
    return m <= INT_MAX && n <= INT_MAX && k <= INT_MAX;
}

/* A single row is a product with a vector, which OpenBLAS does faster under that name. */
static void one_row(size_t n, size_t k, float scale, cohi_matrix left, cohi_matrix right,
                    bool transposed, float *out)
{
    int rows = (int)(transposed ? n : k), columns = (int)(transposed ? k : n);
    cohi_blas_functions()->cblas_sgemv(CblasRowMajor, transposed ? CblasNoTrans : CblasTrans, rows,
                                       columns, scale, right.data, (int)right.stride, left.data, 1,
                                       0.0f, out, 1);
}

void cohi_matmul(size_t m, size_t n, size_t k, float scale, cohi_matrix left, cohi_matrix right,
                 bool transposed, float *out, size_t out_stride)
{
    if (m == 1) {
        one_row(n, k, scale, left, right, transposed, out);
        return;
    }
    cohi_blas_functions()->cblas_sgemm(CblasRowMajor, CblasNoTrans,
                                       transposed ? CblasTrans : CblasNoTrans, (int)m, (int)n,
                                       (int)k, scale, left.data, (int)left.stride, right.data,
                                       (int)right.stride, 0.0f, out, (int)out_stride);
}
