/* contexts.c - contexts, and sessions on them. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shmemi_ctx *contexts;

static int create(const char *routine, shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    shmemi_enter(routine);
    *ctx = SHMEM_CTX_INVALID;
    coh_team *members = shmemi_team(team)->team;
    struct shmemi_ctx *made = members ? malloc(sizeof *made) : NULL;
    if (!made)
        return 1;
    *made = (struct shmemi_ctx){.handle = team};
    if (team != SHMEM_TEAM_WORLD)
        made->team = members;
    /* When Cohort has no more of them, the world's own stream does: quiet then completes more. */
    coh_status status = coh_context_create(shmemi.world, &made->context);
    if (status == COH_LIMIT)
        made->context = NULL;
    else if (status != COH_OK)
        shmemi_fail(routine, "options=%ld", options);
    pthread_mutex_lock(&contexts_lock);
    made->next = contexts;
    contexts = made;
    pthread_mutex_unlock(&contexts_lock);
    *ctx = made;
    return 0;
}

static void destroy(struct shmemi_ctx *ctx)
{
    coh_status status = ctx->context ? coh_context_destroy(ctx->context) : coh_quiet(shmemi.world);
    if (status != COH_OK)
        shmemi_fail("shmem_ctx_destroy", "ctx=%p", (void *)ctx);
    free(ctx);
}

/* Takes it from the list; false when it is not there. */
static bool forget(struct shmemi_ctx *ctx)
{
    pthread_mutex_lock(&contexts_lock);
    struct shmemi_ctx **at = &contexts;
    while (*at && *at != ctx)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = ctx->next;
    pthread_mutex_unlock(&contexts_lock);
    return found;
}

static struct shmemi_ctx *any_of(shmem_team_t team)
{
    pthread_mutex_lock(&contexts_lock);
    struct shmemi_ctx *found = contexts;
    while (found && team != SHMEM_TEAM_WORLD && found->handle != team)
        found = found->next;
    pthread_mutex_unlock(&contexts_lock);
    return found;
}

void shmemi_close_contexts(shmem_team_t team)
{
    for (struct shmemi_ctx *ctx = any_of(team); ctx; ctx = any_of(team))
        if (forget(ctx))
            destroy(ctx);
}

SHMEMI_DEFINE(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx))
{
    return create(SHMEMI_NAME, SHMEM_TEAM_WORLD, options, ctx);
}

SHMEMI_DEFINE(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
{
    return create(SHMEMI_NAME, team, options, ctx);
}

SHMEMI_DEFINE(void, shmem_ctx_destroy, (shmem_ctx_t ctx))
{
    shmemi_enter(SHMEMI_NAME);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        shmemi_refuse(SHMEMI_NAME, "SHMEM_CTX_DEFAULT cannot be destroyed");
    if (!forget(ctx))
        shmemi_refuse(SHMEMI_NAME, "there is no such context; it may have been destroyed before");
    destroy(ctx);
}

SHMEMI_DEFINE(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team))
{
    shmemi_enter(SHMEMI_NAME);
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID)
        return 1;
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : ctx->handle;
    return 0;
}

/* Sessions are hints; there is nothing to prepare where a put is a store. */
SHMEMI_DEFINE(void, shmem_ctx_session_start,
              (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
               long config_mask))
{
    shmemi_enter(SHMEMI_NAME);
    (void)ctx;
    (void)options;
    (void)config;
    (void)config_mask;
}

SHMEMI_DEFINE(void, shmem_ctx_session_stop, (shmem_ctx_t ctx))
{
    shmemi_enter(SHMEMI_NAME);
    (void)ctx;
}
