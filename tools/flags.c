#include "flags.h"

#include "command.h"

#include <cohort.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cohi_flags_refuse(const cohi_usage *usage, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", usage->command);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n%s --help tells the flags\n", usage->command);
    va_end(arguments);
    return COHI_EXIT_USAGE;
}

static void print_flag(const cohi_flag_row *row)
{
    char left[64], letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, row->value ? " " : "",
             row->value ? row->value : "");
    printf("  %-26s %s\n", left, row->help);
}

static void print_help(void *arg, const cohi_usage *usage)
{
    (void)arg;
    printf("usage: %s %s\n\n%s\n\nflags:\n", usage->command, usage->synopsis, usage->summary);
    for (const cohi_flag_row *row = usage->flags; row->name; row++)
        print_flag(row);
    printf("  %-26s %s\n", "-h, --help", "show this");
    if (usage->notes)
        printf("\n%s\n", usage->notes);
}

static struct {
    void (*show)(void *arg, const cohi_usage *usage);
    void *arg;
} help = {print_help, NULL};

void cohi_flags_help_to(void (*show)(void *arg, const cohi_usage *usage), void *arg)
{
    help.show = show ? show : print_help;
    help.arg = arg;
}

/* The row that `argument` names; *value is what is attached to it, or NULL. */
static const cohi_flag_row *find_row(const cohi_flag_row *rows, const char *argument,
                                     const char **value)
{
    int is_long = argument[1] == '-';
    for (const cohi_flag_row *row = rows; row->name; row++) {
        size_t length = strlen(row->name);
        if (is_long && strncmp(argument + 2, row->name, length) == 0
            && (argument[2 + length] == '\0' || argument[2 + length] == '=')) {
            *value = argument[2 + length] ? argument + 3 + length : NULL;
            return row;
        }
        if (!is_long && argument[1] == row->letter) {
            *value = argument[2] ? argument + 2 : NULL;
            return row;
        }
    }
    return NULL;
}

static int unknown_flag(const cohi_usage *usage, const char *argument)
{
    char known[512] = "";
    size_t used = 0;
    for (const cohi_flag_row *row = usage->flags; row->name && used < sizeof known; row++)
        used += (size_t)snprintf(known + used, sizeof known - used, "--%s, ", row->name);
    cohi_flags_refuse(usage, "there is no flag '%s'; there are %s--help", argument, known);
    return -1;
}

/* Parses the flag at argv[at]; how many arguments it took, or -1. */
static int take_flag(const cohi_usage *usage, char **argv, int at, void *target)
{
    const char *value, *argument = argv[at];
    if (usage->also && strcmp(argument, usage->also) == 0)
        argument = usage->also_means;
    const cohi_flag_row *row = find_row(usage->flags, argument, &value);
    if (!row)
        return unknown_flag(usage, argument);
    char flag[64];
    if (argument[1] == '-')
        snprintf(flag, sizeof flag, "--%s", row->name);
    else
        snprintf(flag, sizeof flag, "-%c", row->letter);
    int took = 1;
    if (!row->value && value) {
        cohi_flags_refuse(usage, "%s takes no value, but was given '%s'", flag, value);
        return -1;
    }
    if (row->value && !value) {
        value = argv[at + 1];
        took = 2;
    }
    if (row->value && !value) {
        cohi_flags_refuse(usage, "%s needs a value: %s %s", flag, flag, row->value);
        return -1;
    }
    if (row->take(target, flag, value ? value : "") == 0)
        return took;
    cohi_flags_refuse(usage, "%s", coh_last_error());
    return -1;
}

int cohi_flags_parse(const cohi_usage *usage, int argc, char **argv, void *target)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0') {
        if (strcmp(argv[at], "--") == 0)
            return at + 1;
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            help.show(help.arg, usage);
            return COHI_FLAGS_HELP;
        }
        int took = take_flag(usage, argv, at, target);
        if (took < 0)
            return -1;
        at += took;
    }
    return at;
}

int cohi_flags_only(const cohi_usage *usage, int argc, char **argv, void *target, int *status)
{
    int first = cohi_flags_parse(usage, argc, argv, target);
    if (first == argc)
        return 0;
    if (first == COHI_FLAGS_HELP)
        *status = 0;
    else if (first < 0)
        *status = COHI_EXIT_USAGE;
    else
        *status = cohi_flags_refuse(usage, "it takes flags alone, but was given '%s'", argv[first]);
    return -1;
}
