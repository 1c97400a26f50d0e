#include "start/engine_job.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/launch.h"
#include "bootstrap/root.h"
#include "bootstrap/unique_id.h"
#include "start/join.h"

#include <stdio.h>

/* The engine that is asked for by name, if it brings a job. */
static const cohi_engine *named_engine(const coh_options *options, const cohi_config *config)
{
    return cohi_engine_with_job(options->engine ? options->engine : config->engine);
}

const cohi_engine *cohi_engine_job_find(const coh_options *options, const cohi_config *config)
{
    if (cohi_launch_present(config))
        return NULL;
    const cohi_engine *named = named_engine(options, config);
    return named ? named : cohi_engine_with_running_job();
}

/* What rank 0 tells the others of the job: how to find it, or why they cannot. */
struct invitation {
    coh_unique_id id;
    int32_t status;
    char error[COHI_ERROR_TEXT_BYTES];
};

/* Ranks on other hosts may be among the others, so rank 0 listens for them in any case. */
static void invite(const cohi_config *config, struct invitation *invitation,
                   cohi_listeners *listeners)
{
    coh_status status = cohi_unique_id_make(&invitation->id);
    if (status == COH_OK)
        status = cohi_root_listen(config, &invitation->id, listeners);
    invitation->status = (int32_t)status;
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
        invite(config, &invitation, &launch->listeners);
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

coh_status cohi_engine_job_join(const cohi_engine *engine, const coh_options *options,
                                const cohi_config *config, coh_world **world)
{
    cohi_launch launch = {.rank = -1, .board = {.fd = -1}, .brought_by = engine->name};
    bool connects = engine == named_engine(options, config); /* else it tells who is who, no more */
    coh_status status = connects ? cohi_engine_allows(engine) : COH_OK;
    if (status == COH_OK)
        status = join_job(engine, options, config, &launch, world);
    cohi_listeners_close(&launch.listeners);
    return status;
}
