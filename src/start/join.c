#include "start/join.h"

#include "base/clock.h"
#include "bootstrap/unique_id.h"
#include "core/health/watch.h"
#include "start/dissolve.h"
#include "start/init.h"
#include "start/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What "any" is over several hosts whose network is trusted: the engine in whose job the ranks found each other, or one
 * that drives a fabric, if all ranks have it; NULL: what is preferred otherwise. Unsealed engines are
 * never taken over a network that is not. All ranks of all hosts exchange cards for it, whatever they are asked for
 * themselves: ranks that are asked for different things then differ in what the next cards say.
 */
static coh_status prefer(const coh_world *world, const cohi_need *need, const cohi_config *config,
                         const char *brought_by, cohi_card *cards, const char **name)
{
    cohi_card card = {.rank = world->rank, .size = world->size, .fds = {-1, -1}};
    bool is_free = cohi_engine_is_any(*name) && config->net == COHI_NET_CLEAR;
    const cohi_engine *able = is_free && !brought_by ? cohi_engine_with_fabric(need) : NULL;
    if (able)
        snprintf(card.engine, sizeof card.engine, "%s", able->name);
    coh_status status = cohi_group_exchange(world->group, &card, COHI_CARD_PROBE, COH_OK, cards);
    bool all = status == COH_OK && able;
    for (int rank = 0; rank < world->size && all; rank++)
        all = strncmp(cards[rank].engine, able->name, sizeof card.engine) == 0;
    if (is_free)
        *name = brought_by ? brought_by : all ? able->name : NULL;
    return status;
}

/* The steps for one rank of a group. Each ends with an exchange of cards, and the last with a
 * meeting, in which all learn whether one of them could not go on. */
static coh_status bring_up(coh_world *world, const coh_options *options, const cohi_config *config,
                           const char *brought_by, cohi_card *cards)
{
    uint64_t deadline_ns = cohi_now_ns() + config->init_timeout;
    cohi_need need = {
        .size = world->size, .in_process = 0, .hosts = cohi_group_hosts(world->group)};
    const cohi_engine *engine;
    const char *name = options->engine ? options->engine : config->engine;
    cohi_card card = {.fds = {-1, -1}};
    coh_status status = COH_OK;
    if (need.hosts > 1)
        status = prefer(world, &need, config, brought_by, cards, &name);
    if (status != COH_OK)
        return status;
    status = cohi_engine_select(name, &need, &engine);
    if (status == COH_OK)
        status = cohi_init_open(world, engine, options, config, deadline_ns, &card);
    status = cohi_group_exchange(world->group, &card, COHI_CARD_INTRO, status, cards);
    if (status != COH_OK)
        return status;
    status = cohi_init_connect(world, cards, &card);
    status = cohi_group_exchange(world->group, &card, COHI_CARD_KEYS, status, cards);
    if (status != COH_OK)
        return status;
    status = cohi_init_attach(world, config, cards);
    if (status == COH_OK)
        status = cohi_watch_add(world);
    return cohi_group_meet(world->group, status);
}

/* The message without the name of the call in front. */
static const char *without_call(const char *message)
{
    static const char call[] = "coh_init: ";
    return strncmp(message, call, sizeof call - 1) == 0 ? message + sizeof call - 1 : message;
}

/* What the leader of a host needs to make its board. */
struct board_maker {
    int size;
    uint64_t job;
    const cohi_config *config;
};

static coh_status make_board(void *context, const int *ranks, int count, cohi_board *board)
{
    const struct board_maker *maker = context;
    cohi_board_spec spec = {.size = maker->size, .ranks = ranks, .count = count, .job = maker->job};
    return cohi_init_board(&spec, maker->size > 1, maker->config, board);
}

/* Where a launcher made the board it shows from the first moment that this rank has come. */
static coh_status announce(const cohi_launch *launch)
{
    cohi_slot *slot = launch->board.head ? cohi_board_slot(&launch->board, launch->rank) : NULL;
    if (launch->board.head && !slot)
        return cohi_fail(COH_MISMATCH, "coh_init: the job's board has no place for rank %d",
                         launch->rank);
    if (slot)
        cohi_init_announce(slot);
    return COH_OK;
}

static coh_status join_group(cohi_launch *launch, const cohi_config *config, cohi_group **group)
{
    struct board_maker maker = {.size = launch->size, .config = config};
    cohi_group_spec spec = {
        .id = &launch->id,
        .rank = launch->rank,
        .size = launch->size,
        .host = config->host,
        .board = &launch->board,
        .listeners = launch->listeners,
        .patience = {.timeout_ns = config->init_timeout, .warn_ns = config->warn},
        .make_board = make_board,
        .context = &maker};
    maker.job = cohi_unique_id_job(&launch->id);
    return cohi_group_join(&spec, group);
}

static coh_status join_world(coh_world *world, cohi_launch *launch, const coh_options *options,
                             const cohi_config *config)
{
    cohi_card *cards = calloc((size_t)launch->size, sizeof *cards);
    if (!cards)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", launch->size);
    coh_status status = join_group(launch, config, &world->group);
    if (status == COH_OK) {
        world->board = cohi_group_board(world->group);
        world->slot = cohi_board_slot(world->board, world->rank);
        status = bring_up(world, options, config, launch->brought_by, cards);
    }
    free(cards);
    return status;
}

coh_status cohi_join(cohi_launch *launch, const coh_options *options, const cohi_config *config,
                     coh_world **world)
{
    coh_world *made;
    coh_status status = announce(launch);
    if (status == COH_OK)
        status = cohi_process_set_up();
    if (status == COH_OK)
        status = cohi_world_new(launch->rank, launch->size, &made);
    if (status != COH_OK)
        return status;
    made->id = &launch->id;
    status = join_world(made, launch, options, config);
    made->id = NULL;
    if (status != COH_OK) {
        if (made->slot) {
            cohi_slot_publish_error(made->slot, status, "coh_init", without_call(coh_last_error()));
            atomic_store(&made->slot->phase, COHI_PHASE_LEFT);
        }
        cohi_world_dissolve(made);
        return status;
    }
    cohi_world_publish(made);
    *world = made;
    return COH_OK;
}
