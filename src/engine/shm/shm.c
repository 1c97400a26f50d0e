/*
 * shm.c - ranks that are processes of one host.
 *
 * A segment is a sealed memfd. Its descriptor travels to each peer with the card, the peer maps
 * it and closes the descriptor; nothing has a name, so nothing can be left behind.
 */
#include "engine/engine.h"

#include "base/error.h"
#include "memory/host_region.h"

#include <stdlib.h>

struct cohi_endpoint {
    int rank;
    int size;
    int huge[COHI_SEGMENTS_MAX];
    cohi_host_region own[COHI_SEGMENTS_MAX];
    cohi_host_region *peers[COHI_SEGMENTS_MAX]; /* [size] each, from the first attach on */
};

static coh_status shm_probe(const cohi_need *need)
{
    if (need->hosts > 1)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "shm: it connects processes of one host; these ranks "
                         "are on %d",
                         need->hosts);
    if (!need->in_process || need->size == 1)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE, "shm: it connects processes; these ranks are threads of "
                                        "one process");
}

static coh_status shm_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "shm: out of memory for rank %d", args->rank);
    made->rank = args->rank;
    made->size = args->need.size;
    *endpoint = made;
    return COH_OK;
}

static void shm_segment_remove(cohi_endpoint *endpoint, int id)
{
    for (int rank = 0; endpoint->peers[id] && rank < endpoint->size; rank++)
        cohi_host_region_release(&endpoint->peers[id][rank]);
    free(endpoint->peers[id]);
    endpoint->peers[id] = NULL;
    cohi_host_region_release(&endpoint->own[id]);
}

static void shm_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        shm_segment_remove(endpoint, id);
    free(endpoint);
}

static void shm_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    (void)endpoint;
    *facts =
        (cohi_engine_facts){.size = sizeof *facts, .cpu_coherent_atomics = 1, .takes_prepared = 1};
}

static coh_status shm_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    if (spec->existing)
        return cohi_fail(COH_UNSUPPORTED,
                         "shm: memory that was not allocated by Cohort cannot be shared with other "
                         "processes");
    cohi_host_region *own = &endpoint->own[spec->id];
    coh_status status = spec->prepared
                            ? cohi_host_region_prepared(spec->bytes, spec->huge_pages, own)
                            : cohi_host_region_shared(spec->bytes, spec->huge_pages, own);
    if (status != COH_OK)
        return status;
    endpoint->huge[spec->id] = spec->huge_pages;
    *base = endpoint->own[spec->id].base;
    return COH_OK;
}

static coh_status shm_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return cohi_host_region_commit(&endpoint->own[id], from, to);
}

static void shm_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_host_region_decommit(&endpoint->own[id], from, to);
}

static coh_status shm_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    *key = (cohi_region_key){.fd = endpoint->own[id].fd};
    return COH_OK;
}

static coh_status shm_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    if (!endpoint->peers[id])
        endpoint->peers[id] = calloc((size_t)endpoint->size, sizeof *endpoint->peers[id]);
    if (!endpoint->peers[id])
        return cohi_fail(COH_NO_MEMORY, "shm: out of memory for %d ranks", endpoint->size);
    if (rank == endpoint->rank)
        return COH_OK;
    int fd = key->fd;
    key->fd = -1;
    return cohi_host_region_attach(fd, bytes, endpoint->huge[id], &endpoint->peers[id][rank]);
}

static void *shm_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    if (rank == endpoint->rank)
        return endpoint->own[id].base;
    return endpoint->peers[id] ? endpoint->peers[id][rank].base : NULL;
}

static const cohi_engine_lifecycle shm_lifecycle = {
    .size = sizeof shm_lifecycle,
    .probe = shm_probe,
    .open = shm_open,
    .close = shm_close,
    .query = shm_query,
};

static const cohi_engine_memory shm_memory = {
    .size = sizeof shm_memory,
    .segment_add = shm_segment_add,
    .segment_commit = shm_segment_commit,
    .segment_decommit = shm_segment_decommit,
    .segment_remove = shm_segment_remove,
    .region_export = shm_region_export,
    .region_attach = shm_region_attach,
    .peer_pointer = shm_peer_pointer,
};

const cohi_engine cohi_engine_shm = {
    .size = sizeof cohi_engine_shm,
    .contract = COHI_CONTRACT,
    .name = "shm",
    .lifecycle = &shm_lifecycle,
    .memory = &shm_memory,
};
