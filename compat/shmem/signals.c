/* signals.c - signals without data; those with data are puts (rma.c). */
#include "internal.h"

static void update(const char *routine, shmem_ctx_t ctx, uint64_t *address, uint64_t value,
                   coh_signal_op op, int pe)
{
    shmemi_check_ctx(routine, ctx);
    int rank = shmemi_rank(ctx, pe);
    coh_context *stream = shmemi_stream(ctx);
    coh_atomic_op kind = op == COH_SIGNAL_SET ? COH_ATOMIC_SET : COH_ATOMIC_ADD;
    coh_status status = stream ? coh_context_atomic(stream, kind, COH_U64, address, &value, rank)
                               : coh_signal(shmemi.world, address, value, op, rank);
    if (status != COH_OK)
        shmemi_fail(routine, "sig_addr=%p, signal=%llu, pe=%d", (void *)address,
                    (unsigned long long)value, pe);
}

SHMEMI_DEFINE_PAIR(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe),
                   update(SHMEMI_NAME, ctx, sig_addr, signal, COH_SIGNAL_SET, pe);)
SHMEMI_DEFINE_PAIR(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe),
                   update(SHMEMI_NAME, ctx, sig_addr, signal, COH_SIGNAL_ADD, pe);)

SHMEMI_DEFINE(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr))
{
    uint64_t value;
    shmemi_enter(SHMEMI_NAME);
    if (coh_signal_fetch(shmemi.world, sig_addr, &value) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "sig_addr=%p", (const void *)sig_addr);
    return value;
}

static bool holds(uint64_t value, int cmp, uint64_t wanted)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return value == wanted;
    case SHMEM_CMP_NE:
        return value != wanted;
    case SHMEM_CMP_GT:
        return value > wanted;
    case SHMEM_CMP_GE:
        return value >= wanted;
    case SHMEM_CMP_LT:
        return value < wanted;
    default:
        return value <= wanted;
    }
}

/* The value that is returned is one that satisfied: it may have changed since the wait ended. */
SHMEMI_DEFINE(uint64_t, shmem_signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))
{
    uint64_t value;
    shmemi_enter(SHMEMI_NAME);
    do {
        if (coh_wait_until(shmemi.world, COH_U64, sig_addr, (coh_compare)cmp, &cmp_value,
                           COH_ANY_RANK)
            != COH_OK)
            shmemi_fail(SHMEMI_NAME, "sig_addr=%p, cmp=%d, cmp_value=%llu", (void *)sig_addr, cmp,
                        (unsigned long long)cmp_value);
        value = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    } while (!holds(value, cmp, cmp_value));
    return value;
}
