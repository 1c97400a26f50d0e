#include "engine/mapped.h"

#include "base/error.h"

#include <stdlib.h>

coh_status cohi_mapped_add(cohi_mapped *mapped, const cohi_segment_spec *spec, void **base)
{
    cohi_host_region *own = &mapped->own[spec->id];
    coh_status status = spec->prepared
                            ? cohi_host_region_prepared(spec->bytes, spec->huge_pages, own)
                            : cohi_host_region_shared(spec->bytes, spec->huge_pages, own);
    if (status != COH_OK)
        return status;
    mapped->huge[spec->id] = spec->huge_pages;
    *base = own->base;
    return COH_OK;
}

coh_status cohi_mapped_commit(cohi_mapped *mapped, int id, uint64_t from, uint64_t to)
{
    return cohi_host_region_commit(&mapped->own[id], from, to);
}

void cohi_mapped_decommit(cohi_mapped *mapped, int id, uint64_t from, uint64_t to)
{
    cohi_host_region_decommit(&mapped->own[id], from, to);
}

void cohi_mapped_remove(cohi_mapped *mapped, int id)
{
    for (int rank = 0; mapped->peers[id] && rank < mapped->size; rank++)
        cohi_host_region_release(&mapped->peers[id][rank]);
    free(mapped->peers[id]);
    mapped->peers[id] = NULL;
    cohi_host_region_release(&mapped->own[id]);
}

int cohi_mapped_descriptor(const cohi_mapped *mapped, int id)
{
    return mapped->own[id].base ? mapped->own[id].fd : -1;
}

coh_status cohi_mapped_attach(cohi_mapped *mapped, int id, int rank, uint64_t bytes,
                              cohi_region_key *key)
{
    if (!mapped->peers[id])
        mapped->peers[id] = calloc((size_t)mapped->size, sizeof *mapped->peers[id]);
    if (!mapped->peers[id])
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", mapped->engine,
                         mapped->size);
    if (rank == mapped->rank)
        return COH_OK;
    int fd = key->fd;
    key->fd = -1;
    return cohi_host_region_attach(fd, bytes, mapped->huge[id], &mapped->peers[id][rank]);
}

void *cohi_mapped_pointer(const cohi_mapped *mapped, int id, int rank)
{
    if (rank == mapped->rank)
        return mapped->own[id].base;
    return mapped->peers[id] ? mapped->peers[id][rank].base : NULL;
}

void cohi_mapped_close(cohi_mapped *mapped)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        cohi_mapped_remove(mapped, id);
}
