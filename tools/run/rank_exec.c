/* rank_exec.c - what happens in a rank's process before its program. */
#include "run/supervise.h"

#include "base/clock.h"
#include "run/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* As shells have it. */
enum { EXIT_NOT_FOUND = 127, EXIT_NOT_RUNNABLE = 126 };

/* The supervisor may have died before prctl was in force: then nobody is there to send the signal.
 */
static void die_with(pid_t supervisor)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(EXIT_NOT_RUNNABLE);
}

/* Why a program was not started: an errno, and of what it speaks where that is not the program. */
struct refusal {
    int error;
    char of[COHI_NOTICE_NAME_BYTES];
};

/* Only rank 0 reads the launcher's input. */
static int connect_input(const cohi_charge *charge, struct refusal *refusal)
{
    if (charge->rank == 0 && charge->input >= 0)
        return dup2(charge->input, STDIN_FILENO) >= 0 ? 0 : errno;
    if (charge->rank == 0)
        return 0;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0)
        return 0;
    int error = errno;
    snprintf(refusal->of, sizeof refusal->of, "/dev/null");
    return error;
}

static int connect_streams(const cohi_charge *charge, struct refusal *refusal)
{
    int error = connect_input(charge, refusal);
    if (error)
        return error;
    if (dup2(charge->output, STDOUT_FILENO) < 0 || dup2(charge->error, STDERR_FILENO) < 0
        || fcntl(charge->job_fd, F_SETFD, 0) != 0)
        return errno;
    return 0;
}

/* The (index mod allowed)-th core of those that this process may use. */
static int bind_core(int index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return errno;
    int skip = index % CPU_COUNT(&allowed);
    size_t core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? 0 : errno;
}

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static void set_environment(const cohi_charge *charge)
{
    setenv("COHORT_LOG", "warn", 0);
    for (char **variable = charge->environment; *variable; variable++)
        putenv(*variable);
    set_number("COHORT_RANK", charge->rank);
    set_number("COHORT_SIZE", charge->size);
    set_number("COHORT_JOB_FD", charge->job_fd);
}

static void restore_process(const cohi_charge *charge)
{
    setrlimit(RLIMIT_NOFILE, &charge->files);
    sigaction(SIGPIPE, &charge->on_pipe, NULL);
    sigaction(SIGCHLD, &charge->on_child, NULL);
    sigprocmask(SIG_SETMASK, &charge->mask, NULL);
}

/* Returns when that fails. */
static void execute(const cohi_charge *charge, struct refusal *refusal)
{
    static const char prefix[] = "its interpreter ";
    char *name = refusal->of + strlen(prefix);
    execvp(charge->command[0], charge->command);
    refusal->error = errno;
    if (refusal->error == ENOENT
        && cohi_interpreter_missing(charge->command[0], name, sizeof refusal->of - strlen(prefix)))
        memcpy(refusal->of, prefix, strlen(prefix));
}

void cohi_rank_exec(const cohi_charge *charge, pid_t supervisor)
{
    struct refusal refusal = {.of = ""};
    die_with(supervisor);
    refusal.error = connect_streams(charge, &refusal);
    if (!refusal.error && charge->bind != COHI_BIND_NONE)
        refusal.error =
            bind_core(charge->rank - (charge->bind == COHI_BIND_HOST ? charge->first : 0));
    if (!refusal.error) {
        set_environment(charge);
        restore_process(charge);
        execute(charge, &refusal);
    }
    cohi_notice_send(charge->control, COHI_NOTICE_REFUSED, refusal.error, refusal.of);
    _exit(refusal.error == ENOENT && !*refusal.of ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}
