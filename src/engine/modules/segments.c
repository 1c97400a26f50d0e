#include "engine/modules/segments.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- own ---- */

char *cohi_segments_locate(const cohi_segments *segments, const cohi_remote *at,
                           uint32_t generation, uint64_t bytes, const char **wrong)
{
    const cohi_segment *segment = &segments->rows[at->segment];
    if (!segment->base || segment->generation != generation)
        *wrong = "there is no such segment";
    else if (at->offset > segment->bytes || bytes > segment->bytes - at->offset)
        *wrong = "it is outside of the segment";
    else
        return segment->base + at->offset;
    return NULL;
}

coh_status cohi_segments_add(cohi_segments *segments, const cohi_segment_spec *spec, void **base)
{
    if (spec->kind != COHI_MEMORY_HOST)
        return cohi_fail(COH_UNSUPPORTED, "%s: it has host memory only, not kind %d",
                         segments->mapped.engine, (int)spec->kind);
    *base = spec->existing;
    return spec->existing ? COH_OK : cohi_mapped_add(&segments->mapped, spec, base);
}

void cohi_segments_note(cohi_segments *segments, const cohi_segment_spec *spec, void *base)
{
    cohi_segment *segment = &segments->rows[spec->id];
    segment->base = base;
    segment->bytes = spec->bytes;
    segment->existing = spec->existing != NULL;
    segment->generation++;
}

coh_status cohi_segments_commit(cohi_segments *segments, int id, uint64_t from, uint64_t to)
{
    return segments->rows[id].existing ? COH_OK
                                       : cohi_mapped_commit(&segments->mapped, id, from, to);
}

void cohi_segments_decommit(cohi_segments *segments, int id, uint64_t from, uint64_t to)
{
    if (!segments->rows[id].existing)
        cohi_mapped_decommit(&segments->mapped, id, from, to);
}

void cohi_segments_forget(cohi_segments *segments, int id)
{
    cohi_segment *segment = &segments->rows[id];
    free(segment->peers);
    *segment = (cohi_segment){.generation = segment->generation};
}

void cohi_segments_remove(cohi_segments *segments, int id)
{
    cohi_mapped_remove(&segments->mapped, id);
}

/* ---- the peers' ---- */

coh_status cohi_segments_export(cohi_segments *segments, int id, cohi_region_key *key)
{
    uint32_t generation = segments->rows[id].generation;
    *key = (cohi_region_key){.fd = cohi_mapped_descriptor(&segments->mapped, id)};
    memcpy(key->bytes, &generation, sizeof generation);
    return COH_OK;
}

static coh_status note_generation(cohi_segments *segments, int id, int rank,
                                  const cohi_region_key *key)
{
    cohi_segment *segment = &segments->rows[id];
    int size = segments->mapped.size;
    if (!segment->peers)
        segment->peers = calloc((size_t)size, sizeof *segment->peers);
    if (!segment->peers)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", segments->mapped.engine,
                         size);
    memcpy(&segment->peers[rank], key->bytes, sizeof segment->peers[rank]);
    return COH_OK;
}

coh_status cohi_segments_attach(cohi_segments *segments, int id, int rank, uint64_t bytes,
                                cohi_region_key *key)
{
    if (!cohi_segments_is_near(segments, rank))
        return note_generation(segments, id, rank, key);
    return segments->rows[id].existing
               ? COH_OK
               : cohi_mapped_attach(&segments->mapped, id, rank, bytes, key);
}

void *cohi_segments_pointer(const cohi_segments *segments, int id, int rank)
{
    return cohi_segments_is_near(segments, rank) ? cohi_mapped_pointer(&segments->mapped, id, rank)
                                                 : NULL;
}
