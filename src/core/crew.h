/*
 * crew.h - the ranks of one process: what they have in common, and, when a single thread drives
 * them, the log by which they agree without waiting.
 */
#ifndef COHI_CORE_CREW_H
#define COHI_CORE_CREW_H

#include "core/world.h"

typedef struct cohi_crew {
    pthread_mutex_t lock;
    uint64_t serial; /* no two crews of a process have the same */
    int open;        /* worlds not yet dissolved; the last one frees the crew */
    bool driven;
    cohi_board board;
    cohi_crew_space space;
    int size;
    coh_world **worlds; /* [size] */
    cohi_record *log;   /* driven: the n-th allocation call, as the first rank there made it */
    size_t logged;
    size_t log_room;
} cohi_crew;

/* Makes `size` ranks. `bound`: each world to a thread of its own. */
coh_status cohi_crew_make(int size, bool driven, bool bound, const coh_options *options,
                          const cohi_config *config, coh_world **worlds);

/* The world has let go of everything else; closes its endpoint, and the crew with the last. */
void cohi_crew_leave(coh_world *world);

/*
 * The driven form of cohi_agree for the world's `turn`-th allocation: the first rank there commits
 * `needed` heap bytes on all ranks and logs; the others must ask for the same.
 */
coh_status cohi_crew_agree(coh_world *world, const char *call, cohi_record *mine, uint64_t turn,
                           uint64_t needed);

#endif
