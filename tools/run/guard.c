#include "run/guard.h"

#include "base/clock.h"
#include "base/os.h"
#include "run/descendants.h"
#include "descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long to wait for killed children before looking again, ms. */
enum { SWEEP_PAUSE_MS = 20 };

/* How long the supervisors may take to end what is below them, without the launcher. */
#define SUPERVISORS_NS (500 * COHI_NS_PER_MS)

#define GUARD_NAME "job-guard"

struct guard {
    cohi_charge charge;
    int link;
    int signals;        /* signalfd of SIGCHLD and COHI_PARENT_ENDED */
    pid_t *supervisors; /* of each rank, from charge.first on; 0: none */
    int orphans;        /* a supervisor did not end as it should, so there may be some */
};

static void tell(const struct guard *self, cohi_guard_news news)
{
    ssize_t sent;
    do {
        sent = send(self->link, &news, sizeof news, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

/* ---- ends ---- */

static int rank_of(const struct guard *self, pid_t supervisor)
{
    for (int i = 0; i < self->charge.count; i++) {
        if (self->supervisors[i] == supervisor)
            return self->charge.first + i;
    }
    return -1;
}

static void note_end(struct guard *self, pid_t pid, int wait_status)
{
    int rank = rank_of(self, pid);
    if (rank >= 0) {
        self->supervisors[rank - self->charge.first] = 0;
        if (wait_status != 0)
            self->orphans = 1;
    }
    tell(self, (cohi_guard_news){.kind = rank >= 0 ? COHI_GUARD_ENDED : COHI_GUARD_ORPHAN,
                                 .rank = rank,
                                 .pid = pid,
                                 .value = wait_status});
}

/* 0 when no child is left. */
static int reap(struct guard *self)
{
    for (;;) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid == 0)
            return 1;
        if (pid < 0 && errno == ECHILD)
            return 0;
        if (pid > 0)
            note_end(self, pid, wait_status);
    }
}

static void pause_for_children(const struct guard *self)
{
    struct signalfd_siginfo ended;
    struct pollfd look = {.fd = self->signals, .events = POLLIN};
    if (cohi_descriptors_poll(&look, 1, SWEEP_PAUSE_MS) > 0)
        (void)!read(self->signals, &ended, sizeof ended);
}

/* The launcher is gone. The supervisors take their ranks down, each by itself, so that it is done
 * even if this process is killed now. Those that do not come to it are killed: one may be stopped.
 * What they leave comes here. */
static _Noreturn void take_down(struct guard *self)
{
    uint64_t until = cohi_now_ns() + SUPERVISORS_NS;
    while (reap(self)) {
        int spared = cohi_now_ns() < until ? self->charge.count : 0;
        cohi_children_signal(SIGKILL, self->supervisors, spared);
        pause_for_children(self);
    }
    _exit(0);
}

static void kill_supervisors(const struct guard *self)
{
    for (int i = 0; i < self->charge.count; i++) {
        if (self->supervisors[i] > 0)
            kill(self->supervisors[i], SIGKILL);
    }
}

static void take_signal(struct guard *self)
{
    struct signalfd_siginfo info;
    (void)!read(self->signals, &info, sizeof info);
    if (getppid() != self->charge.launcher)
        take_down(self);
    if (reap(self) && self->orphans)
        cohi_children_signal(SIGKILL, self->supervisors, self->charge.count);
}

/* ---- requests ---- */

static _Noreturn void become_supervisor(struct guard *self, int rank, const int *fds)
{
    cohi_charge *charge = &self->charge;
    charge->rank = rank;
    charge->control = fds[COHI_GUARD_CONTROL];
    charge->output = fds[COHI_GUARD_OUTPUT];
    charge->error = fds[COHI_GUARD_ERROR];
    charge->job_fd = fds[COHI_GUARD_JOB];
    cohi_supervise(charge);
}

static void start_supervisor(struct guard *self, int rank, const int *fds, int count)
{
    pid_t pid = -1;
    errno = EMFILE; /* not all descriptors came, for want of numbers */
    if (count == COHI_GUARD_FDS)
        pid = fork();
    if (pid == 0)
        become_supervisor(self, rank, fds);
    if (pid < 0) {
        tell(self,
             (cohi_guard_news){.kind = COHI_GUARD_NO_FORK, .rank = rank, .value = (int32_t)errno});
        return;
    }
    self->supervisors[rank - self->charge.first] = pid;
    tell(self, (cohi_guard_news){.kind = COHI_GUARD_STARTED, .rank = rank, .pid = pid});
}

/* From now on it needs nothing that was the launcher's; in a session of its own it outlives what
 * kills the launcher's group. */
static void settle(const struct guard *self)
{
    int keep[] = {self->link, self->signals};
    setsid();
    cohi_retitle(&self->charge, GUARD_NAME " of %d ranks, job %d", self->charge.count,
                 (int)self->charge.launcher);
    cohi_descriptors_keep(keep, 2);
}

/* Where poll is refused nobody knows before. */
static int request_waits(const struct guard *self)
{
    char byte;
    return recv(self->link, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* The end of the stream is the end of the launcher. */
static void take_request(struct guard *self)
{
    cohi_guard_request request;
    int fds[COHI_GUARD_FDS], count = 0;
    if (!request_waits(self))
        return;
    if (cohi_os_receive(self->link, &request, sizeof request, fds, COHI_GUARD_FDS, &count,
                        UINT64_MAX)
        != 0)
        take_down(self);
    if (request.rank == COHI_GUARD_STARTED_ALL)
        settle(self);
    else if (request.rank == COHI_GUARD_KILL_ALL)
        kill_supervisors(self);
    else
        start_supervisor(self, request.rank, fds, count);
    for (int i = 0; i < count; i++)
        cohi_os_close(fds[i]);
}

static _Noreturn void watch(struct guard *self)
{
    for (;;) {
        struct pollfd look[] = {{.fd = self->signals, .events = POLLIN},
                                {.fd = self->link, .events = POLLIN}};
        if (cohi_descriptors_poll(look, 2, -1) < 0)
            continue;
        if (look[0].revents)
            take_signal(self);
        if (look[1].revents)
            take_request(self);
    }
}

/* ---- the beginning ---- */

/* The user's descriptors go on to the ranks; the launcher's are closed, the other end of the link
 * among them. */
static int keep_for_supervisors(const struct guard *self)
{
    int count = self->charge.inherited_count;
    int *keep = calloc((size_t)count + 2, sizeof *keep);
    if (!keep)
        return ENOMEM;
    for (int i = 0; i < count; i++)
        keep[i] = self->charge.inherited[i];
    keep[count] = self->link;
    keep[count + 1] = self->signals;
    int error = cohi_descriptors_keep(keep, count + 2);
    free(keep);
    return error;
}

static int prepare(struct guard *self)
{
    prctl(PR_SET_NAME, GUARD_NAME);
    self->supervisors = calloc((size_t)self->charge.count, sizeof *self->supervisors);
    int error = self->supervisors ? cohi_watch_children(&self->signals) : ENOMEM;
    if (!error)
        error = keep_for_supervisors(self);
    if (!error && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        error = errno;
    prctl(PR_SET_PDEATHSIG, COHI_PARENT_ENDED);
    if (getppid() != self->charge.launcher)
        _exit(1);
    return error;
}

void cohi_guard(const cohi_charge *charge, int link)
{
    struct guard self = {.charge = *charge, .link = link, .signals = -1};
    self.charge.parent = getpid();
    if (prepare(&self) != 0)
        _exit(1);
    watch(&self);
}
