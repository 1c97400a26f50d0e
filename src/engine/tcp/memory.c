#include "engine/tcp/tcp.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- own segments ---- */

char *cohi_tcp_locate(const cohi_endpoint *endpoint, const cohi_tcp_head *head, uint64_t offset,
                      uint64_t bytes, const char **wrong)
{
    const cohi_tcp_segment *segment = &endpoint->segments[head->segment];
    if (!segment->base || segment->generation != head->generation)
        *wrong = "there is no such segment";
    else if (offset > segment->bytes || bytes > segment->bytes - offset)
        *wrong = "it is outside of the segment";
    else
        return segment->base + offset;
    return NULL;
}

static void note_segment(cohi_endpoint *endpoint, const cohi_segment_spec *spec, void *base)
{
    cohi_tcp_segment *segment = &endpoint->segments[spec->id];
    pthread_mutex_lock(&endpoint->segments_lock);
    segment->base = base;
    segment->bytes = spec->bytes;
    segment->existing = spec->existing != NULL;
    segment->generation++;
    pthread_mutex_unlock(&endpoint->segments_lock);
}

static coh_status tcp_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    coh_status status = COH_OK;
    if (spec->kind != COHI_MEMORY_HOST)
        return cohi_fail(COH_UNSUPPORTED, "tcp: it has host memory only, not kind %d",
                         (int)spec->kind);
    *base = spec->existing;
    if (!spec->existing)
        status = cohi_mapped_add(&endpoint->mapped, spec, base);
    if (status == COH_OK)
        note_segment(endpoint, spec, *base);
    return status;
}

static coh_status tcp_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return endpoint->segments[id].existing ? COH_OK
                                           : cohi_mapped_commit(&endpoint->mapped, id, from, to);
}

static void tcp_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    if (!endpoint->segments[id].existing)
        cohi_mapped_decommit(&endpoint->mapped, id, from, to);
}

/* Whatever comes for it later is wrong: the next segment of that number has another generation. */
static void tcp_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_tcp_segment *segment = &endpoint->segments[id];
    pthread_mutex_lock(&endpoint->segments_lock);
    uint32_t *peers = segment->peers;
    *segment = (cohi_tcp_segment){.generation = segment->generation};
    pthread_mutex_unlock(&endpoint->segments_lock);
    free(peers);
    cohi_mapped_remove(&endpoint->mapped, id);
}

void cohi_tcp_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        tcp_segment_remove(endpoint, id);
}

/* ---- the peers' ---- */

static coh_status tcp_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    uint32_t generation = endpoint->segments[id].generation;
    *key = (cohi_region_key){.fd = cohi_mapped_descriptor(&endpoint->mapped, id)};
    memcpy(key->bytes, &generation, sizeof generation);
    return COH_OK;
}

static coh_status note_generation(cohi_endpoint *endpoint, int id, int rank,
                                  const cohi_region_key *key)
{
    cohi_tcp_segment *segment = &endpoint->segments[id];
    if (!segment->peers)
        segment->peers = calloc((size_t)endpoint->size, sizeof *segment->peers);
    if (!segment->peers)
        return cohi_fail(COH_NO_MEMORY, "tcp: out of memory for %d ranks", endpoint->size);
    memcpy(&segment->peers[rank], key->bytes, sizeof segment->peers[rank]);
    return COH_OK;
}

/* Memory that core gave is mapped by the ranks of this host already. */
static coh_status tcp_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    if (!cohi_tcp_is_near(endpoint, rank))
        return note_generation(endpoint, id, rank, key);
    return endpoint->segments[id].existing
               ? COH_OK
               : cohi_mapped_attach(&endpoint->mapped, id, rank, bytes, key);
}

uint32_t cohi_tcp_generation(cohi_endpoint *endpoint, int id, int rank)
{
    return endpoint->segments[id].peers[rank];
}

static void *tcp_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_tcp_is_near(endpoint, rank) ? cohi_mapped_pointer(&endpoint->mapped, id, rank)
                                            : NULL;
}

const cohi_engine_memory cohi_tcp_memory = {
    .size = sizeof cohi_tcp_memory,
    .segment_add = tcp_segment_add,
    .segment_commit = tcp_segment_commit,
    .segment_decommit = tcp_segment_decommit,
    .segment_remove = tcp_segment_remove,
    .region_export = tcp_region_export,
    .region_attach = tcp_region_attach,
    .peer_pointer = tcp_peer_pointer,
};
