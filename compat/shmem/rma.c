/* rma.c - put and get: typed, by size, scalar, strided, in blocks, non-blocking, and with signal.
 *
 * On the default context each is one call of Cohort's, which for a mapped PE is the copy itself.
 */
#include "internal.h"

static _Noreturn __attribute__((noinline, cold)) void
fail_transfer(const char *routine, const void *dest, const void *source, size_t nelems, int pe)
{
    shmemi_enter(routine);
    shmemi_fail(routine, "dest=%p, source=%p, nelems=%zu, pe=%d", dest, source, nelems, pe);
}

/* ---- contiguous ---- */

/* Cohort's call of that name, on the context's stream. */
#define DEFINE_WAY(way)                                                                          \
    SHMEMI_INLINE void way(const char *routine, shmem_ctx_t ctx, void *dest, const void *source, \
                           size_t nelems, size_t size, int pe)                                   \
    {                                                                                            \
        size_t bytes = shmemi_bytes(nelems, size);                                               \
        coh_status status;                                                                       \
        if (ctx == SHMEM_CTX_DEFAULT) {                                                          \
            status = coh_##way(shmemi.world, dest, source, bytes, pe);                           \
        } else {                                                                                 \
            shmemi_check_ctx(routine, ctx);                                                      \
            int rank = shmemi_rank(ctx, pe);                                                     \
            status = ctx->context ? coh_context_##way(ctx->context, dest, source, bytes, rank)   \
                                  : coh_##way(shmemi.world, dest, source, bytes, rank);          \
        }                                                                                        \
        if (!SHMEMI_LIKELY(status == COH_OK))                                                    \
            fail_transfer(routine, dest, source, nelems, pe);                                    \
    }
DEFINE_WAY(put)
DEFINE_WAY(get)
DEFINE_WAY(put_nbi)
DEFINE_WAY(get_nbi)

/* ---- strided ---- */

/* Blocks of `block` elements, `dst` elements apart at the target and `sst` at the source. */
struct stride {
    ptrdiff_t dst;
    ptrdiff_t sst;
    size_t block;
    size_t count;
    size_t size; /* of an element */
};

static _Noreturn void fail_strided(const char *routine, const void *dest, const void *source,
                                   const struct stride *stride, int pe)
{
    shmemi_enter(routine);
    shmemi_fail(routine, "dest=%p, source=%p, dst=%td, sst=%td, %zu blocks of %zu, pe=%d", dest,
                source, stride->dst, stride->sst, stride->count, stride->block, pe);
}

static coh_status move_blocks(bool out, coh_context *stream, char *dest, const char *source,
                              const struct stride *stride, int rank)
{
    size_t bytes = shmemi_bytes(stride->block, stride->size);
    ptrdiff_t size = (ptrdiff_t)stride->size;
    coh_status status = COH_OK;
    for (size_t i = 0; i < stride->count && status == COH_OK; i++) {
        status = out ? coh_context_put(stream, dest, source, bytes, rank)
                     : coh_context_get(stream, dest, source, bytes, rank);
        dest += stride->dst * size;
        source += stride->sst * size;
    }
    return status;
}

static void move_strided(const char *routine, bool out, shmem_ctx_t ctx, void *dest,
                         const void *source, struct stride stride, int pe)
{
    shmemi_check_ctx(routine, ctx);
    if (stride.count == 0 || stride.block == 0)
        return;
    if (stride.dst < 1 || stride.sst < 1)
        shmemi_refuse(routine, "a stride is less than 1");
    size_t apart_there = shmemi_bytes((size_t)stride.dst, stride.size);
    size_t apart_here = shmemi_bytes((size_t)stride.sst, stride.size);
    size_t bytes = shmemi_bytes(stride.block, stride.size);
    int rank = shmemi_rank(ctx, pe);
    coh_context *stream = shmemi_stream(ctx);
    coh_status status;
    if (stream)
        status = move_blocks(out, stream, dest, source, &stride, rank);
    else if (out)
        status = coh_put_strided(shmemi.world, dest, apart_there, source, apart_here, bytes,
                                 stride.count, rank);
    else
        status = coh_get_strided(shmemi.world, dest, apart_there, source, apart_here, bytes,
                                 stride.count, rank);
    if (status != COH_OK)
        fail_strided(routine, dest, source, &stride, pe);
}

/* ---- with a signal ---- */

struct signal {
    uint64_t *address;
    uint64_t value;
    int op;
};

static void put_signal(const char *routine, shmem_ctx_t ctx, void *dest, const void *source,
                       size_t nelems, size_t size, struct signal signal, int pe, bool blocking)
{
    shmemi_check_ctx(routine, ctx);
    if (signal.op != SHMEM_SIGNAL_SET && signal.op != SHMEM_SIGNAL_ADD)
        shmemi_refuse(routine, "sig_op is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
    size_t bytes = shmemi_bytes(nelems, size);
    int rank = shmemi_rank(ctx, pe);
    coh_context *stream = shmemi_stream(ctx);
    coh_signal_op op = (coh_signal_op)signal.op;
    coh_status status;
    if (stream)
        status = coh_context_put_signal(stream, dest, source, bytes, signal.address, signal.value,
                                        op, rank);
    else if (blocking)
        status = coh_put_signal(shmemi.world, dest, source, bytes, signal.address, signal.value, op,
                                rank);
    else
        status = coh_put_signal_nbi(shmemi.world, dest, source, bytes, signal.address, signal.value,
                                    op, rank);
    if (status != COH_OK)
        shmemi_fail(routine, "dest=%p, source=%p, nelems=%zu, sig_addr=%p, pe=%d", dest, source,
                    nelems, (void *)signal.address, pe);
}

/* ---- the routines ---- */

#define STRIDE(block, count, size) ((struct stride){dst, sst, block, count, size})
#define SIGNAL                     ((struct signal){sig_addr, signal, sig_op})

#define DEFINE_TYPED(T, NAME)                                                                     \
    SHMEMI_DEFINE_PAIR(void, NAME##_put, (T * dest, const T *source, size_t nelems, int pe),      \
                       put(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), pe);)               \
    SHMEMI_DEFINE_PAIR(void, NAME##_get, (T * dest, const T *source, size_t nelems, int pe),      \
                       get(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), pe);)               \
    SHMEMI_DEFINE_PAIR(void, NAME##_put_nbi, (T * dest, const T *source, size_t nelems, int pe),  \
                       put_nbi(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), pe);)           \
    SHMEMI_DEFINE_PAIR(void, NAME##_get_nbi, (T * dest, const T *source, size_t nelems, int pe),  \
                       get_nbi(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), pe);)           \
    SHMEMI_DEFINE_PAIR(void, NAME##_p, (T * dest, T value, int pe),                               \
                       put(SHMEMI_NAME, ctx, dest, &value, 1, sizeof value, pe);)                 \
    SHMEMI_DEFINE_PAIR(T, NAME##_g, (const T *source, int pe), T value;                           \
                       get(SHMEMI_NAME, ctx, &value, source, 1, sizeof value, pe); return value;) \
    SHMEMI_DEFINE_PAIR(                                                                           \
        void, NAME##_iput,                                                                        \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),         \
        move_strided(SHMEMI_NAME, true, ctx, dest, source, STRIDE(1, nelems, sizeof(T)), pe);)    \
    SHMEMI_DEFINE_PAIR(                                                                           \
        void, NAME##_iget,                                                                        \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),         \
        move_strided(SHMEMI_NAME, false, ctx, dest, source, STRIDE(1, nelems, sizeof(T)), pe);)   \
    SHMEMI_DEFINE_PAIR(void, NAME##_ibput,                                                        \
                       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                        size_t nblocks, int pe),                                                  \
                       move_strided(SHMEMI_NAME, true, ctx, dest, source,                         \
                                    STRIDE(bsize, nblocks, sizeof(T)), pe);)                      \
    SHMEMI_DEFINE_PAIR(void, NAME##_ibget,                                                        \
                       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                        size_t nblocks, int pe),                                                  \
                       move_strided(SHMEMI_NAME, false, ctx, dest, source,                        \
                                    STRIDE(bsize, nblocks, sizeof(T)), pe);)                      \
    SHMEMI_DEFINE_PAIR(                                                                           \
        void, NAME##_put_signal,                                                                  \
        (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,           \
         int sig_op, int pe),                                                                     \
        put_signal(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), SIGNAL, pe, true);)         \
    SHMEMI_DEFINE_PAIR(                                                                           \
        void, NAME##_put_signal_nbi,                                                              \
        (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,           \
         int sig_op, int pe),                                                                     \
        put_signal(SHMEMI_NAME, ctx, dest, source, nelems, sizeof(T), SIGNAL, pe, false);)
SHMEMI_RMA_TYPES(DEFINE_TYPED)

#define DEFINE_FLAT(SIZE, bytes)                                                                 \
    SHMEMI_DEFINE_PAIR(void, put##SIZE, (void *dest, const void *source, size_t nelems, int pe), \
                       put(SHMEMI_NAME, ctx, dest, source, nelems, bytes, pe);)                  \
    SHMEMI_DEFINE_PAIR(void, get##SIZE, (void *dest, const void *source, size_t nelems, int pe), \
                       get(SHMEMI_NAME, ctx, dest, source, nelems, bytes, pe);)                  \
    SHMEMI_DEFINE_PAIR(void, put##SIZE##_nbi,                                                    \
                       (void *dest, const void *source, size_t nelems, int pe),                  \
                       put_nbi(SHMEMI_NAME, ctx, dest, source, nelems, bytes, pe);)              \
    SHMEMI_DEFINE_PAIR(void, get##SIZE##_nbi,                                                    \
                       (void *dest, const void *source, size_t nelems, int pe),                  \
                       get_nbi(SHMEMI_NAME, ctx, dest, source, nelems, bytes, pe);)              \
    SHMEMI_DEFINE_PAIR(                                                                          \
        void, put##SIZE##_signal,                                                                \
        (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,     \
         int sig_op, int pe),                                                                    \
        put_signal(SHMEMI_NAME, ctx, dest, source, nelems, bytes, SIGNAL, pe, true);)            \
    SHMEMI_DEFINE_PAIR(                                                                          \
        void, put##SIZE##_signal_nbi,                                                            \
        (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,     \
         int sig_op, int pe),                                                                    \
        put_signal(SHMEMI_NAME, ctx, dest, source, nelems, bytes, SIGNAL, pe, false);)

#define DEFINE_STRIDED(SIZE)                                                                       \
    SHMEMI_DEFINE_PAIR(                                                                            \
        void, iput##SIZE,                                                                          \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        move_strided(SHMEMI_NAME, true, ctx, dest, source, STRIDE(1, nelems, SIZE / 8), pe);)      \
    SHMEMI_DEFINE_PAIR(                                                                            \
        void, iget##SIZE,                                                                          \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        move_strided(SHMEMI_NAME, false, ctx, dest, source, STRIDE(1, nelems, SIZE / 8), pe);)     \
    SHMEMI_DEFINE_PAIR(                                                                            \
        void, ibput##SIZE,                                                                         \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,               \
         size_t nblocks, int pe),                                                                  \
        move_strided(SHMEMI_NAME, true, ctx, dest, source, STRIDE(bsize, nblocks, SIZE / 8), pe);) \
    SHMEMI_DEFINE_PAIR(void, ibget##SIZE,                                                          \
                       (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,              \
                        size_t bsize, size_t nblocks, int pe),                                     \
                       move_strided(SHMEMI_NAME, false, ctx, dest, source,                         \
                                    STRIDE(bsize, nblocks, SIZE / 8), pe);)

#define DEFINE_SIZED(SIZE)      \
    DEFINE_FLAT(SIZE, SIZE / 8) \
    DEFINE_STRIDED(SIZE)
SHMEMI_SIZES(DEFINE_SIZED)
DEFINE_FLAT(mem, 1)
