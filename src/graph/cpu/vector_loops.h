/*
 * vector_loops.h - the loops themselves; included by one file for each instruction set, which names
 * the table that they make up, COHI_VECTOR_TABLE. They are written so that compilers turn them into
 * vector instructions: no branches, no calls. Those with the most arithmetic are by hand for
 * AVX-512.
 */
#include "graph/cpu/vector.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define SIGN UINT32_C(0x80000000)

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* FIRST(coefficient), T(coefficient): polynomials, from the highest power on. 2^f for |f| <= 1/2;
 * and the two whose quotient, times x, is the error function of x, in x squared, for |x| < 4. */
#define EXPONENTIAL_TERMS(FIRST, T) \
    FIRST(1.327647152e-3f)          \
    T(9.675541331e-3f)              \
    T(5.550713275e-2f)              \
    T(2.402211972e-1f)              \
    T(6.931469671e-1f)              \
    T(1.000000072f)

#define ERROR_TOP_TERMS(FIRST, T) \
    FIRST(-2.72614225801306e-10f) \
    T(2.77068142495902e-08f)      \
    T(-2.10102402082508e-06f)     \
    T(-5.69250639462346e-05f)     \
    T(-7.34990630326855e-04f)     \
    T(-2.95459980854025e-03f)     \
    T(-1.60960333262415e-02f)

#define ERROR_BOTTOM_TERMS(FIRST, T) \
    FIRST(-1.45660718464996e-05f)    \
    T(-2.13374055278905e-04f)        \
    T(-1.68282697438203e-03f)        \
    T(-7.37332916720468e-03f)        \
    T(-1.42647390514189e-02f)

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "graph/cpu/vector_lanes.h"
#else
#include "graph/cpu/vector_curves.h"
#endif

static void add(const float *left, const float *right, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = left[i] + right[i];
}

static void mul(const float *left, const float *right, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = left[i] * right[i];
}

static void scale(const float *in, float by, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] * by;
}

static void relu(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < 0.0f ? 0.0f : in[i];
}

static float sum(const float *in, size_t count)
{
    float total = 0.0f;
    for (size_t i = 0; i < count; i++)
        total += in[i];
    return total;
}

/* The bits of a float as an integer of the same order, and back: compilers do not reorder a maximum
 * of floats, which NaN makes depend on the order. */
static inline int32_t ordered(uint32_t bits)
{
    int32_t number = (int32_t)bits;
    return number ^ ((number >> 31) & INT32_MAX);
}

/* Of what is no NaN; `flip` is the sign bit for the smallest, 0 for the largest. */
static float largest(const float *in, size_t count, uint32_t flip)
{
    int32_t best = ordered(bits_of(-INFINITY));
    for (size_t i = 0; i < count; i++) {
        int32_t key = ordered(bits_of(in[i]) ^ flip);
        best = key > best ? key : best;
    }
    return float_of((uint32_t)ordered((uint32_t)best) ^ flip);
}

static int has_nan(const float *in, size_t count)
{
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found |= in[i] != in[i];
    return found;
}

static float max(const float *in, size_t count)
{
    return has_nan(in, count) ? NAN : largest(in, count, 0);
}

static float min(const float *in, size_t count)
{
    return has_nan(in, count) ? NAN : largest(in, count, SIGN);
}

static void max_into(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] > out[i] || in[i] != in[i] ? in[i] : out[i];
}

static void min_into(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < out[i] || in[i] != in[i] ? in[i] : out[i];
}

/* NaN makes the total NaN, and so the row. */
static void softmax(const float *in, float *out, size_t count)
{
    float most = largest(in, count, 0);
    most = most > -INFINITY && most < INFINITY ? most : 0.0f;
    float total = powers(in, most, out, count);
    scale(out, 1.0f / total, out, count);
}

static void rms_norm(const float *in, const float *weight, float eps, float *out, size_t count)
{
    float total = 0.0f;
    for (size_t i = 0; i < count; i++)
        total += in[i] * in[i];
    float factor = 1.0f / sqrtf(total / (float)count + eps);
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] * factor * weight[i];
}

static void layer_norm(const float *in, const float *weight, const float *bias, float eps,
                       float *out, size_t count)
{
    float mean = sum(in, count) / (float)count, total = 0.0f;
    for (size_t i = 0; i < count; i++)
        total += (in[i] - mean) * (in[i] - mean);
    float factor = 1.0f / sqrtf(total / (float)count + eps);
    for (size_t i = 0; i < count; i++)
        out[i] = (in[i] - mean) * factor * weight[i] + bias[i];
}

static void rotate(const float *left, const float *right, const float *cosine, const float *sine,
                   float *out_left, float *out_right, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float x = left[i], y = right[i];
        out_left[i] = x * cosine[i] - y * sine[i];
        out_right[i] = y * cosine[i] + x * sine[i];
    }
}

static void stream(const void *in, void *out, size_t bytes, const void *ahead)
{
    const char *from = in, *next = ahead;
    char *to = out;
    for (size_t i = 0; i < bytes; i += COHI_STREAM_LINE) {
        if (next)
            __builtin_prefetch(next + i);
#if defined(__AVX512F__)
        _mm512_stream_ps((float *)(void *)(to + i), _mm512_loadu_ps(from + i));
#elif defined(__AVX__)
        _mm256_stream_ps((float *)(void *)(to + i), _mm256_loadu_ps((const float *)(from + i)));
        _mm256_stream_ps((float *)(void *)(to + i + 32),
                         _mm256_loadu_ps((const float *)(from + i + 32)));
#else
        memcpy(to + i, from + i, COHI_STREAM_LINE);
#endif
    }
}

static void stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

extern const cohi_vector COHI_VECTOR_TABLE;

const cohi_vector COHI_VECTOR_TABLE = {
    .add = add,
    .mul = mul,
    .scale = scale,
    .relu = relu,
    .silu = silu,
    .gelu = gelu,
    .gelu_tanh = gelu_tanh,
    .softmax = softmax,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .rotate = rotate,
    .sum = sum,
    .max = max,
    .min = min,
    .max_into = max_into,
    .min_into = min_into,
    .stream = stream,
    .stream_end = stream_end,
};
