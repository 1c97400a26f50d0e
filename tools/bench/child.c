#include "bench/bench.h"

#include "base/clock.h"
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a child may take to end once it was asked to. */
#define GRACE_NS (5 * COHI_NS_PER_S)

static struct {
    int fd;      /* a signalfd */
    int stopped; /* the first signal that came */
    sigset_t before;
} signals = {.fd = -1};

void cohi_bench_catch_signals(void)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGHUP);
    sigprocmask(SIG_BLOCK, &caught, &signals.before);
    signals.fd = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void note_signal(void)
{
    struct signalfd_siginfo info;
    while (signals.fd >= 0 && read(signals.fd, &info, sizeof info) == sizeof info) {
        if (!signals.stopped)
            signals.stopped = (int)info.ssi_signo;
    }
}

int cohi_bench_stopped(void)
{
    note_signal();
    return signals.stopped;
}

/* ---- starting ---- */

struct running {
    const cohi_bench_child *child;
    pid_t pid;
    int pidfd;
    int lines;
    char *text; /* the line that is not whole yet */
    size_t length, room;
    uint64_t end_at_ns;  /* when it is asked to end */
    uint64_t kill_at_ns; /* when it is killed; UINT64_MAX before it was asked */
    int overtime;
};

/* In the child. If the parent is killed, nobody else will end it. */
_Noreturn static void become(const cohi_bench_child *child, int output, pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    setpgid(0, 0);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    if (child->errors_too)
        dup2(output, STDERR_FILENO);
    if (child->temporary)
        setenv("TMPDIR", child->temporary, 1);
    if (signals.fd >= 0)
        sigprocmask(SIG_SETMASK, &signals.before, NULL);
    execvp(child->arguments[0], child->arguments);
    fprintf(stderr, "cohort bench: %s could not be started: %s\n", child->arguments[0],
            strerror(errno));
    _exit(127);
}

static int start(struct running *running)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    running->pid = fork();
    if (running->pid == 0)
        become(running->child, ends[1], parent);
    close(ends[1]);
    if (running->pid < 0) {
        close(ends[0]);
        return -1;
    }
    setpgid(running->pid, running->pid); /* here as well, so that it is so before it is signalled */
    running->lines = ends[0];
    fcntl(running->lines, F_SETFL, O_NONBLOCK);
    if (cohi_os_pidfd_open(running->pid, &running->pidfd) != 0)
        running->pidfd = -1;
    return 0;
}

/* ---- reading ---- */

static void hand_on(struct running *running)
{
    char *start = running->text, *end;
    while ((end = memchr(start, '\n', running->length - (size_t)(start - running->text)))) {
        *end = '\0';
        running->child->take(running->child->arg, start);
        start = end + 1;
    }
    running->length -= (size_t)(start - running->text);
    memmove(running->text, start, running->length);
}

/* 1: some came. 0: nothing has come yet. -1: nothing will. */
static int read_some(struct running *running)
{
    if (running->length == running->room) {
        size_t room = running->room ? running->room * 2 : 4096;
        char *text = realloc(running->text, room);
        if (!text)
            return -1;
        running->text = text;
        running->room = room;
    }
    ssize_t got =
        read(running->lines, running->text + running->length, running->room - running->length);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    running->length += (size_t)got;
    hand_on(running);
    return 1;
}

/* ---- ending ---- */

static void ask_to_end(struct running *running, uint64_t now)
{
    if (running->kill_at_ns != UINT64_MAX)
        return;
    running->kill_at_ns = now + GRACE_NS;
    kill(running->pid, SIGTERM);
}

static void keep_time(struct running *running)
{
    uint64_t now = cohi_now_ns();
    if (now >= running->end_at_ns)
        running->overtime = 1;
    if (running->overtime || cohi_bench_stopped())
        ask_to_end(running, now);
    if (now >= running->kill_at_ns)
        kill(-running->pid, SIGKILL);
}

/* Until it has ended and all that it wrote was read. */
static void follow(struct running *running)
{
    enum { LOOK_MS = 200 };
    struct pollfd fds[] = {{.fd = running->lines, .events = POLLIN},
                           {.fd = running->pidfd, .events = POLLIN},
                           {.fd = signals.fd, .events = POLLIN}};
    for (int reading = 1, ended = 0; reading || !ended;) {
        poll(fds, sizeof fds / sizeof *fds, LOOK_MS);
        int got = reading ? read_some(running) : 0;
        reading = reading && got >= 0;
        if (!reading)
            fds[0].fd = -1;
        siginfo_t how = {.si_pid = 0};
        ended = waitid(P_PID, (id_t)running->pid, &how, WEXITED | WNOHANG | WNOWAIT) == 0
                && how.si_pid == running->pid;
        if (ended && got == 0)
            return; /* what still holds the other end is killed with the group */
        keep_time(running);
    }
}

static int reap(const struct running *running)
{
    int status;
    kill(-running->pid,
         SIGKILL); /* whom it left behind; it is not reaped, so the group is its own */
    while (waitpid(running->pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    if (running->overtime)
        return COHI_BENCH_OVERTIME;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int cohi_bench_child_run(const cohi_bench_child *child)
{
    struct running running = {
        .child = child, .end_at_ns = UINT64_MAX, .kill_at_ns = UINT64_MAX, .pidfd = -1};
    if (child->limit_ns)
        running.end_at_ns = cohi_now_ns() + child->limit_ns;
    if (start(&running) != 0)
        return -1;
    follow(&running);
    close(running.lines);
    if (running.pidfd >= 0)
        close(running.pidfd);
    free(running.text);
    return reap(&running);
}
