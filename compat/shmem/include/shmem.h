/*
 * shmem.h - OpenSHMEM 1.6 over Cohort.
 *
 * The order is the specification's:
 *
 *   1. Constants, handles, types       6. Put and get, blocking and not      11. Ordering
 *   2. The tables of types             7. Atomics                            12. Locks
 *   3. Setup, exit, query, threads     8. Signals                            13. Deprecated
 *   4. Memory                          9. Collectives                        14. Generic forms, C
 *   5. Teams and contexts             10. Waits and tests                    15. Generic forms, C++
 *
 * A routine that exists for many types is declared once, for a table of types: what is called
 * shmem_int_put is written shmem_##NAME##_put here. The list of all names, spelled out, is
 * routines.txt in the source tree, and a test compares it with this file and with the library.
 *
 * Every routine has a twin whose name has a p in front (pshmem_init, pstart_pes); the name
 * without it is weak, so that a profiler may define it and call the twin.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SHMEMI_BEGIN_C extern "C" {
#define SHMEMI_END_C   }
#else
#define SHMEMI_BEGIN_C
#define SHMEMI_END_C
#endif

#define SHMEMI_NORETURN __attribute__((noreturn))

/* C++ has them by extension; std::complex has the same layout, and overloads of its own. */
__extension__ typedef float _Complex shmemi_complexf;
__extension__ typedef double _Complex shmemi_complexd;

#define SHMEMI_API __attribute__((visibility("default")))

/* Declares a routine and its twin. */
#define SHMEMI_ROUTINE(result, name, arguments) \
    SHMEMI_API result name arguments;           \
    SHMEMI_API result p##name arguments;

/* ---- 1. Constants, handles, types ------------------------------------------------------- */

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN  64
#define SHMEM_VENDOR_STRING "Cohort"

#define SHMEM_THREAD_SINGLE     0
#define SHMEM_THREAD_FUNNELED   1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE   3

#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_CTX_SERIALIZED (1L << 0)
#define SHMEM_CTX_PRIVATE    (1L << 1)
#define SHMEM_CTX_NOSTORE    (1L << 2)

#define SHMEM_CTX_SESSION_BATCH     (1L << 0)
#define SHMEM_CTX_SESSION_TOTAL_OPS (1L << 0)
#define SHMEM_TEAM_NUM_CONTEXTS     (1L << 0)

#define SHMEM_MALLOC_ATOMICS_REMOTE (1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE  (1L << 1)

/* A set of PEs; a stream of operations. The predefined ones are the small numbers. */
typedef struct shmemi_team *shmem_team_t;
typedef struct shmemi_ctx *shmem_ctx_t;

#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD   ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED  ((shmem_team_t)2)

#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)

typedef struct {
    int num_contexts; /* that will be created from the team; default 0 */
} shmem_team_config_t;

typedef struct {
    size_t total_ops; /* expected in the session; default SIZE_MAX */
} shmem_ctx_session_config_t;

/* Work arrays of active sets. Words for one exchange in each of up to 20 rounds, and for counts. */
#define SHMEM_SYNC_VALUE              0L
#define SHMEM_SYNC_SIZE               32
#define SHMEM_BARRIER_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE         SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Deprecated names of the above. */
#define _SHMEM_MAJOR_VERSION           SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION           SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN            SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING           SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ                  SHMEM_CMP_EQ
#define _SHMEM_CMP_NE                  SHMEM_CMP_NE
#define _SHMEM_CMP_GT                  SHMEM_CMP_GT
#define _SHMEM_CMP_GE                  SHMEM_CMP_GE
#define _SHMEM_CMP_LT                  SHMEM_CMP_LT
#define _SHMEM_CMP_LE                  SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE              SHMEM_SYNC_VALUE
#define _SHMEM_SYNC_SIZE               SHMEM_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE       SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE         SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE        SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE       SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* ---- 2. The tables of types -------------------------------------------------------------- */

/* X(type, NAME). Those that are the C language's own, and those that are names of them. Long double
 * is apart: no kernel takes it. */
#define SHMEMI_UNSIGNED(X)    \
    X(unsigned char, uchar)   \
    X(unsigned short, ushort) \
    X(unsigned int, uint)     \
    X(unsigned long, ulong)   \
    X(unsigned long long, ulonglong)

#define SHMEMI_SIZED(X) \
    X(int8_t, int8)     \
    X(int16_t, int16)   \
    X(int32_t, int32)   \
    X(int64_t, int64)   \
    X(uint8_t, uint8)   \
    X(uint16_t, uint16) \
    X(uint32_t, uint32) \
    X(uint64_t, uint64) \
    X(size_t, size)

#define SHMEMI_OWN_NUMBERS(X) \
    X(float, float)           \
    X(double, double)         \
    X(char, char)             \
    X(signed char, schar)     \
    X(short, short)           \
    X(int, int)               \
    X(long, long)             \
    X(long long, longlong)    \
    SHMEMI_UNSIGNED(X)

#define SHMEMI_NUMBERS(X) \
    SHMEMI_OWN_NUMBERS(X) \
    SHMEMI_SIZED(X)       \
    X(ptrdiff_t, ptrdiff)

#define SHMEMI_OWN_TYPES(X) \
    SHMEMI_OWN_NUMBERS(X)   \
    X(long double, longdouble)

/* What put, get and the collectives that move take. */
#define SHMEMI_RMA_TYPES(X) \
    SHMEMI_NUMBERS(X)       \
    X(long double, longdouble)

/* What atomics and waits take; the first half is distinct. */
#define SHMEMI_OWN_AMO_TYPES(X) \
    X(int, int)                 \
    X(long, long)               \
    X(long long, longlong)      \
    X(unsigned int, uint)       \
    X(unsigned long, ulong)     \
    X(unsigned long long, ulonglong)

#define SHMEMI_AMO_TYPES(X) \
    SHMEMI_OWN_AMO_TYPES(X) \
    X(int32_t, int32)       \
    X(int64_t, int64)       \
    X(uint32_t, uint32)     \
    X(uint64_t, uint64)     \
    X(size_t, size)         \
    X(ptrdiff_t, ptrdiff)

#define SHMEMI_REAL_TYPES(X) \
    X(float, float)          \
    X(double, double)

#define SHMEMI_BITWISE_AMO_TYPES(X)  \
    X(unsigned int, uint)            \
    X(unsigned long, ulong)          \
    X(unsigned long long, ulonglong) \
    X(int32_t, int32)                \
    X(int64_t, int64)                \
    X(uint32_t, uint32)              \
    X(uint64_t, uint64)

#define SHMEMI_SHORT_TYPES(X) \
    X(short, short)           \
    X(unsigned short, ushort)

/* What reductions take: RMA_TYPES all but the bitwise ones; sum, product and scans these too. */
#define SHMEMI_COMPLEX_TYPES(X)  \
    X(shmemi_complexf, complexf) \
    X(shmemi_complexd, complexd)

#define SHMEMI_BITWISE_TYPES(X) \
    SHMEMI_UNSIGNED(X)          \
    SHMEMI_SIZED(X)

/* Those of the deprecated routines. */
#define SHMEMI_OLD_AMO_TYPES(X) \
    X(int, int)                 \
    X(long, long)               \
    X(long long, longlong)

#define SHMEMI_OLD_BITWISE_TYPES(X) \
    X(short, short)                 \
    SHMEMI_OLD_AMO_TYPES(X)

#define SHMEMI_OLD_REDUCE_TYPES(X) \
    SHMEMI_OLD_BITWISE_TYPES(X)    \
    X(float, float)                \
    X(double, double)              \
    X(long double, longdouble)

/* X(bits of an element) */
#define SHMEMI_SIZES(X) X(8) X(16) X(32) X(64) X(128)

SHMEMI_BEGIN_C

/* ---- 3. Setup, exit, query, threads ------------------------------------------------------ */

SHMEMI_ROUTINE(void, shmem_init, (void))
SHMEMI_ROUTINE(int, shmem_init_thread, (int requested, int *provided))
SHMEMI_ROUTINE(void, shmem_query_initialized, (int *initialized))
SHMEMI_ROUTINE(void, shmem_query_thread, (int *provided))
SHMEMI_ROUTINE(void, shmem_finalize, (void))
SHMEMI_ROUTINE(SHMEMI_NORETURN void, shmem_global_exit, (int status))
SHMEMI_ROUTINE(int, shmem_my_pe, (void))
SHMEMI_ROUTINE(int, shmem_n_pes, (void))
SHMEMI_ROUTINE(int, shmem_pe_accessible, (int pe))
SHMEMI_ROUTINE(int, shmem_addr_accessible, (const void *addr, int pe))
SHMEMI_ROUTINE(void *, shmem_ptr, (const void *dest, int pe))
SHMEMI_ROUTINE(void, shmem_info_get_version, (int *major, int *minor))
SHMEMI_ROUTINE(void, shmem_info_get_name, (char *name))
SHMEMI_ROUTINE(void, shmem_pcontrol, (int level, ...))

/* ---- 4. Memory --------------------------------------------------------------------------- */

SHMEMI_ROUTINE(void *, shmem_malloc, (size_t size))
SHMEMI_ROUTINE(void *, shmem_calloc, (size_t count, size_t size))
SHMEMI_ROUTINE(void *, shmem_align, (size_t alignment, size_t size))
SHMEMI_ROUTINE(void *, shmem_realloc, (void *ptr, size_t size))
SHMEMI_ROUTINE(void *, shmem_malloc_with_hints, (size_t size, long hints))
SHMEMI_ROUTINE(void, shmem_free, (void *ptr))

/* ---- 5. Teams and contexts --------------------------------------------------------------- */

SHMEMI_ROUTINE(int, shmem_team_my_pe, (shmem_team_t team))
SHMEMI_ROUTINE(int, shmem_team_n_pes, (shmem_team_t team))
SHMEMI_ROUTINE(int, shmem_team_get_config,
               (shmem_team_t team, long config_mask, shmem_team_config_t *config))
SHMEMI_ROUTINE(int, shmem_team_translate_pe,
               (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
SHMEMI_ROUTINE(int, shmem_team_split_strided,
               (shmem_team_t parent_team, int start, int stride, int size,
                const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team))
SHMEMI_ROUTINE(int, shmem_team_split_2d,
               (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
                long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                long yaxis_mask, shmem_team_t *yaxis_team))
SHMEMI_ROUTINE(void, shmem_team_destroy, (shmem_team_t team))
SHMEMI_ROUTINE(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe))

SHMEMI_ROUTINE(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx))
SHMEMI_ROUTINE(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
SHMEMI_ROUTINE(void, shmem_ctx_destroy, (shmem_ctx_t ctx))
SHMEMI_ROUTINE(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team))
SHMEMI_ROUTINE(void, shmem_ctx_session_start,
               (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
                long config_mask))
SHMEMI_ROUTINE(void, shmem_ctx_session_stop, (shmem_ctx_t ctx))

/* ---- 6. Put and get ---------------------------------------------------------------------- */

/* A routine without and with a context. */
#define SHMEMI_PAIR(result, name, ...)                  \
    SHMEMI_ROUTINE(result, shmem_##name, (__VA_ARGS__)) \
    SHMEMI_ROUTINE(result, shmem_ctx_##name, (shmem_ctx_t ctx, __VA_ARGS__))

#define SHMEMI_DECLARE_RMA(T, NAME)                                                         \
    SHMEMI_PAIR(void, NAME##_put, T *dest, const T *source, size_t nelems, int pe)          \
    SHMEMI_PAIR(void, NAME##_get, T *dest, const T *source, size_t nelems, int pe)          \
    SHMEMI_PAIR(void, NAME##_put_nbi, T *dest, const T *source, size_t nelems, int pe)      \
    SHMEMI_PAIR(void, NAME##_get_nbi, T *dest, const T *source, size_t nelems, int pe)      \
    SHMEMI_PAIR(void, NAME##_p, T *dest, T value, int pe)                                   \
    SHMEMI_PAIR(T, NAME##_g, const T *source, int pe)                                       \
    SHMEMI_PAIR(void, NAME##_iput, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,  \
                size_t nelems, int pe)                                                      \
    SHMEMI_PAIR(void, NAME##_iget, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,  \
                size_t nelems, int pe)                                                      \
    SHMEMI_PAIR(void, NAME##_ibput, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                size_t bsize, size_t nblocks, int pe)                                       \
    SHMEMI_PAIR(void, NAME##_ibget, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                size_t bsize, size_t nblocks, int pe)                                       \
    SHMEMI_PAIR(void, NAME##_put_signal, T *dest, const T *source, size_t nelems,           \
                uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)                    \
    SHMEMI_PAIR(void, NAME##_put_signal_nbi, T *dest, const T *source, size_t nelems,       \
                uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
SHMEMI_RMA_TYPES(SHMEMI_DECLARE_RMA)
#undef SHMEMI_DECLARE_RMA

/* By the bits of an element, and (mem) by bytes. */
#define SHMEMI_DECLARE_FLAT(SIZE)                                                             \
    SHMEMI_PAIR(void, put##SIZE, void *dest, const void *source, size_t nelems, int pe)       \
    SHMEMI_PAIR(void, get##SIZE, void *dest, const void *source, size_t nelems, int pe)       \
    SHMEMI_PAIR(void, put##SIZE##_nbi, void *dest, const void *source, size_t nelems, int pe) \
    SHMEMI_PAIR(void, get##SIZE##_nbi, void *dest, const void *source, size_t nelems, int pe) \
    SHMEMI_PAIR(void, put##SIZE##_signal, void *dest, const void *source, size_t nelems,      \
                uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)                      \
    SHMEMI_PAIR(void, put##SIZE##_signal_nbi, void *dest, const void *source, size_t nelems,  \
                uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
SHMEMI_SIZES(SHMEMI_DECLARE_FLAT)
SHMEMI_DECLARE_FLAT(mem)
#undef SHMEMI_DECLARE_FLAT

#define SHMEMI_DECLARE_STRIDED(SIZE)                                                             \
    SHMEMI_PAIR(void, iput##SIZE, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,  \
                size_t nelems, int pe)                                                           \
    SHMEMI_PAIR(void, iget##SIZE, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,  \
                size_t nelems, int pe)                                                           \
    SHMEMI_PAIR(void, ibput##SIZE, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, \
                size_t bsize, size_t nblocks, int pe)                                            \
    SHMEMI_PAIR(void, ibget##SIZE, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, \
                size_t bsize, size_t nblocks, int pe)
SHMEMI_SIZES(SHMEMI_DECLARE_STRIDED)
#undef SHMEMI_DECLARE_STRIDED

/* ---- 7. Atomics -------------------------------------------------------------------------- */

#define SHMEMI_DECLARE_ACCESS(T, NAME)                                            \
    SHMEMI_PAIR(T, NAME##_atomic_fetch, const T *source, int pe)                  \
    SHMEMI_PAIR(void, NAME##_atomic_set, T *dest, T value, int pe)                \
    SHMEMI_PAIR(T, NAME##_atomic_swap, T *dest, T value, int pe)                  \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_nbi, T *fetch, const T *source, int pe) \
    SHMEMI_PAIR(void, NAME##_atomic_swap_nbi, T *fetch, T *dest, T value, int pe)
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_ACCESS)
SHMEMI_REAL_TYPES(SHMEMI_DECLARE_ACCESS)
#undef SHMEMI_DECLARE_ACCESS

#define SHMEMI_DECLARE_ADD(T, NAME)                                                               \
    SHMEMI_PAIR(T, NAME##_atomic_compare_swap, T *dest, T cond, T value, int pe)                  \
    SHMEMI_PAIR(void, NAME##_atomic_compare_swap_nbi, T *fetch, T *dest, T cond, T value, int pe) \
    SHMEMI_PAIR(T, NAME##_atomic_fetch_inc, T *dest, int pe)                                      \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_inc_nbi, T *fetch, T *dest, int pe)                     \
    SHMEMI_PAIR(void, NAME##_atomic_inc, T *dest, int pe)                                         \
    SHMEMI_PAIR(T, NAME##_atomic_fetch_add, T *dest, T value, int pe)                             \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_add_nbi, T *fetch, T *dest, T value, int pe)            \
    SHMEMI_PAIR(void, NAME##_atomic_add, T *dest, T value, int pe)
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_ADD)
#undef SHMEMI_DECLARE_ADD

#define SHMEMI_DECLARE_BITWISE(T, NAME)                                                \
    SHMEMI_PAIR(T, NAME##_atomic_fetch_and, T *dest, T value, int pe)                  \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_and_nbi, T *fetch, T *dest, T value, int pe) \
    SHMEMI_PAIR(void, NAME##_atomic_and, T *dest, T value, int pe)                     \
    SHMEMI_PAIR(T, NAME##_atomic_fetch_or, T *dest, T value, int pe)                   \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_or_nbi, T *fetch, T *dest, T value, int pe)  \
    SHMEMI_PAIR(void, NAME##_atomic_or, T *dest, T value, int pe)                      \
    SHMEMI_PAIR(T, NAME##_atomic_fetch_xor, T *dest, T value, int pe)                  \
    SHMEMI_PAIR(void, NAME##_atomic_fetch_xor_nbi, T *fetch, T *dest, T value, int pe) \
    SHMEMI_PAIR(void, NAME##_atomic_xor, T *dest, T value, int pe)
SHMEMI_BITWISE_AMO_TYPES(SHMEMI_DECLARE_BITWISE)
#undef SHMEMI_DECLARE_BITWISE

/* ---- 8. Signals (puts with a signal are in 6) -------------------------------------------- */

SHMEMI_PAIR(void, signal_set, uint64_t *sig_addr, uint64_t signal, int pe)
SHMEMI_PAIR(void, signal_add, uint64_t *sig_addr, uint64_t signal, int pe)
SHMEMI_ROUTINE(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr))
SHMEMI_ROUTINE(uint64_t, shmem_signal_wait_until,
               (uint64_t * sig_addr, int cmp, uint64_t cmp_value))

/* ---- 9. Collectives ---------------------------------------------------------------------- */

SHMEMI_ROUTINE(void, shmem_barrier_all, (void))
SHMEMI_ROUTINE(void, shmem_sync_all, (void))
SHMEMI_ROUTINE(int, shmem_team_sync, (shmem_team_t team))

/* NAME is a type's, with T; or mem, with T as void: then counts and strides are bytes. */
#define SHMEMI_DECLARE_EXCHANGE(T, broadcast, collect, fcollect, alltoall, alltoalls)           \
    SHMEMI_ROUTINE(int, shmem_##broadcast,                                                      \
                   (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root))  \
    SHMEMI_ROUTINE(int, shmem_##collect,                                                        \
                   (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    SHMEMI_ROUTINE(int, shmem_##fcollect,                                                       \
                   (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    SHMEMI_ROUTINE(int, shmem_##alltoall,                                                       \
                   (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    SHMEMI_ROUTINE(int, shmem_##alltoalls,                                                      \
                   (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                    size_t nelems))
#define SHMEMI_DECLARE_EXCHANGE_OF(T, NAME)                                                        \
    SHMEMI_DECLARE_EXCHANGE(T, NAME##_broadcast, NAME##_collect, NAME##_fcollect, NAME##_alltoall, \
                            NAME##_alltoalls)
SHMEMI_RMA_TYPES(SHMEMI_DECLARE_EXCHANGE_OF)
SHMEMI_DECLARE_EXCHANGE(void, broadcastmem, collectmem, fcollectmem, alltoallmem, alltoallsmem)
#undef SHMEMI_DECLARE_EXCHANGE_OF
#undef SHMEMI_DECLARE_EXCHANGE

#define SHMEMI_DECLARE_REDUCE(T, name) \
    SHMEMI_ROUTINE(int, shmem_##name,  \
                   (shmem_team_t team, T * dest, const T *source, size_t nreduce))
#define SHMEMI_DECLARE_BITS(T, NAME)            \
    SHMEMI_DECLARE_REDUCE(T, NAME##_and_reduce) \
    SHMEMI_DECLARE_REDUCE(T, NAME##_or_reduce)  \
    SHMEMI_DECLARE_REDUCE(T, NAME##_xor_reduce)
#define SHMEMI_DECLARE_ORDER(T, NAME)           \
    SHMEMI_DECLARE_REDUCE(T, NAME##_max_reduce) \
    SHMEMI_DECLARE_REDUCE(T, NAME##_min_reduce)
#define SHMEMI_DECLARE_ARITHMETIC(T, NAME)       \
    SHMEMI_DECLARE_REDUCE(T, NAME##_sum_reduce)  \
    SHMEMI_DECLARE_REDUCE(T, NAME##_prod_reduce) \
    SHMEMI_DECLARE_REDUCE(T, NAME##_sum_inscan)  \
    SHMEMI_DECLARE_REDUCE(T, NAME##_sum_exscan)
SHMEMI_BITWISE_TYPES(SHMEMI_DECLARE_BITS)
SHMEMI_RMA_TYPES(SHMEMI_DECLARE_ORDER)
SHMEMI_RMA_TYPES(SHMEMI_DECLARE_ARITHMETIC)
SHMEMI_COMPLEX_TYPES(SHMEMI_DECLARE_ARITHMETIC)
#undef SHMEMI_DECLARE_BITS
#undef SHMEMI_DECLARE_ORDER
#undef SHMEMI_DECLARE_ARITHMETIC
#undef SHMEMI_DECLARE_REDUCE

/* ---- 10. Waits and tests ----------------------------------------------------------------- */

#define SHMEMI_DECLARE_ONE(T, NAME)                                                   \
    SHMEMI_ROUTINE(void, shmem_##NAME##_wait_until, (T * ivar, int cmp, T cmp_value)) \
    SHMEMI_ROUTINE(int, shmem_##NAME##_test, (T * ivar, int cmp, T cmp_value))
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_ONE)
SHMEMI_SHORT_TYPES(SHMEMI_DECLARE_ONE)
#undef SHMEMI_DECLARE_ONE

#define SHMEMI_DECLARE_MANY(T, NAME)                                                            \
    SHMEMI_ROUTINE(void, shmem_##NAME##_wait_until_all,                                         \
                   (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value))         \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_wait_until_any,                                       \
                   (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value))         \
    SHMEMI_ROUTINE(                                                                             \
        size_t, shmem_##NAME##_wait_until_some,                                                 \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, T cmp_value))  \
    SHMEMI_ROUTINE(void, shmem_##NAME##_wait_until_all_vector,                                  \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_wait_until_any_vector,                                \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_wait_until_some_vector,                               \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp,     \
                    const T *cmp_values))                                                       \
    SHMEMI_ROUTINE(int, shmem_##NAME##_test_all,                                                \
                   (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value))         \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_test_any,                                             \
                   (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value))         \
    SHMEMI_ROUTINE(                                                                             \
        size_t, shmem_##NAME##_test_some,                                                       \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, T cmp_value))  \
    SHMEMI_ROUTINE(int, shmem_##NAME##_test_all_vector,                                         \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_test_any_vector,                                      \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) \
    SHMEMI_ROUTINE(size_t, shmem_##NAME##_test_some_vector,                                     \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp,     \
                    const T *cmp_values))
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_MANY)
SHMEMI_SHORT_TYPES(SHMEMI_DECLARE_MANY) /* of version 1.5 */
#undef SHMEMI_DECLARE_MANY

/* ---- 11. Ordering ------------------------------------------------------------------------ */

SHMEMI_ROUTINE(void, shmem_fence, (void))
SHMEMI_ROUTINE(void, shmem_ctx_fence, (shmem_ctx_t ctx))
SHMEMI_ROUTINE(void, shmem_quiet, (void))
SHMEMI_ROUTINE(void, shmem_ctx_quiet, (shmem_ctx_t ctx))
SHMEMI_PAIR(void, pe_quiet, const int *target_pes, size_t npes)

/* ---- 12. Locks --------------------------------------------------------------------------- */

SHMEMI_ROUTINE(void, shmem_set_lock, (long *lock))
SHMEMI_ROUTINE(void, shmem_clear_lock, (long *lock))
SHMEMI_ROUTINE(int, shmem_test_lock, (long *lock))

/* ---- 13. Deprecated ---------------------------------------------------------------------- */

SHMEMI_ROUTINE(void, start_pes, (int npes))
SHMEMI_ROUTINE(int, _my_pe, (void))
SHMEMI_ROUTINE(int, _num_pes, (void))
SHMEMI_ROUTINE(void *, shmalloc, (size_t size))
SHMEMI_ROUTINE(void, shfree, (void *ptr))
SHMEMI_ROUTINE(void *, shrealloc, (void *ptr, size_t size))
SHMEMI_ROUTINE(void *, shmemalign, (size_t alignment, size_t size))

/* The standard has them for int, long and long long; there are programs with the other types. */
#define SHMEMI_DECLARE_OLD_ACCESS(T, NAME)                                \
    SHMEMI_ROUTINE(T, shmem_##NAME##_fetch, (const T *source, int pe))    \
    SHMEMI_ROUTINE(void, shmem_##NAME##_set, (T * dest, T value, int pe)) \
    SHMEMI_ROUTINE(T, shmem_##NAME##_swap, (T * dest, T value, int pe))
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_OLD_ACCESS)
SHMEMI_REAL_TYPES(SHMEMI_DECLARE_OLD_ACCESS)
#undef SHMEMI_DECLARE_OLD_ACCESS

#define SHMEMI_DECLARE_OLD_ADD(T, NAME)                                          \
    SHMEMI_ROUTINE(T, shmem_##NAME##_cswap, (T * dest, T cond, T value, int pe)) \
    SHMEMI_ROUTINE(T, shmem_##NAME##_finc, (T * dest, int pe))                   \
    SHMEMI_ROUTINE(void, shmem_##NAME##_inc, (T * dest, int pe))                 \
    SHMEMI_ROUTINE(T, shmem_##NAME##_fadd, (T * dest, T value, int pe))          \
    SHMEMI_ROUTINE(void, shmem_##NAME##_add, (T * dest, T value, int pe))
SHMEMI_AMO_TYPES(SHMEMI_DECLARE_OLD_ADD)
#undef SHMEMI_DECLARE_OLD_ADD

SHMEMI_ROUTINE(void, shmem_wait_until, (long *ivar, int cmp, long cmp_value))
SHMEMI_ROUTINE(void, shmem_wait, (long *ivar, long cmp_value))
#define SHMEMI_DECLARE_OLD_WAIT(T, NAME) \
    SHMEMI_ROUTINE(void, shmem_##NAME##_wait, (T * ivar, T cmp_value))
SHMEMI_OLD_BITWISE_TYPES(SHMEMI_DECLARE_OLD_WAIT)
#undef SHMEMI_DECLARE_OLD_WAIT

/* Active sets: PE_size PEs from PE_start on, 2^logPE_stride apart. */
#define SHMEMI_SET int PE_start, int logPE_stride, int PE_size

SHMEMI_ROUTINE(void, shmem_barrier, (SHMEMI_SET, long *pSync))
SHMEMI_ROUTINE(void, shmem_sync, (SHMEMI_SET, long *pSync))
#define SHMEMI_DECLARE_SET_EXCHANGE(SIZE)                                                        \
    SHMEMI_ROUTINE(                                                                              \
        void, shmem_broadcast##SIZE,                                                             \
        (void *dest, const void *source, size_t nelems, int PE_root, SHMEMI_SET, long *pSync))   \
    SHMEMI_ROUTINE(void, shmem_collect##SIZE,                                                    \
                   (void *dest, const void *source, size_t nelems, SHMEMI_SET, long *pSync))     \
    SHMEMI_ROUTINE(void, shmem_fcollect##SIZE,                                                   \
                   (void *dest, const void *source, size_t nelems, SHMEMI_SET, long *pSync))     \
    SHMEMI_ROUTINE(void, shmem_alltoall##SIZE,                                                   \
                   (void *dest, const void *source, size_t nelems, SHMEMI_SET, long *pSync))     \
    SHMEMI_ROUTINE(void, shmem_alltoalls##SIZE,                                                  \
                   (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                    SHMEMI_SET, long *pSync))
SHMEMI_DECLARE_SET_EXCHANGE(32)
SHMEMI_DECLARE_SET_EXCHANGE(64)
#undef SHMEMI_DECLARE_SET_EXCHANGE

#define SHMEMI_DECLARE_SET_REDUCE(T, name)      \
    SHMEMI_ROUTINE(void, shmem_##name##_to_all, \
                   (T * dest, const T *source, int nreduce, SHMEMI_SET, T *pWrk, long *pSync))
#define SHMEMI_DECLARE_SET_BITS(T, NAME)     \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_and) \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_or)  \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_xor)
#define SHMEMI_DECLARE_SET_ORDER(T, NAME)    \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_max) \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_min)
#define SHMEMI_DECLARE_SET_ARITHMETIC(T, NAME) \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_sum)   \
    SHMEMI_DECLARE_SET_REDUCE(T, NAME##_prod)
SHMEMI_OLD_BITWISE_TYPES(SHMEMI_DECLARE_SET_BITS)
SHMEMI_OLD_REDUCE_TYPES(SHMEMI_DECLARE_SET_ORDER)
SHMEMI_OLD_REDUCE_TYPES(SHMEMI_DECLARE_SET_ARITHMETIC)
SHMEMI_COMPLEX_TYPES(SHMEMI_DECLARE_SET_ARITHMETIC)
#undef SHMEMI_DECLARE_SET_BITS
#undef SHMEMI_DECLARE_SET_ORDER
#undef SHMEMI_DECLARE_SET_ARITHMETIC
#undef SHMEMI_DECLARE_SET_REDUCE

SHMEMI_END_C

#if defined(__cplusplus)
#include <shmem_generic_cxx.h>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include <shmem_generic_c11.h>
#endif

#endif /* SHMEM_H */
