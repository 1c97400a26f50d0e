/* command.h - the subcommands of `cohort`, each a function of its own arguments. */
#ifndef COHI_TOOLS_COMMAND_H
#define COHI_TOOLS_COMMAND_H

#include <stddef.h>

/* What a wrong command line exits with, in every subcommand. */
enum { COHI_EXIT_USAGE = 2 };

/* What the words of a subcommand are that are no flags; for completion. */
typedef enum cohi_operands {
    COHI_NO_OPERANDS,
    COHI_OPERAND_PROGRAM, /* and then its arguments */
    COHI_OPERAND_BENCHMARKS,
    COHI_OPERAND_COMMAND,
    COHI_OPERAND_SHELL,
} cohi_operands;

typedef struct cohi_command {
    const char *name;
    const char *summary;
    int (*function)(int argc, char **argv);
    int has_flags; /* those that its --help lists */
    cohi_operands operands;
} cohi_command;

/* The rows of `cohort --help`, in its order; NULL after the last. */
const cohi_command *cohi_command_at(size_t index);

/* argv[0] is the subcommand's name. The result is the exit status. */
int cohi_tool_run(int argc, char **argv);
int cohi_tool_agent(int argc, char **argv);
int cohi_tool_ps(int argc, char **argv);
int cohi_tool_info(int argc, char **argv);
int cohi_tool_bench(int argc, char **argv);
int cohi_tool_tune(int argc, char **argv);
int cohi_tool_completion(int argc, char **argv);

#endif
