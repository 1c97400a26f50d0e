/*
 * Room: tools/run.
 *
 * `cohort run`: starts the ranks of a job below a guard and supervisors, passes on their output,
 * and ends them all.
 * Uses bootstrap (the board, the launcher's descriptor), base, what core/health and core/world say of
 * verdicts and waits on the board, and the tools' flags and tables. Runs no rank itself.
 * Hides processes and their ends: it reports a cause and an exit status.
 */
/*
 * run.h - `cohort run`, the launcher: its parts and what they share.
 *
 *   options.c  the command line
 *   ranks.c    starting the ranks, what their supervisors tell, orders to them
 *   reap.c     what the guard tells; the ends of supervisors, and what they leave
 *   stage.c    from running to ended: why, and in which steps
 *   run.c      the event loop
 *   terminal.c what is shown on a terminal alone
 *   fold.c     error lines that many ranks write alike
 *   report.c   the table and the cause when a job failed, and the exit status
 */
#ifndef COHI_TOOLS_RUN_H
#define COHI_TOOLS_RUN_H

#include "flags.h"
#include "run/output.h"
#include "run/terminal.h"
#include "run/supervise.h"

#include <cohort.h>
#include <poll.h>

enum { COHI_RUN_RANKS_MAX = COHI_RANKS_MAX, COHI_RUN_ENV_MAX = 256 };

typedef struct cohi_run_options {
    int ranks;
    const char *engine; /* NULL: not given */
    const char *heap;
    char *environment[COHI_RUN_ENV_MAX + 4]; /* --env, then those of other flags, then NULL */
    int environment_count;
    int environment_given; /* those of --env, which are argv's */
    int tag_output;
    uint64_t timeout_ns; /* 0: none */
    uint64_t grace_ns;
    int bind_core;
    int keep_going;
    int race_check;
    int pretend_hosts; /* 0: none */
    char **command;
} cohi_run_options;

typedef struct cohi_run_rank {
    pid_t supervisor; /* 0: not known to be started, or reaped */
    int counted;      /* in cohi_job's `alive` */
    pid_t pid;
    int control; /* socket to the supervisor, or -1 */
    int ended;
    int wait_status;
    uint64_t ended_ns;
    int judged;      /* cohi_run_judge has looked at its end */
    int by_launcher; /* it ended because the launcher ended it */
} cohi_run_rank;

/* Why the job is ending. The first reason stands. */
typedef enum cohi_run_why {
    COHI_WHY_NONE = 0,
    COHI_WHY_FAILED,      /* a rank failed */
    COHI_WHY_GLOBAL_EXIT, /* a rank called coh_global_exit */
    COHI_WHY_NO_START,    /* the program, or a process for it, could not be started */
    COHI_WHY_TIMEOUT,
    COHI_WHY_SIGNAL, /* the launcher was told to stop */
    COHI_WHY_OUTPUT  /* the launcher's output cannot be written any more */
} cohi_run_why;

/* How far the ending has come. */
typedef enum cohi_run_stage {
    COHI_STAGE_RUN = 0,
    COHI_STAGE_GRACE,   /* the ranks may end by themselves */
    COHI_STAGE_ASKED,   /* they were sent the user's signal */
    COHI_STAGE_TERM,    /* they were sent SIGTERM */
    COHI_STAGE_KILL,    /* the supervisors were told to kill everything */
    COHI_STAGE_ABANDON, /* the supervisors were killed too */
    COHI_STAGE_GONE     /* what is left cannot be killed */
} cohi_run_stage;

typedef struct cohi_job {
    cohi_run_options options;
    cohi_charge charge; /* what is the same for all ranks */
    coh_unique_id id;
    cohi_boards boards; /* one, or those of --pretend-hosts */
    cohi_output output;
    cohi_terminal terminal;
    cohi_run_rank *ranks;
    int size;
    int alive;              /* supervisors that were asked for and are not reaped */
    pid_t guard;            /* see guard.h; 0: not started, or reaped */
    int guard_link;         /* socket to it, or -1 */
    int signals;            /* signalfd */
    int *inherited;         /* descriptors from before */
    pid_t *children_before; /* that the launcher had when it began */
    int children_before_count;
    struct pollfd *polls;

    cohi_run_why why;
    int why_value; /* signal, errno or exit code */
    int first;     /* the rank that failed first, or -1 */
    cohi_run_stage stage;
    uint64_t stage_deadline_ns; /* UINT64_MAX: none */
    uint64_t timeout_at_ns;     /* of --timeout; UINT64_MAX: none */
    uint64_t ended_by_us_ns;    /* when the ranks were first told to end; UINT64_MAX: not yet */
} cohi_job;

/* ---- run/options.c ---- */

extern const cohi_usage cohi_run_usage;

/* 0 to go on; else *status is what to exit with. */
int cohi_run_parse(int argc, char **argv, cohi_run_options *options, int *status);
void cohi_run_options_free(cohi_run_options *options);

/* ---- run/ranks.c ---- */

/* Starts all ranks. 0, or -1 with the reason in coh_last_error(); those that were started go on. */
int cohi_run_start(cohi_job *run);

/* Reads what rank's supervisor has told. */
void cohi_run_notices(cohi_job *run, int rank);

/* Sends an order (supervise.h) to all supervisors. */
void cohi_run_order(const cohi_job *run, int order);

/* The rank has ended: the first that says so is right. */
void cohi_run_note_end(cohi_job *run, int rank, int wait_status, uint64_t at_ns);

/* There is no process for the rank. */
void cohi_run_no_fork(cohi_job *run, int rank, int error);

/*
 * Whether a socket may still have something to read after this errno. A process that ends with
 * something unread resets the connection. The kernel then reports ECONNRESET once, before the
 * messages that are still in the socket; the next call reads those, and the end of the stream comes
 * after them.
 */
int cohi_run_reads_on(int error);

/* ---- run/reap.c ---- */

/* Reads what the guard has told. */
void cohi_run_guard_news(cohi_job *run);

/* Sends it a request that is no rank (guard.h). */
void cohi_run_tell_guard(const cohi_job *run, int order);

/* The rank's supervisor is gone, or there is none. */
void cohi_run_count_out(cohi_job *run, int rank);

void cohi_run_kill_supervisors(const cohi_job *run);

/* Reaps the guard, should it end early, and what was below it. */
void cohi_run_reap(cohi_job *run);

/* When the last supervisor is gone: ends the guard, and kills and reaps what is left below the
 * launcher. */
void cohi_run_sweep(cohi_job *run);

/* ---- run/stage.c ---- */

/* Looks at the ranks that have ended since the last time, and decides whether the job has failed.
 */
void cohi_run_judge(cohi_job *run);

/* Whether the rank ended by itself, and not well. */
int cohi_run_failed(const cohi_job *run, int rank);

/* The same, for a rank that ended with status 0 without having finalized. */
int cohi_run_unfinished(const cohi_job *run, int rank);

/* Whether it had lost another rank before it ended, and so most likely ended for that. */
int cohi_run_followed(const cohi_job *run, int rank);

/* Begins to end the job for `why`, unless it already is ending. */
void cohi_run_end(cohi_job *run, cohi_run_why why, int value);

/* A signal from the user. */
void cohi_run_signal(cohi_job *run, int signal, int by_kernel);

/* Whether the signal asks for the end. */
int cohi_run_ends_by(int signal);

/* Goes on to the next stage when the time of this one is over. */
void cohi_run_advance(cohi_job *run, uint64_t now);

/* ---- run/report.c ---- */

/* Tells how the job ended, where it did not end well. Returns the exit status. */
int cohi_run_report(cohi_job *run);

/* One line on standard error, after "cohort run: ". */
void cohi_run_say(cohi_job *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
