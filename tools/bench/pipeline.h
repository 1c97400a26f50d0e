/*
 * bench/pipeline.h - `cohort bench pipeline`: how well copies hide behind computation.
 *
 *   bench/pipeline.c   the command line, the cases and their report
 *   bench/loop.c       one case: its copies, its computation, both unrelated, both pipelined
 *   bench/product.c    the computation, a matrix product
 */
#ifndef COHI_TOOLS_BENCH_PIPELINE_H
#define COHI_TOOLS_BENCH_PIPELINE_H

#include "bench/bench.h"

#include <cohort-ml.h>

/* argv[0] is "pipeline". The exit status. */
int cohi_bench_pipeline(int argc, char **argv);

/* ---- bench/product.c ---- */

/* The left factor is the first rows of a tile, 64 KiB, the right one has 16 KiB: together they stay
 * in a second-level cache, as the panels of a blocked product do. */
enum {
    COHI_PRODUCT_INNER = 256, /* a row of a tile has so many f32 */
    COHI_PRODUCT_ROWS = 64,
    COHI_PRODUCT_WIDE = 16,
};

/* Multiplies `pairs` pairs of rows, from the first of `rows` and over again, by the right factor;
 * adds to sums[2 * COHI_PRODUCT_WIDE], so that nothing can be left out. */
void cohi_product(const float *left, size_t rows, uint64_t pairs, const float *right, float *sums);

/* ---- bench/loop.c ---- */

typedef struct cohi_loop_options {
    uint64_t bytes; /* of all tiles */
    uint64_t tile;
    uint64_t depth;
    uint64_t rounds;
} cohi_loop_options;

/* Medians and quartiles of the time of a whole loop, and of what is made of them. */
typedef struct cohi_loop_result {
    cohi_bench_figure copy;
    cohi_bench_figure compute;
    cohi_bench_figure apart; /* both at once, unrelated */
    cohi_bench_figure pipelined;
    cohi_bench_figure ratio;    /* pipelined / the larger of the two alone, round by round */
    cohi_bench_figure of_apart; /* pipelined / both at once */
} cohi_loop_result;

/* Measures a loop whose computation takes about `share` of the time of its copies. `file` may be
 * NULL: from memory. */
coh_status cohi_loop_measure(const cohi_loop_options *options, const void *memory, coh_file *file,
                             double share, cohi_loop_result *result);

#endif
