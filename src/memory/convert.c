#include "memory/convert.h"

#include "memory/host_copy.h"

/*
 * Bytes of the wider side, f32, from which on stores bypass the caches.
 * Sapphire Rapids, bare loops with the bytes of f32 and 16-bit floats, time of plain stores divided
 * by that of streaming ones: 1 MiB 0.6 to 0.8, 2 MiB 1.2 to 1.5, 4 MiB 1.15 to 1.3, 16 MiB 1.1 to
 * 1.6, 64 MiB 1.3 to 2.4.
 */
enum { STREAM_BYTES = 2 << 20 };

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
    const cohi_kernel_job job = {
        .targets = &target,
        .sources = &source,
        .target_count = 1,
        .source_count = 1,
        .stream = count * sizeof(float) >= STREAM_BYTES,
        .count = count,
    };
    convert(&job);
    return true;
}

bool cohi_convert(void *target, coh_dtype to, const void *source, coh_dtype from, size_t count)
{
    return cohi_convert_with(cohi_kernels_now(), target, to, source, from, count);
}
