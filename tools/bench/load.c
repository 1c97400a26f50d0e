/*
 * bench/load.c - busy processes beside what is measured.
 *
 * Each is a plain loop without a pause, at the niceness of the tool: a competitor for a core as any
 * other program would be. The kernel kills them when the tool ends, be it by SIGKILL. What a
 * terminal sends to the tool's group does not end them, so that they are there until the last
 * measurement has ended too.
 */
#include "bench/load.h"

#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ctrl-Z and fg are the whole group's. */
static void block_signals(void)
{
    sigset_t blocked;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGTSTP);
    sigdelset(&blocked, SIGCONT);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* In the child. Whoever reads the tool's output must not wait for this one to close it. */
_Noreturn static void spin(pid_t parent, int pinned, int index)
{
    volatile uint64_t turns = 0;
    int nothing = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    prctl(PR_SET_NAME, "cohort-load");
    block_signals();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (pinned)
        cohi_bench_move_to_core(index);
    for (;;)
        turns++;
}

int cohi_bench_load_start(cohi_bench_load *load, uint64_t count, int pinned)
{
    pid_t parent = getpid();
    load->count = 0;
    fflush(NULL);
    while (load->count < count && load->count < COHI_BENCH_LOAD) {
        pid_t pid = fork();
        if (pid == 0)
            spin(parent, pinned, (int)load->count);
        if (pid < 0) {
            fprintf(stderr, "cohort bench: busy process %zu could not be started: %s\n",
                    load->count + 1, strerror(errno));
            cohi_bench_load_stop(load);
            return -1;
        }
        load->pids[load->count++] = pid;
    }
    return 0;
}

/* 1 when it is still there to be killed, 0 when it had ended before. */
static int end_one(pid_t pid)
{
    int was_there = waitpid(pid, NULL, WNOHANG) == 0;
    if (!was_there)
        return 0;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 1;
}

int cohi_bench_load_stop(cohi_bench_load *load)
{
    size_t missing = 0;
    for (size_t i = 0; i < load->count; i++)
        missing += end_one(load->pids[i]) ? 0 : 1;
    load->count = 0;
    if (missing == 0)
        return 0;
    fprintf(stderr,
            "cohort bench: %zu of the busy processes ended early: what was measured is not what "
            "it was to be\n",
            missing);
    return -1;
}
