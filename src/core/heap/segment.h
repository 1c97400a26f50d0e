/*
 * segment.h - adding a segment to this rank, and reaching the peers': at init, and for each heap that is
 * made later.
 */
#ifndef COHI_CORE_HEAP_SEGMENT_H
#define COHI_CORE_HEAP_SEGMENT_H

#include "core/world/world.h"

/* Adds the segment; `key` is for the others. Its descriptor stays the engine's. On failure there is no
 * such segment. */
coh_status cohi_segment_offer(cohi_server server, const cohi_segment_spec *spec, void **base,
                              cohi_region_key *key);

/* Makes rank `rank`'s segment reachable. Takes key->fd, or leaves it to the caller to close. */
coh_status cohi_segment_attach(cohi_server server, int id, int rank, uint64_t bytes,
                               cohi_region_key *key);

/*
 * Gives every rank every rank's card; collective, between two agreements of the world's team. all[size]
 * includes this rank's own. The descriptors of the others are this process's, for
 * cohi_segment_attach or cohi_segment_drop.
 */
coh_status cohi_segment_exchange(coh_world *world, const cohi_segment_card *mine,
                                 cohi_segment_card *all);

/* Whether an exchange could work. COH_TRANSPORT: an earlier one failed, and nobody knows which messages
 * of it are still to come. */
coh_status cohi_segment_check_exchange(const coh_world *world, const char *call);

/* Closes what is left of the others' descriptors. */
void cohi_segment_drop(const coh_world *world, cohi_segment_card *all);

#endif
