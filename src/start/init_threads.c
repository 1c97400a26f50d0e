#include "start/init_threads.h"

#include "base/clock.h"
#include "core/world/crew.h"
#include "start/dissolve.h"
#include "start/init.h"
#include "start/process.h"

#include <stdlib.h>

static void free_crew(cohi_crew *crew)
{
    cohi_board_close(&crew->board);
    pthread_mutex_destroy(&crew->look.lock);
    pthread_mutex_destroy(&crew->lock);
    free(crew->worlds);
    free(crew->log);
    free(crew);
}

static coh_status new_crew(int size, bool driven, const cohi_config *config, cohi_crew **crew)
{
    cohi_crew *made = calloc(1, sizeof *made);
    coh_world **worlds = calloc((size_t)size, sizeof *worlds);
    if (!made || !worlds) {
        free(made);
        free(worlds);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", size);
    }
    cohi_board_spec spec = {.size = size};
    coh_status status = cohi_init_board(&spec, size > 1 && !driven, config, &made->board);
    if (status != COH_OK) {
        free(made);
        free(worlds);
        return status;
    }
    static atomic_uint_fast64_t last_serial;
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->look.lock, NULL);
    made->serial = atomic_fetch_add(&last_serial, 1) + 1;
    made->size = size;
    made->driven = driven;
    made->worlds = worlds;
    *crew = made;
    return COH_OK;
}

void cohi_crew_leave(coh_world *world)
{
    cohi_crew *crew = world->crew;
    pthread_mutex_lock(&crew->lock);
    cohi_world_close_endpoint(world);
    crew->worlds[world->rank] = NULL;
    bool last = --crew->open == 0;
    pthread_mutex_unlock(&crew->lock);
    if (last)
        free_crew(crew);
    world->crew = NULL;
}

static coh_status add_world(cohi_crew *crew, int rank, bool bound)
{
    coh_world *world;
    coh_status status = cohi_process_set_up();
    if (status == COH_OK)
        status = cohi_world_new(rank, crew->size, &world);
    if (status != COH_OK)
        return status;
    if (bound)
        atomic_fetch_or(&world->state, COHI_WORLD_BOUND);
    world->driven = crew->driven;
    world->crew = crew;
    world->board = &crew->board;
    world->slot = cohi_board_slot(&crew->board, rank);
    crew->worlds[rank] = world;
    crew->open++;
    return COH_OK;
}

/* Each step for all ranks before the next, as processes would take it side by side. */
static coh_status bring_up(cohi_crew *crew, bool bound, const coh_options *options,
                           const cohi_config *config, cohi_card *cards)
{
    cohi_need need = {.size = crew->size, .in_process = 1};
    uint64_t deadline = cohi_now_ns() + config->init_timeout;
    const cohi_engine *engine;
    const char *name = options->engine ? options->engine : config->engine;
    coh_status status = cohi_engine_select(name, &need, &engine);
    for (int rank = 0; rank < crew->size && status == COH_OK; rank++)
        status = add_world(crew, rank, bound);
    for (int rank = 0; rank < crew->size && status == COH_OK; rank++)
        status =
            cohi_init_open(crew->worlds[rank], engine, options, config, deadline, &cards[rank]);
    for (int rank = 0; rank < crew->size && status == COH_OK; rank++)
        status = cohi_init_connect(crew->worlds[rank], cards, &cards[rank]);
    for (int rank = 0; rank < crew->size && status == COH_OK; rank++)
        status = cohi_init_attach(crew->worlds[rank], config, cards);
    return status;
}

static void abandon(cohi_crew *crew)
{
    int made = crew->open; /* the first `made` ranks; the last one dissolved frees the crew */
    if (made == 0)
        free_crew(crew);
    for (int rank = made - 1; rank >= 0; rank--)
        cohi_world_dissolve(crew->worlds[rank]);
}

coh_status cohi_crew_make(int size, bool driven, bool bound, const coh_options *options,
                          const cohi_config *config, coh_world **worlds)
{
    cohi_crew *crew = NULL;
    coh_status status = new_crew(size, driven, config, &crew);
    if (status != COH_OK)
        return status;
    cohi_card *cards = calloc((size_t)size, sizeof *cards);
    status = cards ? bring_up(crew, bound, options, config, cards)
                   : cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", size);
    free(cards);
    if (status != COH_OK) {
        abandon(crew);
        return status;
    }
    for (int rank = 0; rank < size; rank++) {
        worlds[rank] = crew->worlds[rank];
        cohi_world_publish(worlds[rank]);
    }
    return COH_OK;
}
