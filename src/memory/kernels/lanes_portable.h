/* lanes_portable.h - vectors of 16 bytes, as the compiler makes them for whatever CPU it is. */
#ifndef COHI_MEMORY_KERNELS_LANES_PORTABLE_H
#define COHI_MEMORY_KERNELS_LANES_PORTABLE_H

#define LANES_BYTES 16
#define LANES_PLAIN_F16
#include "memory/kernels/lanes.h"
#include "memory/kernels/lanes_some.h"
#include "memory/kernels/lanes_plain.h"

LANES_PLAIN_INTEGER(u8, 8)
LANES_PLAIN_INTEGER(u16, 16)
LANES_PLAIN_INTEGER(u32, 32)
LANES_PLAIN_INTEGER(u64, 64)
LANES_PLAIN_INTEGER(i8, 8)
LANES_PLAIN_INTEGER(i16, 16)
LANES_PLAIN_INTEGER(i32, 32)
LANES_PLAIN_INTEGER(i64, 64)
LANES_PLAIN_FLOAT(f32, 32)
LANES_PLAIN_FLOAT(f64, 64)

LANES_INLINE v_u32 widen16(v_half narrow)
{
    return __builtin_convertvector(narrow, v_u32);
}

LANES_INLINE v_quarter narrow8(v_u32 wide)
{
    return __builtin_convertvector(wide, v_quarter);
}

LANES_INLINE v_half narrow16(v_u32 wide)
{
    return __builtin_convertvector(wide, v_half);
}

LANES_INLINE v_half spread8(v_quarter narrow)
{
    typedef int8_t bytes __attribute__((vector_size(LANES_BYTES / 4)));
    typedef int16_t words __attribute__((vector_size(LANES_BYTES / 2)));
    return (v_half) __builtin_convertvector((bytes)narrow, words);
}

LANES_INLINE v_u16 join(v_half first, v_half second)
{
    return (v_u16)__builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
}

LANES_INLINE v_u16 high16(v_u32 first, v_u32 second)
{
    return join(narrow16(first >> 16), narrow16(second >> 16));
}

LANES_INLINE v_u32 choose_greater(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
    return select_u32((v_u32)((v_i32)a > (v_i32)b), yes, no);
}

#endif
