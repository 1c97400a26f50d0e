#include "core/crew.h"

#include "base/clock.h"
#include "base/os.h"
#include "core/heap.h"
#include "core/init.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- driven ranks: agreeing without waiting ---- */

static coh_status commit_everywhere(cohi_crew *crew, const char *call, const coh_world *first,
                                    uint64_t bytes)
{
    uint64_t growth = bytes - atomic_load(&((coh_world *)first)->heap_limit);
    cohi_os_memory memory = cohi_os_memory_look();
    if (growth > memory.available / (uint64_t)crew->size) {
        char text[COHI_OS_MEMORY_TEXT];
        cohi_os_memory_describe(&memory, text, sizeof text);
        return cohi_world_fail(first, call, COH_NO_MEMORY,
                               "%llu more bytes for each of %d ranks are needed; in all %s",
                               (unsigned long long)growth, crew->size, text);
    }
    for (int rank = 0; rank < crew->size; rank++) {
        if (!crew->worlds[rank])
            return cohi_world_fail(first, call, COH_PEER_LOST,
                                   "rank %d is lost: finalized while others still needed it", rank);
        coh_status status = cohi_heap_commit(crew->worlds[rank], bytes);
        for (int done = 0; status != COH_OK && done <= rank; done++)
            cohi_heap_trim(crew->worlds[done]);
        if (status != COH_OK)
            return cohi_world_fail(first, call, status, "rank %d failed: %s", rank,
                                   coh_status_text(status));
    }
    return COH_OK;
}

static coh_status make_room(cohi_crew *crew)
{
    if (crew->logged < crew->log_room)
        return COH_OK;
    size_t room = crew->log_room ? 2 * crew->log_room : 64;
    cohi_record *log = realloc(crew->log, room * sizeof *log);
    if (!log)
        return cohi_fail(COH_NO_MEMORY, "out of memory for the log of allocations");
    crew->log = log;
    crew->log_room = room;
    return COH_OK;
}

static coh_status make_entry(coh_world *world, const char *call, cohi_record *mine, uint64_t needed)
{
    cohi_crew *crew = world->crew;
    coh_status status = make_room(crew);
    if (status != COH_OK)
        return status;
    if (mine->status == COH_OK && needed > 0)
        mine->status = (int32_t)commit_everywhere(crew, call, world, needed);
    crew->log[crew->logged++] = *mine;
    return (coh_status)mine->status;
}

static coh_status follow_entry(coh_world *world, const char *call, const cohi_record *mine,
                               const cohi_record *entry, uint64_t turn)
{
    if (mine->op != entry->op
        || memcmp(mine->argument, entry->argument, sizeof mine->argument) != 0)
        return cohi_world_fail(world, call, COH_MISMATCH,
                               "as allocation #%llu this rank called %s of %llu bytes, the first "
                               "rank there %s of %llu bytes",
                               (unsigned long long)turn + 1, cohi_opcode_name(mine->op),
                               (unsigned long long)mine->argument[0], cohi_opcode_name(entry->op),
                               (unsigned long long)entry->argument[0]);
    if (entry->status == COH_OK || mine->status != COH_OK)
        return (coh_status)entry->status;
    return cohi_world_fail(world, call, (coh_status)entry->status,
                           "the first rank there failed: %s",
                           coh_status_text((coh_status)entry->status));
}

coh_status cohi_crew_agree(coh_world *world, const char *call, cohi_record *mine, uint64_t turn,
                           uint64_t needed)
{
    cohi_crew *crew = world->crew;
    pthread_mutex_lock(&crew->lock);
    coh_status status = turn < crew->logged
                            ? follow_entry(world, call, mine, &crew->log[turn], turn)
                            : make_entry(world, call, mine, needed);
    pthread_mutex_unlock(&crew->lock);
    return status;
}

/* ---- making ---- */

static void free_crew(cohi_crew *crew)
{
    cohi_board_close(&crew->board);
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
    coh_status status = cohi_init_board(size, size > 1 && !driven, config, &made->board);
    if (status != COH_OK) {
        free(made);
        free(worlds);
        return status;
    }
    static atomic_uint_fast64_t last_serial;
    pthread_mutex_init(&made->lock, NULL);
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
    if (world->endpoint)
        world->engine->lifecycle->close(world->endpoint);
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
    coh_status status = cohi_world_new(rank, crew->size, &world);
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
        status = cohi_init_connect(crew->worlds[rank], config, cards, &cards[rank]);
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
