#include "run/shell.h"

#include "base/error.h"
#include "base/os.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

/* The pipes, seen from the child: it reads the first, and writes the others. */
struct ends {
    int in[2], out[2], err[2];
};

static void close_all(const struct ends *ends)
{
    const int *fds = (const int *)ends;
    for (size_t i = 0; i < sizeof *ends / sizeof(int); i++)
        cohi_os_close(fds[i]);
}

static void ignore_terminal(void)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTSTP, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
}

/* Returns when that fails. */
static void execute(const cohi_shell_plan *plan, const char *host)
{
    char *script, *words[] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    if (!plan->command) {
        words[0] = (char[]){"cohort"};
        words[1] = (char[]){"agent"};
        execv("/proc/self/exe", words);
        return;
    }
    if (asprintf(&script, "exec %s \"$@\"", plan->command) < 0)
        return;
    const char *const list[] = {"sh", "-c", script, "cohort-shell", host, plan->program, "agent"};
    memcpy(words, list, sizeof list);
    execv("/bin/sh", words);
}

static _Noreturn void become_shell(const cohi_shell_plan *plan, const char *host,
                                   const struct ends *ends)
{
    if (plan->input >= 0)
        (void)fcntl(plan->input, F_SETFD, 0);
    if (dup2(ends->in[0], STDIN_FILENO) < 0 || dup2(ends->out[1], STDOUT_FILENO) < 0
        || dup2(ends->err[1], STDERR_FILENO) < 0)
        _exit(EXIT_NOT_RUNNABLE);
    ignore_terminal();
    setrlimit(RLIMIT_NOFILE, &plan->files);
    sigprocmask(SIG_SETMASK, &plan->mask, NULL);
    execute(plan, host);
    _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}

coh_status cohi_shell_start(const cohi_shell_plan *plan, const char *host, cohi_shell *shell)
{
    struct ends ends = {{-1, -1}, {-1, -1}, {-1, -1}};
    *shell = (cohi_shell){.to = -1, .from = -1, .errors = -1};
    pid_t pid = -1;
    if (pipe2(ends.in, O_CLOEXEC) == 0 && pipe2(ends.out, O_CLOEXEC) == 0
        && pipe2(ends.err, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0)
        become_shell(plan, host, &ends);
    if (pid < 0) {
        int error = errno;
        close_all(&ends);
        return cohi_fail_os(error, "host %s: cannot start a process to reach it", host);
    }
    *shell = (cohi_shell){.pid = pid, .to = ends.in[1], .from = ends.out[0], .errors = ends.err[0]};
    ends.in[1] = ends.out[0] = ends.err[0] = -1;
    close_all(&ends);
    (void)fcntl(shell->errors, F_SETFL, O_NONBLOCK);
    return COH_OK;
}

char *cohi_shell_program(void)
{
    if (!strchr(program_invocation_name, '/'))
        return strdup("cohort");
    char *path = realpath("/proc/self/exe", NULL);
    for (const char *c = path; c && *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("/._-+,=@%:", *c)) {
            cohi_fail(
                COH_INVALID_ARGUMENT,
                "a shell on another host would take the path '%s' apart; put cohort into PATH "
                "and call it by its name",
                path);
            free(path);
            return NULL;
        }
    }
    if (!path)
        cohi_fail_os(errno, "cannot find out where this program is");
    return path;
}
