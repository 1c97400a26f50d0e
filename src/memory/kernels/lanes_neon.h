/* lanes_neon.h - vectors of 16 bytes: NEON, as every 64-bit Arm has it. */
#ifndef COHI_MEMORY_KERNELS_LANES_NEON_H
#define COHI_MEMORY_KERNELS_LANES_NEON_H

#include <arm_neon.h>

#define LANES_BYTES 16
#include "memory/kernels/lanes.h"
#include "memory/kernels/lanes_some.h"
#include "memory/kernels/lanes_plain.h"

/* X(type, NEON's vector, suffix of the instruction). Of floats, these propagate NaN and know the
 * order of zeros. */
#define LANES_NEON_TABLE(X)  \
    X(u8, uint8x16_t, u8)    \
    X(u16, uint16x8_t, u16)  \
    X(u32, uint32x4_t, u32)  \
    X(i8, int8x16_t, s8)     \
    X(i16, int16x8_t, s16)   \
    X(i32, int32x4_t, s32)   \
    X(f32, float32x4_t, f32) \
    X(f64, float64x2_t, f64)

#define LANES_NEON_DEFINE(type, vector, suffix)                  \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b) \
    {                                                            \
        return (v_##type)vminq_##suffix((vector)a, (vector)b);   \
    }                                                            \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b) \
    {                                                            \
        return (v_##type)vmaxq_##suffix((vector)a, (vector)b);   \
    }
LANES_NEON_TABLE(LANES_NEON_DEFINE)
#undef LANES_NEON_DEFINE
LANES_PLAIN_INTEGER(u64, 64)
LANES_PLAIN_INTEGER(i64, 64)

LANES_INLINE v_u32 widen16(v_half narrow)
{
    return (v_u32)vmovl_u16((uint16x4_t)narrow);
}

LANES_INLINE v_half narrow16(v_u32 wide)
{
    return (v_half)vmovn_u32((uint32x4_t)wide);
}

LANES_INLINE v_quarter narrow8(v_u32 wide)
{
    uint16x4_t words = vmovn_u32((uint32x4_t)wide);
    uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
    return (v_quarter)vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
}

LANES_INLINE v_half spread8(v_quarter narrow)
{
    int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32((uint32_t)narrow));
    return (v_half)vget_low_s16(vmovl_s8(bytes));
}

LANES_INLINE v_u16 join(v_half first, v_half second)
{
    return (v_u16)vcombine_u16((uint16x4_t)first, (uint16x4_t)second);
}

LANES_INLINE v_u16 high16(v_u32 first, v_u32 second)
{
    return (v_u16)vuzp2q_u16((uint16x8_t)first, (uint16x8_t)second);
}

LANES_INLINE v_u32 choose_greater(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
    uint32x4_t greater = vcgtq_s32((int32x4_t)a, (int32x4_t)b);
    return (v_u32)vbslq_u32(greater, (uint32x4_t)yes, (uint32x4_t)no);
}

LANES_INLINE v_f32 widen_f16(v_half narrow)
{
    return (v_f32)vcvt_f32_f16((float16x4_t)narrow);
}

LANES_INLINE v_half narrow_f16(v_f32 wide)
{
    return (v_half)vcvt_f16_f32((float32x4_t)wide);
}

#endif
