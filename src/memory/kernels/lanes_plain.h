/*
 * lanes_plain.h - minimum and maximum by the compiler's own vectors: in portable C for all, in
 * other sets for the types that they have no instruction for.
 *
 * X(type, width of its lanes)
 */
#ifndef COHI_MEMORY_KERNELS_LANES_PLAIN_H
#define COHI_MEMORY_KERNELS_LANES_PLAIN_H

/* Lanes of `yes` where the mask's are all ones, of `no` where they are all zeros. */
#define LANES_PLAIN_SELECT(bits)                                                       \
    LANES_INLINE v_u##bits select_u##bits(v_u##bits mask, v_u##bits yes, v_u##bits no) \
    {                                                                                  \
        return (yes & mask) | (no & ~mask);                                            \
    }
LANES_PLAIN_SELECT(8)
LANES_PLAIN_SELECT(16)
LANES_PLAIN_SELECT(32)
LANES_PLAIN_SELECT(64)
#undef LANES_PLAIN_SELECT

#define LANES_PLAIN_INTEGER(type, bits)                                                  \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)                         \
    {                                                                                    \
        return (v_##type)select_u##bits((v_u##bits)(a < b), (v_u##bits)a, (v_u##bits)b); \
    }                                                                                    \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)                         \
    {                                                                                    \
        return (v_##type)select_u##bits((v_u##bits)(a > b), (v_u##bits)a, (v_u##bits)b); \
    }

/* Equal numbers have equal bits, but for zeros: of these the signs are joined. A sum with a NaN is
 * one, and quiet. */
#define LANES_PLAIN_FLOAT(type, bits)                                                             \
    LANES_INLINE v_##type choose_##type(v_u##bits first, v_u##bits equal, v_##type a, v_##type b) \
    {                                                                                             \
        v_u##bits ordered = (v_u##bits)(a == a) & (v_u##bits)(b == b);                            \
        v_u##bits chosen = select_u##bits(first, (v_u##bits)a, (v_u##bits)b);                     \
        chosen = select_u##bits((v_u##bits)(a == b), equal, chosen);                              \
        return (v_##type)select_u##bits(ordered, chosen, (v_u##bits)(a + b));                     \
    }                                                                                             \
    LANES_INLINE v_##type minimum_##type(v_##type a, v_##type b)                                  \
    {                                                                                             \
        return choose_##type((v_u##bits)(a < b), (v_u##bits)a | (v_u##bits)b, a, b);              \
    }                                                                                             \
    LANES_INLINE v_##type maximum_##type(v_##type a, v_##type b)                                  \
    {                                                                                             \
        return choose_##type((v_u##bits)(a > b), (v_u##bits)a & (v_u##bits)b, a, b);              \
    }

#endif
