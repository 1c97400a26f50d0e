/* dissolve.h - the end of a world: everything that the other rooms gave it is freed, in the reverse
 * order of init. */
#ifndef COHI_START_DISSOLVE_H
#define COHI_START_DISSOLVE_H

#include "core/world/world.h"

/* Frees everything that belongs to the world, in whatever state of making it is, and leaves the
 * tombstone. Not collective. */
void cohi_world_dissolve(coh_world *world);

/* Closes its endpoint, if it has one. */
void cohi_world_close_endpoint(coh_world *world);

#endif
