/*
 * vector_curves.h - the loops that are more than a few operations an element, for compilers to
 * turn into vector instructions: silu, gelu, gelu_tanh, and powers, which softmax takes. Part of
 * vector_loops.h; vector_lanes.h has the same for AVX-512.
 */

/*
 * e^x for -87 <= x <= 80, to which it is held, within 3e-7 of its value: x log2 e = n + f, a
 * polynomial for 2^f, and n added to the exponent. The large constant has n in the low bits of its
 * sum. NaN stays NaN.
 */
static inline float exponential(float x)
{
    const float log2e = 1.44269504088896341f;
    float held = x < -87.0f ? -87.0f : x;
    held = held > 80.0f ? 80.0f : held;
    float n = __builtin_rintf(held * log2e);
    float f = held * log2e - n;
#define FIRST(c) float p = c;
#define TERM(c)  p = p * f + c;
    EXPONENTIAL_TERMS(FIRST, TERM)
#undef FIRST
#undef TERM
    return p * float_of((bits_of(n + 12582912.0f) << 23) + bits_of(1.0f));
}

/* 1 / x for 1 <= x < 1e37, within 2e-7: a guess by the bits, and three steps of Newton's. Vectors
 * divide several times more slowly than they multiply. */
static inline float reciprocal(float x)
{
    float y = float_of(UINT32_C(0x7ef127ea) - bits_of(x));
    y = y * (2.0f - x * y);
    y = y * (2.0f - x * y);
    return y * (2.0f - x * y);
}

static inline float sigmoid(float x)
{
    return reciprocal(1.0f + exponential(-x));
}

/*
 * x times a rational function of its square, where |x| < 4, beyond which it is 1 in f32; off by
 * 3e-7 at most.
 */
static inline float error_function(float x)
{
    float held = x > 4.0f ? 4.0f : x;
    held = held < -4.0f ? -4.0f : held;
    float square = held * held;
#define FIRST_TOP(c)    float top = c;
#define FIRST_BOTTOM(c) float bottom = c;
#define TOP(c)          top = top * square + c;
#define BOTTOM(c)       bottom = bottom * square + c;
    ERROR_TOP_TERMS(FIRST_TOP, TOP)
    ERROR_BOTTOM_TERMS(FIRST_BOTTOM, BOTTOM)
#undef FIRST_TOP
#undef FIRST_BOTTOM
#undef TOP
#undef BOTTOM
    float result = held * top / bottom;
    result = x > 4.0f ? 1.0f : result;
    result = x < -4.0f ? -1.0f : result;
    return x == x ? result : x;
}

static void silu(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] * sigmoid(in[i]);
}

static void gelu(const float *in, float *out, size_t count)
{
    const float root_half = 0.70710678118654752f;
    for (size_t i = 0; i < count; i++)
        out[i] = 0.5f * in[i] * (1.0f + error_function(in[i] * root_half));
}

/* 0.5 x (1 + tanh u) = x sigmoid(2 u) */
static void gelu_tanh(const float *in, float *out, size_t count)
{
    const float twice_root = 1.5957691216057308f; /* 2 sqrt(2 / pi) */
    for (size_t i = 0; i < count; i++) {
        float x = in[i];
        out[i] = x * sigmoid(twice_root * (x + 0.044715f * x * x * x));
    }
}

/* out[i] = e^(in[i] - most), 0 below e^-87; the sum of all. */
static float powers(const float *in, float most, float *out, size_t count)
{
    float total = 0.0f;
    for (size_t i = 0; i < count; i++) {
        float term = in[i] - most < -87.0f ? 0.0f : exponential(in[i] - most);
        out[i] = term;
        total += term;
    }
    return total;
}
