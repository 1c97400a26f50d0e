#include "memory/scale.h"

#include "memory/convert.h"

bool cohi_scale_has(coh_dtype dtype)
{
    switch (dtype) {
    case COH_F16:
    case COH_BF16:
    case COH_F32:
    case COH_F64:
    case COH_F8E4M3:
    case COH_F8E5M2:
        return true;
    default:
        return false;
    }
}

static void scale_f64(double *target, const double *source, double scale, size_t count)
{
    for (size_t i = 0; i < count; i++)
        target[i] = source[i] * scale;
}

static void scale_f32(float *target, const float *source, float scale, size_t count)
{
    for (size_t i = 0; i < count; i++)
        target[i] = source[i] * scale;
}

/* By way of f32, a piece at a time that stays in the first cache. */
static void scale_small(coh_dtype dtype, char *target, const char *source, float scale,
                        size_t count)
{
    enum { PIECE = 2048 };
    float piece[PIECE];
    size_t element = coh_dtype_size(dtype);
    for (size_t done = 0, part; done < count; done += part) {
        part = count - done < PIECE ? count - done : PIECE;
        cohi_convert(piece, COH_F32, source + done * element, dtype, part);
        scale_f32(piece, piece, scale, part);
        cohi_convert(target + done * element, dtype, piece, COH_F32, part);
    }
}

void cohi_scale(coh_dtype dtype, void *target, const void *source, double scale, size_t count)
{
    if (dtype == COH_F64)
        scale_f64(target, source, scale, count);
    else if (dtype == COH_F32)
        scale_f32(target, source, (float)scale, count);
    else
        scale_small(dtype, target, source, (float)scale, count);
}
