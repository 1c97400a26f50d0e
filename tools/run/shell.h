/*
 * shell.h - the process by which an agent is reached: ssh, or what --shell names.
 */
#ifndef COHI_TOOLS_SHELL_H
#define COHI_TOOLS_SHELL_H

#include <cohort.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

typedef struct cohi_shell {
    pid_t pid;    /* 0: not started, or reaped */
    int to, from; /* the agent's standard input and output */
    int errors;   /* its standard error, and the shell's */
} cohi_shell;

/* What is the same for all hosts. */
typedef struct cohi_shell_plan {
    const char
        *command; /* of --shell; NULL: the agent is a process of this host, without a shell */
    const char *program; /* cohort's name or path on the hosts */
    int input;           /* that an agent without a shell inherits, or -1 */
    sigset_t mask;       /* as the launcher was started with */
    struct rlimit files; /* the same */
} cohi_shell_plan;

/*
 * Starts COMMAND HOST PROGRAM agent. COMMAND is read by sh; the rest are words of their own. Signals
 * of the terminal are ignored there: what they mean for the ranks is the launcher's to say.
 */
coh_status cohi_shell_start(const cohi_shell_plan *plan, const char *host, cohi_shell *shell);

/* How this program is called on other hosts: as it was called here, by name or by the whole path.
 * The caller frees it. NULL with the reason in coh_last_error() for a path that a shell there would
 * take apart. */
char *cohi_shell_program(void);

#endif
