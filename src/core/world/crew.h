/* crew.h - what the ranks of one process have in common (start/init_threads.h makes it). */
#ifndef COHI_CORE_WORLD_CREW_H
#define COHI_CORE_WORLD_CREW_H

#include "core/world/world.h"

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

#endif
