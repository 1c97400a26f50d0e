/*
 * Room: graph/cpu.
 *
 * What kernels for the CPU are made of: loops for each instruction set, and OpenBLAS for
 * products.
 * Uses libc and libm; knows no graph.
 * Hides instruction sets, and how the BLAS library is found and set up.
 */
/*
 * vector.h - the loops that the cpu's kernels are made of, once for each instruction set.
 *
 * vector_loops.h is compiled several times with other flags; cohi_vector_best() is the best that
 * this cpu can run. Inputs and output may be the same array, and do not overlap otherwise.
 */
#ifndef COHI_GRAPH_CPU_VECTOR_H
#define COHI_GRAPH_CPU_VECTOR_H

#include <stddef.h>

/* Values from this size on are written past the caches: a store that misses reads the line first.
 * Measured: see docs/performance.md. */
#define COHI_STREAMED_VALUE_BYTES ((size_t)32 << 20)

enum { COHI_STREAM_LINE = 64 };

typedef struct cohi_vector {
    void (*add)(const float *left, const float *right, float *out, size_t count);
    void (*mul)(const float *left, const float *right, float *out, size_t count);
    void (*scale)(const float *in, float by, float *out, size_t count);
    void (*relu)(const float *in, float *out, size_t count);
    void (*silu)(const float *in, float *out, size_t count);
    void (*gelu)(const float *in, float *out, size_t count);
    void (*gelu_tanh)(const float *in, float *out, size_t count);

    /* One row of `count`: NaN among the inputs makes the whole row NaN. */
    void (*softmax)(const float *in, float *out, size_t count);
    void (*rms_norm)(const float *in, const float *weight, float eps, float *out, size_t count);
    void (*layer_norm)(const float *in, const float *weight, const float *bias, float eps,
                       float *out, size_t count);

    /* (left, right) turned by each angle. */
    void (*rotate)(const float *left, const float *right, const float *cosine, const float *sine,
                   float *out_left, float *out_right, size_t count);

    /* Of one row; and lane by lane into a row that has a value already. */
    float (*sum)(const float *in, size_t count);
    float (*max)(const float *in, size_t count); /* NaN where one is */
    float (*min)(const float *in, size_t count);
    void (*max_into)(const float *in, float *out, size_t count);
    void (*min_into)(const float *in, float *out, size_t count);

    /* Copies past the caches, for values that would not stay in them; `out` and `bytes` are
     * multiples of COHI_STREAM_LINE. What is read next, as many bytes at `ahead` (or NULL), is
     * fetched meanwhile; it need not be there. stream_end orders the stores before what follows. */
    void (*stream)(const void *in, void *out, size_t bytes, const void *ahead);
    void (*stream_end)(void);
} cohi_vector;

const cohi_vector *cohi_vector_best(void);

/* The others, for tests and measurements: by index from 0; NULL past the last, and for one that
 * this cpu cannot run. */
const cohi_vector *cohi_vector_at(size_t index);

#endif
