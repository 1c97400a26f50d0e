/*
 * vector_lanes.h - what vector_curves.h has, for AVX-512, sixteen lanes at a time: there a power of
 * two, the guess of a reciprocal and the rest of a row are instructions, which compilers do not
 * find. It makes a third less to compute, on a core that has to share its units with another.
 */

enum { LANES = 16 };

typedef __m512 curve(__m512 x);

static inline __m512 all(float value)
{
    return _mm512_set1_ps(value);
}

static inline __m512 sign_bits(void)
{
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)SIGN));
}

/* The lanes that are left when `count` elements are. */
static inline __mmask16 rest(size_t count)
{
    unsigned bits = count < LANES ? (1U << count) - 1 : 0xffff;
    return (__mmask16)bits;
}

static inline __attribute__((always_inline)) void map(curve *of, const float *in, float *out,
                                                      size_t count)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm512_storeu_ps(out + i, of(_mm512_loadu_ps(in + i)));
    __mmask16 left = rest(count - i);
    _mm512_mask_storeu_ps(out + i, left, of(_mm512_maskz_loadu_ps(left, in + i)));
}

/* Held between the two; of a NaN, which is the second operand, the NaN. */
static inline __m512 hold(__m512 x, float low, float high)
{
    return _mm512_min_ps(all(high), _mm512_max_ps(all(low), x));
}

/* e^x for -87 <= x <= 80, to which it is held, within 3e-7 of its value: x log2 e = n + f, and a
 * polynomial for 2^f. */
static inline __m512 exponential(__m512 x)
{
    const __m512 log2e = all(1.44269504088896341f);
    __m512 held = hold(x, -87.0f, 80.0f);
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(held, log2e),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 f = _mm512_fmsub_ps(held, log2e, n);
#define FIRST(c) __m512 p = all(c);
#define TERM(c)  p = _mm512_fmadd_ps(p, f, all(c));
    EXPONENTIAL_TERMS(FIRST, TERM)
#undef FIRST
#undef TERM
    return _mm512_scalef_ps(p, n);
}

/* 1 / x within 2e-7: a guess of 14 bits and a step of Newton's. x is neither 0 nor infinite. */
static inline __m512 reciprocal(__m512 x)
{
    __m512 y = _mm512_rcp14_ps(x);
    return _mm512_mul_ps(y, _mm512_fnmadd_ps(x, y, all(2.0f)));
}

/* x sigmoid(y) */
static inline __m512 gated(__m512 x, __m512 y)
{
    __m512 power = exponential(_mm512_xor_ps(y, sign_bits()));
    return _mm512_mul_ps(x, reciprocal(_mm512_add_ps(all(1.0f), power)));
}

static inline __m512 silu_of(__m512 x)
{
    return gated(x, x);
}

/* 0.5 x (1 + tanh u) = x sigmoid(2 u) */
static inline __m512 gelu_tanh_of(__m512 x)
{
    const float twice_root = 1.5957691216057308f; /* 2 sqrt(2 / pi) */
    __m512 square = _mm512_mul_ps(x, x);
    __m512 factor = _mm512_fmadd_ps(square, all(0.044715f * twice_root), all(twice_root));
    return gated(x, _mm512_mul_ps(x, factor));
}

/*
 * x times a rational function of its square, where |x| < 4, beyond which it is 1 in f32; off by
 * 3e-7 at most.
 */
static inline __m512 error_function(__m512 x)
{
    __m512 held = hold(x, -4.0f, 4.0f), square = _mm512_mul_ps(held, held);
#define FIRST_TOP(c)    __m512 top = all(c);
#define FIRST_BOTTOM(c) __m512 bottom = all(c);
#define TOP(c)          top = _mm512_fmadd_ps(top, square, all(c));
#define BOTTOM(c)       bottom = _mm512_fmadd_ps(bottom, square, all(c));
    ERROR_TOP_TERMS(FIRST_TOP, TOP)
    ERROR_BOTTOM_TERMS(FIRST_BOTTOM, BOTTOM)
#undef FIRST_TOP
#undef FIRST_BOTTOM
#undef TOP
#undef BOTTOM
    __m512 result = _mm512_mul_ps(_mm512_mul_ps(held, top), reciprocal(bottom));
    __m512 sign = _mm512_and_ps(x, sign_bits());
    __mmask16 beyond = _mm512_cmp_ps_mask(_mm512_abs_ps(x), all(4.0f), _CMP_GT_OQ);
    return _mm512_mask_or_ps(result, beyond, sign, all(1.0f));
}

static inline __m512 gelu_of(__m512 x)
{
    __m512 half = _mm512_mul_ps(x, all(0.5f));
    __m512 at = _mm512_mul_ps(x, all(0.70710678118654752f));
    return _mm512_fmadd_ps(half, error_function(at), half);
}

static void silu(const float *in, float *out, size_t count)
{
    map(silu_of, in, out, count);
}

static void gelu(const float *in, float *out, size_t count)
{
    map(gelu_of, in, out, count);
}

static void gelu_tanh(const float *in, float *out, size_t count)
{
    map(gelu_tanh_of, in, out, count);
}

/* e^x, 0 below e^-87. */
static inline __m512 power_of(__m512 x)
{
    __mmask16 below = _mm512_cmp_ps_mask(x, all(-87.0f), _CMP_LT_OQ);
    return _mm512_maskz_mov_ps(_knot_mask16(below), exponential(x));
}

/* out[i] = e^(in[i] - most), 0 below e^-87; the sum of all. */
static float powers(const float *in, float most, float *out, size_t count)
{
    __m512 total = _mm512_setzero_ps();
    for (size_t i = 0; i < count; i += LANES) {
        __mmask16 left = rest(count - i);
        __m512 x = _mm512_sub_ps(_mm512_maskz_loadu_ps(left, in + i), all(most));
        __m512 power = _mm512_maskz_mov_ps(left, power_of(x));
        _mm512_mask_storeu_ps(out + i, left, power);
        total = _mm512_add_ps(total, power);
    }
    return _mm512_reduce_add_ps(total);
}
