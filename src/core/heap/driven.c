#include "core/heap/driven.h"

#include "base/os.h"
#include "core/world/crew.h"
#include "core/heap/heap.h"

#include <stdlib.h>
#include <string.h>

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
        coh_status status = cohi_heap_commit(crew->worlds[rank]->heaps[0], bytes);
        for (int done = 0; status != COH_OK && done <= rank; done++)
            cohi_heap_trim(crew->worlds[done]->heaps[0]);
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

coh_status cohi_driven_agree(coh_world *world, const char *call, cohi_record *mine, uint64_t turn,
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
