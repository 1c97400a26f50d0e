/* teams.c - teams. A destroyed one is kept, as a tombstone, until the library is finalized: its
 * handle is refused instead of read after it was freed. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>

struct shmemi_team shmemi_predefined[3];

static pthread_mutex_t teams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shmemi_team *teams;

void shmemi_open_teams(void)
{
    shmemi_predefined[1] = (struct shmemi_team){.team = coh_team_world(shmemi.world)};
    shmemi_predefined[2] = (struct shmemi_team){.team = coh_team_host(shmemi.world)};
}

/* Cohort frees what belongs to them. */
void shmemi_close_teams(void)
{
    pthread_mutex_lock(&teams_lock);
    while (teams) {
        struct shmemi_team *next = teams->next;
        free(teams);
        teams = next;
    }
    pthread_mutex_unlock(&teams_lock);
    shmemi_predefined[1].team = shmemi_predefined[2].team = NULL;
}

/* A handle for `made`, which is NULL on PEs that are not in it. */
static shmem_team_t handle_of(const char *routine, coh_team *made,
                              const shmem_team_config_t *config, long mask)
{
    if (!made)
        return SHMEM_TEAM_INVALID;
    struct shmemi_team *team = malloc(sizeof *team);
    if (!team)
        shmemi_refuse(routine, "out of memory for a team");
    *team = (struct shmemi_team){.team = made};
    if (config && (mask & SHMEM_TEAM_NUM_CONTEXTS))
        team->config = *config;
    pthread_mutex_lock(&teams_lock);
    team->next = teams;
    teams = team;
    pthread_mutex_unlock(&teams_lock);
    return team;
}

/* What the standard lets a program try: the same on all PEs of the parent. */
static bool may_be_tried(coh_status status)
{
    return status == COH_INVALID_ARGUMENT || status == COH_LIMIT || status == COH_NO_MEMORY
           || status == COH_OUT_OF_BOUNDS;
}

SHMEMI_DEFINE(int, shmem_team_my_pe, (shmem_team_t team))
{
    shmemi_enter(SHMEMI_NAME);
    return coh_team_index(shmemi_team(team)->team);
}

SHMEMI_DEFINE(int, shmem_team_n_pes, (shmem_team_t team))
{
    shmemi_enter(SHMEMI_NAME);
    return coh_team_size(shmemi_team(team)->team);
}

SHMEMI_DEFINE(int, shmem_team_get_config,
              (shmem_team_t team, long config_mask, shmem_team_config_t *config))
{
    shmemi_enter(SHMEMI_NAME);
    if (team == SHMEM_TEAM_INVALID)
        return 1;
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = shmemi_team(team)->config.num_contexts;
    return 0;
}

SHMEMI_DEFINE(int, shmem_team_translate_pe,
              (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
{
    shmemi_enter(SHMEMI_NAME);
    return coh_team_translate(shmemi_team(src_team)->team, src_pe, shmemi_team(dest_team)->team);
}

SHMEMI_DEFINE(int, shmem_team_split_strided,
              (shmem_team_t parent_team, int start, int stride, int size,
               const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team))
{
    coh_team *made = NULL;
    shmemi_enter(SHMEMI_NAME);
    *new_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID)
        return 1;
    coh_status status =
        coh_team_split_strided(shmemi_team(parent_team)->team, start, stride, size, &made);
    if (status != COH_OK && !may_be_tried(status))
        shmemi_fail(SHMEMI_NAME, "start=%d, stride=%d, size=%d", start, stride, size);
    if (status != COH_OK)
        return 1;
    *new_team = handle_of(SHMEMI_NAME, made, config, config_mask);
    return 0;
}

SHMEMI_DEFINE(int, shmem_team_split_2d,
              (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
               long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
               long yaxis_mask, shmem_team_t *yaxis_team))
{
    coh_team *row = NULL, *column = NULL;
    shmemi_enter(SHMEMI_NAME);
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    coh_team *parent = shmemi_team(parent_team)->team;
    if (!parent)
        return 1;
    int width = xrange > coh_team_size(parent) ? coh_team_size(parent) : xrange;
    coh_status status = coh_team_split_2d(parent, width, &row, &column);
    if (status != COH_OK && !may_be_tried(status))
        shmemi_fail(SHMEMI_NAME, "xrange=%d", xrange);
    if (status != COH_OK)
        return 1;
    *xaxis_team = handle_of(SHMEMI_NAME, row, xaxis_config, xaxis_mask);
    *yaxis_team = handle_of(SHMEMI_NAME, column, yaxis_config, yaxis_mask);
    return 0;
}

SHMEMI_DEFINE(void, shmem_team_destroy, (shmem_team_t team))
{
    shmemi_enter(SHMEMI_NAME);
    if (team == SHMEM_TEAM_INVALID)
        return;
    if (team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED)
        shmemi_refuse(SHMEMI_NAME, "a predefined team cannot be destroyed");
    shmemi_close_contexts(team);
    if (coh_team_destroy(team->team) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "team=%p", (void *)team);
    team->team = NULL;
}
