/*
 * convert.h - arrays in host memory from one element type to another.
 */
#ifndef COHI_MEMORY_CONVERT_H
#define COHI_MEMORY_CONVERT_H

#include "memory/kernels/kernels.h"

/*
 * Converts `count` elements between f32 and any type, or copies them where the types are the same;
 * false, and nothing done, for any other pair. The ranges do not overlap; both are aligned to their
 * elements.
 *
 * To floats: to the nearest, ties to even; too large is infinity, in f8e4m3 (the format of the Open
 * Compute Project, which has none; it is not saturated) NaN; NaN stays NaN, and is
 * quiet, but from bf16, whose bits are an f32's as they are.
 * To integers: towards zero; what is too large or too small is the largest or smallest, NaN is 0.
 * To bool: 1 unless 0, also of NaN. From bool: 0 and 1.
 */
bool cohi_convert(void *target, coh_dtype to, const void *source, coh_dtype from, size_t count);

/* cohi_convert with the kernels of one instruction set, which the CPU must have. */
bool cohi_convert_with(const cohi_kernels *kernels, void *target, coh_dtype to, const void *source,
                       coh_dtype from, size_t count);

#endif
