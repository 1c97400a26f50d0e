/*
 * kernel_reference.h - what the kernels should give, element by element: written for clarity, in
 * double arithmetic with an explicit rounding, and with nothing of the kernels in it.
 *
 * Without cmocka (KERNELS_WITHOUT_CMOCKA, for a build that runs under an emulator) the few names of
 * it that these tests need are here.
 */
#ifndef TEST_KERNEL_REFERENCE_H
#define TEST_KERNEL_REFERENCE_H

#include <cohort.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef KERNELS_WITHOUT_CMOCKA

#define fail_msg(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

struct plain_test {
    const char *name;
    void (*run)(void **state);
};

#define CMUnitTest plain_test
#define cmocka_unit_test(test) \
    {                          \
#test, test            \
    }
#define cmocka_run_group_tests_name(group, tests, setup, teardown) \
    run_plain_tests(group, tests, sizeof tests / sizeof *tests)

static inline int run_plain_tests(const char *group, const struct plain_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tests[i].run(NULL);
        printf("%s: %s passed\n", group, tests[i].name);
    }
    return 0;
}

#else
#include <cmocka.h>
#endif

static inline const char *op_name(coh_reduce_op op)
{
    static const char *const names[] = {
#define NAME(constant, value, name) [value] = name,
        COH_REDUCE_TABLE(NAME)
#undef NAME
    };
    return names[op];
}

/* ---- floats by their format ---- */

struct format {
    coh_dtype dtype;
    int exponent_bits;
    int fraction_bits;
    bool has_infinity; /* without: only the code of all ones is NaN */
};

static const struct format formats[] = {
    {COH_F16, 5, 10, true},   {COH_BF16, 8, 7, true}, {COH_F8E4M3, 4, 3, false},
    {COH_F8E5M2, 5, 2, true}, {COH_F32, 8, 23, true},
};

enum { FORMATS = sizeof formats / sizeof *formats, SMALL_FORMATS = FORMATS - 1 };

static inline const struct format *format_of(coh_dtype dtype)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].dtype == dtype)
            return &formats[i];
    }
    return NULL;
}

static inline int format_bias(const struct format *format)
{
    return (1 << (format->exponent_bits - 1)) - 1;
}

static inline double decode_float(const struct format *format, uint32_t code)
{
    uint32_t fraction = code & ((1u << format->fraction_bits) - 1);
    uint32_t top = (1u << format->exponent_bits) - 1;
    uint32_t exponent = (code >> format->fraction_bits) & top;
    uint32_t all_ones = (1u << format->fraction_bits) - 1;
    bool negative = code >> (format->fraction_bits + format->exponent_bits);
    double magnitude;
    if (exponent == top && format->has_infinity)
        magnitude = fraction ? NAN : INFINITY;
    else if (exponent == top && fraction == all_ones)
        magnitude = NAN;
    else if (exponent == 0)
        magnitude = ldexp(fraction, 1 - format_bias(format) - format->fraction_bits);
    else
        magnitude = ldexp(fraction + ldexp(1, format->fraction_bits),
                          (int)exponent - format_bias(format) - format->fraction_bits);
    return negative ? -magnitude : magnitude;
}

/* x is not negative and below 2^53 */
static inline double round_half_even(double x)
{
    double below = floor(x), rest = x - below;
    bool odd = fmod(below, 2) != 0;
    return rest > 0.5 || (rest == 0.5 && odd) ? below + 1 : below;
}

static inline uint32_t too_large(const struct format *format)
{
    uint32_t top = ((1u << format->exponent_bits) - 1) << format->fraction_bits;
    return format->has_infinity ? top : top | ((1u << format->fraction_bits) - 1);
}

static inline uint32_t encode_float(const struct format *format, double x)
{
    const int fraction_bits = format->fraction_bits, least = 1 - format_bias(format);
    uint32_t sign = (uint32_t)(signbit(x) != 0) << (fraction_bits + format->exponent_bits);
    int exponent;
    if (isnan(x))
        return sign | too_large(format) | (1u << (fraction_bits - 1));
    if (isinf(x))
        return sign | too_large(format);
    frexp(x, &exponent);
    exponent = exponent - 1 < least || x == 0 ? least : exponent - 1;
    double units = round_half_even(ldexp(fabs(x), fraction_bits - exponent));
    double code = units + ldexp(exponent - least, fraction_bits);
    return sign | (code > too_large(format) ? too_large(format) : (uint32_t)code);
}

/* ---- elements in memory ---- */

static inline bool is_signed(coh_dtype dtype)
{
    return dtype >= COH_I8 && dtype <= COH_I64;
}

static inline bool is_integer(coh_dtype dtype)
{
    return dtype >= COH_I8 && dtype <= COH_U64;
}

static inline uint64_t element_bits(const void *array, coh_dtype dtype, size_t index)
{
    uint64_t bits = 0;
    size_t bytes = coh_dtype_size(dtype); /* the machine is little-endian */
    memcpy(&bits, (const char *)array + index * bytes, bytes);
    return bits;
}

static inline void set_element(void *array, coh_dtype dtype, size_t index, uint64_t bits)
{
    size_t bytes = coh_dtype_size(dtype);
    memcpy((char *)array + index * bytes, &bits, bytes);
}

/* The bits of a signed or unsigned integer, extended to 64. */
static inline int64_t extend(coh_dtype dtype, uint64_t bits)
{
    unsigned spare = 64 - 8 * (unsigned)coh_dtype_size(dtype);
    return is_signed(dtype) ? (int64_t)(bits << spare) >> spare : (int64_t)(bits << spare >> spare);
}

static inline double as_double(coh_dtype dtype, uint64_t bits)
{
    double number;
    if (dtype != COH_F64)
        return decode_float(format_of(dtype), (uint32_t)bits);
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline uint64_t from_double(coh_dtype dtype, double number)
{
    uint64_t bits;
    if (dtype != COH_F64)
        return encode_float(format_of(dtype), number);
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The same bits, or both NaN. */
static inline bool same_element(coh_dtype dtype, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    return !is_integer(dtype) && dtype != COH_BOOL && isnan(as_double(dtype, a))
           && isnan(as_double(dtype, b));
}

/* ---- numbers to try ---- */

static inline uint64_t random_bits(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1d;
}

#endif
