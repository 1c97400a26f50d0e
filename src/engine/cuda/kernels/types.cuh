/*
 * types.cuh - element types and what reductions do with them: the bits of memory/reduce.h, which see.
 *
 * A type has what it is in memory (raw) and what it is reduced as (wide). Compiled without contraction of
 * products and sums, so that each step is rounded as on the host.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_TYPES_CUH
#define COHI_ENGINE_CUDA_KERNELS_TYPES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace
{

/* As coh_reduce_op. ANY: the call says which. */
enum operation {
    SUM = 0,
    MEAN = 1,
    PRODUCT = 2,
    MIN = 3,
    MAX = 4,
    AND = 5,
    OR = 6,
    XOR = 7,
    ANY = -1
};

/* ---- floats ---- */

__device__ inline float from_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}
__device__ inline double from_bits(uint64_t bits)
{
    return __longlong_as_double(static_cast<long long>(bits));
}
__device__ inline uint32_t to_bits(float number)
{
    return __float_as_uint(number);
}
__device__ inline uint64_t to_bits(double number)
{
    return static_cast<uint64_t>(__double_as_longlong(number));
}

/* A NaN wins, and -0 is below +0. */
template <class number> __device__ inline number least(number a, number b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? from_bits(to_bits(a) | to_bits(b)) : a < b ? a : b;
}

template <class number> __device__ inline number greatest(number a, number b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? from_bits(to_bits(a) & to_bits(b)) : a > b ? a : b;
}

template <class number> struct float_arithmetic {
    __device__ static number combine(int op, number a, number b)
    {
        switch (op) {
        case PRODUCT:
            return a * b;
        case MIN:
            return least(a, b);
        case MAX:
            return greatest(a, b);
        default:
            return a + b;
        }
    }
    __device__ static number finish(int op, number a, int ranks)
    {
        return op == MEAN ? a / static_cast<number>(ranks) : a;
    }
    __device__ static number scaled(number a, double scale)
    {
        return a * static_cast<number>(scale);
    }
};

struct f64 : float_arithmetic<double> {
    typedef double raw;
    typedef double wide;
    __device__ static double widen(double a)
    {
        return a;
    }
    __device__ static double narrow(double a)
    {
        return a;
    }
};

struct f32 : float_arithmetic<float> {
    typedef float raw;
    typedef float wide;
    __device__ static float widen(float a)
    {
        return a;
    }
    __device__ static float narrow(float a)
    {
        return a;
    }
};

struct f16 : float_arithmetic<float> {
    typedef uint16_t raw;
    typedef float wide;
    __device__ static float widen(uint16_t a)
    {
        return __half2float(__ushort_as_half(a));
    }
    __device__ static uint16_t narrow(float a)
    {
        return __half_as_ushort(__float2half_rn(a));
    }
};

struct bf16 : float_arithmetic<float> {
    typedef uint16_t raw;
    typedef float wide;
    __device__ static float widen(uint16_t a)
    {
        return from_bits(static_cast<uint32_t>(a) << 16);
    }
    __device__ static uint16_t narrow(float a)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(a));
    }
};

/*
 * The bits of a number as a float with so many bits of fraction and this exponent bias, without a sign; what is
 * larger than `limit`, the bits of an f32, is as that. A sum with a power of two that is `drop` places above
 * the number rounds off as many bits, and leaves the others at its end.
 */
__device__ inline uint32_t round_small(uint32_t bits, int fraction, int bias, uint32_t limit)
{
    const int drop = 23 - fraction;
    const uint32_t lowest = static_cast<uint32_t>(128 - bias) << 23;
    uint32_t magnitude = min(bits & 0x7fffffffu, limit);
    uint32_t exponent = max(magnitude & 0x7f800000u, lowest);
    uint32_t power = exponent + (static_cast<uint32_t>(drop) << 23);
    uint32_t sum = to_bits(__fadd_rn(from_bits(magnitude), from_bits(power)));
    return sum - power + (exponent >> drop) - (lowest >> drop);
}

/* The upper half of an f16. */
struct f8e5m2 : float_arithmetic<float> {
    typedef uint8_t raw;
    typedef float wide;
    __device__ static float widen(uint8_t a)
    {
        return f16::widen(static_cast<uint16_t>(a << 8));
    }
    __device__ static uint8_t narrow(float a)
    {
        uint32_t bits = to_bits(a);
        uint32_t code = (bits & 0x7fffffffu) > 0x7f800000u
                            ? 0x7eu
                            : round_small(bits, 2, 15, 0x47800000u /* 65536 */);
        return static_cast<uint8_t>(code | (bits >> 24 & 0x80u));
    }
};

/* Moved to where f16 has its bits, it is an f16 with an exponent too small by 8; but for its NaN, which then
 * is 480. Its code is what comes after the largest number. */
struct f8e4m3 : float_arithmetic<float> {
    typedef uint8_t raw;
    typedef float wide;
    __device__ static float widen(uint8_t a)
    {
        uint16_t moved = static_cast<uint16_t>((a & 0x80) << 8 | (a & 0x7f) << 7);
        uint32_t bits = to_bits(f16::widen(moved) * 256.0f);
        return from_bits((bits & 0x7fffffffu) > 0x43e00000u /* 448 */ ? bits | 0x7fc00000u : bits);
    }
    __device__ static uint8_t narrow(float a)
    {
        uint32_t bits = to_bits(a);
        uint32_t code = round_small(bits, 3, 7, 0x43f00000u /* 480 */);
        return static_cast<uint8_t>(code | (bits >> 24 & 0x80u));
    }
};

/* ---- integers ---- */

/* Sums and products wrap: they are the unsigned ones. */
template <class integer, class unsigned_form, class divided> struct integer_type {
    typedef integer raw;
    typedef integer wide;
    __device__ static integer widen(integer a)
    {
        return a;
    }
    __device__ static integer narrow(integer a)
    {
        return a;
    }
    __device__ static integer combine(int op, integer a, integer b)
    {
        unsigned_form x = static_cast<unsigned_form>(a), y = static_cast<unsigned_form>(b);
        switch (op) {
        case PRODUCT:
            return static_cast<integer>(x * y);
        case MIN:
            return a < b ? a : b;
        case MAX:
            return a > b ? a : b;
        case AND:
            return static_cast<integer>(x & y);
        case OR:
            return static_cast<integer>(x | y);
        case XOR:
            return static_cast<integer>(x ^ y);
        default:
            return static_cast<integer>(x + y);
        }
    }
    __device__ static integer finish(int op, integer a, int ranks)
    {
        return op == MEAN
                   ? static_cast<integer>(static_cast<divided>(a) / static_cast<divided>(ranks))
                   : a;
    }
    __device__ static integer scaled(integer a, double)
    {
        return a;
    }
};

typedef integer_type<int8_t, uint32_t, int32_t> i8;
typedef integer_type<int16_t, uint32_t, int32_t> i16;
typedef integer_type<int32_t, uint32_t, int64_t> i32;
typedef integer_type<int64_t, uint64_t, int64_t> i64;
typedef integer_type<uint8_t, uint32_t, uint32_t> u8;
typedef integer_type<uint16_t, uint32_t, uint32_t> u16;
typedef integer_type<uint32_t, uint32_t, uint32_t> u32;
typedef integer_type<uint64_t, uint64_t, uint64_t> u64;

/* Any byte but 0 is true. */
struct boolean {
    typedef uint8_t raw;
    typedef uint8_t wide;
    __device__ static uint8_t widen(uint8_t a)
    {
        return a != 0;
    }
    __device__ static uint8_t narrow(uint8_t a)
    {
        return a;
    }
    __device__ static uint8_t combine(int op, uint8_t a, uint8_t b)
    {
        if (op == XOR)
            return a ^ b;
        return op == PRODUCT || op == MIN || op == AND ? a & b : a | b;
    }
    __device__ static uint8_t finish(int, uint8_t a, int)
    {
        return a;
    }
    __device__ static uint8_t scaled(uint8_t a, double)
    {
        return a;
    }
};

} /* namespace */

#endif
