#include "memory/reduce.h"

#include <string.h>

bool cohi_reduce_has(coh_dtype dtype, coh_reduce_op op)
{
    return (unsigned)dtype < COHI_DTYPES && (unsigned)op < COHI_REDUCE_OPS
           && cohi_kernels_now()->reduce[dtype][op];
}

static inline void run(cohi_kernel *kernel, const cohi_reduction *how, cohi_kernel_job job)
{
    bool counts_bytes = how->op == COH_AND || how->op == COH_OR || how->op == COH_XOR;
    job.ranks = how->ranks;
    job.stream = how->stream;
    if (counts_bytes)
        job.count *= coh_dtype_size(how->dtype);
    kernel(&job);
}

/* Into both: of a short reduction, handing the arguments on would be much of the time. */
static inline void reduce_with(const cohi_kernels *kernels, const cohi_reduction *how,
                               void *const *targets, int target_count, const void *const *sources,
                               int source_count, size_t count)
{
    if (__builtin_expect(how->own != NULL, 0)) {
        cohi_own_reduce(how->own, targets, target_count, sources, source_count, count);
        return;
    }
    run(kernels->reduce[how->dtype][how->op], how,
        (cohi_kernel_job){.targets = targets,
                          .sources = sources,
                          .target_count = target_count,
                          .source_count = source_count,
                          .count = count});
}

void cohi_reduce_with(const cohi_kernels *kernels, const cohi_reduction *how, void *const *targets,
                      int target_count, const void *const *sources, int source_count, size_t count)
{
    reduce_with(kernels, how, targets, target_count, sources, source_count, count);
}

void cohi_reduce(const cohi_reduction *how, void *const *targets, int target_count,
                 const void *const *sources, int source_count, size_t count)
{
    reduce_with(cohi_kernels_now(), how, targets, target_count, sources, source_count, count);
}

void cohi_reduce_pair_and_copy_with(const cohi_kernels *kernels, const cohi_reduction *how,
                                    void *target, const void *const *sources, size_t count,
                                    cohi_kernel_copy copy)
{
    if (how->own)
        cohi_own_reduce(how->own, &target, 1, sources, 2, count);
    else
        run(kernels->reduce[how->dtype][how->op], how,
            (cohi_kernel_job){.targets = &target,
                              .sources = sources,
                              .target_count = 1,
                              .source_count = 2,
                              .count = count,
                              .copy = &copy});
    if (copy.bytes > 0)
        memcpy(copy.target, copy.source, copy.bytes);
}

void cohi_reduce_pair_and_copy(const cohi_reduction *how, void *target, const void *const *sources,
                               size_t count, cohi_kernel_copy copy)
{
    cohi_reduce_pair_and_copy_with(cohi_kernels_now(), how, target, sources, count, copy);
}

void cohi_scan_with(const cohi_kernels *kernels, const cohi_reduction *how, void *const *targets,
                    const void *const *sources, int members, size_t count)
{
    if (how->own) {
        cohi_own_scan(how->own, targets, sources, members, count);
        return;
    }
    run(kernels->scan[how->dtype][how->op], how,
        (cohi_kernel_job){.targets = targets,
                          .sources = sources,
                          .target_count = members,
                          .source_count = members,
                          .count = count});
}

void cohi_scan(const cohi_reduction *how, void *const *targets, const void *const *sources,
               int members, size_t count)
{
    cohi_scan_with(cohi_kernels_now(), how, targets, sources, members, count);
}

coh_dtype cohi_reduce_partial(coh_dtype dtype)
{
    switch (dtype) {
    case COH_F16:
    case COH_BF16:
    case COH_F8E4M3:
    case COH_F8E5M2:
        return COH_F32;
    default:
        return dtype;
    }
}
