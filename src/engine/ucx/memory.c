#include "engine/ucx/ucx.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* How long a segment that is to go waits for the transfers of others. */
#define REMOVE_NS COHI_NS_PER_S

/* ---- own segments ---- */

char *cohi_ucx_locate(const cohi_endpoint *endpoint, const cohi_ucx_frame *frame, uint64_t offset,
                      uint64_t bytes, const char **wrong)
{
    const cohi_ucx_segment *segment = &endpoint->segments[frame->segment];
    if (!segment->base || segment->generation != frame->generation)
        *wrong = "there is no such segment";
    else if (offset > segment->bytes || bytes > segment->bytes - offset)
        *wrong = "it is outside of the segment";
    else
        return segment->base + offset;
    return NULL;
}

static void note_segment(cohi_endpoint *endpoint, const cohi_segment_spec *spec, void *base)
{
    cohi_ucx_segment *segment = &endpoint->segments[spec->id];
    cohi_ucx_lock(endpoint);
    segment->base = base;
    segment->bytes = spec->bytes;
    segment->existing = spec->existing != NULL;
    segment->generation++;
    cohi_ucx_unlock(endpoint);
}

static coh_status ucx_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    coh_status status = COH_OK;
    if (spec->kind != COHI_MEMORY_HOST)
        return cohi_fail(COH_UNSUPPORTED, "ucx: it has host memory only, not kind %d",
                         (int)spec->kind);
    *base = spec->existing;
    if (!spec->existing)
        status = cohi_mapped_add(&endpoint->mapped, spec, base);
    if (status == COH_OK)
        note_segment(endpoint, spec, *base);
    return status;
}

static coh_status ucx_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return endpoint->segments[id].existing ? COH_OK
                                           : cohi_mapped_commit(&endpoint->mapped, id, from, to);
}

static void ucx_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    if (!endpoint->segments[id].existing)
        cohi_mapped_decommit(&endpoint->mapped, id, from, to);
}

static bool is_idle(cohi_endpoint *endpoint, const void *segment)
{
    (void)endpoint;
    return ((const cohi_ucx_segment *)segment)->busy == 0;
}

/* UCX may be moving bytes from or to it, for a rank that is stuck. That link ends: the memory goes. */
static void make_idle(cohi_endpoint *endpoint, const cohi_ucx_segment *segment)
{
    if (is_idle(endpoint, segment) || !endpoint->worker
        || cohi_ucx_step_until(endpoint, is_idle, segment, REMOVE_NS))
        return;
    for (int i = 0; i < endpoint->made_count; i++)
        if (endpoint->made[i]->landings > 0 || endpoint->made[i]->requests.first)
            cohi_ucx_link_end(endpoint->made[i], COHI_LOSS_LINK);
    (void)cohi_ucx_step_until(endpoint, is_idle, segment, REMOVE_NS);
}

/* Whatever comes for it later is wrong: the next segment of that number has another generation. */
static void ucx_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_ucx_segment *segment = &endpoint->segments[id];
    cohi_ucx_lock(endpoint);
    segment->base = NULL;
    make_idle(endpoint, segment);
    uint32_t *peers = segment->peers;
    *segment = (cohi_ucx_segment){.generation = segment->generation};
    cohi_ucx_unlock(endpoint);
    free(peers);
    cohi_mapped_remove(&endpoint->mapped, id);
}

void cohi_ucx_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        ucx_segment_remove(endpoint, id);
}

/* ---- the peers' ---- */

static coh_status ucx_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    uint32_t generation = endpoint->segments[id].generation;
    *key = (cohi_region_key){.fd = cohi_mapped_descriptor(&endpoint->mapped, id)};
    memcpy(key->bytes, &generation, sizeof generation);
    return COH_OK;
}

static coh_status note_generation(cohi_endpoint *endpoint, int id, int rank,
                                  const cohi_region_key *key)
{
    cohi_ucx_segment *segment = &endpoint->segments[id];
    if (!segment->peers)
        segment->peers = calloc((size_t)endpoint->size, sizeof *segment->peers);
    if (!segment->peers)
        return cohi_fail(COH_NO_MEMORY, "ucx: out of memory for %d ranks", endpoint->size);
    memcpy(&segment->peers[rank], key->bytes, sizeof segment->peers[rank]);
    return COH_OK;
}

/* Memory that core gave is mapped by the ranks of this host already. */
static coh_status ucx_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    if (!cohi_ucx_is_near(endpoint, rank))
        return note_generation(endpoint, id, rank, key);
    return endpoint->segments[id].existing
               ? COH_OK
               : cohi_mapped_attach(&endpoint->mapped, id, rank, bytes, key);
}

uint32_t cohi_ucx_generation(cohi_endpoint *endpoint, int id, int rank)
{
    return endpoint->segments[id].peers[rank];
}

static void *ucx_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_ucx_is_near(endpoint, rank) ? cohi_mapped_pointer(&endpoint->mapped, id, rank)
                                            : NULL;
}

const cohi_engine_memory cohi_ucx_memory = {
    .size = sizeof cohi_ucx_memory,
    .segment_add = ucx_segment_add,
    .segment_commit = ucx_segment_commit,
    .segment_decommit = ucx_segment_decommit,
    .segment_remove = ucx_segment_remove,
    .region_export = ucx_region_export,
    .region_attach = ucx_region_attach,
    .peer_pointer = ucx_peer_pointer,
};
