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
 *   options.c  the command line; where.c, the hosts that it names
 *   local.c    ranks of this host, by a squad (squad.h) of this process
 *   fleet.c    ranks of several hosts, by agents; remote.c is one of them, shell.c how it is reached
 *   agent.c    `cohort agent`, the process on each of those hosts, which has a squad
 *   stage.c    from running to ended: why, and in which steps
 *   run.c      the event loop
 *   terminal.c what is shown on a terminal alone
 *   fold.c     error lines that many ranks write alike
 *   report.c   the table and the cause when a job failed, and the exit status
 */
#ifndef COHI_TOOLS_RUN_H
#define COHI_TOOLS_RUN_H

#include "facts.h"
#include "flags.h"
#include "hosts/hosts.h"
#include "run/squad.h"
#include "run/output.h"
#include "run/terminal.h"

#include <cohort.h>
#include <poll.h>

enum { COHI_RUN_RANKS_MAX = COHI_RANKS_MAX, COHI_RUN_ENV_MAX = 256 };

typedef struct cohi_run_options {
    int ranks;
    const char *engine; /* NULL: not given */
    const char *heap;
    char *environment[COHI_RUN_ENV_MAX + 5]; /* --env, then those of other flags, then NULL */
    int environment_count;
    int environment_given; /* those of --env, which are argv's */
    int tag_output;
    uint64_t timeout_ns; /* 0: none */
    uint64_t grace_ns;
    int bind_core;
    int keep_going;
    int race_check;
    int trust_network;      /* COHORT_NET=clear */
    int pretend_hosts;      /* 0: none */
    const char *hosts_text; /* of --hosts; NULL: not given */
    const char *hostfile;
    const char *shell;
    int oversubscribe;
    uint64_t host_timeout_ns;
    int ranks_given;  /* -n is there */
    cohi_hosts hosts; /* that agents are started on; none: the ranks are this host's */
    char **command;
} cohi_run_options;

typedef struct cohi_run_rank {
    pid_t pid;
    int ended;
    int wait_status;
    uint64_t ended_ns;
    int judged;       /* cohi_run_judge has looked at its end */
    int by_launcher;  /* it ended because the launcher ended it */
    int lost;         /* with its host: how it ended is not known */
    const char *host; /* NULL: this one */
} cohi_run_rank;

/* Why the job is ending. The first reason stands. */
typedef enum cohi_run_why {
    COHI_WHY_NONE = 0,
    COHI_WHY_FAILED,      /* a rank failed */
    COHI_WHY_GLOBAL_EXIT, /* a rank called coh_global_exit */
    COHI_WHY_NO_START,    /* the program, or a process for it, could not be started */
    COHI_WHY_NO_HOST,     /* a host was not reached, or is of no use */
    COHI_WHY_HOST_LOST,   /* the connection to a host ended */
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

typedef struct cohi_job cohi_job;

/* How the ranks of a job are run. */
typedef struct cohi_run_means {
    /* All that is needed before the first of them is started. 0, or -1 with the reason in
     * coh_last_error(). */
    int (*prepare)(cohi_job *run);

    /* Starts them. 0, or -1 as above; those that were started go on. */
    int (*start)(cohi_job *run);

    /* Whether some of them, or what watches over them, may still be there. */
    int (*alive)(const cohi_job *run);

    /* Sends an order (supervise.h) to all ranks. */
    void (*order)(cohi_job *run, int order);

    /* They do not end by themselves. */
    void (*abandon)(cohi_job *run);

    /* A child has ended. */
    void (*reap)(cohi_job *run);

    /* The last is gone: cleans up what is left. */
    void (*sweep)(cohi_job *run);

    /* Brings `facts` up to date; and `snapshot`, which is taken anew if `again`. */
    void (*look)(cohi_job *run);
    void (*snapshot)(cohi_job *run, int again);

    /* The names of hosts that have not answered yet, cut to `room`; how many there are. */
    int (*absent_hosts)(const cohi_job *run, char *names, size_t room);

    /* What is due at this time, and when something will be; UINT64_MAX: nothing. */
    void (*tick)(cohi_job *run, uint64_t now);
    uint64_t (*deadline)(const cohi_job *run);

    int (*poll_count)(const cohi_job *run);
    void (*fill_polls)(const cohi_job *run, struct pollfd *polls);
    void (*take_polls)(cohi_job *run, const struct pollfd *polls);

    void (*close)(cohi_job *run);

    int in_group; /* the ranks are in the launcher's process group: a terminal's signals reach them */
} cohi_run_means;

extern const cohi_run_means cohi_run_local, cohi_run_fleet;

struct cohi_fleet;

struct cohi_job {
    cohi_run_options options;
    const cohi_run_means *means;
    cohi_squad squad;         /* of cohi_run_local; of the other what is the same for any child */
    struct cohi_fleet *fleet; /* of cohi_run_fleet */
    cohi_output output;
    cohi_terminal terminal;
    cohi_run_rank *ranks;
    cohi_facts *facts;       /* of each rank */
    cohi_snapshot *snapshot; /* what each was doing when the job began to fail */
    int size;
    int signals; /* signalfd */
    struct pollfd *polls;
    char race[1024];     /* the first that a rank has named; "": none */
    char lost_host[512]; /* how the connection to a host ended, for the cause */

    cohi_run_why why;
    int why_value; /* signal, errno or exit code */
    int first;     /* the rank that failed first, or -1 */
    cohi_run_stage stage;
    uint64_t stage_deadline_ns; /* UINT64_MAX: none */
    uint64_t timeout_at_ns;     /* of --timeout; UINT64_MAX: none */
    uint64_t ended_by_us_ns;    /* when the ranks were first told to end; UINT64_MAX: not yet */
    int exit_asked;             /* a rank has called coh_global_exit */
    int exit_code;
};

/* ---- run/options.c ---- */

extern const cohi_usage cohi_run_usage;

/* 0 to go on; else *status is what to exit with. */
int cohi_run_parse(int argc, char **argv, cohi_run_options *options, int *status);
void cohi_run_options_free(cohi_run_options *options);

/* ---- run/where.c ---- */

/* Fills in `hosts`, and `ranks` where it was not given, by the flags and the environment. */
coh_status cohi_run_find_hosts(cohi_run_options *options);

/* ---- run/local.c ---- */

/* The rank has ended: the first that says so is right. */
void cohi_run_note_end(cohi_job *run, int rank, int wait_status, uint64_t at_ns);

/* The program, or a process for it, cannot be started on `host` (NULL: this one). */
void cohi_run_no_start(cohi_job *run, const char *host, int error, const char *text);

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
