/*
 * shmem_generic_c11.h - the forms that choose by the type of their arguments. Part of shmem.h.
 *
 * A form is a macro of the routine's name without a type. Those that take a context or not are told
 * apart by how many arguments there are; the type is that of what the first pointer points to,
 * without its qualifiers.
 */
#ifndef SHMEM_GENERIC_C11_H
#define SHMEM_GENERIC_C11_H

#include <shmem.h>

#if !defined(__cplusplus)

/* ---- by type ---- */

/* The routine `before`NAME`after` for the type of `value`. The types with names of their own
 * (int64_t, size_t) are among these. */
/* clang-format off: it takes an association for a label */
#define SHMEMI_CASE_AMO(before, after)                                            \
    int : before##int##after,                                                     \
          long : before##long##after,                                             \
                 long long : before##longlong##after,                             \
                             unsigned int : before##uint##after,                  \
                                            unsigned long : before##ulong##after, \
                                                            unsigned long long    \
        : before##ulonglong##after
#define SHMEMI_CASE_REAL(before, after) float : before##float##after, double : before##double##after
#define SHMEMI_CASE_SHORT(before, after) \
    short : before##short##after, unsigned short : before##ushort##after
#define SHMEMI_CASE_CHAR(before, after)                        \
    char : before##char##after,                                \
           signed char : before##schar##after,                 \
                         unsigned char : before##uchar##after, \
                                         long double : before##longdouble##after
#define SHMEMI_CASE_COMPLEX(before, after) \
    float _Complex : before##complexf##after, double _Complex : before##complexd##after
#define SHMEMI_CASE_BITS(before, after)                                \
    int32_t:                                                           \
    before##int32##after,                                              \
        int64_t : before##int64##after,                                \
                  unsigned int : before##uint##after,                  \
                                 unsigned long : before##ulong##after, \
                                                 unsigned long long : before##ulonglong##after
#define SHMEMI_CASE_SMALL_BITS(before, after)                            \
    int8_t:                                                              \
    before##int8##after, int16_t : before##int16##after,                 \
                                   unsigned char : before##uchar##after, \
                                                   unsigned short : before##ushort##after
/* clang-format on */

#define SHMEMI_OF_AMO(value, before, after) _Generic((value), SHMEMI_CASE_AMO(before, after))
#define SHMEMI_OF_EXTENDED(value, before, after) \
    _Generic((value), SHMEMI_CASE_AMO(before, after), SHMEMI_CASE_REAL(before, after))
#define SHMEMI_OF_BITWISE(value, before, after) _Generic((value), SHMEMI_CASE_BITS(before, after))
#define SHMEMI_OF_WAIT(value, before, after) \
    _Generic((value), SHMEMI_CASE_AMO(before, after), SHMEMI_CASE_SHORT(before, after))
#define SHMEMI_OF_RMA(value, before, after)                                            \
    _Generic((value), SHMEMI_CASE_AMO(before, after), SHMEMI_CASE_REAL(before, after), \
             SHMEMI_CASE_SHORT(before, after), SHMEMI_CASE_CHAR(before, after))
#define SHMEMI_OF_BITS(value, before, after) \
    _Generic((value), SHMEMI_CASE_BITS(before, after), SHMEMI_CASE_SMALL_BITS(before, after))
#define SHMEMI_OF_NUMBER(value, before, after)                                         \
    _Generic((value), SHMEMI_CASE_AMO(before, after), SHMEMI_CASE_REAL(before, after), \
             SHMEMI_CASE_SHORT(before, after), SHMEMI_CASE_CHAR(before, after),        \
             SHMEMI_CASE_COMPLEX(before, after))

/* ---- by how many arguments ---- */

/* The (n + 1)-th argument: `with` when n were given, `without` when one less. */
#define SHMEMI_3(a1, a2, a3, choice, ...)                     choice
#define SHMEMI_4(a1, a2, a3, a4, choice, ...)                 choice
#define SHMEMI_5(a1, a2, a3, a4, a5, choice, ...)             choice
#define SHMEMI_6(a1, a2, a3, a4, a5, a6, choice, ...)         choice
#define SHMEMI_7(a1, a2, a3, a4, a5, a6, a7, choice, ...)     choice
#define SHMEMI_8(a1, a2, a3, a4, a5, a6, a7, a8, choice, ...) choice

/* SHMEMI_WITHOUT(RMA, put, dest, ...) is shmem_int_put(dest, ...) where dest points to int. */
#define SHMEMI_WITHOUT(kind, op, first, ...) \
    SHMEMI_OF_##kind(*(first), shmem_, op)(first, __VA_ARGS__)
#define SHMEMI_WITH(kind, op, ctx, first, ...) \
    SHMEMI_OF_##kind(*(first), shmem_ctx_, op)(ctx, first, __VA_ARGS__)
#define SHMEMI_ON_TEAM(kind, op, team, dest, ...) \
    SHMEMI_OF_##kind(*(dest), shmem_, op)(team, dest, __VA_ARGS__)

/* ---- put and get ---- */

#define shmem_put(...) SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _put, __VA_ARGS__)
#define shmem_get(...) SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _get, __VA_ARGS__)
#define shmem_put_nbi(...) \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _get_nbi, __VA_ARGS__)
#define shmem_p(...) SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _p, __VA_ARGS__)
#define shmem_g(...) SHMEMI_3(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _g, __VA_ARGS__)
#define shmem_iput(...) \
    SHMEMI_7(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _iput, __VA_ARGS__)
#define shmem_iget(...) \
    SHMEMI_7(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _iget, __VA_ARGS__)
#define shmem_ibput(...) \
    SHMEMI_8(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _ibput, __VA_ARGS__)
#define shmem_ibget(...) \
    SHMEMI_8(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _ibget, __VA_ARGS__)
#define shmem_put_signal(...) \
    SHMEMI_8(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) \
    SHMEMI_8(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(RMA, _put_signal_nbi, __VA_ARGS__)

/* ---- atomics ---- */

#define shmem_atomic_fetch(...) \
    SHMEMI_3(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(EXTENDED, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(EXTENDED, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(EXTENDED, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(EXTENDED, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(EXTENDED, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                \
    SHMEMI_6(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0) \
    (AMO, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) \
    SHMEMI_3(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) \
    SHMEMI_3(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_add(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(AMO, _atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)                   \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0) \
    (BITWISE, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)                    \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0) \
    (BITWISE, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_or(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)                   \
    SHMEMI_5(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0) \
    (BITWISE, _atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) \
    SHMEMI_4(__VA_ARGS__, SHMEMI_WITH, SHMEMI_WITHOUT, 0)(BITWISE, _atomic_xor, __VA_ARGS__)

/* ---- signals ---- */

#define shmem_signal_set(...) \
    SHMEMI_4(__VA_ARGS__, shmem_ctx_signal_set, shmem_signal_set, 0)(__VA_ARGS__)
#define shmem_signal_add(...) \
    SHMEMI_4(__VA_ARGS__, shmem_ctx_signal_add, shmem_signal_add, 0)(__VA_ARGS__)

/* ---- collectives ---- */

/* One argument: a team; four: an active set. */
#define shmem_sync(...) \
    SHMEMI_4(__VA_ARGS__, shmem_sync, shmem_sync, shmem_sync, shmem_team_sync, 0)(__VA_ARGS__)
#define shmem_broadcast(...)   SHMEMI_ON_TEAM(RMA, _broadcast, __VA_ARGS__)
#define shmem_collect(...)     SHMEMI_ON_TEAM(RMA, _collect, __VA_ARGS__)
#define shmem_fcollect(...)    SHMEMI_ON_TEAM(RMA, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...)    SHMEMI_ON_TEAM(RMA, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...)   SHMEMI_ON_TEAM(RMA, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...)  SHMEMI_ON_TEAM(BITS, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...)   SHMEMI_ON_TEAM(BITS, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...)  SHMEMI_ON_TEAM(BITS, _xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...)  SHMEMI_ON_TEAM(RMA, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...)  SHMEMI_ON_TEAM(RMA, _min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...)  SHMEMI_ON_TEAM(NUMBER, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEMI_ON_TEAM(NUMBER, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...)  SHMEMI_ON_TEAM(NUMBER, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...)  SHMEMI_ON_TEAM(NUMBER, _sum_exscan, __VA_ARGS__)

/* ---- waits and tests ---- */

#define shmem_wait_until(...)             SHMEMI_WITHOUT(WAIT, _wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...)         SHMEMI_WITHOUT(WAIT, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...)         SHMEMI_WITHOUT(WAIT, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...)        SHMEMI_WITHOUT(WAIT, _wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)  SHMEMI_WITHOUT(WAIT, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)  SHMEMI_WITHOUT(WAIT, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) SHMEMI_WITHOUT(WAIT, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...)                   SHMEMI_WITHOUT(WAIT, _test, __VA_ARGS__)
#define shmem_test_all(...)               SHMEMI_WITHOUT(WAIT, _test_all, __VA_ARGS__)
#define shmem_test_any(...)               SHMEMI_WITHOUT(WAIT, _test_any, __VA_ARGS__)
#define shmem_test_some(...)              SHMEMI_WITHOUT(WAIT, _test_some, __VA_ARGS__)
#define shmem_test_all_vector(...)        SHMEMI_WITHOUT(WAIT, _test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...)        SHMEMI_WITHOUT(WAIT, _test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...)       SHMEMI_WITHOUT(WAIT, _test_some_vector, __VA_ARGS__)

/* ---- deprecated ---- */

#define shmem_fetch(...) SHMEMI_WITHOUT(EXTENDED, _fetch, __VA_ARGS__)
#define shmem_set(...)   SHMEMI_WITHOUT(EXTENDED, _set, __VA_ARGS__)
#define shmem_swap(...)  SHMEMI_WITHOUT(EXTENDED, _swap, __VA_ARGS__)
#define shmem_cswap(...) SHMEMI_WITHOUT(AMO, _cswap, __VA_ARGS__)
#define shmem_finc(...)  SHMEMI_WITHOUT(AMO, _finc, __VA_ARGS__)
#define shmem_inc(...)   SHMEMI_WITHOUT(AMO, _inc, __VA_ARGS__)
#define shmem_fadd(...)  SHMEMI_WITHOUT(AMO, _fadd, __VA_ARGS__)
#define shmem_add(...)   SHMEMI_WITHOUT(AMO, _add, __VA_ARGS__)

#endif /* C */

#endif /* SHMEM_GENERIC_C11_H */
