#include "memory/convert.h"

#include "memory/host_copy.h"
#include "memory/profile.h"

static cohi_kernel *find_kernel(const cohi_kernels *kernels, coh_dtype to, coh_dtype from)
{
    if ((unsigned)to >= COHI_DTYPES || (unsigned)from >= COHI_DTYPES)
        return NULL;
    if (to == COH_F32)
        return kernels->to_f32[from];
    return from == COH_F32 ? kernels->from_f32[to] : NULL;
}

bool cohi_convert_with(const cohi_kernels *kernels, void *target, coh_dtype to, const void *source,
                       coh_dtype from, size_t count)
{
    if (to == from && coh_dtype_size(to) > 0) {
        cohi_host_copy(target, source, count * coh_dtype_size(to));
        return true;
    }
    cohi_kernel *convert = find_kernel(kernels, to, from);
    if (!convert)
        return false;
    enum { NEVER_BELOW = 64 << 10 }; /* the row's least */
    size_t bytes = count * sizeof(float);
    bool stream =
        bytes >= NEVER_BELOW && (double)bytes >= cohi_profile_now(COHI_ROW_convert_stream_from);
    const cohi_kernel_job job = {
        .targets = &target,
        .sources = &source,
        .target_count = 1,
        .source_count = 1,
        .stream = stream,
        .pages = stream ? (int)cohi_profile_now(COHI_ROW_convert_pages) : 0,
        .count = count,
    };
    convert(&job);
    return true;
}

bool cohi_convert(void *target, coh_dtype to, const void *source, coh_dtype from, size_t count)
{
    return cohi_convert_with(cohi_kernels_now(), target, to, source, from, count);
}
