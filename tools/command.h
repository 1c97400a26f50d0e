/* command.h - the subcommands of `cohort`, each a function of its own arguments. */
#ifndef COHI_TOOLS_COMMAND_H
#define COHI_TOOLS_COMMAND_H

/* What a wrong command line exits with, in every subcommand. */
enum { COHI_EXIT_USAGE = 2 };

/* argv[0] is the subcommand's name. The result is the exit status. */
int cohi_tool_run(int argc, char **argv);
int cohi_tool_ps(int argc, char **argv);
int cohi_tool_info(int argc, char **argv);
int cohi_tool_bench(int argc, char **argv);
int cohi_tool_tune(int argc, char **argv);

#endif
