/* driven.h - how ranks that a single thread drives agree on allocations: none of them can wait, so the
 * first one there acts for all, and the others follow its log. */
#ifndef COHI_CORE_HEAP_DRIVEN_H
#define COHI_CORE_HEAP_DRIVEN_H

#include "core/world/world.h"

/*
 * The driven form of cohi_agree for the world's `turn`-th allocation: the first rank there commits
 * `needed` heap bytes on all ranks and logs; the others must ask for the same.
 */
coh_status cohi_driven_agree(coh_world *world, const char *call, cohi_record *mine, uint64_t turn,
                             uint64_t needed);

#endif
