#include "run/supervise.h"

#include "base/clock.h"
#include "run/descendants.h"
#include "descriptors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long to wait for killed children before looking again, ms. A process in an uninterruptible
 * sleep may take its time. */
enum { SWEEP_PAUSE_MS = 20 };

/*
 * For ps(1), and unlike the launcher's and the guard's: what kills all processes named "cohort" is
 * to leave these to take the ranks down, and what kills these leaves it to those.
 */
#define SUPERVISOR_NAME "rank-supervisor"

struct supervisor {
    const cohi_charge *charge;
    int signals; /* signalfd of SIGCHLD and COHI_PARENT_ENDED */
    pid_t rank;  /* 0 when it has been reaped */
};

void cohi_notice_send(int control, cohi_notice_kind kind, int value, const char *name)
{
    cohi_notice notice = {.kind = (int32_t)kind, .value = value, .at_ns = cohi_now_ns()};
    snprintf(notice.name, sizeof notice.name, "%s", name);
    ssize_t sent;
    do {
        sent = send(control, &notice, sizeof notice, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

/* The launcher's descriptors must not be held here: their closing is how its end is noticed. */
static int keep_for_rank(const struct supervisor *self)
{
    const cohi_charge *charge = self->charge;
    const int own[] = {charge->control, charge->output, charge->error, charge->job_fd,
                       self->signals};
    int count = charge->inherited_count, owned = sizeof own / sizeof *own;
    int *keep = calloc((size_t)(count + owned), sizeof *keep);
    if (!keep)
        return ENOMEM;
    for (int i = 0; i < count; i++)
        keep[i] = charge->inherited[i];
    for (int i = 0; i < owned; i++)
        keep[count + i] = own[i];
    int error = cohi_descriptors_keep(keep, count + owned);
    free(keep);
    return error;
}

/* ---- the end of the rank ---- */

static int finished(cohi_slot *slot)
{
    unsigned phase = atomic_load(&slot->phase);
    return phase == COHI_PHASE_LEFT || phase == COHI_PHASE_ABSENT;
}

/* The board first: a rank that the bell wakes reads it. */
static void publish_end(const struct supervisor *self, int wait_status)
{
    const cohi_board *board = self->charge->board;
    cohi_slot *slot = cohi_board_slot(board, self->charge->rank);
    if (wait_status != 0 || !finished(slot))
        cohi_snapshot_take(self->charge->snapshot, board, 0);
    atomic_store(&slot->end, COHI_ENDED | (uint32_t)wait_status);
    cohi_board_ring(board);
    cohi_notice_send(self->charge->control, COHI_NOTICE_ENDED, wait_status, "");
}

/* Peers that wait for a stopped rank look at this where /proc does not tell them. */
static void publish_stop(const struct supervisor *self, int stopped)
{
    cohi_slot *slot = cohi_board_slot(self->charge->board, self->charge->rank);
    atomic_store(&slot->stopped, (unsigned)stopped);
}

static void take_news_of_rank(struct supervisor *self, int wait_status)
{
    if (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status)) {
        publish_stop(self, WIFSTOPPED(wait_status));
        return;
    }
    self->rank = 0;
    publish_end(self, wait_status);
}

/* Reaps what has ended. 0 when no child is left. */
static int reap(struct supervisor *self)
{
    for (;;) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid == 0)
            return 1;
        if (pid < 0 && errno == ECHILD)
            return 0;
        if (pid > 0 && pid == self->rank)
            take_news_of_rank(self, wait_status);
    }
}

static void pause_for_children(const struct supervisor *self)
{
    struct signalfd_siginfo ended;
    struct pollfd look = {.fd = self->signals, .events = POLLIN};
    if (cohi_descriptors_poll(&look, 1, SWEEP_PAUSE_MS) > 0)
        (void)!read(self->signals, &ended, sizeof ended);
}

static _Noreturn void take_down(struct supervisor *self)
{
    while (reap(self)) {
        if (self->rank > 0)
            kill(self->rank, SIGKILL); /* by its number, should /proc not be there to list it */
        cohi_children_signal(SIGKILL, NULL, 0);
        pause_for_children(self);
    }
    _exit(0);
}

/* ---- orders ---- */

static void carry_out(const struct supervisor *self, int order)
{
    if (order == SIGSTOP || order == SIGCONT)
        cohi_descendants_signal(order);
    else if (self->rank > 0)
        kill(self->rank, order);
}

/* The end of the stream is the end of the launcher. */
static void take_order(struct supervisor *self)
{
    int32_t order;
    ssize_t got = recv(self->charge->control, &order, sizeof order, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got < (ssize_t)sizeof order || order == COHI_ORDER_END)
        take_down(self);
    carry_out(self, order);
}

static void take_signal(struct supervisor *self)
{
    struct signalfd_siginfo ended;
    (void)!read(self->signals, &ended, sizeof ended);
    reap(self);
    if (self->rank == 0 || getppid() != self->charge->parent)
        take_down(self);
}

static _Noreturn void watch(struct supervisor *self)
{
    for (;;) {
        struct pollfd look[] = {{.fd = self->signals, .events = POLLIN},
                                {.fd = self->charge->control, .events = POLLIN}};
        if (cohi_descriptors_poll(look, 2, -1) < 0)
            continue;
        if (look[0].revents)
            take_signal(self);
        if (look[1].revents)
            take_order(self);
    }
}

/* ---- the beginning ---- */

int cohi_watch_children(int *fd)
{
    sigset_t all, watched;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, COHI_PARENT_ENDED);
    *fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd >= 0 ? 0 : errno;
}

void cohi_retitle(const cohi_charge *charge, const char *format, ...)
{
    char *begin = program_invocation_name, *end = charge->title_end;
    if (begin >= end)
        return;
    size_t room = (size_t)(end - begin);
    memset(begin, 0, room);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(begin, room, format, arguments);
    va_end(arguments);
}

/* 0, or the errno of something without which the rank's processes could outlive it. */
static int prepare(struct supervisor *self)
{
    int error = cohi_watch_children(&self->signals);
    prctl(PR_SET_NAME, SUPERVISOR_NAME);
    if (!error)
        error = keep_for_rank(self);
    if (!error && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        error = errno;
    prctl(PR_SET_PDEATHSIG, COHI_PARENT_ENDED);
    if (getppid() != self->charge->parent)
        _exit(1);
    return error;
}

static pid_t start_rank(const cohi_charge *charge)
{
    pid_t self = getpid(), rank = fork();
    if (rank == 0)
        cohi_rank_exec(charge, self);
    if (rank < 0)
        cohi_notice_send(charge->control, COHI_NOTICE_NO_FORK, errno, "");
    else
        cohi_notice_send(charge->control, COHI_NOTICE_STARTED, rank, "");
    return rank;
}

void cohi_supervise(const cohi_charge *charge)
{
    struct supervisor self = {.charge = charge, .signals = -1};
    int error = prepare(&self);
    if (error) {
        cohi_notice_send(charge->control, COHI_NOTICE_UNSAFE, error, "");
        _exit(1);
    }
    self.rank = start_rank(charge);
    if (self.rank < 0)
        _exit(1);
    setsid(); /* after the fork: the rank stays in the launcher's group, which is of its session */
    cohi_retitle(charge, SUPERVISOR_NAME " %d of %d, job %d", charge->rank, charge->size,
                 (int)charge->launcher);
    int keep[] = {charge->control, self.signals};
    cohi_descriptors_keep(keep, 2);
    watch(&self);
}
