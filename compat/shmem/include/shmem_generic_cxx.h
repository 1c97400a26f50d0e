/*
 * shmem_generic_cxx.h - the forms that choose by the type of their arguments, for C++: overloads,
 * one for each type and, where there is one, with a context. Part of shmem.h.
 */
#ifndef SHMEM_GENERIC_CXX_H
#define SHMEM_GENERIC_CXX_H

#include <shmem.h>

#if defined(__cplusplus)

#include <complex>

/* An overload `form` of the routine shmem_NAME_form, and one with a context in front. `names` are
 * the arguments without their types, in parentheses. */
#define SHMEMI_OVERLOAD(result, form, routine, parameters, names) \
    static inline result form parameters                          \
    {                                                             \
        return routine names;                                     \
    }
#define SHMEMI_BARE(...) __VA_ARGS__
#define SHMEMI_OVERLOADS(result, NAME, form, parameters, names)                            \
    SHMEMI_OVERLOAD(result, shmem_##form, shmem_##NAME##_##form, (SHMEMI_BARE parameters), \
                    (SHMEMI_BARE names))                                                   \
    SHMEMI_OVERLOAD(result, shmem_##form, shmem_ctx_##NAME##_##form,                       \
                    (shmem_ctx_t ctx, SHMEMI_BARE parameters), (ctx, SHMEMI_BARE names))

/* ---- put and get ---- */

#define SHMEMI_CXX_RMA(T, NAME)                                                               \
    SHMEMI_OVERLOADS(void, NAME, put, (T * dest, const T *source, size_t nelems, int pe),     \
                     (dest, source, nelems, pe))                                              \
    SHMEMI_OVERLOADS(void, NAME, get, (T * dest, const T *source, size_t nelems, int pe),     \
                     (dest, source, nelems, pe))                                              \
    SHMEMI_OVERLOADS(void, NAME, put_nbi, (T * dest, const T *source, size_t nelems, int pe), \
                     (dest, source, nelems, pe))                                              \
    SHMEMI_OVERLOADS(void, NAME, get_nbi, (T * dest, const T *source, size_t nelems, int pe), \
                     (dest, source, nelems, pe))                                              \
    SHMEMI_OVERLOADS(void, NAME, p, (T * dest, T value, int pe), (dest, value, pe))           \
    SHMEMI_OVERLOADS(T, NAME, g, (const T *source, int pe), (source, pe))                     \
    SHMEMI_OVERLOADS(                                                                         \
        void, NAME, iput,                                                                     \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        (dest, source, dst, sst, nelems, pe))                                                 \
    SHMEMI_OVERLOADS(                                                                         \
        void, NAME, iget,                                                                     \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        (dest, source, dst, sst, nelems, pe))                                                 \
    SHMEMI_OVERLOADS(void, NAME, ibput,                                                       \
                     (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,  \
                      size_t nblocks, int pe),                                                \
                     (dest, source, dst, sst, bsize, nblocks, pe))                            \
    SHMEMI_OVERLOADS(void, NAME, ibget,                                                       \
                     (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,  \
                      size_t nblocks, int pe),                                                \
                     (dest, source, dst, sst, bsize, nblocks, pe))                            \
    SHMEMI_OVERLOADS(void, NAME, put_signal,                                                  \
                     (T * dest, const T *source, size_t nelems, uint64_t *sig_addr,           \
                      uint64_t signal, int sig_op, int pe),                                   \
                     (dest, source, nelems, sig_addr, signal, sig_op, pe))                    \
    SHMEMI_OVERLOADS(void, NAME, put_signal_nbi,                                              \
                     (T * dest, const T *source, size_t nelems, uint64_t *sig_addr,           \
                      uint64_t signal, int sig_op, int pe),                                   \
                     (dest, source, nelems, sig_addr, signal, sig_op, pe))
SHMEMI_OWN_TYPES(SHMEMI_CXX_RMA)
#undef SHMEMI_CXX_RMA

/* ---- atomics ---- */

#define SHMEMI_CXX_ACCESS(T, NAME)                                                           \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch, (const T *source, int pe), (source, pe))         \
    SHMEMI_OVERLOADS(void, NAME, atomic_set, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_OVERLOADS(T, NAME, atomic_swap, (T * dest, T value, int pe), (dest, value, pe))   \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_nbi, (T * fetch, const T *source, int pe),     \
                     (fetch, source, pe))                                                    \
    SHMEMI_OVERLOADS(void, NAME, atomic_swap_nbi, (T * fetch, T * dest, T value, int pe),    \
                     (fetch, dest, value, pe))
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_ACCESS)
SHMEMI_REAL_TYPES(SHMEMI_CXX_ACCESS)
#undef SHMEMI_CXX_ACCESS

#define SHMEMI_CXX_ADD(T, NAME)                                                                 \
    SHMEMI_OVERLOADS(T, NAME, atomic_compare_swap, (T * dest, T cond, T value, int pe),         \
                     (dest, cond, value, pe))                                                   \
    SHMEMI_OVERLOADS(void, NAME, atomic_compare_swap_nbi,                                       \
                     (T * fetch, T * dest, T cond, T value, int pe),                            \
                     (fetch, dest, cond, value, pe))                                            \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch_inc, (T * dest, int pe), (dest, pe))                 \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe),           \
                     (fetch, dest, pe))                                                         \
    SHMEMI_OVERLOADS(void, NAME, atomic_inc, (T * dest, int pe), (dest, pe))                    \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch_add, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_add_nbi, (T * fetch, T * dest, T value, int pe),  \
                     (fetch, dest, value, pe))                                                  \
    SHMEMI_OVERLOADS(void, NAME, atomic_add, (T * dest, T value, int pe), (dest, value, pe))
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_ADD)
#undef SHMEMI_CXX_ADD

#define SHMEMI_CXX_BITWISE(T, NAME)                                                             \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch_and, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_and_nbi, (T * fetch, T * dest, T value, int pe),  \
                     (fetch, dest, value, pe))                                                  \
    SHMEMI_OVERLOADS(void, NAME, atomic_and, (T * dest, T value, int pe), (dest, value, pe))    \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch_or, (T * dest, T value, int pe), (dest, value, pe))  \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_or_nbi, (T * fetch, T * dest, T value, int pe),   \
                     (fetch, dest, value, pe))                                                  \
    SHMEMI_OVERLOADS(void, NAME, atomic_or, (T * dest, T value, int pe), (dest, value, pe))     \
    SHMEMI_OVERLOADS(T, NAME, atomic_fetch_xor, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_OVERLOADS(void, NAME, atomic_fetch_xor_nbi, (T * fetch, T * dest, T value, int pe),  \
                     (fetch, dest, value, pe))                                                  \
    SHMEMI_OVERLOADS(void, NAME, atomic_xor, (T * dest, T value, int pe), (dest, value, pe))
SHMEMI_CXX_BITWISE(int32_t, int32)
SHMEMI_CXX_BITWISE(int64_t, int64)
SHMEMI_CXX_BITWISE(unsigned int, uint)
SHMEMI_CXX_BITWISE(unsigned long, ulong)
SHMEMI_CXX_BITWISE(unsigned long long, ulonglong)
#undef SHMEMI_CXX_BITWISE

/* ---- signals ---- */

SHMEMI_OVERLOAD(void, shmem_signal_set, shmem_ctx_signal_set,
                (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe),
                (ctx, sig_addr, signal, pe))
SHMEMI_OVERLOAD(void, shmem_signal_add, shmem_ctx_signal_add,
                (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe),
                (ctx, sig_addr, signal, pe))

/* ---- collectives ---- */

SHMEMI_OVERLOAD(int, shmem_sync, shmem_team_sync, (shmem_team_t team), (team))

#define SHMEMI_CXX_TEAM(T, NAME, form)                                             \
    SHMEMI_OVERLOAD(int, shmem_##form, shmem_##NAME##_##form,                      \
                    (shmem_team_t team, T * dest, const T *source, size_t nelems), \
                    (team, dest, source, nelems))
#define SHMEMI_CXX_EXCHANGE(T, NAME)                                                             \
    SHMEMI_OVERLOAD(int, shmem_broadcast, shmem_##NAME##_broadcast,                              \
                    (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root),  \
                    (team, dest, source, nelems, PE_root))                                       \
    SHMEMI_CXX_TEAM(T, NAME, collect)                                                            \
    SHMEMI_CXX_TEAM(T, NAME, fcollect)                                                           \
    SHMEMI_CXX_TEAM(T, NAME, alltoall)                                                           \
    SHMEMI_OVERLOAD(int, shmem_alltoalls, shmem_##NAME##_alltoalls,                              \
                    (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                     size_t nelems),                                                             \
                    (team, dest, source, dst, sst, nelems))
#define SHMEMI_CXX_BITS(T, NAME)         \
    SHMEMI_CXX_TEAM(T, NAME, and_reduce) \
    SHMEMI_CXX_TEAM(T, NAME, or_reduce)  \
    SHMEMI_CXX_TEAM(T, NAME, xor_reduce)
#define SHMEMI_CXX_ORDER(T, NAME)        \
    SHMEMI_CXX_TEAM(T, NAME, max_reduce) \
    SHMEMI_CXX_TEAM(T, NAME, min_reduce)
#define SHMEMI_CXX_ARITHMETIC(T, NAME)    \
    SHMEMI_CXX_TEAM(T, NAME, sum_reduce)  \
    SHMEMI_CXX_TEAM(T, NAME, prod_reduce) \
    SHMEMI_CXX_TEAM(T, NAME, sum_inscan)  \
    SHMEMI_CXX_TEAM(T, NAME, sum_exscan)
SHMEMI_OWN_TYPES(SHMEMI_CXX_EXCHANGE)
SHMEMI_CXX_BITS(int8_t, int8)
SHMEMI_CXX_BITS(int16_t, int16)
SHMEMI_CXX_BITS(int32_t, int32)
SHMEMI_CXX_BITS(int64_t, int64)
SHMEMI_CXX_BITS(unsigned char, uchar)
SHMEMI_CXX_BITS(unsigned short, ushort)
SHMEMI_CXX_BITS(unsigned int, uint)
SHMEMI_CXX_BITS(unsigned long, ulong)
SHMEMI_CXX_BITS(unsigned long long, ulonglong)
SHMEMI_OWN_TYPES(SHMEMI_CXX_ORDER)
SHMEMI_OWN_TYPES(SHMEMI_CXX_ARITHMETIC)
SHMEMI_COMPLEX_TYPES(SHMEMI_CXX_ARITHMETIC)

/* The library's complex numbers under the name that they have here. */
#define SHMEMI_CXX_COMPLEX(real, NAME, form)                                                   \
    static inline int shmem_##NAME##_##form(shmem_team_t team, std::complex<real> *dest,       \
                                            const std::complex<real> *source, size_t nelems)   \
    {                                                                                          \
        return shmem_##NAME##_##form(team, reinterpret_cast<shmemi_##NAME *>(dest),            \
                                     reinterpret_cast<const shmemi_##NAME *>(source), nelems); \
    }                                                                                          \
    SHMEMI_CXX_TEAM(std::complex<real>, NAME, form)
#define SHMEMI_CXX_COMPLEXES(real, NAME)        \
    SHMEMI_CXX_COMPLEX(real, NAME, sum_reduce)  \
    SHMEMI_CXX_COMPLEX(real, NAME, prod_reduce) \
    SHMEMI_CXX_COMPLEX(real, NAME, sum_inscan)  \
    SHMEMI_CXX_COMPLEX(real, NAME, sum_exscan)
SHMEMI_CXX_COMPLEXES(float, complexf)
SHMEMI_CXX_COMPLEXES(double, complexd)
#undef SHMEMI_CXX_COMPLEX
#undef SHMEMI_CXX_COMPLEXES
#undef SHMEMI_CXX_EXCHANGE
#undef SHMEMI_CXX_BITS
#undef SHMEMI_CXX_ORDER
#undef SHMEMI_CXX_ARITHMETIC
#undef SHMEMI_CXX_TEAM

/* ---- waits and tests; that of one long is the C routine of the same name ---- */

#define SHMEMI_CXX_WAIT(T, NAME)                                       \
    SHMEMI_OVERLOAD(void, shmem_wait_until, shmem_##NAME##_wait_until, \
                    (T * ivar, int cmp, T cmp_value), (ivar, cmp, cmp_value))
#define SHMEMI_CXX_TEST(T, NAME)                                                            \
    SHMEMI_OVERLOAD(int, shmem_test, shmem_##NAME##_test, (T * ivar, int cmp, T cmp_value), \
                    (ivar, cmp, cmp_value))
SHMEMI_CXX_WAIT(int, int)
SHMEMI_CXX_WAIT(long long, longlong)
SHMEMI_CXX_WAIT(unsigned int, uint)
SHMEMI_CXX_WAIT(unsigned long, ulong)
SHMEMI_CXX_WAIT(unsigned long long, ulonglong)
SHMEMI_SHORT_TYPES(SHMEMI_CXX_WAIT)
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_TEST)
SHMEMI_SHORT_TYPES(SHMEMI_CXX_TEST)
#undef SHMEMI_CXX_WAIT
#undef SHMEMI_CXX_TEST

#define SHMEMI_CXX_SET(result, T, NAME, form, V)                                     \
    SHMEMI_OVERLOAD(result, shmem_##form, shmem_##NAME##_##form,                     \
                    (T * ivars, size_t nelems, const int *status, int cmp, V value), \
                    (ivars, nelems, status, cmp, value))
#define SHMEMI_CXX_SOME(T, NAME, form, V)                                                  \
    SHMEMI_OVERLOAD(                                                                       \
        size_t, shmem_##form, shmem_##NAME##_##form,                                       \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, V value), \
        (ivars, nelems, indices, status, cmp, value))
#define SHMEMI_CXX_MANY(T, NAME)                                      \
    SHMEMI_CXX_SET(void, T, NAME, wait_until_all, T)                  \
    SHMEMI_CXX_SET(size_t, T, NAME, wait_until_any, T)                \
    SHMEMI_CXX_SOME(T, NAME, wait_until_some, T)                      \
    SHMEMI_CXX_SET(void, T, NAME, wait_until_all_vector, const T *)   \
    SHMEMI_CXX_SET(size_t, T, NAME, wait_until_any_vector, const T *) \
    SHMEMI_CXX_SOME(T, NAME, wait_until_some_vector, const T *)       \
    SHMEMI_CXX_SET(int, T, NAME, test_all, T)                         \
    SHMEMI_CXX_SET(size_t, T, NAME, test_any, T)                      \
    SHMEMI_CXX_SOME(T, NAME, test_some, T)                            \
    SHMEMI_CXX_SET(int, T, NAME, test_all_vector, const T *)          \
    SHMEMI_CXX_SET(size_t, T, NAME, test_any_vector, const T *)       \
    SHMEMI_CXX_SOME(T, NAME, test_some_vector, const T *)
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_MANY)
SHMEMI_SHORT_TYPES(SHMEMI_CXX_MANY)
#undef SHMEMI_CXX_SET
#undef SHMEMI_CXX_SOME
#undef SHMEMI_CXX_MANY

/* ---- deprecated ---- */

#define SHMEMI_CXX_OLD(result, T, NAME, form, parameters, names) \
    SHMEMI_OVERLOAD(result, shmem_##form, shmem_##NAME##_##form, parameters, names)
#define SHMEMI_CXX_OLD_ACCESS(T, NAME)                                                 \
    SHMEMI_CXX_OLD(T, T, NAME, fetch, (const T *source, int pe), (source, pe))         \
    SHMEMI_CXX_OLD(void, T, NAME, set, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_CXX_OLD(T, T, NAME, swap, (T * dest, T value, int pe), (dest, value, pe))
#define SHMEMI_CXX_OLD_ADD(T, NAME)                                                  \
    SHMEMI_CXX_OLD(T, T, NAME, cswap, (T * dest, T cond, T value, int pe),           \
                   (dest, cond, value, pe))                                          \
    SHMEMI_CXX_OLD(T, T, NAME, finc, (T * dest, int pe), (dest, pe))                 \
    SHMEMI_CXX_OLD(void, T, NAME, inc, (T * dest, int pe), (dest, pe))               \
    SHMEMI_CXX_OLD(T, T, NAME, fadd, (T * dest, T value, int pe), (dest, value, pe)) \
    SHMEMI_CXX_OLD(void, T, NAME, add, (T * dest, T value, int pe), (dest, value, pe))
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_OLD_ACCESS)
SHMEMI_REAL_TYPES(SHMEMI_CXX_OLD_ACCESS)
SHMEMI_OWN_AMO_TYPES(SHMEMI_CXX_OLD_ADD)
#undef SHMEMI_CXX_OLD
#undef SHMEMI_CXX_OLD_ACCESS
#undef SHMEMI_CXX_OLD_ADD

#undef SHMEMI_BARE
#undef SHMEMI_OVERLOAD
#undef SHMEMI_OVERLOADS

#endif /* C++ */

#endif /* SHMEM_GENERIC_CXX_H */
