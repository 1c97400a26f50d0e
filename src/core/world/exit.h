/* exit.h - ending the whole job at one rank's request. */
#ifndef COHI_CORE_WORLD_EXIT_H
#define COHI_CORE_WORLD_EXIT_H

#include "core/world/world.h"

/* If a rank of the world's job has called coh_global_exit, ends this process with its code. */
void cohi_exit_if_asked(coh_world *world);

#endif
