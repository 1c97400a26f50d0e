/*
 * oracle.h - what a reduction gives, one element at a time, as include/cohort.h says it.
 *
 * Slow and plain on purpose: it shares nothing with the library. Elements are reduced in the order
 * in which they are given; f16, bf16, f8 in f32 with one rounding at the end.
 */
#ifndef TEST_COLLECTIVES_ORACLE_H
#define TEST_COLLECTIVES_ORACLE_H

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>

bool oracle_is_float(coh_dtype dtype);
bool oracle_is_signed(coh_dtype dtype);

/* Whether the operation goes with the type. */
bool oracle_allows(coh_dtype dtype, coh_reduce_op op);

/* A float element as a double, exactly, and a double as the nearest element, ties to even; what is
 * too large is infinite, or NaN where the type has no infinity. */
double oracle_decode(coh_dtype dtype, const void *element);
void oracle_encode(coh_dtype dtype, double value, void *element);

/* An element that is NaN. */
bool oracle_is_nan(coh_dtype dtype, const void *element);

/* The `count` elements, one behind the other, as one. */
void oracle_reduce(coh_dtype dtype, coh_reduce_op op, const void *elements, int count,
                   void *result);

/* What changes nothing. */
void oracle_identity(coh_dtype dtype, coh_reduce_op op, void *element);

/* An element drawn by a number, such that any order of reducing up to eight of them gives the same
 * bits: sums and products of floats are exact in f32, nothing is NaN. */
void oracle_draw(coh_dtype dtype, coh_reduce_op op, uint64_t number, void *element);

#endif
