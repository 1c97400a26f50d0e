/* join.h - one rank of a group of processes, from what it was told of the job to an open world. */
#ifndef COHI_START_JOIN_H
#define COHI_START_JOIN_H

#include "bootstrap/launch.h"
#include "core/world/world.h"

/* Takes the board over, where the launcher gave one. */
coh_status cohi_join(cohi_launch *launch, const coh_options *options, const cohi_config *config,
                     coh_world **world);

#endif
