/*
 * blas_library.h - OpenBLAS, opened at run time, with kernels that fit the CPU.
 *
 * OpenBLAS takes its kernels by the model of the CPU while it is loaded, and for a model that it
 * does not know the oldest ones, which are several times slower. Another core type can be named
 * in OPENBLAS_CORETYPE, but only before it is loaded: so it is not linked.
 */
#ifndef COHI_GRAPH_CPU_BLAS_LIBRARY_H
#define COHI_GRAPH_CPU_BLAS_LIBRARY_H

#include <cblas.h>
#include <cohort.h>

/* X(function): those that are used. */
#define COHI_BLAS_TABLE(X)   \
    X(cblas_sgemm)           \
    X(cblas_sgemv)           \
    X(openblas_get_corename) \
    X(openblas_set_num_threads)

typedef struct cohi_blas {
#define COHI_BLAS_FIELD(function) __typeof__(&function) function;
    COHI_BLAS_TABLE(COHI_BLAS_FIELD)
#undef COHI_BLAS_FIELD
} cohi_blas;

/*
 * Opens it, the first time. It has one thread, since ranks share the cores already, unless
 * OPENBLAS_NUM_THREADS says otherwise, and a core type that fits the CPU, unless OPENBLAS_CORETYPE
 * says otherwise or the program has loaded it before. The environment is afterwards as it was.
 * COH_UNSUPPORTED: it is not there.
 */
coh_status cohi_blas_open(void);

/* Its functions, once it is open. */
const cohi_blas *cohi_blas_functions(void);

/* The core type that should take the place of `core`: the one for this CPU's instructions, if
 * `core` has fewer; else NULL. */
const char *cohi_blas_better_core(const char *core);

#endif
