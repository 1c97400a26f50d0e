/*
 * supervise.h - the process above one rank, which the launcher's guard (guard.h) starts.
 *
 * It starts the rank, tells the board and the launcher how the rank ended, and takes all of the
 * rank's descendants down when the rank has ended, when the launcher orders it, and when the
 * launcher is gone. It is in a session of its own, so that a signal to the job's group (a
 * terminal's, or SIGKILL) leaves it to do that. Only a process group of its own would not do: a
 * rank's parent would then be in the rank's session but not in its group, which makes the group one
 * that is not orphaned for as long as a rank lives. With the last rank's end the group would become
 * orphaned, and the kernel would hang it up (SIGHUP) if any process in it is stopped.
 */
#ifndef COHI_TOOLS_SUPERVISE_H
#define COHI_TOOLS_SUPERVISE_H

#include "bootstrap/board.h"
#include "hosts/order.h"
#include "snapshot.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* How a rank is to be started. The launcher's own state is restored from here before exec. */
typedef struct cohi_charge {
    int rank;
    int size;           /* ranks of the world */
    int first, count;   /* those of this host */
    char **command;     /* argv of the program, NULL-terminated */
    char **environment; /* "NAME=VALUE" to set, NULL-terminated */
    cohi_bind bind;
    char *title_end;           /* the end of the arguments that ps(1) shows, see cohi_retitle */
    int input;                 /* of rank 0, or -1: the standard input of who starts it */
    const cohi_board *board;   /* mapped before the fork */
    cohi_snapshot *snapshot;   /* so is this */
    int control;               /* the supervisor's end of the socket to the launcher */
    int output, error, job_fd; /* for the rank */
    const int *inherited;      /* descriptors that the launcher itself was started with */
    int inherited_count;
    pid_t launcher;
    pid_t parent;  /* of the supervisor: the guard */
    sigset_t mask; /* as the launcher was started with */
    struct sigaction on_pipe, on_child;
    struct rlimit files;
} cohi_charge;

/* From the supervisor (or the rank before exec) to the launcher. */
typedef enum cohi_notice_kind {
    COHI_NOTICE_STARTED = 1, /* value: the rank's pid */
    COHI_NOTICE_REFUSED = 2, /* value: an errno; name: what it speaks of, if not the program */
    COHI_NOTICE_NO_FORK = 3, /* value: the errno of fork */
    COHI_NOTICE_ENDED = 4,   /* value: its wait status */
    COHI_NOTICE_UNSAFE = 5   /* value: the errno of what the supervisor needs and was refused */
} cohi_notice_kind;

enum { COHI_NOTICE_NAME_BYTES = 256 };

typedef struct cohi_notice {
    int32_t kind;
    int32_t value;
    uint64_t at_ns;
    char name[COHI_NOTICE_NAME_BYTES]; /* "": none */
} cohi_notice;

/* From the launcher to the supervisor: a signal for the rank (SIGSTOP and SIGCONT: for all its
 * descendants), or this, to take everything down at once. */
enum { COHI_ORDER_END = 0 };

void cohi_notice_send(int control, cohi_notice_kind kind, int value, const char *name);

/* Sent by the kernel to a supervisor or guard when its parent ends. That the other end of its socket
 * closes tells of the launcher's end too, unless a process that should not have it holds it as
 * well. */
enum { COHI_PARENT_ENDED = SIGTERM };

/* Blocks all signals; *fd is a signalfd of SIGCHLD and COHI_PARENT_ENDED. 0, or an errno. */
int cohi_watch_children(int *fd);

/* What ps(1) shows as the process's command line: written over the arguments of the process that
 * began, up to charge->title_end. Nothing may be started by them any more. */
void cohi_retitle(const cohi_charge *charge, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The life of the supervisor. */
_Noreturn void cohi_supervise(const cohi_charge *charge);

/* The rank's process from fork to exec; rank_exec.c. */
_Noreturn void cohi_rank_exec(const cohi_charge *charge, pid_t supervisor);

#endif
