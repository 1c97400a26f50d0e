/*
 * guard.h - the process between the launcher and the supervisors.
 *
 * It starts the supervisors when the launcher asks for them, tells the launcher how they ended, and
 * kills what they leave. It is a subreaper above them and below the launcher, which is one too, and
 * each of the three kinds has a name of its own. So whichever of them are killed at the same
 * moment, the kind that is left takes the ranks and all their descendants down; something is left
 * behind only when all three kinds are killed at once.
 */
#ifndef COHI_TOOLS_GUARD_H
#define COHI_TOOLS_GUARD_H

#include "run/supervise.h"

/* From the launcher: the rank to start a supervisor for, with its descriptors beside it, or one of
 * these. */
enum {
    COHI_GUARD_STARTED_ALL = -1, /* no further rank will be asked for */
    COHI_GUARD_KILL_ALL = -2     /* the supervisors do not end by themselves */
};

typedef struct cohi_guard_request {
    int32_t rank;
} cohi_guard_request;

/* The descriptors, in the order in which they are sent. */
enum { COHI_GUARD_CONTROL, COHI_GUARD_OUTPUT, COHI_GUARD_ERROR, COHI_GUARD_JOB, COHI_GUARD_FDS };

typedef enum cohi_guard_news_kind {
    COHI_GUARD_STARTED = 1, /* pid: the rank's supervisor */
    COHI_GUARD_NO_FORK = 2, /* value: the errno of fork */
    COHI_GUARD_ENDED = 3,   /* the rank's supervisor; value: its wait status */
    COHI_GUARD_ORPHAN = 4   /* a process that a supervisor left has ended; value: its wait status */
} cohi_guard_news_kind;

typedef struct cohi_guard_news {
    int32_t kind;
    int32_t rank; /* -1 for an orphan */
    int32_t pid;
    int32_t value;
} cohi_guard_news;

/* The life of the guard. `link` is its end of the socket to the launcher. */
_Noreturn void cohi_guard(const cohi_charge *charge, int link);

#endif
