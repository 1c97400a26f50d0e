/* limit_avx2.c - sums with AVX2 and F16C; this file alone is compiled for them. */
#include "bench/limit/limit_forms.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

/* 64 bytes are two vectors, or four of sums where they are 16-bit floats. */
typedef struct unit {
    __m256 part[4];
} unit;

static inline unit load_f32(const char *from)
{
    const float *at = (const void *)from;
    return (unit){{_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)}};
}

static inline unit add_f32(unit left, unit right)
{
    return (unit){
        {_mm256_add_ps(left.part[0], right.part[0]), _mm256_add_ps(left.part[1], right.part[1])}};
}

static inline void store_f32(char *to, unit sum)
{
    _mm256_storeu_ps((void *)to, sum.part[0]);
    _mm256_storeu_ps((void *)(to + 32), sum.part[1]);
}

static inline void stream_f32(char *to, unit sum)
{
    _mm256_stream_ps((void *)to, sum.part[0]);
    _mm256_stream_ps((void *)(to + 32), sum.part[1]);
}

static inline unit load_words(const char *from)
{
    return load_f32(from);
}

static inline __m256 add_integers(__m256 left, __m256 right)
{
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(left), _mm256_castps_si256(right)));
}

static inline unit add_words(unit left, unit right)
{
    return (unit){
        {add_integers(left.part[0], right.part[0]), add_integers(left.part[1], right.part[1])}};
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
    unit sum;
    for (int i = 0; i < 4; i++)
        sum.part[i] = _mm256_add_ps(left.part[i], right.part[i]);
    return sum;
}

/* A bf16 is the upper half of an f32. */
static inline unit load_bf16(const char *from)
{
    unit loaded;
    for (int i = 0; i < 4; i++) {
        __m128i half = _mm_loadu_si128((const void *)(from + 16 * i));
        loaded.part[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
    return loaded;
}

/* To the nearest, ties to even. */
static inline __m256i round_bf16(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_srli_epi32(rounded, 16);
}

/* The packing goes by halves of 128 bits, which the permutation puts in order again. */
static inline __m256i pack_bf16(__m256 low, __m256 high)
{
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(round_bf16(low), round_bf16(high)), 0xd8);
}

static inline unit add_bf16(unit left, unit right)
{
    return add_halves(left, right);
}

static inline void store_bf16(char *to, unit sum)
{
    _mm256_storeu_si256((void *)to, pack_bf16(sum.part[0], sum.part[1]));
    _mm256_storeu_si256((void *)(to + 32), pack_bf16(sum.part[2], sum.part[3]));
}

static inline void stream_bf16(char *to, unit sum)
{
    _mm256_stream_si256((void *)to, pack_bf16(sum.part[0], sum.part[1]));
    _mm256_stream_si256((void *)(to + 32), pack_bf16(sum.part[2], sum.part[3]));
}

static inline unit load_f16(const char *from)
{
    unit loaded;
    for (int i = 0; i < 4; i++)
        loaded.part[i] = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + 16 * i)));
    return loaded;
}

static inline unit add_f16(unit left, unit right)
{
    return add_halves(left, right);
}

static inline void store_f16(char *to, unit sum)
{
    for (int i = 0; i < 4; i++)
        _mm_storeu_si128((void *)(to + 16 * i),
                         _mm256_cvtps_ph(sum.part[i], _MM_FROUND_TO_NEAREST_INT));
}

static inline void stream_f16(char *to, unit sum)
{
    for (int i = 0; i < 4; i++)
        _mm_stream_si128((void *)(to + 16 * i),
                         _mm256_cvtps_ph(sum.part[i], _MM_FROUND_TO_NEAREST_INT));
}

static inline void end_stream(void)
{
    _mm_sfence();
}

#include "bench/limit/limit_reduce_loops.h"

/* F16C is older: no CPU has AVX2 without it. */
static int have_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

const cohi_limit_reduce_form cohi_limit_avx2 = {
    .name = "avx2", .available = have_avx2, .streams = 0, CACHED_LOOPS};
const cohi_limit_reduce_form cohi_limit_avx2_nt = {
    .name = "avx2 nt", .available = have_avx2, .streams = 1, STREAMED_LOOPS};
#endif
