/*
 * Room: memory/kernels.
 *
 * The loops that reduce and convert, compiled once for each instruction set.
 * Uses base alone. Allocates nothing and fails at nothing: its callers have checked.
 * Hides vector types and intrinsics.
 */
/*
 * kernels.h - the loops that reduce and convert, once for each instruction set, and which are used.
 *
 * The loops are written once, in kernel_loops.h, over the vectors of a lanes_*.h. Each kernels_*.c
 * compiles them with the flags of its instruction set and exports one table. reduce.h and convert.h
 * are for callers; this is for them, for `cohort info`, and for tests, which try every set that the
 * CPU has.
 */
#ifndef COHI_MEMORY_KERNELS_KERNELS_H
#define COHI_MEMORY_KERNELS_KERNELS_H

#include <cohort.h>
#include <stdbool.h>

/* A copy that a kernel makes while it reduces, from the front on. The kernel takes off what it has
 * copied. */
typedef struct cohi_kernel_copy {
    char *target;
    const char *source;
    size_t bytes;
} cohi_kernel_copy;

/* One run over `count` elements. Conversions have one source and one target, scans as many targets
 * as sources. */
typedef struct cohi_kernel_job {
    void *const *targets;
    const void *const *sources;
    int target_count;
    int source_count;
    int ranks;   /* what a mean is divided by */
    bool stream; /* store past the caches, where the set can and the targets are aligned alike */
    int pages;   /* of a streamed conversion: pages side by side; 4, else straight on */
    size_t count;
    cohi_kernel_copy *copy; /* or NULL; the kernel may leave any of it to the caller */
} cohi_kernel_job;

typedef void cohi_kernel(const cohi_kernel_job *job);

enum {
    COHI_DTYPES = COH_BOOL + 1,
    COHI_REDUCE_OPS = COH_XOR + 1,
};

/* NULL where there is no such reduction, scan or conversion. */
typedef struct cohi_kernels {
    const char *name;
    cohi_kernel *reduce[COHI_DTYPES][COHI_REDUCE_OPS];
    cohi_kernel *scan[COHI_DTYPES][COHI_REDUCE_OPS];
    cohi_kernel *to_f32[COHI_DTYPES];
    cohi_kernel *from_f32[COHI_DTYPES];
} cohi_kernels;

/* The sets that this CPU has, the best first and "portable" last; NULL past the last. */
const cohi_kernels *cohi_kernels_at(int index);

/* The set in use: the best, until another is chosen. */
const cohi_kernels *cohi_kernels_now(void);

/* Chooses by name for the whole process; "auto" is the best. COH_INVALID_ARGUMENT lists the names;
 * COH_UNSUPPORTED: this CPU does not have it, or this build is for another. */
coh_status cohi_kernels_choose(const char *name);

/* "avx512", "avx2", "neon", "portable": the set in use. */
const char *cohi_kernels_name(void);

#endif
