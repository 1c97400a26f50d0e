/*
 * small_float.h - floats of 16 and 8 bits to and from lanes of f32, where no instruction does it.
 *
 * Included after a lanes_*.h. To the nearest, ties to even; what is too large becomes
 * infinity, and in f8e4m3, which has none, NaN; a NaN stays one, and quiet. Nothing here relies on
 * subnormal numbers of f32, so a thread that flushes them gets the same results. bf16 is rounded as
 * an integer: the instruction for it, where there is one, flushes subnormals always.
 */
#ifndef COHI_MEMORY_KERNELS_SMALL_FLOAT_H
#define COHI_MEMORY_KERNELS_SMALL_FLOAT_H

#define EVERY_LANE(bits) ((v_u32){0} + (bits))

/*
 * The bits of f32 numbers as a float with so many bits of fraction and this exponent bias, in the
 * low bits of each lane, without a sign; what is larger than `limit`, the bits of an f32, is as
 * that. A sum with a power of two that is `drop` places above the number rounds off as many bits,
 * and leaves the others at its end. Below the least exponent of the small format that power stays
 * where it is, and the result is subnormal.
 */
LANES_INLINE v_u32 round_small(v_u32 bits, int fraction, int bias, uint32_t limit)
{
    const int drop = 23 - fraction;
    const uint32_t least = (uint32_t)(128 - bias) << 23;
    v_u32 clear = bits & 0x7fffffff;
    v_u32 magnitude = (v_u32)minimum_i32((v_i32)clear, (v_i32)EVERY_LANE(limit));
    v_u32 exponent = magnitude & 0x7f800000;
    exponent = (v_u32)maximum_i32((v_i32)exponent, (v_i32)EVERY_LANE(least));
    v_u32 power = exponent + ((uint32_t)drop << 23);
    v_u32 sum = (v_u32)((v_f32)magnitude + (v_f32)power);
    return sum - power + (exponent >> drop) - (least >> drop);
}

/* round_small, and `nan` for a NaN. */
LANES_INLINE v_u32 round_small_or_nan(v_u32 bits, int fraction, int bias, uint32_t limit,
                                      uint32_t nan)
{
    v_u32 code = round_small(bits, fraction, bias, limit);
    return choose_greater(bits & 0x7fffffff, EVERY_LANE(0x7f800000), EVERY_LANE(nan), code);
}

#ifdef LANES_PLAIN_F16

/*
 * An f16's bits, moved to where f32 has them, are an f32 with an exponent too small by 112.
 * Its subnormals have no leading one: given one, which is then taken away again, they are exact.
 */
LANES_INLINE v_f32 widen_f16(v_half narrow)
{
    const uint32_t least = 1u << 23, infinite = 31u << 23;
    v_u32 bits = widen16(narrow), magnitude = (bits & 0x7fff) << 13;
    v_u32 one = EVERY_LANE(113u << 23);
    v_u32 subnormal = (v_u32)((v_f32)(magnitude + one) - (v_f32)one);
    v_u32 wide = choose_greater(EVERY_LANE(least), magnitude, subnormal, magnitude + (112u << 23));
    v_u32 quiet = EVERY_LANE(0x7fc00000) | magnitude;
    wide = choose_greater(magnitude, EVERY_LANE(infinite - 1), EVERY_LANE(0x7f800000), wide);
    wide = choose_greater(magnitude, EVERY_LANE(infinite), quiet, wide);
    return (v_f32)(wide | (bits & 0x8000) << 16);
}

LANES_INLINE v_half narrow_f16(v_f32 wide)
{
    v_u32 bits = (v_u32)wide;
    v_u32 code = round_small_or_nan(bits, 10, 15, 0x47800000 /* 65536 */, 0x7e00);
    return narrow16(code | ((bits >> 16) & 0x8000));
}

#endif

LANES_INLINE v_u16 pack_f16(v_f32 first, v_f32 second)
{
    return join(narrow_f16(first), narrow_f16(second));
}

LANES_INLINE v_f32 widen_bf16(v_half narrow)
{
    return (v_f32)(widen16(narrow) << 16);
}

#ifndef LANES_ROUND_BF16

/* In the upper halves of the lanes. */
LANES_INLINE v_u32 round_bf16(v_f32 wide)
{
    v_u32 bits = (v_u32)wide, clear = bits & 0x7fffffff;
    v_u32 rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return choose_greater(clear, EVERY_LANE(0x7f800000), bits | 0x400000, rounded);
}

#endif

LANES_INLINE v_half narrow_bf16(v_f32 wide)
{
    return narrow16(round_bf16(wide) >> 16);
}

#ifndef LANES_PACK_BF16

LANES_INLINE v_u16 pack_bf16(v_f32 first, v_f32 second)
{
    return high16(round_bf16(first), round_bf16(second));
}

#endif

/* f8e5m2 is the upper half of an f16. */
LANES_INLINE v_f32 widen_f8e5m2(v_quarter narrow)
{
    return widen_f16(spread8(narrow) << 8);
}

LANES_INLINE v_quarter narrow_f8e5m2(v_f32 wide)
{
    v_u32 bits = (v_u32)wide;
    v_u32 code = round_small_or_nan(bits, 2, 15, 0x47800000 /* 65536 */, 0x7e);
    return narrow8(code | ((bits >> 24) & 0x80));
}

/* f8e4m3, moved to where f16 has its bits, is an f16 with an exponent too small by 8; but for its
 * NaN, which then is 480. */
LANES_INLINE v_f32 widen_f8e4m3(v_quarter narrow)
{
    v_u32 bits = (v_u32)(widen_f16(spread8(narrow) << 7 & 0xbfff) * 256);
    v_u32 nan = bits | 0x7fc00000;
    return (v_f32)choose_greater(bits & 0x7fffffff, EVERY_LANE(0x43e00000 /* 448 */), nan, bits);
}

/* 480 would come next after the largest number; its code is NaN. */
LANES_INLINE v_quarter narrow_f8e4m3(v_f32 wide)
{
    v_u32 bits = (v_u32)wide;
    v_u32 code = round_small(bits, 3, 7, 0x43f00000 /* 480 */);
    return narrow8(code | ((bits >> 24) & 0x80));
}

#endif
