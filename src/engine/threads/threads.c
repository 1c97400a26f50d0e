/*
 * threads.c - ranks that are threads of one process.
 *
 * A peer's segment is where it is; the key is its address. Segments of a rank that left stay mapped
 * until the last rank of the crew has left, since a slower thread may still be writing to them.
 */
#include "engine/engine.h"

#include "base/error.h"
#include "memory/host_region.h"

#include <stdlib.h>
#include <string.h>

struct cohi_endpoint {
    int size;
    cohi_crew_space *crew;
    cohi_host_region own[COHI_SEGMENTS_MAX]; /* base NULL: registered memory, or none */
    void *address[COHI_SEGMENTS_MAX];        /* of own segments, registered ones too */
    void **peers[COHI_SEGMENTS_MAX];         /* [size] each, from the first attach on */
    cohi_endpoint *closed;                   /* next in the crew's list of closed endpoints */
};

static coh_status threads_probe(const cohi_need *need)
{
    if (need->in_process || need->size == 1)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "threads: it connects threads of one process (coh_init_threads); these ranks "
                     "are processes");
}

static coh_status threads_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "threads: out of memory for rank %d", args->rank);
    made->size = args->need.size;
    made->crew = args->crew;
    made->crew->open++;
    *endpoint = made;
    return COH_OK;
}

static void free_endpoint(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++) {
        cohi_host_region_release(&endpoint->own[id]);
        free(endpoint->peers[id]);
    }
    free(endpoint);
}

static void threads_close(cohi_endpoint *endpoint)
{
    cohi_crew_space *crew = endpoint->crew;
    endpoint->closed = crew->fabric;
    crew->fabric = endpoint;
    if (--crew->open > 0)
        return;
    while (crew->fabric) {
        cohi_endpoint *next = ((cohi_endpoint *)crew->fabric)->closed;
        free_endpoint(crew->fabric);
        crew->fabric = next;
    }
}

static void threads_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    (void)endpoint;
    *facts = (cohi_engine_facts){.size = sizeof *facts, .cpu_coherent_atomics = 1};
}

static coh_status threads_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                      void **base)
{
    if (spec->existing) {
        endpoint->address[spec->id] = spec->existing;
    } else {
        coh_status status =
            cohi_host_region_private(spec->bytes, spec->huge_pages, &endpoint->own[spec->id]);
        if (status != COH_OK)
            return status;
        endpoint->address[spec->id] = endpoint->own[spec->id].base;
    }
    *base = endpoint->address[spec->id];
    return COH_OK;
}

static coh_status threads_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from,
                                         uint64_t to)
{
    return cohi_host_region_commit(&endpoint->own[id], from, to);
}

static void threads_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_host_region_decommit(&endpoint->own[id], from, to);
}

static void threads_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_host_region_release(&endpoint->own[id]);
    endpoint->address[id] = NULL;
    free(endpoint->peers[id]);
    endpoint->peers[id] = NULL;
}

static coh_status threads_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    memcpy(key->bytes, &endpoint->address[id], sizeof endpoint->address[id]);
    key->fd = -1;
    return COH_OK;
}

static coh_status threads_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                        cohi_region_key *key)
{
    (void)bytes;
    if (!endpoint->peers[id])
        endpoint->peers[id] = calloc((size_t)endpoint->size, sizeof *endpoint->peers[id]);
    if (!endpoint->peers[id])
        return cohi_fail(COH_NO_MEMORY, "threads: out of memory for %d ranks", endpoint->size);
    memcpy(&endpoint->peers[id][rank], key->bytes, sizeof endpoint->peers[id][rank]);
    return COH_OK;
}

static void *threads_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return endpoint->peers[id] ? endpoint->peers[id][rank] : NULL;
}

static const cohi_engine_lifecycle threads_lifecycle = {
    .size = sizeof threads_lifecycle,
    .probe = threads_probe,
    .open = threads_open,
    .close = threads_close,
    .query = threads_query,
};

static const cohi_engine_memory threads_memory = {
    .size = sizeof threads_memory,
    .segment_add = threads_segment_add,
    .segment_commit = threads_segment_commit,
    .segment_decommit = threads_segment_decommit,
    .segment_remove = threads_segment_remove,
    .region_export = threads_region_export,
    .region_attach = threads_region_attach,
    .peer_pointer = threads_peer_pointer,
};

const cohi_engine cohi_engine_threads = {
    .size = sizeof cohi_engine_threads,
    .contract = COHI_CONTRACT,
    .name = "threads",
    .lifecycle = &threads_lifecycle,
    .memory = &threads_memory,
};
