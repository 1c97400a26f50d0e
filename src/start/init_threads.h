/* init_threads.h - making the ranks of one process, and taking them apart. */
#ifndef COHI_START_INIT_THREADS_H
#define COHI_START_INIT_THREADS_H

#include "core/world/world.h"

/* Makes `size` ranks. `bound`: each world to a thread of its own. */
coh_status cohi_crew_make(int size, bool driven, bool bound, const coh_options *options,
                          const cohi_config *config, coh_world **worlds);

/* The world has let go of everything else; closes its endpoint, and the crew with the last. */
void cohi_crew_leave(coh_world *world);

#endif
