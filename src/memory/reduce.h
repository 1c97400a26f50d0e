/*
 * reduce.h - reductions and scans of arrays in host memory: many sources into many targets in one
 * pass.
 */
#ifndef COHI_MEMORY_REDUCE_H
#define COHI_MEMORY_REDUCE_H

#include "memory/kernels/kernels.h"
#include "memory/own.h"

typedef struct cohi_reduction {
    coh_dtype dtype;
    coh_reduce_op op;
    int ranks;           /* what a mean is divided by, 1 and more; else ignored */
    bool stream;         /* store past the caches */
    const cohi_own *own; /* a function of the program's, which type and op then say nothing of; or
                          * NULL */
} cohi_reduction;

/* Whether the type has the operation. Floats: sum, mean, product, min, max; integers: all of them;
 * bool: all but mean. */
bool cohi_reduce_has(coh_dtype dtype, coh_reduce_op op);

/*
 * targets[t][i] = sources[0][i] op sources[1][i] op ..., in that order, for every t and i < count.
 * One source: a copy, of a mean the quotient.
 *
 * Integers wrap; their mean is the wrapped sum divided, towards zero. f32 and f64 are taken step by
 * step, in their own type. f16, bf16 and f8 are taken to f32, and the result, of a mean the
 * quotient, is rounded once: to the nearest, ties to even; too large is infinity, in f8e4m3, which
 * has none, NaN. The minimum and maximum with a NaN are NaN, and -0 is below +0. Of bool, any byte
 * but 0 is true and results are 0 and 1; sum, or, max are "one is", product, and, min "all are".
 * Every instruction set gives the same bits, but for those that tell one NaN from another.
 *
 * Pointers are aligned to the element. A target may be the same memory as a source, but not overlap
 * it in part; all of an element's loads come before its stores. With `stream`, the stores are
 * ordered before whatever follows. The type must have the operation.
 */
void cohi_reduce(const cohi_reduction *how, void *const *targets, int target_count,
                 const void *const *sources, int source_count, size_t count);

/* cohi_reduce with the kernels of one instruction set, which the CPU must have. */
void cohi_reduce_with(const cohi_kernels *kernels, const cohi_reduction *how, void *const *targets,
                      int target_count, const void *const *sources, int source_count, size_t count);

/* Reduces two sources into one target and makes `copy`, in one pass where the kernel can. The copy
 * must not overlap the target or the sources. */
void cohi_reduce_pair_and_copy(const cohi_reduction *how, void *target, const void *const *sources,
                               size_t count, cohi_kernel_copy copy);

/* cohi_reduce_pair_and_copy with the kernels of one instruction set, which the CPU must have. */
void cohi_reduce_pair_and_copy_with(const cohi_kernels *kernels, const cohi_reduction *how,
                                    void *target, const void *const *sources, size_t count,
                                    cohi_kernel_copy copy);

/*
 * targets[t][i] = sources[0][i] op ... op sources[t][i] for every t < members and i < count, each
 * with the bits that cohi_reduce gives. There is no mean.
 *
 * targets[t] may be the same memory as sources[t], or, of a scan that leaves each member's own out
 * and so is given the targets of those after it, as sources[t + 1]; else targets overlap no source.
 * The rest is as of cohi_reduce.
 */
void cohi_scan(const cohi_reduction *how, void *const *targets, const void *const *sources,
               int members, size_t count);
void cohi_scan_with(const cohi_kernels *kernels, const cohi_reduction *how, void *const *targets,
                    const void *const *sources, int members, size_t count);

/* The type in which partial results are kept from step to step: f32 for f16, bf16 and f8, else the
 * type itself. Results that are rounded after each step are not those of one rounding. */
coh_dtype cohi_reduce_partial(coh_dtype dtype);

#endif
