#include "engine/mpi/mpi.h"

static coh_status mpi_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    coh_status status = cohi_segments_add(&endpoint->segments, spec, base);
    if (status != COH_OK)
        return status;
    cohi_mpi_lock(endpoint);
    cohi_segments_note(&endpoint->segments, spec, *base);
    cohi_mpi_unlock(endpoint);
    return COH_OK;
}

static coh_status mpi_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return cohi_segments_commit(&endpoint->segments, id, from, to);
}

static void mpi_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_segments_decommit(&endpoint->segments, id, from, to);
}

/* MPI never has an address of it, so that nothing can be under way. */
static void mpi_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_mpi_lock(endpoint);
    cohi_segments_forget(&endpoint->segments, id);
    cohi_mpi_unlock(endpoint);
    cohi_segments_remove(&endpoint->segments, id);
}

void cohi_mpi_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        mpi_segment_remove(endpoint, id);
}

static coh_status mpi_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    return cohi_segments_export(&endpoint->segments, id, key);
}

static coh_status mpi_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    return cohi_segments_attach(&endpoint->segments, id, rank, bytes, key);
}

static void *mpi_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_segments_pointer(&endpoint->segments, id, rank);
}

const cohi_engine_memory cohi_mpi_memory = {
    .size = sizeof cohi_mpi_memory,
    .segment_add = mpi_segment_add,
    .segment_commit = mpi_segment_commit,
    .segment_decommit = mpi_segment_decommit,
    .segment_remove = mpi_segment_remove,
    .region_export = mpi_region_export,
    .region_attach = mpi_region_attach,
    .peer_pointer = mpi_peer_pointer,
};
