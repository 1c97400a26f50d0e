#include "start/init.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "base/unknown.h"
#include "bootstrap/launch.h"
#include "bootstrap/root.h"
#include "rendezvous/again.h"
#include "start/engine_job.h"
#include "start/init_threads.h"
#include "start/join.h"
#include "start/provider.h"
#include "memory/kernels/kernels.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* What nothing here can do without, and a sandbox may refuse. */
static coh_status check_sandbox(const char *call)
{
    int error = cohi_os_futex_refused();
    if (error)
        return cohi_fail_os(error, "%s: futex(2) is refused here, without which no thread can lock",
                            call);
    struct pollfd nothing = {.fd = -1};
    if (cohi_os_poll(&nothing, 1, 0) < 0 && cohi_os_refused(errno))
        return cohi_fail_os(errno, "%s: both poll(2) and ppoll(2) are refused here", call);
    return COH_OK;
}

static coh_status read_options(const char *call, const coh_options *given, const void *world,
                               coh_options *options, cohi_config *config)
{
    *options = (coh_options)COH_OPTIONS_INIT;
    if (!world)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the place for the world is NULL", call);
    /* A program that was built before the last field came has a shorter one. */
    if (given && given->size != sizeof *given && given->size != offsetof(coh_options, check_bounds))
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: options->size is %zu where this library knows %zu; start from "
                         "COH_OPTIONS_INIT",
                         call, given->size, sizeof *given);
    if (given)
        memcpy(options, given, given->size);
    if (options->heap > UINT64_C(1) << COHI_HEAP_BITS)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: options->heap is %llu; at most %llu", call,
                         (unsigned long long)options->heap, 1ull << COHI_HEAP_BITS);
    coh_status status = check_sandbox(call);
    if (status == COH_OK)
        status = cohi_config_load(config);
    if (status == COH_OK && options->check_bounds && config->check == 0)
        config->check = COHI_CHECK_BOUNDS; /* a race check that was asked for goes before */
    if (status == COH_OK && config->init_timeout == 0)
        config->init_timeout = COHI_NS_PER_S * 3600 * 24 * 365; /* "off": a year is for ever */
    if (status == COH_OK)
        cohi_log_default((coh_log_level)config->log);
    if (status == COH_OK)
        status = cohi_kernels_choose(config->kernels);
    return status;
}

/* Called on rank 0 alone, so that a job says it once. */
static void warn_of_unknown_variables(void)
{
    char text[COHI_ERROR_TEXT_BYTES];
    for (size_t at = 0; cohi_unknown_next(&at, text, sizeof text);)
        cohi_log(COH_LOG_WARN, "init: %s", text);
}

static coh_status init_alone(const coh_options *options, const cohi_config *config,
                             coh_world **world)
{
    return cohi_crew_make(1, false, false, options, config, world);
}

/* What failed below may be used by several calls, and does not know which. */
static coh_status name_call(const char *call, coh_status status)
{
    if (status == COH_OK || strstr(coh_last_error(), "coh_init"))
        return status;
    return cohi_fail(status, "%s: %s", call, coh_last_error());
}

/* The job cannot be joined at all; a rank that others reached and that failed is another matter. */
static bool can_fall_back(coh_status status)
{
    return status == COH_NOT_AVAILABLE || status == COH_TIMED_OUT || status == COH_TRANSPORT;
}

static coh_status fall_back(const coh_options *options, const cohi_config *config,
                            coh_world **world)
{
    coh_options alone = *options;
    alone.engine = "any";
    cohi_log(COH_LOG_WARN, "init: going on as a world of one: %s", coh_last_error());
    return init_alone(&alone, config, world);
}

/* A launcher that started nobody else is found out by asking it, where its variables do not say so. */
static coh_status init_together(const cohi_provider *provider, const coh_options *options,
                                const cohi_config *config, coh_world **world)
{
    cohi_launch launch;
    coh_status status = cohi_ask_again(provider, config, &launch);
    if (status != COH_OK)
        return status;
    if (launch.rank == 0)
        cohi_log(COH_LOG_INFO, "init: %d ranks, by %s", launch.size, provider->name);
    bool alone = launch.size == 1 && !launch.board.head;
    status =
        alone ? init_alone(options, config, world) : cohi_join(&launch, options, config, world);
    cohi_launch_end(&launch);
    return status;
}

static coh_status init_in_job(const coh_options *options, const cohi_config *config,
                              coh_world **world)
{
    const cohi_engine *engine = cohi_engine_job_find(options, config);
    if (engine)
        return cohi_engine_job_join(engine, options, config, world);
    const cohi_provider *provider = cohi_provider_find(config);
    return provider ? init_together(provider, options, config, world)
                    : init_alone(options, config, world);
}

static coh_status init(const coh_options *given, coh_world **world)
{
    coh_options options;
    cohi_config config;
    coh_status status = read_options("coh_init", given, world, &options, &config);
    if (status != COH_OK)
        return status;
    if (!*config.rank || strcmp(config.rank, "0") == 0)
        warn_of_unknown_variables();
    status = init_in_job(&options, &config, world);
    if (options.fall_back && can_fall_back(status))
        status = fall_back(&options, &config, world);
    return name_call("coh_init", status);
}

coh_status coh_init(const coh_options *options, coh_world **world)
{
    int held = cohi_cancel_hold();
    coh_status status = init(options, world);
    cohi_cancel_release(held);
    return status;
}

static coh_status check_size(const char *call, int size, int most)
{
    if (size >= 1 && size <= most)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: %d ranks; there can be 1 to %d", call, size, most);
}

static coh_status init_threads(int ranks, const coh_options *given, coh_world **worlds)
{
    static const char call[] = "coh_init_threads";
    coh_options options;
    cohi_config config;
    coh_status status = read_options(call, given, worlds, &options, &config);
    if (status == COH_OK)
        status = check_size(call, ranks, COHI_RANKS_MAX);
    if (status != COH_OK)
        return status;
    warn_of_unknown_variables();
    bool driven = options.driven != 0;
    status = cohi_crew_make(ranks, driven, !driven, &options, &config, worlds);
    return name_call(call, status);
}

coh_status coh_init_threads(int ranks, const coh_options *options, coh_world **worlds)
{
    int held = cohi_cancel_hold();
    coh_status status = init_threads(ranks, options, worlds);
    cohi_cancel_release(held);
    return status;
}

static coh_status init_unique_id(const coh_unique_id *id, int rank, int size,
                                 const coh_options *given, coh_world **world)
{
    static const char call[] = "coh_init_unique_id";
    coh_options options;
    cohi_config config;
    coh_status status = read_options(call, given, world, &options, &config);
    if (status == COH_OK && !id)
        status = cohi_fail(COH_INVALID_ARGUMENT, "%s: id is NULL", call);
    if (status == COH_OK)
        status = check_size(call, size, COHI_WORLD_MAX);
    if (status == COH_OK && (rank < 0 || rank >= size))
        status = cohi_fail(COH_UNKNOWN_RANK, "%s: rank %d of %d; ranks are 0 to %d", call, rank,
                           size, size - 1);
    if (status != COH_OK)
        return status;
    if (rank == 0)
        warn_of_unknown_variables();
    cohi_launch launch = {.id = *id,
                          .rank = rank,
                          .size = size,
                          .board = {.fd = -1},
                          .listeners = cohi_root_claim(id)};
    status = cohi_join(&launch, &options, &config, world);
    cohi_launch_end(&launch);
    if (options.fall_back && can_fall_back(status))
        status = fall_back(&options, &config, world);
    return name_call(call, status);
}

coh_status coh_init_unique_id(const coh_unique_id *id, int rank, int size,
                              const coh_options *options, coh_world **world)
{
    int held = cohi_cancel_hold();
    coh_status status = init_unique_id(id, rank, size, options, world);
    cohi_cancel_release(held);
    return status;
}
