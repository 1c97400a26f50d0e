/*
 * lanes_some.h - parts of vectors for sets without instructions for them: through the stack.
 */
#ifndef COHI_MEMORY_KERNELS_LANES_SOME_H
#define COHI_MEMORY_KERNELS_LANES_SOME_H

/* X(vector type, suffix) */
#define LANES_SOME_TABLE(X) \
    X(v_u8, )               \
    X(v_half, _half)        \
    X(v_quarter, _quarter)

#define LANES_DEFINE_SOME(type, suffix)                                           \
    LANES_INLINE type load_some##suffix(const void *source, size_t bytes)         \
    {                                                                             \
        type vector = {0};                                                        \
        memcpy(&vector, source, bytes);                                           \
        return vector;                                                            \
    }                                                                             \
    LANES_INLINE void store_some##suffix(void *target, type vector, size_t bytes) \
    {                                                                             \
        memcpy(target, &vector, bytes);                                           \
    }
LANES_SOME_TABLE(LANES_DEFINE_SOME)
#undef LANES_DEFINE_SOME

#endif
