/* old_openblas.c - a stand-in for OpenBLAS: while it is loaded it takes the core type that
 * OPENBLAS_CORETYPE names, else that of OLD_OPENBLAS_CORE, as if that were all it knew of the CPU. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

static char core[32];
static int threads;

__attribute__((constructor)) static void load(void)
{
    const char *named = getenv("OPENBLAS_CORETYPE"), *guess = getenv("OLD_OPENBLAS_CORE");
    const char *count = getenv("OPENBLAS_NUM_THREADS");
    snprintf(core, sizeof core, "%s", named ? named : guess);
    threads = count ? atoi(count) : 64;
}

char *openblas_get_corename(void)
{
    return core;
}

void openblas_set_num_threads(int count)
{
    threads = count;
}

int openblas_get_num_threads(void)
{
    return threads;
}

/* Row-major, the second transposed, beta 0. */
void cblas_sgemm(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE left,
                 OPENBLAS_CONST enum CBLAS_TRANSPOSE right, OPENBLAS_CONST blasint m,
                 OPENBLAS_CONST blasint n, OPENBLAS_CONST blasint k, OPENBLAS_CONST float alpha,
                 OPENBLAS_CONST float *a, OPENBLAS_CONST blasint lda, OPENBLAS_CONST float *b,
                 OPENBLAS_CONST blasint ldb, OPENBLAS_CONST float beta, float *c,
                 OPENBLAS_CONST blasint ldc)
{
    (void)order, (void)left, (void)right, (void)beta;
    for (blasint i = 0; i < m; i++) {
        for (blasint j = 0; j < n; j++) {
            float sum = 0;
            for (blasint l = 0; l < k; l++)
                sum += a[i * lda + l] * b[j * ldb + l];
            c[i * ldc + j] = alpha * sum;
        }
    }
}

void cblas_sgemv(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE trans,
                 OPENBLAS_CONST blasint m, OPENBLAS_CONST blasint n, OPENBLAS_CONST float alpha,
                 OPENBLAS_CONST float *a, OPENBLAS_CONST blasint lda, OPENBLAS_CONST float *x,
                 OPENBLAS_CONST blasint incx, OPENBLAS_CONST float beta, float *y,
                 OPENBLAS_CONST blasint incy)
{
    (void)incx, (void)incy;
    cblas_sgemm(order, CblasNoTrans, trans, 1, m, n, alpha, x, n, a, lda, beta, y, m);
}
