#include "completion.h"

#include <string.h>

/* What is in the condition of each line: in which command the cursor is, "" before one. Behind the
 * program of `cohort run` it is in none, since the words there are the program's. */
static const char begin[] =
    "# fish completion of cohort, made by 'cohort completion fish'\n"
    "function __cohort_in --description 'whether the cursor is in this command of cohort'\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    set -l path\n"
    "    if set -q words[1]\n"
    "        set path $words[1]\n"
    "        set -e words[1]\n"
    "    end\n"
    "    if set -q words[1]; and contains -- \"$path $words[1]\" $__cohort_nested\n"
    "        set path \"$path $words[1]\"\n"
    "    end\n"
    "    test \"$path\" = \"$argv[1]\"; or return 1\n"
    "    test \"$path\" = run; or return 0\n"
    "    set -l value no\n"
    "    for word in $words\n"
    "        if test $value = yes\n"
    "            set value no\n"
    "        else if contains -- $word $__cohort_run_valued\n"
    "            set value yes\n"
    "        else if test \"$word\" = --; or not string match -q -- '-*' $word\n"
    "            return 1\n"
    "        end\n"
    "    end\n"
    "end\n";

/* Inside single quotes fish has a backslash before a quote and a backslash. */
static void print_quoted(const char *text)
{
    cohi_completion_print_quoted(text, "\\", "\\'");
}

static void print_condition(const char *path)
{
    printf("complete -c cohort -n '__cohort_in \"%s\"' ", path);
}

static void print_flag(const char *path, const cohi_flag_row *row)
{
    print_condition(path);
    printf("-l %s ", row->name);
    if (row->letter)
        printf("-s %c ", row->letter);
    switch (cohi_completion_value_kind(row)) {
    case COHI_FLAG_VALUE_FILE:
        printf("-r -F ");
        break;
    case COHI_FLAG_VALUE_WORDS:
        printf("-x -a '");
        cohi_completion_print_values(row, "");
        printf("' ");
        break;
    case COHI_FLAG_VALUE_OTHER:
        printf("-x ");
        break;
    case COHI_FLAG_VALUE_NONE:
        break;
    }
    printf("-d '");
    print_quoted(row->help);
    printf("'\n");
}

static void print_entry(const cohi_completion_entry *entry)
{
    if (entry->usage) {
        for (const cohi_flag_row *row = entry->usage->flags; row->name; row++)
            print_flag(entry->path, row);
        print_condition(entry->path);
        printf("-l help -s h -d 'show this'\n");
    }
    print_condition(entry->path);
    if (entry->operands == COHI_OPERAND_PROGRAM) {
        printf("-F -a '(__fish_complete_command)'\n");
        return;
    }
    printf("-f -a '");
    cohi_completion_print_operands(entry->operands);
    printf("'\n");
}

static void print_command(const cohi_completion_entry *entry)
{
    print_condition("");
    printf("-f -a %s -d '", entry->path);
    print_quoted(entry->summary);
    printf("'\n");
}

static void print_valued(const cohi_usage *usage)
{
    printf("set -g __cohort_run_valued");
    for (const cohi_flag_row *row = usage->flags; row->name; row++) {
        if (row->value && row->letter)
            printf(" -%c", row->letter);
        if (row->value)
            printf(" --%s", row->name);
    }
    printf("\n");
}

void cohi_completion_fish(const cohi_completion *completion)
{
    fputs(begin, stdout);
    printf("set -g __cohort_nested");
    for (size_t i = 0; i < completion->count; i++)
        if (strchr(completion->entries[i].path, ' '))
            printf(" '%s'", completion->entries[i].path);
    printf("\n");
    for (size_t i = 0; i < completion->count; i++)
        if (completion->entries[i].operands == COHI_OPERAND_PROGRAM)
            print_valued(completion->entries[i].usage);
    for (size_t i = 0; i < completion->count; i++)
        if (completion->entries[i].summary)
            print_command(&completion->entries[i]);
    print_condition("");
    printf("-l help -s h -d 'show this'\n");
    print_condition("");
    printf("-l version -d 'print the version'\n");
    for (size_t i = 0; i < completion->count; i++)
        print_entry(&completion->entries[i]);
}
