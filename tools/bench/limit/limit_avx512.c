/* limit_avx512.c - sums with AVX-512; this file alone is compiled for it. */
#include "bench/limit/limit_forms.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>

/* 64 bytes of 16-bit floats are 32 sums, of others 16: `high` is used for the former alone. */
typedef struct unit {
    __m512 low, high;
} unit;

static inline unit load_f32(const char *from)
{
    return (unit){_mm512_loadu_ps(from), _mm512_setzero_ps()};
}

static inline unit add_f32(unit left, unit right)
{
    return (unit){_mm512_add_ps(left.low, right.low), left.high};
}

static inline void store_f32(char *to, unit sum)
{
    _mm512_storeu_ps(to, sum.low);
}

static inline void stream_f32(char *to, unit sum)
{
    _mm512_stream_ps((void *)to, sum.low);
}

static inline unit load_words(const char *from)
{
    return load_f32(from);
}

static inline unit add_words(unit left, unit right)
{
    __m512i sum = _mm512_add_epi32(_mm512_castps_si512(left.low), _mm512_castps_si512(right.low));
    return (unit){_mm512_castsi512_ps(sum), left.high};
}

static inline void store_words(char *to, unit sum)
{
    store_f32(to, sum);
}

static inline void stream_words(char *to, unit sum)
{
    stream_f32(to, sum);
}

static inline unit add_halves(unit left, unit right)
{
    return (unit){_mm512_add_ps(left.low, right.low), _mm512_add_ps(left.high, right.high)};
}

static inline __m512i join(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* A bf16 is the upper half of an f32. */
static inline __m512 widen_bf16(const char *from)
{
    __m256i half = _mm256_loadu_si256((const void *)from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static inline unit load_bf16(const char *from)
{
    return (unit){widen_bf16(from), widen_bf16(from + 32)};
}

/* To the nearest, ties to even. */
static inline __m256i narrow_bf16(__m512 value)
{
    __m512i bits = _mm512_castps_si512(value);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

static inline __m512i pack_bf16(unit sum)
{
    return join(narrow_bf16(sum.low), narrow_bf16(sum.high));
}

static inline unit add_bf16(unit left, unit right)
{
    return add_halves(left, right);
}

static inline void store_bf16(char *to, unit sum)
{
    _mm512_storeu_si512(to, pack_bf16(sum));
}

static inline void stream_bf16(char *to, unit sum)
{
    _mm512_stream_si512((void *)to, pack_bf16(sum));
}

static inline unit load_f16(const char *from)
{
    return (unit){_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)),
                  _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + 32)))};
}

static inline __m512i pack_f16(unit sum)
{
    return join(_mm512_cvtps_ph(sum.low, _MM_FROUND_TO_NEAREST_INT),
                _mm512_cvtps_ph(sum.high, _MM_FROUND_TO_NEAREST_INT));
}

static inline unit add_f16(unit left, unit right)
{
    return add_halves(left, right);
}

static inline void store_f16(char *to, unit sum)
{
    _mm512_storeu_si512(to, pack_f16(sum));
}

static inline void stream_f16(char *to, unit sum)
{
    _mm512_stream_si512((void *)to, pack_f16(sum));
}

static inline void end_stream(void)
{
    _mm_sfence();
}

#include "bench/limit/limit_reduce_loops.h"

static int have_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

const cohi_limit_reduce_form cohi_limit_avx512 = {
    .name = "avx512", .available = have_avx512, .streams = 0, CACHED_LOOPS};
const cohi_limit_reduce_form cohi_limit_avx512_nt = {
    .name = "avx512 nt", .available = have_avx512, .streams = 1, STREAMED_LOOPS};
#endif
