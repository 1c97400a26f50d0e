/*
 * shm.c - ranks that are processes of one host: all segments are mapped by all.
 */
#include "engine/engine.h"

#include "base/error.h"
#include "engine/mapped.h"

#include <stdlib.h>

struct cohi_endpoint {
    cohi_mapped mapped;
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
    made->mapped.engine = "shm";
    made->mapped.rank = args->rank;
    made->mapped.size = args->need.size;
    *endpoint = made;
    return COH_OK;
}

static void shm_close(cohi_endpoint *endpoint)
{
    cohi_mapped_close(&endpoint->mapped);
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
    return cohi_mapped_add(&endpoint->mapped, spec, base);
}

static coh_status shm_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return cohi_mapped_commit(&endpoint->mapped, id, from, to);
}

static void shm_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_mapped_decommit(&endpoint->mapped, id, from, to);
}

static void shm_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_mapped_remove(&endpoint->mapped, id);
}

static coh_status shm_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    *key = (cohi_region_key){.fd = cohi_mapped_descriptor(&endpoint->mapped, id)};
    return COH_OK;
}

static coh_status shm_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    return cohi_mapped_attach(&endpoint->mapped, id, rank, bytes, key);
}

static void *shm_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_mapped_pointer(&endpoint->mapped, id, rank);
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
