/* lanes_avx512.h - vectors of 64 bytes: AVX-512 F, BW, DQ, VL; BF16 and VBMI2 where compiled for
 * them. Parts of vectors are masked. */
#ifndef COHI_MEMORY_KERNELS_LANES_AVX512_H
#define COHI_MEMORY_KERNELS_LANES_AVX512_H

#include <immintrin.h>

#define LANES_BYTES 64
#include "memory/kernels/lanes.h"

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

/* bf16 in the upper halves: a bit of the fraction is tested in place, a NaN is known by its
 * class. */
#define LANES_ROUND_BF16
LANES_INLINE v_u32 round_bf16(v_f32 wide)
{
    enum { QUIET_OR_SIGNALLING_NAN = 0x81 };
    __m512i bits = (__m512i)wide;
    __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    __mmask16 nan = _mm512_fpclass_ps_mask(wide, QUIET_OR_SIGNALLING_NAN);
    __m512i rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    rounded = _mm512_mask_add_epi32(rounded, odd, bits, _mm512_set1_epi32(0x8000));
    return (v_u32)_mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}

#ifdef __AVX512BF16__

/* Two vectors at once. The instruction takes subnormals for zeros, so where there is one it is not
 * taken. */
#define LANES_PACK_BF16
LANES_INLINE v_u16 pack_bf16(v_f32 first, v_f32 second)
{
    enum { SUBNORMAL = 0x20 };
    if (COHI_UNLIKELY(!_kortestz_mask16_u8(_mm512_fpclass_ps_mask(first, SUBNORMAL),
                                           _mm512_fpclass_ps_mask(second, SUBNORMAL))))
        return high16(round_bf16(first), round_bf16(second));
    return (v_u16)_mm512_cvtne2ps_pbh(second, first);
}

#endif

/*
 * f8 by a sum, as small_float.h does it. A large factor times a power of two, that of the number or
 * the least that the format has, rounds the number off to a multiple of an eighth (f8e4m3) or a
 * quarter (f8e5m2) of that power; how often that is in it, the count, lies at the end of the sum,
 * its exponent and its sign at the front. What is above the largest, or a NaN, is as the number
 * past the largest would be, whose code is NaN (f8e4m3) or infinity (f8e5m2).
 *
 * f8e4m3: sixteen times the end and the front give 16 * (0x550 + code), and 32768 off where the
 * number is negative: 0x550 and not 0x468, for the 29 added to 2^20 are eight times 29 in the end.
 * So in 16 bits, turned left by four, the lower byte is 5, with 8 for the sign, and the upper 80 +
 * code. Take sixteen times the lower off the upper, and there is the code, less 128 for the sign.
 *
 * f8e5m2: 32 times the end, 32 * (0x240 + code) with 10 added to 2^21, turned left by three, 2 with
 * 4 for the sign, 64 + code, and 32 times the lower.
 *
 * 28 operations for 64 elements, 32 without VBMI2, and 3 more to find out whether a NaN has become
 * an infinity. By way of f16 it took 40 and 34, of which some are two on most CPUs: f8e4m3 1.4
 * times as long, f8e5m2 1.24 times.
 */
#define LANES_PACK_F8

struct f8_format {
    float least, factor;
    int past_largest; /* the bits of its sum */
    int sum_weights;  /* of the front and the end */
    int code_weights; /* of the upper and the lower byte */
};

static const struct f8_format f8e4m3_format = {0x1p-6f, 0x1p20f + 29, 155 << 23 | 247, 1 << 16 | 16,
                                               1 << 8 | (-16 & 0xff)};
static const struct f8_format f8e5m2_format = {0x1p-14f, 0x1p21f + 10, 164 << 23 | 44, 1 << 16 | 32,
                                               1 << 8 | (-32 & 0xff)};

LANES_INLINE __m512i sum_f8(const struct f8_format *format, v_f32 wide)
{
    enum { EXACT = _MM_FROUND_NO_EXC, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    enum { LESS_OF_TWO = 2, MORE_OF_TWO = 3 }; /* by magnitude, with the sign of the first */
    const __m512 most = (__m512)_mm512_set1_epi32(format->past_largest);
    __m512 power = _mm512_and_ps(wide, (__m512)_mm512_set1_epi32((int)0xff800000u));
    power = _mm512_range_round_ps(power, _mm512_set1_ps(format->least), MORE_OF_TWO, EXACT);
    __m512 sum = _mm512_fmadd_round_ps(power, _mm512_set1_ps(format->factor), wide, NEAREST);
    sum = _mm512_range_round_ps(sum, most, LESS_OF_TWO, EXACT);
    return _mm512_madd_epi16((__m512i)sum, _mm512_set1_epi32(format->sum_weights));
}

/* Words turned left. */
#ifdef __AVX512VBMI2__
#define TURN_LEFT(words, bits) _mm512_shldi_epi16(words, words, bits)
#else
#define TURN_LEFT(words, bits) \
    _mm512_or_si512(_mm512_slli_epi16(words, bits), _mm512_srli_epi16(words, 16 - (bits)))
#endif

LANES_INLINE __m512i code_f8e4m3(v_f32 first, v_f32 second)
{
    const struct f8_format *format = &f8e4m3_format;
    __m512i sums = _mm512_packs_epi32(sum_f8(format, first), sum_f8(format, second));
    return _mm512_maddubs_epi16(TURN_LEFT(sums, 4), _mm512_set1_epi16((short)format->code_weights));
}

LANES_INLINE __m512i code_f8e5m2(v_f32 first, v_f32 second)
{
    const struct f8_format *format = &f8e5m2_format;
    __m512i sums = _mm512_packs_epi32(sum_f8(format, first), sum_f8(format, second));
    return _mm512_maddubs_epi16(TURN_LEFT(sums, 3), _mm512_set1_epi16((short)format->code_weights));
}
#undef TURN_LEFT

/* Packing puts the elements of two vectors together by quarters. */
LANES_INLINE __m512i join_f8(__m512i first, __m512i second)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(first, second));
}

LANES_INLINE v_u8 pack_f8e4m3(v_f32 a, v_f32 b, v_f32 c, v_f32 d)
{
    return (v_u8)join_f8(code_f8e4m3(a, b), code_f8e4m3(c, d));
}

LANES_INLINE __mmask64 nans(v_f32 a, v_f32 b, v_f32 c, v_f32 d)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q)
           | (__mmask64)_mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q) << 16
           | (__mmask64)_mm512_cmp_ps_mask(c, c, _CMP_UNORD_Q) << 32
           | (__mmask64)_mm512_cmp_ps_mask(d, d, _CMP_UNORD_Q) << 48;
}

LANES_INLINE v_u8 pack_f8e5m2(v_f32 a, v_f32 b, v_f32 c, v_f32 d)
{
    enum { INFINITY_TO_NAN = 0x02 };
    __m512i codes = join_f8(code_f8e5m2(a, b), code_f8e5m2(c, d));
    if (COHI_UNLIKELY(!_kortestz_mask16_u8(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q),
                                           _mm512_cmp_ps_mask(c, d, _CMP_UNORD_Q))))
        codes = _mm512_or_si512(codes, _mm512_maskz_set1_epi8(nans(a, b, c, d), INFINITY_TO_NAN));
    return (v_u8)codes;
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

LANES_INLINE void stream_end(void)
{
    _mm_sfence();
}

#endif

#pragma GCC diagnostic pop

#endif
