#include "start/provider.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/launch.h"
#include "bootstrap/root.h"
#include "bootstrap/unique_id.h"
#include "engine/engine.h"
#include "start/init.h"
#include "start/join.h"

#include <stdio.h>

static bool has_descriptor(const coh_options *options, const cohi_config *config)
{
    (void)options;
    return cohi_launch_present(config) != 0;
}

static coh_status join_by_descriptor(const coh_options *options, const cohi_config *config,
                                     coh_world **world)
{
    cohi_launch launch = {.board = {.fd = -1}, .listener = -1};
    coh_status status = cohi_launch_accept(config, &launch);
    if (status != COH_OK)
        return status;
    cohi_slot *slot = launch.board.head ? cohi_board_slot(&launch.board, launch.rank) : NULL;
    if (launch.board.head && !slot)
        status = cohi_fail(COH_MISMATCH, "coh_init: the job's board has no place for rank %d",
                           launch.rank);
    if (slot)
        cohi_init_announce(slot);
    if (status == COH_OK)
        status = cohi_join(&launch, options, config, world);
    cohi_os_close(launch.listener);
    cohi_board_close(&launch.board);
    return status;
}

/* ---- an engine that brings its own rank and size ---- */

static const cohi_engine *engine_with_job(const coh_options *options, const cohi_config *config)
{
    return cohi_engine_with_job(options->engine ? options->engine : config->engine);
}

static bool has_engine_with_job(const coh_options *options, const cohi_config *config)
{
    return engine_with_job(options, config) != NULL;
}

/* What rank 0 tells the others of the job: how to find it, or why they cannot. */
struct invitation {
    coh_unique_id id;
    int32_t status;
    char error[COHI_ERROR_TEXT_BYTES];
};

/* Ranks on other hosts may be among the others, so rank 0 listens for them in any case. */
static void invite(const cohi_config *config, struct invitation *invitation, int *listener)
{
    coh_status status = cohi_unique_id_make(&invitation->id);
    if (status == COH_OK)
        status = cohi_root_listen(config, &invitation->id, listener);
    invitation->status = status;
    if (status != COH_OK)
        snprintf(invitation->error, sizeof invitation->error, "%s", coh_last_error());
}

static coh_status check_brought(const cohi_engine *engine, const cohi_launch *launch)
{
    if (launch->size >= 1 && launch->size <= COHI_WORLD_MAX && launch->rank >= 0
        && launch->rank < launch->size)
        return COH_OK;
    return cohi_fail(COH_LIMIT,
                     "coh_init: engine %s says that this is rank %d of %d; there can be 1 to %d",
                     engine->name, launch->rank, launch->size, COHI_WORLD_MAX);
}

static coh_status share_id(const cohi_engine *engine, const cohi_config *config,
                           uint64_t deadline_ns, cohi_launch *launch)
{
    struct invitation invitation = {.status = COH_OK};
    if (launch->rank == 0)
        invite(config, &invitation, &launch->listener);
    coh_status status = engine->job->share(&invitation, sizeof invitation, deadline_ns);
    if (status != COH_OK)
        return status;
    invitation.error[sizeof invitation.error - 1] = '\0';
    launch->id = invitation.id;
    return invitation.status == COH_OK
               ? COH_OK
               : cohi_fail((coh_status)invitation.status, "coh_init: %s", invitation.error);
}

static coh_status join_job(const cohi_engine *engine, const coh_options *options,
                           const cohi_config *config, cohi_launch *launch, coh_world **world)
{
    uint64_t deadline_ns = cohi_now_ns() + config->init_timeout;
    coh_status status = engine->job->begin(deadline_ns, &launch->rank, &launch->size);
    if (status != COH_OK)
        return status;
    status = check_brought(engine, launch);
    if (status == COH_OK)
        status = share_id(engine, config, deadline_ns, launch);
    if (status == COH_OK)
        status = cohi_join(launch, options, config, world);
    engine->job->end();
    return status;
}

static coh_status join_by_engine(const coh_options *options, const cohi_config *config,
                                 coh_world **world)
{
    const cohi_engine *engine = engine_with_job(options, config);
    cohi_launch launch = {.rank = -1, .board = {.fd = -1}, .listener = -1};
    coh_status status = cohi_engine_allows(engine);
    if (status == COH_OK)
        status = join_job(engine, options, config, &launch, world);
    cohi_os_close(launch.listener);
    return status;
}

/* ---- others ---- */

/* Launchers whose jobs cannot be joined. */
static bool has_other(const coh_options *options, const cohi_config *config)
{
    (void)options, (void)config;
    return cohi_launch_has_other();
}

static coh_status refuse_other(const coh_options *options, const cohi_config *config,
                               coh_world **world)
{
    (void)options, (void)config, (void)world;
    return cohi_launch_refuse_others();
}

static const cohi_provider providers[] = {
    {"cohort run", has_descriptor, join_by_descriptor},
    {"the engine", has_engine_with_job, join_by_engine},
    {"another launcher", has_other, refuse_other},
};

const cohi_provider *cohi_provider_find(const coh_options *options, const cohi_config *config)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (providers[i].present(options, config))
            return &providers[i];
    return NULL;
}
