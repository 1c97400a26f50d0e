/*
 * Room: parallel.
 *
 * Models that are split over a team: layers in parts, the partition of layers into stages, the
 * relay between stages.
 * Uses cohort-graph.h, the clock of base and device/failure.h.
 * Hides which collectives and messages a split model needs.
 */
/* shard.h - checks that the builders of split layers share. */
#ifndef COHI_PARALLEL_SHARD_H
#define COHI_PARALLEL_SHARD_H

#include <cohort-graph.h>

/* COH_INVALID_ARGUMENT unless `shard` names a part. `call` is the public function. */
coh_status cohi_shard_check(const char *call, const coh_shard *shard);

/* Writes "NAME.SUFFIX"; COH_INVALID_ARGUMENT when that is too long for a name. */
coh_status cohi_join_name(char joined[COH_NAME_BYTES], const char *name, const char *suffix);

#endif
