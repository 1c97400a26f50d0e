/*
 * segments.h - the segments of an engine whose peers are partly mapped.
 *
 * Ranks of one host map each other's (engine/mapped.h). Frames of the others name a segment by its number and
 * generation, so that whatever comes for one that is gone is found to be wrong. What changes a
 * segment, and what moves bytes to or from one, is done under a lock of the engine's.
 */
#ifndef COHI_ENGINE_MODULES_SEGMENTS_H
#define COHI_ENGINE_MODULES_SEGMENTS_H

#include "engine/mapped.h"

typedef struct cohi_segment {
    char *base; /* NULL: none */
    uint64_t bytes;
    uint32_t generation; /* of the present one, or the last */
    bool existing;       /* memory that core gave, and that ranks of this host map already */
    unsigned busy;       /* transfers that the library behind the engine makes from and to it */
    uint32_t *peers;     /* [size]: generations of theirs, from the first attach on */
} cohi_segment;

typedef struct cohi_segments {
    cohi_mapped mapped;
    const int *host_of; /* [size]: the endpoint's */
    cohi_segment rows[COHI_SEGMENTS_MAX];
} cohi_segments;

static inline bool cohi_segments_is_near(const cohi_segments *segments, int rank)
{
    return segments->host_of[rank] == segments->host_of[segments->mapped.rank];
}

/* Where so many bytes are; NULL, and why not in *wrong. Under the lock. */
char *cohi_segments_locate(const cohi_segments *segments, const cohi_remote *at,
                           uint32_t generation, uint64_t bytes, const char **wrong);

/* The slots of the memory group. Adding makes the memory, and noting, under the lock, lets others
 * in; forgetting, under the lock, keeps them out, and removing gives the memory back. */
coh_status cohi_segments_add(cohi_segments *segments, const cohi_segment_spec *spec, void **base);
void cohi_segments_note(cohi_segments *segments, const cohi_segment_spec *spec, void *base);
coh_status cohi_segments_commit(cohi_segments *segments, int id, uint64_t from, uint64_t to);
void cohi_segments_decommit(cohi_segments *segments, int id, uint64_t from, uint64_t to);
void cohi_segments_forget(cohi_segments *segments, int id);
void cohi_segments_remove(cohi_segments *segments, int id);
coh_status cohi_segments_export(cohi_segments *segments, int id, cohi_region_key *key);
coh_status cohi_segments_attach(cohi_segments *segments, int id, int rank, uint64_t bytes,
                                cohi_region_key *key);
void *cohi_segments_pointer(const cohi_segments *segments, int id, int rank);

#endif
