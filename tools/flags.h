/*
 * flags.h - command-line flags as rows of a table, which parses them and prints the help.
 *
 * A flag is "--name", "--name VALUE", "--name=VALUE", or by its letter "-n VALUE", "-nVALUE". The
 * first argument that is no flag ends them, and so does "--".
 */
#ifndef COHI_TOOLS_FLAGS_H
#define COHI_TOOLS_FLAGS_H

#include <stddef.h>

typedef struct cohi_flag_row {
    const char *name;  /* without the dashes; NULL ends the table */
    char letter;       /* or 0 */
    const char *value; /* what the help calls the value; NULL: it has none */
    const char *help;
    /* Takes the value ("" where it has none). 0, or -1 with the reason in coh_last_error(). */
    int (*take)(void *target, const char *flag, const char *value);
} cohi_flag_row;

typedef struct cohi_usage {
    const char *command; /* "cohort run" */
    const char *synopsis;
    const char *summary;
    const cohi_flag_row *flags;
    const char *notes;      /* printed last */
    const char *also;       /* a spelling that is understood and not shown, "-np"; or NULL */
    const char *also_means; /* "-n" */
} cohi_usage;

enum { COHI_FLAGS_HELP = -2 };

/*
 * Who is shown a usage when help is asked for: show(arg, usage) from now on, or with NULL the text
 * on standard output again. So the completions of shells are made from the same rows as the help.
 */
void cohi_flags_help_to(void (*show)(void *arg, const cohi_usage *usage), void *arg);

/*
 * Parses argv[1...]. The index of the first argument that is no flag; COHI_FLAGS_HELP when help was
 * asked for, and printed; -1 for a wrong flag, which was told on standard error.
 */
int cohi_flags_parse(const cohi_usage *usage, int argc, char **argv, void *target);

/* Tells "COMMAND: reason" and where the help is. Returns COHI_EXIT_USAGE. */
int cohi_flags_refuse(const cohi_usage *usage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For commands without operands: parses, and refuses what is left over. 0 to go on, else *status is
 * what to exit with. */
int cohi_flags_only(const cohi_usage *usage, int argc, char **argv, void *target, int *status);

#endif
