/* convert_test.c - every value of the small floats, every exponent and rounding boundary of f32,
 * the ends of the integers, in every instruction set of the CPU, against a scalar reference. */
#include "kernel_reference.h"

#include "memory/convert.h"

enum { MOST = 1 << 17, GUARD = 64 };

static _Alignas(64) unsigned char source[MOST * 8 + 64];
static _Alignas(64) unsigned char target[MOST * 8 + 2 * GUARD + 64];
static uint64_t expected[MOST];

/* The source converted by every set, against `expected`; shifted by some elements. */
static void check_shifted(const cohi_kernels *kernels, coh_dtype to, coh_dtype from, size_t count,
                          size_t shift)
{
    unsigned char *at = target + GUARD + shift * coh_dtype_size(to);
    size_t bytes = count * coh_dtype_size(to);
    memset(target, 0x5a, bytes + 2 * GUARD + shift * 8);
    if (!cohi_convert_with(kernels, at, to, source, from, count))
        fail_msg("%s: no conversion of %s to %s", kernels->name, coh_dtype_name(from),
                 coh_dtype_name(to));
    for (size_t i = 0; i < count; i++) {
        if (!same_element(to, element_bits(at, to, i), expected[i]))
            fail_msg("%s: %s %llx to %s: %llx for %llx, at %zu of %zu", kernels->name,
                     coh_dtype_name(from), (unsigned long long)element_bits(source, from, i),
                     coh_dtype_name(to), (unsigned long long)element_bits(at, to, i),
                     (unsigned long long)expected[i], i, count);
    }
    for (size_t i = 0; i < GUARD; i++) {
        if (at[-1 - (ptrdiff_t)i] != 0x5a || at[bytes + i] != 0x5a)
            fail_msg("%s: %s to %s: written outside of %zu elements", kernels->name,
                     coh_dtype_name(from), coh_dtype_name(to), count);
    }
}

static void check(coh_dtype to, coh_dtype from, size_t count)
{
    static const size_t lengths[] = {0, 1, 7, 15, 16, 17, 63, 64, 65};
    for (int i = 0; cohi_kernels_at(i); i++) {
        check_shifted(cohi_kernels_at(i), to, from, count, 0);
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
            check_shifted(cohi_kernels_at(i), to, from, lengths[j], j % 4);
    }
}

/* ---- small floats to f32: all there are ---- */

static void small_floats_widen(void **state)
{
    (void)state;
    for (size_t f = 0; f < SMALL_FORMATS; f++) {
        coh_dtype dtype = formats[f].dtype;
        size_t count = coh_dtype_size(dtype) == 1 ? 256 : 65536;
        for (size_t i = 0; i < count; i++) {
            set_element(source, dtype, i, i);
            expected[i] = from_double(COH_F32, as_double(dtype, i));
        }
        check(COH_F32, dtype, count);
    }
}

/* Signalling NaNs come out quiet; same_element does not look. */
static void nans_are_quiet(void **state)
{
    static const uint64_t signalling[SMALL_FORMATS] = {0x7c01, 0x7f81, 0x7f, 0x7d};
    (void)state;
    for (int i = 0; cohi_kernels_at(i); i++) {
        for (size_t f = 0; f < SMALL_FORMATS; f++) {
            coh_dtype dtype = formats[f].dtype;
            set_element(source, dtype, 0, signalling[f]);
            cohi_convert_with(cohi_kernels_at(i), target, COH_F32, source, dtype, 1);
            if (dtype != COH_BF16 && !(element_bits(target, COH_F32, 0) & 0x400000))
                fail_msg("%s to f32 left a NaN signalling", coh_dtype_name(dtype));
            set_element(source, COH_F32, 0, 0x7f800001);
            cohi_convert_with(cohi_kernels_at(i), target, dtype, source, COH_F32, 1);
            uint64_t quiet = 1ull << (formats[f].fraction_bits - 1);
            if (!(element_bits(target, dtype, 0) & quiet))
                fail_msg("f32 to %s left a NaN signalling", coh_dtype_name(dtype));
        }
    }
}

/* ---- f32 to small floats ---- */

static void check_narrow(const struct format *format, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expected[i] = encode_float(format, as_double(COH_F32, element_bits(source, COH_F32, i)));
    check(format->dtype, COH_F32, count);
}

/* There and back, each value is itself. */
static void small_floats_return(void **state)
{
    (void)state;
    for (size_t f = 0; f < SMALL_FORMATS; f++) {
        size_t count = coh_dtype_size(formats[f].dtype) == 1 ? 256 : 65536;
        for (size_t i = 0; i < count; i++) {
            double number = decode_float(&formats[f], (uint32_t)i);
            set_element(source, COH_F32, i, from_double(COH_F32, number));
            expected[i] = i;
        }
        check(formats[f].dtype, COH_F32, count);
    }
}

/* Halfway between each value and the next, and the f32 numbers beside it. */
static void ties_go_to_even(void **state)
{
    (void)state;
    for (size_t f = 0; f < SMALL_FORMATS; f++) {
        size_t codes = coh_dtype_size(formats[f].dtype) == 1 ? 128 : 32768, count = 0;
        for (uint32_t i = 0; i + 1 < codes; i++) {
            double low = decode_float(&formats[f], i), high = decode_float(&formats[f], i + 1);
            if (!isfinite(low) || !isfinite(high))
                continue;
            uint32_t half = (uint32_t)from_double(COH_F32, low + (high - low) / 2);
            set_element(source, COH_F32, count++, half);
            set_element(source, COH_F32, count++, half - 1);
            set_element(source, COH_F32, count++, half + 1);
            set_element(source, COH_F32, count++, half | 0x80000000);
        }
        check_narrow(&formats[f], count);
    }
}

/* All exponents and both signs, with fractions near every bit; then any bits at all. */
static void any_f32_narrows(void **state)
{
    enum { FRACTIONS = MOST / 512 };
    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        uint32_t bit = 1u << (i % FRACTIONS % 24), form = (uint32_t)(i % FRACTIONS / 24);
        uint32_t fraction = form == 0 ? bit - 1 : form == 1 ? bit : form == 2 ? bit + 1 : -bit;
        if (form > 3)
            fraction = (uint32_t)random_bits();
        set_element(source, COH_F32, i, (i / FRACTIONS) << 23 | (fraction & 0x7fffff));
    }
    for (size_t f = 0; f < SMALL_FORMATS; f++)
        check_narrow(&formats[f], MOST);
    for (size_t i = 0; i < MOST; i++)
        set_element(source, COH_F32, i, random_bits());
    for (size_t f = 0; f < SMALL_FORMATS; f++)
        check_narrow(&formats[f], MOST);
}

/* ---- what is too large ---- */

static void overflow_is_infinity_or_nan(void **state)
{
    static const struct {
        coh_dtype dtype;
        double number;
        uint64_t code;
    } rows[] = {
        {COH_F16, 65504, 0x7bff},
        {COH_F16, 65519.99, 0x7bff},
        {COH_F16, 65520, 0x7c00},
        {COH_F16, -1e30, 0xfc00},
        {COH_BF16, 0x1.fffffep127, 0x7f80},
        {COH_BF16, 0x1.fep127, 0x7f7f},
        {COH_F8E5M2, 57344, 0x7b},
        {COH_F8E5M2, 61439, 0x7b},
        {COH_F8E5M2, 61440, 0x7c},
        {COH_F8E5M2, -1e9, 0xfc},
        {COH_F8E4M3, 448, 0x7e},
        {COH_F8E4M3, 464, 0x7e},
        {COH_F8E4M3, 464.01, 0x7f},
        {COH_F8E4M3, -480, 0xff},
        {COH_F8E4M3, INFINITY, 0x7f},
        {COH_F8E5M2, INFINITY, 0x7c},
        {COH_F16, 0x1p-25, 0},
        {COH_F16, 0x1.1p-25, 1},
        {COH_BF16, 0x1p-133, 1},
        {COH_BF16, 0x1p-134, 0},
        {COH_F8E4M3, 0x1p-10, 0},
        {COH_F8E4M3, 0x1.8p-10, 1},
        {COH_F8E5M2, 0x1p-16, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float number = (float)rows[i].number;
        memcpy(source, &number, sizeof number);
        expected[0] = rows[i].code;
        for (int k = 0; cohi_kernels_at(k); k++)
            check_shifted(cohi_kernels_at(k), rows[i].dtype, COH_F32, 1, 0);
    }
}

/* ---- integers, bool, f64 ---- */

/* The ends of the type: from -2^(bits-1) or 0 to 2^(bits-1)-1 or 2^bits-1. */
static uint64_t clip(coh_dtype dtype, double number)
{
    int bits = 8 * (int)coh_dtype_size(dtype);
    double above = ldexp(1, is_signed(dtype) ? bits - 1 : bits);
    double least = is_signed(dtype) ? -above : 0;
    uint64_t mask = UINT64_MAX >> (64 - bits), most = is_signed(dtype) ? mask >> 1 : mask;
    if (isnan(number))
        return 0;
    if (number >= above)
        return most;
    if (number <= least)
        return is_signed(dtype) ? most + 1 : 0;
    return (number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number) & mask;
}

static uint64_t narrowed(coh_dtype dtype, double number)
{
    if (dtype == COH_F64)
        return from_double(COH_F64, number);
    return dtype == COH_BOOL ? number != 0 : clip(dtype, number);
}

/* A number near a power of two up to 2^66, of either sign; or any f32. */
static uint32_t pick_f32(size_t i)
{
    if (i % 2)
        return (uint32_t)random_bits();
    uint32_t exponent = (uint32_t)(120 + random_bits() % 74);
    uint32_t fraction = (uint32_t)(random_bits() % 5) + 0x7ffffe;
    return ((exponent << 23) + (fraction & 0xffffff)) ^ (uint32_t)(random_bits() << 31);
}

static void f32_to_others(void **state)
{
    static const coh_dtype types[] = {COH_I8,  COH_I16, COH_I32, COH_I64, COH_U8,
                                      COH_U16, COH_U32, COH_U64, COH_F64, COH_BOOL};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t i = 0; i < MOST; i++) {
            set_element(source, COH_F32, i, pick_f32(i));
            double number = as_double(COH_F32, element_bits(source, COH_F32, i));
            expected[i] = narrowed(types[t], number);
        }
        check(types[t], COH_F32, MOST);
    }
}

/* An integer's magnitude rounded to 24 bits, in integers: a double would have rounded it before. */
static double round_integer(coh_dtype dtype, uint64_t bits)
{
    int64_t value = extend(dtype, bits);
    bool negative = is_signed(dtype) && value < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value, drop = 1;
    while (magnitude / drop >= 1 << 24)
        drop *= 2;
    uint64_t rest = magnitude % drop, units = magnitude / drop;
    if (drop > 1 && (rest > drop / 2 || (rest == drop / 2 && units % 2)))
        units++;
    double number = (double)units * (double)drop;
    return negative ? -number : number;
}

static uint64_t widened(coh_dtype dtype, uint64_t bits)
{
    double number = dtype == COH_F64    ? as_double(COH_F64, bits)
                    : dtype == COH_BOOL ? bits != 0
                                        : round_integer(dtype, bits);
    return from_double(COH_F32, number);
}

static uint64_t pick_other(coh_dtype dtype)
{
    uint64_t bits = random_bits() >> random_bits() % 64;
    if (dtype == COH_F64 && random_bits() % 2) /* within f32's reach, or around its ends */
        bits = (bits & ~(0x7ffull << 52)) | (1023 - 155 + random_bits() % 290) << 52;
    return bits & UINT64_MAX >> (64 - 8 * coh_dtype_size(dtype));
}

static void others_to_f32(void **state)
{
    static const coh_dtype types[] = {COH_I8,  COH_I16, COH_I32, COH_I64, COH_U8,
                                      COH_U16, COH_U32, COH_U64, COH_F64, COH_BOOL};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t i = 0; i < MOST; i++) {
            uint64_t bits = pick_other(types[t]);
            set_element(source, types[t], i, bits);
            expected[i] = widened(types[t], bits);
        }
        check(COH_F32, types[t], MOST);
    }
}

/* ---- which pairs there are ---- */

static void pairs(void **state)
{
    (void)state;
    for (int to = -1; to <= COH_BOOL + 2; to++) {
        for (int from = -1; from <= COH_BOOL + 2; from++) {
            bool valid = coh_dtype_name((coh_dtype)to) && coh_dtype_name((coh_dtype)from);
            bool has = valid && (to == from || to == COH_F32 || from == COH_F32);
            if (cohi_convert(target, (coh_dtype)to, source, (coh_dtype)from, 0) != has)
                fail_msg("there is a conversion of type %d to %d, or not, wrongly", from, to);
        }
    }
}

/* ---- long ones, which are stored past the caches ---- */

enum { LONG = (2 << 20) / sizeof(float) + 4321, PIECE = 1000, LONG_ROOM = (LONG + 4) * 4 };

/* Piece by piece it is as the tests above say. */
static void check_long(const cohi_kernels *kernels, coh_dtype to, coh_dtype from,
                       unsigned char *memory[3], size_t shift)
{
    size_t in = coh_dtype_size(from), out = coh_dtype_size(to);
    unsigned char *whole = memory[1] + shift * out, *pieces = memory[2] + shift * out;
    memset(memory[1], 0x5a, LONG_ROOM);
    memset(memory[2], 0x5a, LONG_ROOM);
    cohi_convert_with(kernels, whole, to, memory[0], from, LONG);
    for (size_t at = 0; at < LONG; at += PIECE)
        cohi_convert_with(kernels, pieces + at * out, to, memory[0] + at * in, from,
                          LONG - at < PIECE ? LONG - at : PIECE);
    if (memcmp(memory[1], memory[2], LONG_ROOM) != 0)
        fail_msg("%s: %d of %s to %s at once are not what they are piece by piece", kernels->name,
                 LONG, coh_dtype_name(from), coh_dtype_name(to));
}

static void long_ones_are_the_same(void **state)
{
    (void)state;
    unsigned char *memory[3];
    for (int i = 0; i < 3; i++) {
        memory[i] = aligned_alloc(64, (LONG_ROOM + 63) / 64 * 64);
        if (!memory[i])
            fail_msg("no memory for %d elements", LONG);
    }
    for (size_t i = 0; i + 8 <= LONG_ROOM; i += 8) {
        uint64_t bits = random_bits();
        memcpy(memory[0] + i, &bits, sizeof bits);
    }
    for (int i = 0; cohi_kernels_at(i); i++) {
        for (size_t f = 0; f < SMALL_FORMATS; f++) {
            for (size_t shift = 0; shift <= 3; shift += 3) {
                check_long(cohi_kernels_at(i), COH_F32, formats[f].dtype, memory, shift);
                check_long(cohi_kernels_at(i), formats[f].dtype, COH_F32, memory, shift);
            }
        }
    }
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

static void same_type_is_a_copy(void **state)
{
    (void)state;
    for (int dtype = COH_I8; dtype <= COH_BOOL; dtype++) {
        size_t bytes = 100 * coh_dtype_size((coh_dtype)dtype);
        for (size_t i = 0; i < bytes; i++)
            source[i] = (unsigned char)random_bits();
        memset(target, 0x5a, bytes + 1);
        cohi_convert(target, (coh_dtype)dtype, source, (coh_dtype)dtype, 100);
        if (memcmp(target, source, bytes) != 0 || target[bytes] != 0x5a)
            fail_msg("%s to itself is no copy", coh_dtype_name((coh_dtype)dtype));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_widen),
        cmocka_unit_test(nans_are_quiet),
        cmocka_unit_test(small_floats_return),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(any_f32_narrows),
        cmocka_unit_test(overflow_is_infinity_or_nan),
        cmocka_unit_test(f32_to_others),
        cmocka_unit_test(others_to_f32),
        cmocka_unit_test(pairs),
        cmocka_unit_test(long_ones_are_the_same),
        cmocka_unit_test(same_type_is_a_copy),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
