/* scale.h - arrays of floats times a number. */
#ifndef COHI_MEMORY_SCALE_H
#define COHI_MEMORY_SCALE_H

#include <cohort.h>
#include <stdbool.h>

/* Whether the type can be scaled: floats can. */
bool cohi_scale_has(coh_dtype dtype);

/*
 * target[i] = source[i] * scale, in f64 for f64 and in f32 for all others, rounded to the type once.
 * The ranges are apart or the same; both are aligned to their elements.
 */
void cohi_scale(coh_dtype dtype, void *target, const void *source, double scale, size_t count);

#endif
