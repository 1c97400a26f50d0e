/* crew.h - what the ranks of one process have in common (start/init_threads.h makes it). */
#ifndef COHI_CORE_WORLD_CREW_H
#define COHI_CORE_WORLD_CREW_H

#include "base/os.h"
#include "core/world/world.h"

/* What those threads of the process do that are no rank's own and wait for none (core/world/doing.h). */
typedef struct cohi_crew_look {
    pthread_mutex_t lock;
    uint64_t began_ns; /* 0: nobody has looked yet */
    uint64_t took_ns;
    bool told; /* the kernel tells */
    cohi_os_threads seen;
} cohi_crew_look;

typedef struct cohi_crew {
    pthread_mutex_t lock;
    uint64_t serial; /* no two crews of a process have the same */
    int open;        /* worlds not yet dissolved; the last one frees the crew */
    bool driven;
    cohi_board board;
    cohi_crew_space space;
    int size;
    coh_world **worlds; /* [size] */
    cohi_crew_look look;
    cohi_record *log; /* driven: the n-th allocation call, as the first rank there made it */
    size_t logged;
    size_t log_room;
} cohi_crew;

#endif
