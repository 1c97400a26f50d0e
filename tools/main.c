/* main.c - `cohort`: finds the subcommand and calls it. */
#include "base/os.h"
#include "command.h"

#include <cohort.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int tool_help(int argc, char **argv);
static int tool_version(int argc, char **argv);

static const cohi_command commands[] = {
    {"run", "start a program as the ranks of a job, here or on several hosts", cohi_tool_run, 1,
     COHI_OPERAND_PROGRAM},
    {"ps", "show the running jobs and what each rank is doing", cohi_tool_ps, 1, COHI_NO_OPERANDS},
    {"info", "show version, engines, settings and facts of this host", cohi_tool_info, 1,
     COHI_NO_OPERANDS},
    {"bench", "measure against the limits of this machine", cohi_tool_bench, 1,
     COHI_OPERAND_BENCHMARKS},
    {"tune", "measure this host for the choice of collective algorithms", cohi_tool_tune, 1,
     COHI_NO_OPERANDS},
    {"completion", "print what completes its command lines in a shell", cohi_tool_completion, 1,
     COHI_OPERAND_SHELL},
    {"help", "show this, or the help of one command", tool_help, 0, COHI_OPERAND_COMMAND},
    {"version", "print the version", tool_version, 0, COHI_NO_OPERANDS},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

/* What `cohort run` starts on other hosts; not for users. */
static const cohi_command agent = {"agent", "", cohi_tool_agent, 0, COHI_NO_OPERANDS};

const cohi_command *cohi_command_at(size_t index)
{
    return index < COMMANDS ? &commands[index] : NULL;
}

static const cohi_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return strcmp(name, agent.name) == 0 ? &agent : NULL;
}

static void print_usage(FILE *stream)
{
    fprintf(stream, "usage: cohort COMMAND [FLAGS...]\n\n"
                    "One symmetric memory for a group of ranks.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n'cohort COMMAND --help' tells the flags of a command.\n"
                    "first steps: cohort run -n 4 ./program\n");
}

static int unknown_command(const char *name)
{
    fprintf(stderr, "cohort: there is no command '%s'; there are", name);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
    fputc('\n', stderr);
    return COHI_EXIT_USAGE;
}

static int tool_help(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    const cohi_command *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    char help[] = "--help";
    char *arguments[] = {argv[1], help, NULL};
    return command->function(2, arguments);
}

static int tool_version(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") != 0) {
        fprintf(stderr, "cohort version: it takes no argument, but was given '%s'\n", argv[1]);
        return COHI_EXIT_USAGE;
    }
    printf("cohort %s\n", coh_version_string());
    return 0;
}

/* Where 0, 1 or 2 is closed, the next file opened would take its place and get the output. */
static void fill_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Output that could not be written is a failure, however well the command did. */
static int close_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("cohort: cannot write the output");
    return status ? status : 1;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return COHI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const cohi_command *command = find_command(name);
    return command ? command->function(argc - 1, argv + 1) : unknown_command(name);
}

/* With an error message, before the C library aborts without a useful one. */
static int can_lock(void)
{
    int error = cohi_os_futex_refused();
    if (error)
        fprintf(stderr, "cohort: futex(2) is refused here, without which no thread can lock: %s\n",
                strerror(error));
    return !error;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    if (!can_lock())
        return 1;
    return close_output(dispatch(argc, argv));
}
