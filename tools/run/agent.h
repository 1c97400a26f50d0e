/*
 * agent.h - `cohort agent`: the process that runs a host's ranks for a launcher on another.
 *
 *   agent.c        its life: the event loop, and the end
 *   agent_take.c   what the launcher says
 *   agent_tell.c   what it tells the launcher
 *
 * It speaks with the launcher over its standard input and output (hosts/frame.h). When that stream
 * ends, however that came, all of its ranks are taken down at once.
 */
#ifndef COHI_TOOLS_AGENT_H
#define COHI_TOOLS_AGENT_H

#include "facts.h"
#include "hosts/order.h"
#include "hosts/stream.h"
#include "run/squad.h"
#include "sight.h"

/* The pipe behind a rank's standard output or error. */
typedef struct cohi_agent_pipe {
    int fd; /* -1: not there yet, or at its end */
    uint32_t credit;
} cohi_agent_pipe;

typedef struct cohi_agent {
    cohi_squad squad;
    cohi_order order;
    cohi_stream stream;
    int signals;            /* signalfd */
    cohi_agent_pipe *pipes; /* two a rank of this host */
    int ordered, started;
    int over;                /* the launcher wants no ranks (any more), or is gone */
    int gone;                /* the launcher is gone */
    int held;                /* the ranks were stopped, and so may be the launcher */
    uint64_t heard_ns;       /* when the launcher last said something */
    uint64_t sent, received; /* bytes of output, and how many of them have come */

    /* What was told of the ranks of this host. */
    cohi_facts *facts;
    cohi_sight *sights;
    unsigned char *stopped;
    int exit_told, race_told;
    uint64_t look_at_ns;
    uint64_t stops_at_ns; /* when to look for stopped ranks */
    struct pollfd *polls;
} cohi_agent;

/* ---- run/agent_take.c ---- */

/* Does what the launcher has said. */
void cohi_agent_take(cohi_agent *agent);

/* ---- run/agent_tell.c ---- */

extern const cohi_squad_hooks cohi_agent_hooks;

/* That it is of no use here: the reason is in coh_last_error(). */
void cohi_agent_tell_failure(cohi_agent *agent);

/* What has changed since the last time, if it is time to look. */
void cohi_agent_tell_changes(cohi_agent *agent, uint64_t now);

/* What the ranks were doing when the job began to fail. */
void cohi_agent_tell_snapshot(cohi_agent *agent);

/* Whether output of the pipe may be sent now. */
int cohi_agent_may_send(const cohi_agent *agent, const cohi_agent_pipe *pipe);

/* Sends some; 0 when there is none, now or ever. */
int cohi_agent_send_output(cohi_agent *agent, int index);

#endif
