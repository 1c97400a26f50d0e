/* atomics.c - atomics, with the old names too. A non-blocking one on a context of its own is done
 * when it returns, which is early enough. */
#include "internal.h"

static _Noreturn __attribute__((noinline, cold)) void fail_atomic(const char *routine,
                                                                  const void *dest, int pe)
{
    shmemi_enter(routine);
    shmemi_fail(routine, "dest=%p, pe=%d", dest, pe);
}

SHMEMI_INLINE void post(const char *routine, shmem_ctx_t ctx, coh_atomic_op op, coh_dtype dtype,
                        void *dest, const void *value, int pe)
{
    coh_status status;
    if (ctx == SHMEM_CTX_DEFAULT) {
        status = coh_atomic(shmemi.world, op, dtype, dest, value, pe);
    } else {
        shmemi_check_ctx(routine, ctx);
        int rank = shmemi_rank(ctx, pe);
        status = ctx->context ? coh_context_atomic(ctx->context, op, dtype, dest, value, rank)
                              : coh_atomic(shmemi.world, op, dtype, dest, value, rank);
    }
    if (!SHMEMI_LIKELY(status == COH_OK))
        fail_atomic(routine, dest, pe);
}

SHMEMI_INLINE void fetch(const char *routine, shmem_ctx_t ctx, coh_atomic_op op, coh_dtype dtype,
                         void *dest, const void *value, void *result, int pe)
{
    coh_status status;
    if (ctx == SHMEM_CTX_DEFAULT) {
        status = coh_atomic_fetch(shmemi.world, op, dtype, dest, value, result, pe);
    } else {
        shmemi_check_ctx(routine, ctx);
        int rank = shmemi_rank(ctx, pe);
        status = ctx->context
                     ? coh_context_atomic_fetch(ctx->context, op, dtype, dest, value, result, rank)
                     : coh_atomic_fetch(shmemi.world, op, dtype, dest, value, result, rank);
    }
    if (!SHMEMI_LIKELY(status == COH_OK))
        fail_atomic(routine, dest, pe);
}

SHMEMI_INLINE void fetch_nbi(const char *routine, shmem_ctx_t ctx, coh_atomic_op op,
                             coh_dtype dtype, void *dest, const void *value, void *result, int pe)
{
    if (ctx != SHMEM_CTX_DEFAULT)
        fetch(routine, ctx, op, dtype, dest, value, result, pe);
    else if (coh_atomic_fetch_nbi(shmemi.world, op, dtype, dest, value, result, pe) != COH_OK)
        fail_atomic(routine, dest, pe);
}

SHMEMI_INLINE void compare_swap(const char *routine, shmem_ctx_t ctx, coh_dtype dtype, void *dest,
                                const void *cond, const void *value, void *result, int pe)
{
    coh_status status;
    if (ctx == SHMEM_CTX_DEFAULT) {
        status = coh_atomic_compare_swap(shmemi.world, dtype, dest, cond, value, result, pe);
    } else {
        shmemi_check_ctx(routine, ctx);
        int rank = shmemi_rank(ctx, pe);
        status = ctx->context ? coh_context_atomic_compare_swap(ctx->context, dtype, dest, cond,
                                                                value, result, rank)
                              : coh_atomic_compare_swap(shmemi.world, dtype, dest, cond, value,
                                                        result, rank);
    }
    if (!SHMEMI_LIKELY(status == COH_OK))
        fail_atomic(routine, dest, pe);
}

SHMEMI_INLINE void compare_swap_nbi(const char *routine, shmem_ctx_t ctx, coh_dtype dtype,
                                    void *dest, const void *cond, const void *value, void *result,
                                    int pe)
{
    if (ctx != SHMEM_CTX_DEFAULT)
        compare_swap(routine, ctx, dtype, dest, cond, value, result, pe);
    else if (coh_atomic_compare_swap_nbi(shmemi.world, dtype, dest, cond, value, result, pe)
             != COH_OK)
        fail_atomic(routine, dest, pe);
}

/* ---- by type ---- */

/* The statements, which find T, dest, value, pe and ctx where they are used. */
#define POST(op, T) post(SHMEMI_NAME, ctx, op, SHMEMI_DTYPE(T), dest, &value, pe);
#define FETCH(op, T)                                                      \
    T old;                                                                \
    fetch(SHMEMI_NAME, ctx, op, SHMEMI_DTYPE(T), dest, &value, &old, pe); \
    return old;
#define FETCH_NBI(op, T) \
    fetch_nbi(SHMEMI_NAME, ctx, op, SHMEMI_DTYPE(T), dest, &value, fetched, pe);
#define READ(T)                                                                              \
    T old;                                                                                   \
    fetch(SHMEMI_NAME, ctx, COH_ATOMIC_FETCH, SHMEMI_DTYPE(T), (T *)source, NULL, &old, pe); \
    return old;
#define COMPARE_SWAP(T)                                                             \
    T old;                                                                          \
    compare_swap(SHMEMI_NAME, ctx, SHMEMI_DTYPE(T), dest, &cond, &value, &old, pe); \
    return old;

#define DEFINE_ACCESS(T, NAME)                                                                     \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_fetch, (const T *source, int pe), READ(T))                 \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_set, (T * dest, T value, int pe),                       \
                       POST(COH_ATOMIC_SET, T))                                                    \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_swap, (T * dest, T value, int pe),                         \
                       FETCH(COH_ATOMIC_SET, T))                                                   \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_fetch_nbi, (T * fetched, const T *source, int pe),      \
                       fetch_nbi(SHMEMI_NAME, ctx, COH_ATOMIC_FETCH, SHMEMI_DTYPE(T), (T *)source, \
                                 NULL, fetched, pe);)                                              \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_swap_nbi, (T * fetched, T * dest, T value, int pe),     \
                       FETCH_NBI(COH_ATOMIC_SET, T))
SHMEMI_AMO_TYPES(DEFINE_ACCESS)
SHMEMI_REAL_TYPES(DEFINE_ACCESS)

#define DEFINE_ADD(T, NAME)                                                                     \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_compare_swap, (T * dest, T cond, T value, int pe),      \
                       COMPARE_SWAP(T))                                                         \
    SHMEMI_DEFINE_PAIR(                                                                         \
        void, NAME##_atomic_compare_swap_nbi, (T * fetched, T * dest, T cond, T value, int pe), \
        compare_swap_nbi(SHMEMI_NAME, ctx, SHMEMI_DTYPE(T), dest, &cond, &value, fetched, pe);) \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_fetch_inc, (T * dest, int pe), const T value = 1;       \
                       FETCH(COH_ATOMIC_ADD, T))                                                \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_fetch_inc_nbi, (T * fetched, T * dest, int pe),      \
                       const T value = 1;                                                       \
                       FETCH_NBI(COH_ATOMIC_ADD, T))                                            \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_inc, (T * dest, int pe), const T value = 1;          \
                       POST(COH_ATOMIC_ADD, T))                                                 \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_fetch_add, (T * dest, T value, int pe),                 \
                       FETCH(COH_ATOMIC_ADD, T))                                                \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_fetch_add_nbi,                                       \
                       (T * fetched, T * dest, T value, int pe), FETCH_NBI(COH_ATOMIC_ADD, T))  \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_add, (T * dest, T value, int pe),                    \
                       POST(COH_ATOMIC_ADD, T))
SHMEMI_AMO_TYPES(DEFINE_ADD)

#define DEFINE_BITWISE(T, NAME, name, op)                                                        \
    SHMEMI_DEFINE_PAIR(T, NAME##_atomic_fetch_##name, (T * dest, T value, int pe), FETCH(op, T)) \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_fetch_##name##_nbi,                                   \
                       (T * fetched, T * dest, T value, int pe), FETCH_NBI(op, T))               \
    SHMEMI_DEFINE_PAIR(void, NAME##_atomic_##name, (T * dest, T value, int pe), POST(op, T))
#define DEFINE_BITS(T, NAME)                     \
    DEFINE_BITWISE(T, NAME, and, COH_ATOMIC_AND) \
    DEFINE_BITWISE(T, NAME, or, COH_ATOMIC_OR)   \
    DEFINE_BITWISE(T, NAME, xor, COH_ATOMIC_XOR)
SHMEMI_BITWISE_AMO_TYPES(DEFINE_BITS)

/* ---- deprecated names ---- */

#define DEFINE_OLD(result, name, parameters, statement) \
    SHMEMI_DEFINE(result, name, parameters)             \
    {                                                   \
        const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;      \
        statement                                       \
    }
#define DEFINE_OLD_ACCESS(T, NAME)                                                             \
    DEFINE_OLD(T, shmem_##NAME##_fetch, (const T *source, int pe), READ(T))                    \
    DEFINE_OLD(void, shmem_##NAME##_set, (T * dest, T value, int pe), POST(COH_ATOMIC_SET, T)) \
    DEFINE_OLD(T, shmem_##NAME##_swap, (T * dest, T value, int pe), FETCH(COH_ATOMIC_SET, T))
SHMEMI_AMO_TYPES(DEFINE_OLD_ACCESS)
SHMEMI_REAL_TYPES(DEFINE_OLD_ACCESS)

#define DEFINE_OLD_ADD(T, NAME)                                                               \
    DEFINE_OLD(T, shmem_##NAME##_cswap, (T * dest, T cond, T value, int pe), COMPARE_SWAP(T)) \
    DEFINE_OLD(T, shmem_##NAME##_finc, (T * dest, int pe), const T value = 1;                 \
               FETCH(COH_ATOMIC_ADD, T))                                                      \
    DEFINE_OLD(void, shmem_##NAME##_inc, (T * dest, int pe), const T value = 1;               \
               POST(COH_ATOMIC_ADD, T))                                                       \
    DEFINE_OLD(T, shmem_##NAME##_fadd, (T * dest, T value, int pe), FETCH(COH_ATOMIC_ADD, T)) \
    DEFINE_OLD(void, shmem_##NAME##_add, (T * dest, T value, int pe), POST(COH_ATOMIC_ADD, T))
SHMEMI_AMO_TYPES(DEFINE_OLD_ADD)
