/*
 * agent.h - `cohort agent`: the process that runs a host's ranks for a launcher on another.
 *
 *   agent.c        its life: the event loop, and the end
 *   agent_take.c   what the launcher says
 *   agent_tell.c   what it tells the launcher
 *   agent_input.c  what rank 0 reads
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

/* The standard input of rank 0, where that is of this host. */
typedef struct cohi_agent_input {
    int fd;     /* of the pipe to it; -1: it has none, or has had all */
    int at_end; /* nothing comes after what is here */
    char *data; /* [COHI_CREDIT_BYTES], of which data[start, end) is to be written */
    size_t start, end;
} cohi_agent_input;

typedef struct cohi_agent {
    cohi_squad squad;
    cohi_order order;
    cohi_stream stream;
    int signals;            /* signalfd */
    cohi_agent_pipe *pipes; /* two a rank of this host */
    cohi_agent_input input;
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
    unsigned char *blamed; /* of all ranks of the job: told once, by whichever rank */
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

/* ---- run/agent_input.c ---- */

/* Makes the pipe that rank 0 will read, where it is of this host. */
coh_status cohi_agent_open_input(cohi_agent *agent);
void cohi_agent_close_input(cohi_agent *agent);

/* Whether something is to be written. */
int cohi_agent_has_input(const cohi_agent *agent);

/* Writes what can be written at once. */
void cohi_agent_write_input(cohi_agent *agent);

/* Takes some from the launcher: -1 when that is more than it may send. */
int cohi_agent_take_input(cohi_agent *agent, const cohi_frame *frame);

#endif
