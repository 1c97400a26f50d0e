#include "start/provider.h"

#include "base/os.h"
#include "bootstrap/launch.h"
#include "start/init.h"
#include "start/join.h"

static bool has_descriptor(const cohi_config *config)
{
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

/* Launchers whose jobs cannot be joined. */
static bool has_other(const cohi_config *config)
{
    (void)config;
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
    {"another launcher", has_other, refuse_other},
};

const cohi_provider *cohi_provider_find(const cohi_config *config)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (providers[i].present(config))
            return &providers[i];
    return NULL;
}
