/*
 * squad.h - the ranks of one host: their board, and the guard and supervisors above them.
 *
 *   squad.c   making the board, starting the ranks, what their supervisors tell, orders to them
 *   reap.c   what the guard tells; the ends of supervisors, and what they leave
 *
 * Its owner is the launcher, for a job on its own host, or an agent. The squad tells it what happens
 * through hooks; what that means for the job is the owner's to decide.
 */
#ifndef COHI_TOOLS_SQUAD_H
#define COHI_TOOLS_SQUAD_H

#include "bootstrap/listeners.h"
#include "run/supervise.h"

#include <cohort.h>
#include <poll.h>

typedef struct cohi_squad_rank {
    pid_t supervisor; /* 0: not known to be started, or reaped */
    int counted;      /* in cohi_squad's `alive` */
    pid_t pid;
    int control; /* socket to the supervisor, or -1 */
    int ended;
} cohi_squad_rank;

/* What the owner is told. */
typedef struct cohi_squad_hooks {
    void (*started)(void *owner, int rank, pid_t pid);

    /* Told once a rank, by the first that knows. */
    void (*ended)(void *owner, int rank, int wait_status, uint64_t at_ns);

    /* The program, or a process for it, cannot be started: an errno, and the sentence. */
    void (*no_start)(void *owner, int error, const char *text);

    /* A line for the user. */
    void (*say)(void *owner, const char *text);

    /* The pipe behind the rank's standard output or error, non-blocking, for the owner to close. */
    void (*piped)(void *owner, int rank, int is_error, int fd);
} cohi_squad_hooks;

typedef struct cohi_squad {
    const cohi_squad_hooks *hooks;
    void *owner;
    cohi_charge charge; /* what is the same for all ranks */
    coh_unique_id id;
    cohi_listeners listeners; /* for rank 0 of a job on several hosts */
    cohi_board board;
    cohi_squad_rank *ranks; /* of this host: that of rank r at r - charge.first */
    int alive;              /* supervisors that were asked for and are not reaped */
    pid_t guard;            /* see guard.h; 0: not started, or reaped */
    int guard_link;         /* socket to it, or -1 */
    int *inherited;         /* descriptors from before */
    pid_t *children_before; /* that the owner had when it began */
    int children_before_count;
    int refused;   /* ranks cannot be started: what follows from that is not told */
    int abandoned; /* supervisors were killed: their ends are not told */
} cohi_squad;

/* Before anything else: nothing to close yet. */
void cohi_squad_init(cohi_squad *squad, const cohi_squad_hooks *hooks, void *owner);

/* Notes what the owner has from before: descriptors, which are the ranks', and children, which are
 * not touched. 0, or -1 with the reason in coh_last_error(). */
int cohi_squad_remember(cohi_squad *squad);

/* Raises the soft limit of descriptors to what charge.count ranks need beside `own`; the ranks get it
 * back as it was. 0, or -1 as above. */
int cohi_squad_raise_limit(cohi_squad *squad, int own);

/* Memory and board for charge.count ranks from charge.first of charge.size; those and the command
 * must be set. `host` is the name of this host, `job` as in cohi_board_head. 0, or -1 as above;
 * *warning may be set to what is to be told the user. */
int cohi_squad_make(cohi_squad *squad, const char *host, uint64_t job, const char **warning);

/* Starts all ranks, until one is refused. 0, or -1 as above; those that were started go on. */
int cohi_squad_start(cohi_squad *squad);

/* Sends an order (supervise.h) to all supervisors. */
void cohi_squad_order(const cohi_squad *squad, int order);

/* Kills the supervisors: they do not end by themselves. */
void cohi_squad_abandon(cohi_squad *squad);

/* Reaps what has ended: after SIGCHLD. */
void cohi_squad_reap(cohi_squad *squad);

/* When the last supervisor is gone: ends the guard, and kills and reaps what is left below. */
void cohi_squad_sweep(cohi_squad *squad);

void cohi_squad_close(cohi_squad *squad);

/* How many descriptors the squad polls; it fills so many, and looks at what came of them. */
int cohi_squad_poll_count(const cohi_squad *squad);
void cohi_squad_fill_polls(const cohi_squad *squad, struct pollfd *polls);
void cohi_squad_take_polls(cohi_squad *squad, const struct pollfd *polls);

/* ---- between its files ---- */

/* Reads what rank's supervisor has told. */
void cohi_squad_notices(cohi_squad *squad, int rank);

/* Reads what the guard has told. */
void cohi_squad_guard_news(cohi_squad *squad);

/* Sends it a request that is no rank (guard.h). */
void cohi_squad_tell_guard(const cohi_squad *squad, int order);

/* The rank's supervisor is gone, or there is none. */
void cohi_squad_count_out(cohi_squad *squad, int rank);

/* The rank has ended: the first that says so is right. */
void cohi_squad_note_end(cohi_squad *squad, int rank, int wait_status, uint64_t at_ns);

/* There is no process for the rank. */
void cohi_squad_no_fork(cohi_squad *squad, int rank, int error);

/* Tells that ranks cannot be started, once. */
void cohi_squad_refuse(cohi_squad *squad, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A line for the user. */
void cohi_squad_say(cohi_squad *squad, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Whether a socket may still have something to read after this errno. A process that ends with
 * something unread resets the connection. The kernel then reports ECONNRESET once, before the
 * messages that are still in the socket; the next call reads those, and the end of the stream comes
 * after them.
 */
int cohi_squad_reads_on(int error);

static inline cohi_squad_rank *cohi_squad_at(const cohi_squad *squad, int rank)
{
    return &squad->ranks[rank - squad->charge.first];
}

/* The rank after the last. */
static inline int cohi_squad_end(const cohi_squad *squad)
{
    return squad->charge.first + squad->charge.count;
}

#endif
