/*
 * lanes.h - vectors of LANES_BYTES, and what is the same of them in every instruction set.
 *
 * Included by lanes_*.h, one for each instruction set, after it has defined LANES_BYTES. Such a
 * header adds what its instructions do better than the compiler's own vectors. The kernels, which
 * are written once, then include it:
 *
 *   widen16, narrow8, narrow16           elements to and from the low bits of lanes of 32 bits
 *   spread8                              bytes, with their sign, to elements of 16 bits
 *   high16                               the upper halves of the lanes of two vectors
 *   join                                 two halves of a vector
 *   choose_greater                       lane by lane: a > b ? yes : no
 *   widen_f16, narrow_f16                f16 to and from f32, rounding to the nearest, ties to even
 *   round_bf16           where LANES_ROUND_BF16: f32 rounded to bf16, in the upper halves of lanes
 *   pack_bf16                            where LANES_PACK_BF16: two vectors of f32 to one
 *   pack_f8e4m3, pack_f8e5m2             where LANES_PACK_F8: four vectors of f32 to one
 *   minimum_T, maximum_T                 for each type; of floats: NaN if any is NaN, -0 below +0
 *   load_some, store_some (and _half, _quarter)   the first `bytes` of a vector; the rest is 0
 *   stream, stream_quarter  where LANES_STREAM: stores past the caches, to addresses
 *                                        aligned to the vector; stream_end after the last of them;
 *                                        no stream_quarter where LANES_PACK_F8
 *
 * Sums, products and bit operations need nothing: the compiler has them for vectors.
 */
#ifndef COHI_MEMORY_KERNELS_LANES_H
#define COHI_MEMORY_KERNELS_LANES_H

#include "base/atomics.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES_INLINE static inline __attribute__((always_inline))

typedef uint8_t v_u8 __attribute__((vector_size(LANES_BYTES)));
typedef uint16_t v_u16 __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t v_u32 __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t v_u64 __attribute__((vector_size(LANES_BYTES)));
typedef int8_t v_i8 __attribute__((vector_size(LANES_BYTES)));
typedef int16_t v_i16 __attribute__((vector_size(LANES_BYTES)));
typedef int32_t v_i32 __attribute__((vector_size(LANES_BYTES)));
typedef int64_t v_i64 __attribute__((vector_size(LANES_BYTES)));
typedef float v_f32 __attribute__((vector_size(LANES_BYTES)));
typedef double v_f64 __attribute__((vector_size(LANES_BYTES)));

/* What fills the lanes of a v_f32 once widened: elements of 16 and of 8 bits. */
typedef uint16_t v_half __attribute__((vector_size(LANES_BYTES / 2)));
typedef uint8_t v_quarter __attribute__((vector_size(LANES_BYTES / 4)));

/* Vectors in the user's memory, which has types and alignments of its own. */
typedef v_u8 v_u8_there __attribute__((aligned(1), may_alias));
typedef v_half v_half_there __attribute__((aligned(1), may_alias));
typedef v_quarter v_quarter_there __attribute__((aligned(1), may_alias));

#endif
