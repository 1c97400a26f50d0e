/*
 * kernel_table.h - every kernel of one instruction set, and the table of them.
 *
 * Included after a lanes_*.h, by the one file of that set.
 */
#ifndef COHI_MEMORY_KERNELS_KERNEL_TABLE_H
#define COHI_MEMORY_KERNELS_KERNEL_TABLE_H

#include "memory/kernels/kernel_loops.h"
#include "memory/kernels/small_float.h"

/* ---- elements that fill the lanes as they are ---- */

LANES_INLINE lanes load_full(const char *source)
{
    return *(const v_u8_there *)source;
}

LANES_INLINE lanes load_some_full(const char *source, size_t bytes)
{
    return load_some(source, bytes);
}

LANES_INLINE void store_full(char *target, lanes result)
{
    *(v_u8_there *)target = result;
}

LANES_INLINE void store_some_full(char *target, lanes result, size_t bytes)
{
    store_some(target, result, bytes);
}

/* Any byte but 0 is true, and true is 1. */
LANES_INLINE lanes load_bool(const char *source)
{
    return (lanes)(load_full(source) != 0) & 1;
}

LANES_INLINE lanes load_some_bool(const char *source, size_t bytes)
{
    return (lanes)(load_some(source, bytes) != 0) & 1;
}

/* ---- elements that are widened to f32 ---- */

#define DEFINE_SMALL(type, part)                                                  \
    LANES_INLINE lanes load_##type(const char *source)                            \
    {                                                                             \
        return (lanes)widen_##type(*(const v_##part##_there *)source);            \
    }                                                                             \
    LANES_INLINE lanes load_some_##type(const char *source, size_t bytes)         \
    {                                                                             \
        return (lanes)widen_##type(load_some_##part(source, bytes));              \
    }                                                                             \
    LANES_INLINE void store_##type(char *target, lanes result)                    \
    {                                                                             \
        *(v_##part##_there *)target = narrow_##type((v_f32)result);               \
    }                                                                             \
    LANES_INLINE void store_some_##type(char *target, lanes result, size_t bytes) \
    {                                                                             \
        store_some_##part(target, narrow_##type((v_f32)result), bytes);           \
    }
DEFINE_SMALL(f16, half)
DEFINE_SMALL(bf16, half)
DEFINE_SMALL(f8e4m3, quarter)
DEFINE_SMALL(f8e5m2, quarter)
#undef DEFINE_SMALL

/* ---- four vectors at a time ---- */

/* Elements of 16 bits fill a vector from two, so that lines are stored whole. */
#define DEFINE_BLOCK_STORES(prefix, put_full, put_quarter)                                         \
    LANES_INLINE void prefix##_full(char *target, lanes a, lanes b, lanes c, lanes d)              \
    {                                                                                              \
        put_full(target, a);                                                                       \
        put_full(target + LANES_BYTES, b);                                                         \
        put_full(target + 2 * LANES_BYTES, c);                                                     \
        put_full(target + 3 * LANES_BYTES, d);                                                     \
    }                                                                                              \
    LANES_INLINE void prefix##_f16(char *target, lanes a, lanes b, lanes c, lanes d)               \
    {                                                                                              \
        put_full(target, (lanes)pack_f16((v_f32)a, (v_f32)b));                                     \
        put_full(target + LANES_BYTES, (lanes)pack_f16((v_f32)c, (v_f32)d));                       \
    }                                                                                              \
    LANES_INLINE void prefix##_bf16(char *target, lanes a, lanes b, lanes c, lanes d)              \
    {                                                                                              \
        put_full(target, (lanes)pack_bf16((v_f32)a, (v_f32)b));                                    \
        put_full(target + LANES_BYTES, (lanes)pack_bf16((v_f32)c, (v_f32)d));                      \
    }                                                                                              \
    LANES_INLINE void prefix##_f8e4m3(char *target, lanes a, lanes b, lanes c, lanes d){           \
        PUT_F8(f8e4m3, put_full, put_quarter)} LANES_INLINE void prefix##_f8e5m2(char *target,     \
                                                                                 lanes a, lanes b, \
                                                                                 lanes c, lanes d) \
    {                                                                                              \
        PUT_F8(f8e5m2, put_full, put_quarter)                                                      \
    }

#ifdef LANES_PACK_F8
#define PUT_F8(type, put_full, put_quarter) \
    put_full(target, (lanes)pack_##type((v_f32)a, (v_f32)b, (v_f32)c, (v_f32)d));
#else
#define PUT_F8(type, put_full, put_quarter)                         \
    put_quarter(target, narrow_##type((v_f32)a));                   \
    put_quarter(target + LANES_BYTES / 4, narrow_##type((v_f32)b)); \
    put_quarter(target + LANES_BYTES / 2, narrow_##type((v_f32)c)); \
    put_quarter(target + LANES_BYTES / 4 * 3, narrow_##type((v_f32)d));
#endif

LANES_INLINE void store_quarter(char *target, v_quarter quarter)
{
    *(v_quarter_there *)target = quarter;
}

DEFINE_BLOCK_STORES(store_block, store_full, store_quarter)
#ifdef LANES_STREAM
DEFINE_BLOCK_STORES(stream_block, stream, stream_quarter)
#define STREAM_BLOCK(form) stream_block_##form
#else
#define STREAM_BLOCK(form) NULL
#endif
#undef DEFINE_BLOCK_STORES
#undef PUT_F8

#define FULL_CODEC(bytes, load, load_some)                                        \
    {                                                                             \
        bytes, LANES_BYTES / bytes, load, load_some, store_full, store_some_full, \
            store_block_full, STREAM_BLOCK(full)                                  \
    }
#define SMALL_CODEC(type, bytes)                                                                \
    {                                                                                           \
        bytes, LANES_BYTES / 4, load_##type, load_some_##type, store_##type, store_some_##type, \
            store_block_##type, STREAM_BLOCK(type)                                              \
    }
static const struct codec codec_8 = FULL_CODEC(1, load_full, load_some_full);
static const struct codec codec_16 = FULL_CODEC(2, load_full, load_some_full);
static const struct codec codec_32 = FULL_CODEC(4, load_full, load_some_full);
static const struct codec codec_64 = FULL_CODEC(8, load_full, load_some_full);
static const struct codec codec_bool = FULL_CODEC(1, load_bool, load_some_bool);
static const struct codec codec_f16 = SMALL_CODEC(f16, 2);
static const struct codec codec_bf16 = SMALL_CODEC(bf16, 2);
static const struct codec codec_f8e4m3 = SMALL_CODEC(f8e4m3, 1);
static const struct codec codec_f8e5m2 = SMALL_CODEC(f8e5m2, 1);
#undef FULL_CODEC
#undef SMALL_CODEC

/* ---- what is done with lanes ---- */

#define DEFINE_COMBINE(name, vector, expression)       \
    LANES_INLINE lanes name(lanes first, lanes second) \
    {                                                  \
        vector a = (vector)first, b = (vector)second;  \
        return (lanes)(expression);                    \
    }

DEFINE_COMBINE(and_bits, v_u64, a &b)
DEFINE_COMBINE(or_bits, v_u64, a | b)
DEFINE_COMBINE(xor_bits, v_u64, a ^ b)

/* Signed sums and products wrap: they are the unsigned ones. */
#define DEFINE_WRAPPING(bits)                    \
    DEFINE_COMBINE(sum_##bits, v_u##bits, a + b) \
    DEFINE_COMBINE(product_##bits, v_u##bits, a *b)
DEFINE_WRAPPING(8)
DEFINE_WRAPPING(16)
DEFINE_WRAPPING(32)
DEFINE_WRAPPING(64)
#undef DEFINE_WRAPPING

DEFINE_COMBINE(sum_f32, v_f32, a + b)
DEFINE_COMBINE(sum_f64, v_f64, a + b)
DEFINE_COMBINE(product_f32, v_f32, a *b)
DEFINE_COMBINE(product_f64, v_f64, a *b)

#define DEFINE_ORDERED(type)                                   \
    DEFINE_COMBINE(min_##type, v_##type, minimum_##type(a, b)) \
    DEFINE_COMBINE(max_##type, v_##type, maximum_##type(a, b))
DEFINE_ORDERED(i8)
DEFINE_ORDERED(i16)
DEFINE_ORDERED(i32)
DEFINE_ORDERED(i64)
DEFINE_ORDERED(u8)
DEFINE_ORDERED(u16)
DEFINE_ORDERED(u32)
DEFINE_ORDERED(u64)
DEFINE_ORDERED(f32)
DEFINE_ORDERED(f64)
#undef DEFINE_ORDERED
#undef DEFINE_COMBINE

LANES_INLINE lanes as_it_is(lanes result, int ranks)
{
    (void)ranks;
    return result;
}

LANES_INLINE lanes divide_f32(lanes result, int ranks)
{
    return (lanes)((v_f32)result / (float)ranks);
}

LANES_INLINE lanes divide_f64(lanes result, int ranks)
{
    return (lanes)((v_f64)result / (double)ranks);
}

/* No CPU divides vectors of integers. `wide` holds both the type and the number of ranks. */
#define DEFINE_DIVIDE(type, element, wide)                                        \
    static __attribute__((noinline)) lanes divide_##type(lanes result, int ranks) \
    {                                                                             \
        element each[LANES_BYTES / sizeof(element)];                              \
        memcpy(each, &result, sizeof each);                                       \
        for (size_t i = 0; i < sizeof each / sizeof *each; i++)                   \
            each[i] = (element)((wide)each[i] / (wide)ranks);                     \
        memcpy(&result, each, sizeof each);                                       \
        return result;                                                            \
    }
DEFINE_DIVIDE(i8, int8_t, int32_t)
DEFINE_DIVIDE(i16, int16_t, int32_t)
DEFINE_DIVIDE(i32, int32_t, int32_t)
DEFINE_DIVIDE(i64, int64_t, int64_t)
DEFINE_DIVIDE(u8, uint8_t, uint32_t)
DEFINE_DIVIDE(u16, uint16_t, uint32_t)
DEFINE_DIVIDE(u32, uint32_t, uint32_t)
DEFINE_DIVIDE(u64, uint64_t, uint64_t)
#undef DEFINE_DIVIDE

/* ---- the kernels ---- */

#define DEFINE_KERNEL(name, all, in, out, combine, finish)                                    \
    static const struct recipe name##_recipe = {&in, &out, combine, finish};                  \
    static __attribute__((noinline)) void name##_units(const cohi_kernel_job *job, size_t at, \
                                                       size_t end)                            \
    {                                                                                         \
        reduce_units(job, &name##_recipe, at, end);                                           \
    }                                                                                         \
    static void name(const cohi_kernel_job *job)                                              \
    {                                                                                         \
        all(job, &name##_recipe, name##_units);                                               \
    }

/* Without a scan: there is no mean of the members up to one. */
#define DEFINE_MEAN(name, in, combine, finish) \
    DEFINE_KERNEL(name, reduce_all, in, in, combine, finish)

#define DEFINE_REDUCE(name, in, combine)                                                           \
    DEFINE_KERNEL(name, reduce_all, in, in, combine, as_it_is)                                     \
    static __attribute__((noinline)) void name##_scan_units(const cohi_kernel_job *job, size_t at, \
                                                            size_t end)                            \
    {                                                                                              \
        scan_units(job, &name##_recipe, at, end);                                                  \
    }                                                                                              \
    static void name##_scan(const cohi_kernel_job *job)                                            \
    {                                                                                              \
        scan_all(job, &name##_recipe, name##_scan_units);                                          \
    }

/* X(type, its codec, what its lanes are) */
#define SMALL_TABLE(X)           \
    X(f16, codec_f16, f32)       \
    X(bf16, codec_bf16, f32)     \
    X(f8e4m3, codec_f8e4m3, f32) \
    X(f8e5m2, codec_f8e5m2, f32)
#define FLOAT_TABLE(X)    \
    X(f64, codec_64, f64) \
    X(f32, codec_32, f32) \
    SMALL_TABLE(X)

#define DEFINE_FLOAT(type, in, lane)                        \
    DEFINE_REDUCE(type##_sum, in, sum_##lane)               \
    DEFINE_MEAN(type##_mean, in, sum_##lane, divide_##lane) \
    DEFINE_REDUCE(type##_product, in, product_##lane)       \
    DEFINE_REDUCE(type##_min, in, min_##lane)               \
    DEFINE_REDUCE(type##_max, in, max_##lane)
FLOAT_TABLE(DEFINE_FLOAT)
#undef DEFINE_FLOAT

/* X(type, width) */
#define INTEGER_TABLE(X) \
    X(i8, 8)             \
    X(i16, 16)           \
    X(i32, 32)           \
    X(i64, 64)           \
    X(u8, 8)             \
    X(u16, 16)           \
    X(u32, 32)           \
    X(u64, 64)

#define DEFINE_WIDTH(bits)                                    \
    DEFINE_REDUCE(word##bits##_sum, codec_##bits, sum_##bits) \
    DEFINE_REDUCE(word##bits##_product, codec_##bits, product_##bits)
#define DEFINE_INTEGER(type, bits)                                    \
    DEFINE_MEAN(type##_mean, codec_##bits, sum_##bits, divide_##type) \
    DEFINE_REDUCE(type##_min, codec_##bits, min_##type)               \
    DEFINE_REDUCE(type##_max, codec_##bits, max_##type)
DEFINE_WIDTH(8)
DEFINE_WIDTH(16)
DEFINE_WIDTH(32)
DEFINE_WIDTH(64)
INTEGER_TABLE(DEFINE_INTEGER)
#undef DEFINE_WIDTH
#undef DEFINE_INTEGER

/* These know no elements: they count bytes. */
DEFINE_REDUCE(bits_and, codec_8, and_bits)
DEFINE_REDUCE(bits_or, codec_8, or_bits)
DEFINE_REDUCE(bits_xor, codec_8, xor_bits)

DEFINE_REDUCE(bool_and, codec_bool, and_bits)
DEFINE_REDUCE(bool_or, codec_bool, or_bits)
DEFINE_REDUCE(bool_xor, codec_bool, xor_bits)

/* ---- conversions ---- */

/* There is one source. */
LANES_INLINE lanes first_of(lanes first, lanes second)
{
    (void)second;
    return first;
}

#define DEFINE_SMALL_CONVERT(type, in, lane)                                    \
    DEFINE_KERNEL(type##_to_f32, convert_all, in, codec_32, first_of, as_it_is) \
    DEFINE_KERNEL(type##_from_f32, convert_all, codec_32, in, first_of, as_it_is)
SMALL_TABLE(DEFINE_SMALL_CONVERT)
#undef DEFINE_SMALL_CONVERT

/* The loops that follow are the compiler's to make vectors of. */
#define DEFINE_CONVERT(name, to, from, expression)     \
    static void name(const cohi_kernel_job *job)       \
    {                                                  \
        to *restrict target = job->targets[0];         \
        const from *restrict source = job->sources[0]; \
        for (size_t i = 0; i < job->count; i++) {      \
            from value = source[i];                    \
            target[i] = (to)(expression);              \
        }                                              \
    }

DEFINE_CONVERT(f64_to_f32, float, double, value)
DEFINE_CONVERT(f64_from_f32, double, float, value)
DEFINE_CONVERT(bool_to_f32, float, uint8_t, value != 0)
DEFINE_CONVERT(bool_from_f32, uint8_t, float, value != 0)

/* Towards zero; what the type cannot hold is the nearest that it can, and NaN is 0. `above` is the
 * first number past the type's largest, which f32 has exactly where it may not have the largest. */
#define DEFINE_INTEGER_CONVERT(type, element, least, most, above) \
    DEFINE_CONVERT(type##_to_f32, float, element, value)          \
    DEFINE_CONVERT(type##_from_f32, element, float,               \
                   value >= above         ? most                  \
                   : value > (float)least ? (element)value        \
                   : value != value       ? 0                     \
                                          : least)
DEFINE_INTEGER_CONVERT(i8, int8_t, INT8_MIN, INT8_MAX, 0x1p7f)
DEFINE_INTEGER_CONVERT(i16, int16_t, INT16_MIN, INT16_MAX, 0x1p15f)
DEFINE_INTEGER_CONVERT(i32, int32_t, INT32_MIN, INT32_MAX, 0x1p31f)
DEFINE_INTEGER_CONVERT(i64, int64_t, INT64_MIN, INT64_MAX, 0x1p63f)
DEFINE_INTEGER_CONVERT(u8, uint8_t, 0, UINT8_MAX, 0x1p8f)
DEFINE_INTEGER_CONVERT(u16, uint16_t, 0, UINT16_MAX, 0x1p16f)
DEFINE_INTEGER_CONVERT(u32, uint32_t, 0, UINT32_MAX, 0x1p32f)
DEFINE_INTEGER_CONVERT(u64, uint64_t, 0, UINT64_MAX, 0x1p64f)
#undef DEFINE_INTEGER_CONVERT
#undef DEFINE_CONVERT

/* ---- the table ---- */

/* `form` is nothing or _scan. */
#define FLOAT_ROW(type, form)                                           \
    [COH_SUM] = type##_sum##form, [COH_PRODUCT] = type##_product##form, \
    [COH_MIN] = type##_min##form, [COH_MAX] = type##_max##form
#define INTEGER_ROW(type, bits, form)                                                       \
    [COH_SUM] = word##bits##_sum##form, [COH_PRODUCT] = word##bits##_product##form,         \
    [COH_MIN] = type##_min##form, [COH_MAX] = type##_max##form, [COH_AND] = bits_and##form, \
    [COH_OR] = bits_or##form, [COH_XOR] = bits_xor##form
#define BOOL_ROW(form)                                                                     \
    [COH_SUM] = bool_or##form, [COH_PRODUCT] = bool_and##form, [COH_MIN] = bool_and##form, \
    [COH_MAX] = bool_or##form, [COH_AND] = bool_and##form, [COH_OR] = bool_or##form,       \
    [COH_XOR] = bool_xor##form
#define MEAN(type) , [COH_MEAN] = type##_mean
#define NO_MEAN(type)
#define REDUCE_ROWS(form, MEAN_OF)                                                               \
    {                                                                                            \
        [COH_I8] = {INTEGER_ROW(i8, 8, form) MEAN_OF(i8)},                                       \
        [COH_I16] = {INTEGER_ROW(i16, 16, form) MEAN_OF(i16)},                                   \
        [COH_I32] = {INTEGER_ROW(i32, 32, form) MEAN_OF(i32)},                                   \
        [COH_I64] = {INTEGER_ROW(i64, 64, form) MEAN_OF(i64)},                                   \
        [COH_U8] = {INTEGER_ROW(u8, 8, form) MEAN_OF(u8)},                                       \
        [COH_U16] = {INTEGER_ROW(u16, 16, form) MEAN_OF(u16)},                                   \
        [COH_U32] = {INTEGER_ROW(u32, 32, form) MEAN_OF(u32)},                                   \
        [COH_U64] = {INTEGER_ROW(u64, 64, form) MEAN_OF(u64)},                                   \
        [COH_F16] = {FLOAT_ROW(f16, form) MEAN_OF(f16)},                                         \
        [COH_BF16] = {FLOAT_ROW(bf16, form) MEAN_OF(bf16)},                                      \
        [COH_F32] = {FLOAT_ROW(f32, form) MEAN_OF(f32)},                                         \
        [COH_F64] = {FLOAT_ROW(f64, form) MEAN_OF(f64)},                                         \
        [COH_F8E4M3] = {FLOAT_ROW(f8e4m3, form) MEAN_OF(f8e4m3)},                                \
        [COH_F8E5M2] = {FLOAT_ROW(f8e5m2, form) MEAN_OF(f8e5m2)}, [COH_BOOL] = {BOOL_ROW(form)}, \
    }
#define CONVERT_ROW(direction)                                                                 \
    {                                                                                          \
        [COH_I8] = i8_##direction, [COH_I16] = i16_##direction, [COH_I32] = i32_##direction,   \
        [COH_I64] = i64_##direction, [COH_U8] = u8_##direction, [COH_U16] = u16_##direction,   \
        [COH_U32] = u32_##direction, [COH_U64] = u64_##direction, [COH_F16] = f16_##direction, \
        [COH_BF16] = bf16_##direction, [COH_F64] = f64_##direction,                            \
        [COH_F8E4M3] = f8e4m3_##direction, [COH_F8E5M2] = f8e5m2_##direction,                  \
        [COH_BOOL] = bool_##direction,                                                         \
    }

#define KERNEL_TABLE(set)                                                                \
    {                                                                                    \
        .name = set, .reduce = REDUCE_ROWS(, MEAN), .scan = REDUCE_ROWS(_scan, NO_MEAN), \
        .to_f32 = CONVERT_ROW(to_f32), .from_f32 = CONVERT_ROW(from_f32),                \
    }

#endif
