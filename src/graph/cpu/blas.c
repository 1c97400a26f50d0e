#include "graph/cpu/blas.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static void one_thread(void)
{
    if (!getenv("OPENBLAS_NUM_THREADS"))
        openblas_set_num_threads(1);
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
    cblas_sgemv(CblasRowMajor, transposed ? CblasNoTrans : CblasTrans, rows, columns, scale,
                right.data, (int)right.stride, left.data, 1, 0.0f, out, 1);
}

void cohi_matmul(size_t m, size_t n, size_t k, float scale, cohi_matrix left, cohi_matrix right,
                 bool transposed, float *out, size_t out_stride)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, one_thread);
    if (m == 1) {
        one_row(n, k, scale, left, right, transposed, out);
        return;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (int)m, (int)n,
                (int)k, scale, left.data, (int)left.stride, right.data, (int)right.stride, 0.0f,
                out, (int)out_stride);
}
