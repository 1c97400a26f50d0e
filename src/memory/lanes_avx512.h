/* lanes_avx512.h - vectors of 64 bytes: AVX-512 F, BW, DQ, VL. Parts of vectors are masked. */
#ifndef COHI_MEMORY_LANES_AVX512_H
#define COHI_MEMORY_LANES_AVX512_H

#include <immintrin.h>

#define LANES_BYTES 64
#include "memory/lanes.h"

/* Without optimisation GCC's intrinsics are macros, whose masks of all ones it warns of. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

#define LANES_AVX512_INTEGER(type, suffix)                            \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)      \
    {                                                                 \
        return (v_##type)_mm512_min_##suffix((__m512i)a, (__m512i)b); \
    }                                                                 \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)      \
    {                                                                 \
        return (v_##type)_mm512_max_##suffix((__m512i)a, (__m512i)b); \
    }
LANES_AVX512_INTEGER(u8, epu8)
LANES_AVX512_INTEGER(u16, epu16)
LANES_AVX512_INTEGER(u32, epu32)
LANES_AVX512_INTEGER(u64, epu64)
LANES_AVX512_INTEGER(i8, epi8)
LANES_AVX512_INTEGER(i16, epi16)
LANES_AVX512_INTEGER(i32, epi32)
LANES_AVX512_INTEGER(i64, epi64)

/* The range instruction knows the order of zeros, but prefers a number to a NaN: a sum does not. */
enum { RANGE_MINIMUM = 4, RANGE_MAXIMUM = 5 };

#define LANES_AVX512_FLOAT(type, suffix, mask)                                                    \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)                                  \
    {                                                                                             \
        mask unordered = _mm512_cmp_##suffix##_mask(a, b, _CMP_UNORD_Q);                          \
        return _mm512_mask_add_##suffix(_mm512_range_##suffix(a, b, RANGE_MINIMUM), unordered, a, \
                                        b);                                                       \
    }                                                                                             \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)                                  \
    {                                                                                             \
        mask unordered = _mm512_cmp_##suffix##_mask(a, b, _CMP_UNORD_Q);                          \
        return _mm512_mask_add_##suffix(_mm512_range_##suffix(a, b, RANGE_MAXIMUM), unordered, a, \
                                        b);                                                       \
    }
LANES_AVX512_FLOAT(f32, ps, __mmask16)
LANES_AVX512_FLOAT(f64, pd, __mmask8)

LANES_INLINE v_u32 widen16(v_half narrow)
{
    return (v_u32)_mm512_cvtepu16_epi32((__m256i)narrow);
}

LANES_INLINE v_quarter narrow8(v_u32 wide)
{
    return (v_quarter)_mm512_cvtepi32_epi8((__m512i)wide);
}

LANES_INLINE v_half narrow16(v_u32 wide)
{
    return (v_half)_mm512_cvtepi32_epi16((__m512i)wide);
}

LANES_INLINE v_half spread8(v_quarter narrow)
{
    return (v_half)_mm256_cvtepi8_epi16((__m128i)narrow);
}

LANES_INLINE v_u16 join(v_half first, v_half second)
{
    return (v_u16)_mm512_inserti64x4(_mm512_castsi256_si512((__m256i)first), (__m256i)second, 1);
}

LANES_INLINE v_u16 high16(v_u32 first, v_u32 second)
{
    const v_u16 odd = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                       33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return (v_u16)_mm512_permutex2var_epi16((__m512i)first, (__m512i)odd, (__m512i)second);
}

LANES_INLINE v_u32 choose_greater(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
    __mmask16 greater = _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b);
    return (v_u32)_mm512_mask_blend_epi32(greater, (__m512i)no, (__m512i)yes);
}

LANES_INLINE v_f32 widen_f16(v_half narrow)
{
    return _mm512_cvtph_ps((__m256i)narrow);
}

LANES_INLINE v_half narrow_f16(v_f32 wide)
{
    return (v_half)_mm512_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

LANES_INLINE v_u8 load_some(const void *source, size_t bytes)
{
    return (v_u8)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, (unsigned)bytes), source);
}

LANES_INLINE v_half load_some_half(const void *source, size_t bytes)
{
    return (v_half)_mm256_maskz_loadu_epi8(_bzhi_u32(~0u, (unsigned)bytes), source);
}

LANES_INLINE v_quarter load_some_quarter(const void *source, size_t bytes)
{
    return (v_quarter)_mm_maskz_loadu_epi8((__mmask16)_bzhi_u32(~0u, (unsigned)bytes), source);
}

LANES_INLINE void store_some(void *target, v_u8 vector, size_t bytes)
{
    _mm512_mask_storeu_epi8(target, _bzhi_u64(~0ull, (unsigned)bytes), (__m512i)vector);
}

LANES_INLINE void store_some_half(void *target, v_half vector, size_t bytes)
{
    _mm256_mask_storeu_epi8(target, _bzhi_u32(~0u, (unsigned)bytes), (__m256i)vector);
}

LANES_INLINE void store_some_quarter(void *target, v_quarter vector, size_t bytes)
{
    _mm_mask_storeu_epi8(target, (__mmask16)_bzhi_u32(~0u, (unsigned)bytes), (__m128i)vector);
}

#if !defined(COHI_TSAN) && !defined(COHI_ASAN) /* which do not see such stores */
#define LANES_STREAM

LANES_INLINE void stream(void *target, v_u8 vector)
{
    _mm512_stream_si512(target, (__m512i)vector);
}

LANES_INLINE void stream_quarter(void *target, v_quarter vector)
{
    _mm_stream_si128(target, (__m128i)vector);
}

LANES_INLINE void stream_end(void)
{
    _mm_sfence();
}

#endif

#pragma GCC diagnostic pop

#endif
