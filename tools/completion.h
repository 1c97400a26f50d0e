/*
 * completion.h - what shells complete of cohort's command lines: the commands, and for each the flags
 * that its help lists and the words that may follow.
 */
#ifndef COHI_TOOLS_COMPLETION_H
#define COHI_TOOLS_COMPLETION_H

#include "command.h"
#include "flags.h"

#include <stdio.h>

enum { COHI_COMPLETION_ROOM = 24 };

typedef struct cohi_completion_entry {
    const char *path;        /* the words after `cohort`: "run", "bench pipeline" */
    const char *summary;     /* NULL for what is no command of its own, but words of one */
    const cohi_usage *usage; /* NULL: it has no flags */
    cohi_operands operands;
} cohi_completion_entry;

typedef struct cohi_completion {
    cohi_completion_entry entries[COHI_COMPLETION_ROOM];
    size_t count;
} cohi_completion;

typedef enum cohi_flag_value {
    COHI_FLAG_VALUE_NONE,  /* the flag takes none */
    COHI_FLAG_VALUE_OTHER, /* one that cannot be guessed */
    COHI_FLAG_VALUE_FILE,
    COHI_FLAG_VALUE_WORDS, /* one of those that cohi_completion_print_values prints */
} cohi_flag_value;

cohi_flag_value cohi_completion_value_kind(const cohi_flag_row *row);

/* Prints them with a space between, and a backslash before each character of `escaped`. */
void cohi_completion_print_values(const cohi_flag_row *row, const char *escaped);

/* The words that an entry's operands may be; NULL after the last, or when they are not words of ours. */
const char *cohi_completion_operand(cohi_operands operands, size_t index);

/* Prints all of the operands' words with a space between. */
void cohi_completion_print_operands(cohi_operands operands);

/* Prints `text` for inside single quotes, with a backslash before each character of `escaped`, and
 * each single quote as `quote`. */
void cohi_completion_print_quoted(const char *text, const char *escaped, const char *quote);

void cohi_completion_bash(const cohi_completion *completion);
void cohi_completion_zsh(const cohi_completion *completion);
void cohi_completion_fish(const cohi_completion *completion);

#endif
