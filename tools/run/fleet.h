/*
 * fleet.h - the hosts of a job, each with an agent.
 *
 * The launcher starts all agents at once, tells each what to run, and when the last of them is ready
 * has all of them start their ranks. From then on it passes on between them what happens to ranks.
 */
#ifndef COHI_TOOLS_FLEET_H
#define COHI_TOOLS_FLEET_H

#include "hosts/order.h"
#include "hosts/stream.h"
#include "run/run.h"
#include "run/shell.h"
#include "sight.h"

typedef enum cohi_remote_state {
    COHI_REMOTE_REACHING, /* its agent has not answered */
    COHI_REMOTE_ASKED,    /* it was told what to run */
    COHI_REMOTE_READY,
    COHI_REMOTE_RUNNING,
    COHI_REMOTE_GONE /* its agent has done its work, or is lost */
} cohi_remote_state;

/* A host. */
typedef struct cohi_fleet_host {
    const cohi_host_entry *entry;
    const char *label; /* its name in messages */
    int index;
    cohi_remote_state state;
    cohi_shell shell;
    int shell_status; /* of waitpid(2), once shell.pid is 0 */
    cohi_stream stream;
    char line[256]; /* the line that its standard error is in, and the last whole one */
    size_t line_used;
    char last_line[256];
    uint64_t reach_by_ns; /* when it must have answered, or said all it has to say */
    uint64_t pinged_ns;   /* since when an answer is waited for; 0: none is */
    uint64_t ping_at_ns;
    uint64_t received; /* bytes of output, and how many of them it was told */
    uint64_t confirmed;
    uint32_t *credit; /* of each stream of its ranks: output, error, ... */
} cohi_fleet_host;

typedef struct cohi_fleet {
    cohi_fleet_host *remotes;
    int count;
    cohi_shell_plan plan;
    char *program;
    cohi_order order; /* of all hosts: `here` differs */
    coh_unique_id id; /* from rank 0's host */
    int has_id;
    int started;
    uint64_t link_timeout_ns;
    uint32_t input_credit; /* bytes of input that rank 0's host may be sent */
    int input_ended;       /* there is none, or no more */
    cohi_summary *summary;
    int summary_fd;
} cohi_fleet;

/* ---- run/remote.c: one of them ---- */

/* Reaches for the host. */
coh_status cohi_remote_start(cohi_job *run, cohi_fleet_host *remote);

/* Reads what its agent says, and does it; what its standard error says is kept. */
void cohi_remote_read(cohi_job *run, cohi_fleet_host *remote);
void cohi_remote_read_errors(cohi_job *run, cohi_fleet_host *remote);

/* Its shell has ended. */
void cohi_remote_note_shell(cohi_job *run, cohi_fleet_host *remote, int wait_status);

/* Gives credit for output where there is room for it. */
void cohi_remote_grant(cohi_job *run, cohi_fleet_host *remote);

/* Pings, and gives up what does not answer. */
void cohi_remote_tick(cohi_job *run, cohi_fleet_host *remote, uint64_t now);

/* The host is of no use, or not any more; `why` follows its name. */
void cohi_remote_lose(cohi_job *run, cohi_fleet_host *remote, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Closes the stream, which ends the agent and all below it, and kills the shell. */
void cohi_remote_hang_up(cohi_fleet_host *remote);

/* ---- run/fleet.c: all of them ---- */

/* A host is ready: when all are, they begin. */
void cohi_fleet_begin(cohi_job *run);

/* Sends a frame of a rank, or of none (-1), to all hosts but `except` (NULL: none). */
void cohi_fleet_tell(cohi_job *run, const cohi_fleet_host *except, cohi_frame_kind kind, int rank,
                     const void *data, size_t length);

/* ---- run/fleet_input.c: what rank 0 reads ---- */

/* Whether the launcher's standard input is to be read now. */
int cohi_fleet_wants_input(const cohi_job *run);

/* Reads some and sends it to rank 0's host. */
void cohi_fleet_read_input(cohi_job *run);

/* Rank 0 has taken some: -1 when that is more than it was sent. */
int cohi_fleet_note_taken(cohi_job *run, uint32_t bytes);

#endif
