/* order.c - fence, quiet, and quiet of some PEs. */
#include "internal.h"

SHMEMI_DEFINE(void, shmem_fence, (void))
{
    if (!SHMEMI_LIKELY(coh_fence(shmemi.world) == COH_OK)) {
        shmemi_enter(SHMEMI_NAME);
        shmemi_fail(SHMEMI_NAME, "%s", "");
    }
}

SHMEMI_DEFINE(void, shmem_quiet, (void))
{
    if (!SHMEMI_LIKELY(coh_quiet(shmemi.world) == COH_OK)) {
        shmemi_enter(SHMEMI_NAME);
        shmemi_fail(SHMEMI_NAME, "%s", "");
    }
}

SHMEMI_DEFINE(void, shmem_ctx_fence, (shmem_ctx_t ctx))
{
    shmemi_enter(SHMEMI_NAME);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    coh_context *stream = shmemi_stream(ctx);
    if ((stream ? coh_context_fence(stream) : coh_fence(shmemi.world)) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "ctx=%p", (void *)ctx);
}

static void quiet(const char *routine, shmem_ctx_t ctx)
{
    coh_context *stream = shmemi_stream(ctx);
    if ((stream ? coh_context_quiet(stream) : coh_quiet(shmemi.world)) != COH_OK)
        shmemi_fail(routine, "ctx=%p", (void *)ctx);
}

SHMEMI_DEFINE(void, shmem_ctx_quiet, (shmem_ctx_t ctx))
{
    shmemi_enter(SHMEMI_NAME);
    if (ctx != SHMEM_CTX_INVALID)
        quiet(SHMEMI_NAME, ctx);
}

/* Completes for all, which is more than was asked. */
static void quiet_some(const char *routine, shmem_ctx_t ctx, const int *pes, size_t npes)
{
    shmemi_check_ctx(routine, ctx);
    for (size_t i = 0; i < npes; i++) {
        int rank = shmemi_rank(ctx, pes[i]);
        if (rank < 0 || rank >= shmemi.npes)
            shmemi_refuse(routine, "one of target_pes is not a PE");
    }
    if (npes > 0)
        quiet(routine, ctx);
}

SHMEMI_DEFINE_PAIR(void, pe_quiet, (const int *target_pes, size_t npes),
                   quiet_some(SHMEMI_NAME, ctx, target_pes, npes);)
