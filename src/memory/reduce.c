#include "memory/reduce.h"

bool cohi_reduce_has(coh_dtype dtype, coh_reduce_op op)
{
    return (unsigned)dtype < COHI_DTYPES && (unsigned)op < COHI_REDUCE_OPS
           && cohi_kernels_now()->reduce[dtype][op];
}

void cohi_reduce_with(const cohi_kernels *kernels, const cohi_reduction *how, void *const *targets,
                      int target_count, const void *const *sources, int source_count, size_t count)
{
    bool counts_bytes = how->op == COH_AND || how->op == COH_OR || how->op == COH_XOR;
    const cohi_kernel_job job = {
        .targets = targets,
        .sources = sources,
        .target_count = target_count,
        .source_count = source_count,
        .ranks = how->ranks,
        .stream = how->stream,
        .count = counts_bytes ? count * coh_dtype_size(how->dtype) : count,
    };
    kernels->reduce[how->dtype][how->op](&job);
}

void cohi_reduce(const cohi_reduction *how, void *const *targets, int target_count,
                 const void *const *sources, int source_count, size_t count)
{
    cohi_reduce_with(cohi_kernels_now(), how, targets, target_count, sources, source_count, count);
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
