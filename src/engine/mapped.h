/*
 * mapped.h - segments that ranks of one host load and store directly.
 *
 * A segment is a sealed memfd. Its descriptor travels to each peer beside the card, the peer maps
 * it and closes the descriptor; nothing has a name, so nothing can be left behind.
 */
#ifndef COHI_ENGINE_MAPPED_H
#define COHI_ENGINE_MAPPED_H

#include "engine/engine.h"
#include "memory/host_region.h"

typedef struct cohi_mapped {
    const char *engine; /* its name, for error messages */
    int rank;
    int size;
    int huge[COHI_SEGMENTS_MAX];
    cohi_host_region own[COHI_SEGMENTS_MAX];
    cohi_host_region *peers[COHI_SEGMENTS_MAX]; /* [size] each, from the first attach on */
} cohi_mapped;

/* The slots of the memory group, for segments that the engine provides. */
coh_status cohi_mapped_add(cohi_mapped *mapped, const cohi_segment_spec *spec, void **base);
coh_status cohi_mapped_commit(cohi_mapped *mapped, int id, uint64_t from, uint64_t to);
void cohi_mapped_decommit(cohi_mapped *mapped, int id, uint64_t from, uint64_t to);
void cohi_mapped_remove(cohi_mapped *mapped, int id);

/* The descriptor to pass along; -1 where the segment is not there. */
int cohi_mapped_descriptor(const cohi_mapped *mapped, int id);

/* Takes the key's descriptor. */
coh_status cohi_mapped_attach(cohi_mapped *mapped, int id, int rank, uint64_t bytes,
                              cohi_region_key *key);

/* NULL where the region is not attached. */
void *cohi_mapped_pointer(const cohi_mapped *mapped, int id, int rank);

/* Removes all segments. */
void cohi_mapped_close(cohi_mapped *mapped);

#endif
