#include "core/heap/segment.h"

#include "base/cancel.h"
#include "core/world/crew.h"

#include <stdlib.h>
#include <string.h>

coh_status cohi_segment_offer(cohi_server server, const cohi_segment_spec *spec, void **base,
                              cohi_region_key *key)
{
    const cohi_engine_memory *memory = server.engine->memory;
    coh_status status = memory->segment_add(server.endpoint, spec, base);
    if (status != COH_OK)
        return status;
    *key = (cohi_region_key){.fd = -1};
    status = memory->region_export(server.endpoint, spec->id, key);
    if (status != COH_OK)
        memory->segment_remove(server.endpoint, spec->id);
    return status;
}

coh_status cohi_segment_attach(cohi_server server, int id, int rank, uint64_t bytes,
                               cohi_region_key *key)
{
    return server.engine->memory->region_attach(server.endpoint, id, rank, bytes, key);
}

/* ---- exchange ---- */

/* The card is looked up where its owner has left it: all are between the same two agreements, unless a
 * rank was lost meanwhile and has gone on to leave. */
static coh_status exchange_in_crew(coh_world *world, const cohi_segment_card *mine,
                                   cohi_segment_card *all)
{
    cohi_crew *crew = world->crew;
    coh_status status = COH_OK;
    pthread_mutex_lock(&crew->lock);
    for (int rank = 0; rank < crew->size && status == COH_OK; rank++) {
        if (crew->worlds[rank])
            all[rank] = rank == world->rank ? *mine : crew->worlds[rank]->arriving;
        else
            status = cohi_fail(COH_PEER_LOST, "rank %d has left", rank);
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

static coh_status exchange_in_group(coh_world *world, const cohi_segment_card *mine,
                                    cohi_segment_card *all)
{
    cohi_card *cards = calloc((size_t)world->size, sizeof *cards);
    cohi_card card = {.rank = world->rank,
                      .size = world->size,
                      .heap_bytes = mine->bytes,
                      .fds = {[COHI_CARD_FD_PROCESS] = -1, [COHI_CARD_FD_HEAP] = mine->key.fd}};
    memcpy(card.heap_key, mine->key.bytes, sizeof card.heap_key);
    memcpy(card.control_key, mine->more, sizeof card.control_key);
    coh_status ready =
        cards ? COH_OK : cohi_fail(COH_NO_MEMORY, "out of memory for %d ranks", world->size);
    coh_status status = cohi_group_exchange(world->group, &card, COHI_CARD_KEYS, ready, cards);
    for (int rank = 0; rank < world->size && status == COH_OK; rank++) {
        all[rank].bytes = cards[rank].heap_bytes;
        all[rank].key.fd = cards[rank].fds[COHI_CARD_FD_HEAP];
        memcpy(all[rank].key.bytes, cards[rank].heap_key, sizeof all[rank].key.bytes);
        memcpy(all[rank].more, cards[rank].control_key, sizeof all[rank].more);
    }
    free(cards);
    return status;
}

coh_status cohi_segment_exchange(coh_world *world, const cohi_segment_card *mine,
                                 cohi_segment_card *all)
{
    int held = cohi_cancel_hold();
    coh_status status = (world->crew ? exchange_in_crew : exchange_in_group)(world, mine, all);
    cohi_cancel_release(held);
    return status;
}

coh_status cohi_segment_check_exchange(const coh_world *world, const char *call)
{
    if (!world->group || cohi_group_is_in_step(world->group))
        return COH_OK;
    return cohi_world_fail(
        world, call, COH_TRANSPORT,
        "an earlier exchange between the ranks failed, so this world can have no "
        "further heap");
}

void cohi_segment_drop(const coh_world *world, cohi_segment_card *all)
{
    for (int rank = 0; world->group && rank < world->size; rank++)
        if (rank != world->rank)
            cohi_os_close(all[rank].key.fd);
}
