#include "memory/host_atomic.h"

#include <stdint.h>
#include <string.h>

/* The user's objects have types of their own, so these words may alias them. */
typedef uint32_t word32 __attribute__((may_alias));
typedef uint64_t word64 __attribute__((may_alias));

/* X(word type, width). Signed and unsigned integers, and floats for what only moves bits, are
 * the same to the machine; sums wrap. */
#define WIDTHS(X) \
    X(word32, 32) \
    X(word64, 64)

#define DEFINE_FETCHING(word, width, name, builtin)                                               \
    static void name##width(void *target, const void *operand, const void *compare, void *result) \
    {                                                                                             \
        word value;                                                                               \
        (void)compare;                                                                            \
        memcpy(&value, operand, sizeof value);                                                    \
        value = builtin((word *)target, value, __ATOMIC_SEQ_CST);                                 \
        memcpy(result, &value, sizeof value);                                                     \
    }

#define DEFINE_WIDTH(word, width)                                                                  \
    DEFINE_FETCHING(word, width, swap, __atomic_exchange_n)                                        \
    DEFINE_FETCHING(word, width, add, __atomic_fetch_add)                                          \
    DEFINE_FETCHING(word, width, and, __atomic_fetch_and)                                          \
    DEFINE_FETCHING(word, width, or, __atomic_fetch_or)                                            \
    DEFINE_FETCHING(word, width, xor, __atomic_fetch_xor)                                          \
    static void fetch##width(void *target, const void *operand, const void *compare, void *result) \
    {                                                                                              \
        (void)operand;                                                                             \
        (void)compare;                                                                             \
        word value = __atomic_load_n((word *)target, __ATOMIC_SEQ_CST);                            \
        memcpy(result, &value, sizeof value);                                                      \
    }                                                                                              \
    static void compare_swap##width(void *target, const void *operand, const void *compare,        \
                                    void *result)                                                  \
    {                                                                                              \
        word value, expected;                                                                      \
        memcpy(&value, operand, sizeof value);                                                     \
        memcpy(&expected, compare, sizeof expected);                                               \
        __atomic_compare_exchange_n((word *)target, &expected, value, 0, __ATOMIC_SEQ_CST,         \
                                    __ATOMIC_SEQ_CST);                                             \
        memcpy(result, &expected, sizeof expected);                                                \
    }
WIDTHS(DEFINE_WIDTH)
#undef DEFINE_WIDTH
#undef DEFINE_FETCHING

enum { OPERATIONS = COH_ATOMIC_COMPARE_SWAP + 1 };

#define INTEGER_ROW(width)                                                \
    {                                                                     \
        [COH_ATOMIC_SET] = swap##width, [COH_ATOMIC_ADD] = add##width,    \
        [COH_ATOMIC_AND] = and##width, [COH_ATOMIC_OR] = or ##width,      \
        [COH_ATOMIC_XOR] = xor##width, [COH_ATOMIC_FETCH] = fetch##width, \
        [COH_ATOMIC_COMPARE_SWAP] = compare_swap##width,                  \
    }
#define FLOAT_ROW(width)                                                   \
    {                                                                      \
        [COH_ATOMIC_SET] = swap##width, [COH_ATOMIC_FETCH] = fetch##width, \
    }

static cohi_host_atomic *const kernels[][OPERATIONS] = {
    [COH_I32] = INTEGER_ROW(32), [COH_U32] = INTEGER_ROW(32), [COH_I64] = INTEGER_ROW(64),
    [COH_U64] = INTEGER_ROW(64), [COH_F32] = FLOAT_ROW(32),   [COH_F64] = FLOAT_ROW(64),
};

cohi_host_atomic *cohi_host_atomic_find(coh_atomic_op op, coh_dtype dtype)
{
    if ((unsigned)dtype >= sizeof kernels / sizeof *kernels || (unsigned)op >= OPERATIONS)
        return NULL;
    return kernels[dtype][op];
}
