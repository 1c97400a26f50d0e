/* lanes_avx2.h - vectors of 32 bytes: AVX2, with F16C. */
#ifndef COHI_MEMORY_KERNELS_LANES_AVX2_H
#define COHI_MEMORY_KERNELS_LANES_AVX2_H

#include <immintrin.h>

#define LANES_BYTES 32
#include "memory/kernels/lanes.h"
#include "memory/kernels/lanes_some.h"
#include "memory/kernels/lanes_plain.h"

#define LANES_AVX2_INTEGER(type, suffix)                              \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)      \
    {                                                                 \
        return (v_##type)_mm256_min_##suffix((__m256i)a, (__m256i)b); \
    }                                                                 \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)      \
    {                                                                 \
        return (v_##type)_mm256_max_##suffix((__m256i)a, (__m256i)b); \
    }
LANES_AVX2_INTEGER(u8, epu8)
LANES_AVX2_INTEGER(u16, epu16)
LANES_AVX2_INTEGER(u32, epu32)
LANES_AVX2_INTEGER(i8, epi8)
LANES_AVX2_INTEGER(i16, epi16)
LANES_AVX2_INTEGER(i32, epi32)
LANES_PLAIN_INTEGER(u64, 64)
LANES_PLAIN_INTEGER(i64, 64)

/* The instructions return their second operand where they cannot tell: two zeros, or a NaN. Asked
 * both ways and joined, the minimum of zeros has the sign and that with a NaN is NaN; a maximum is
 * without the sign, but must be given its NaN. */
#define LANES_AVX2_FLOAT(type, suffix)                                                             \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)                                   \
    {                                                                                              \
        return _mm256_or_##suffix(_mm256_min_##suffix(a, b), _mm256_min_##suffix(b, a));           \
    }                                                                                              \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)                                   \
    {                                                                                              \
        v_##type more = _mm256_and_##suffix(_mm256_max_##suffix(a, b), _mm256_max_##suffix(b, a)); \
        v_##type unordered = _mm256_cmp_##suffix(a, b, _CMP_UNORD_Q);                              \
        return _mm256_blendv_##suffix(more, a + b, unordered);                                     \
    }
LANES_AVX2_FLOAT(f32, ps)
LANES_AVX2_FLOAT(f64, pd)

LANES_INLINE v_u32 widen16(v_half narrow)
{
    return (v_u32)_mm256_cvtepu16_epi32((__m128i)narrow);
}

LANES_INLINE v_half narrow16(v_u32 wide)
{
    __m256i packed = _mm256_packus_epi32((__m256i)wide, (__m256i)wide);
    return (v_half)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

LANES_INLINE v_quarter narrow8(v_u32 wide)
{
    __m128i packed = (__m128i)narrow16(wide);
    return (v_quarter)_mm_cvtsi128_si64(_mm_packus_epi16(packed, packed));
}

LANES_INLINE v_half spread8(v_quarter narrow)
{
    return (v_half)_mm_cvtepi8_epi16(_mm_cvtsi64_si128((long long)narrow));
}

LANES_INLINE v_u16 join(v_half first, v_half second)
{
    return (v_u16)_mm256_set_m128i((__m128i)second, (__m128i)first);
}

/* Packing goes within halves of a vector: the quarters are then put in order. */
LANES_INLINE v_u16 high16(v_u32 first, v_u32 second)
{
    __m256i packed = _mm256_packus_epi32((__m256i)(first >> 16), (__m256i)(second >> 16));
    return (v_u16)_mm256_permute4x64_epi64(packed, 0xd8);
}

LANES_INLINE v_u32 choose_greater(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
    __m256i greater = _mm256_cmpgt_epi32((__m256i)a, (__m256i)b);
    return (v_u32)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, greater);
}

LANES_INLINE v_f32 widen_f16(v_half narrow)
{
    return _mm256_cvtph_ps((__m128i)narrow);
}

LANES_INLINE v_half narrow_f16(v_f32 wide)
{
    return (v_half)_mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#if !defined(COHI_TSAN) && !defined(COHI_ASAN) /* which do not see such stores */
#define LANES_STREAM

LANES_INLINE void stream(void *target, v_u8 vector)
{
    _mm256_stream_si256(target, (__m256i)vector);
}

LANES_INLINE void stream_quarter(void *target, v_quarter vector)
{
    _mm_stream_si64(target, (long long)vector);
}

LANES_INLINE void stream_end(void)
{
    _mm_sfence();
}

#endif

#endif
