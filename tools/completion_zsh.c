#include "completion.h"

#include <string.h>

/* It is found by its first line in a folder of $fpath, or sourced. */
static const char begin[] = "#compdef cohort\n"
                            "# zsh completion of cohort, made by 'cohort completion zsh'\n"
                            "_cohort() {\n"
                            "    local -a commands\n"
                            "    local command=$words[2]\n"
                            "    integer first=1\n";

static const char end[] = "}\n"
                          "if [[ $funcstack[1] == _cohort ]]; then\n"
                          "    _cohort \"$@\"\n"
                          "else\n"
                          "    compdef _cohort cohort\n"
                          "fi\n";

/* What `_arguments` gives a meaning to, and how a quote is written inside quotes. */
static const char special[] = "[]:\\";
static const char quote[] = "'\\''";

static void print_flag(const cohi_flag_row *row)
{
    printf(" \\\n            '*'");
    if (row->letter)
        printf("{-%c%s,--%s%s}", row->letter, row->value ? "+" : "", row->name,
               row->value ? "=" : "");
    else
        printf("--%s%s", row->name, row->value ? "=" : "");
    printf("'[");
    cohi_completion_print_quoted(row->help, special, quote);
    printf("]");
    if (row->value) {
        printf(":");
        cohi_completion_print_quoted(row->value, special, quote);
        printf(":");
    }
    switch (cohi_completion_value_kind(row)) {
    case COHI_FLAG_VALUE_FILE:
        printf("_files");
        break;
    case COHI_FLAG_VALUE_WORDS:
        printf("(");
        cohi_completion_print_values(row, special);
        printf(")");
        break;
    case COHI_FLAG_VALUE_OTHER:
        printf(" ");
        break;
    case COHI_FLAG_VALUE_NONE:
        break;
    }
    printf("'");
}

static void print_entry(const cohi_completion_entry *entry)
{
    printf("    '%s')\n        _arguments -s -S :", entry->path);
    if (entry->usage) {
        for (const cohi_flag_row *row = entry->usage->flags; row->name; row++)
            print_flag(row);
        printf(" \\\n            '(- *)'{-h,--help}'[show this]'");
    }
    if (entry->operands == COHI_OPERAND_PROGRAM) {
        printf(" \\\n            '*::program:_normal'");
    } else if (entry->operands != COHI_NO_OPERANDS) {
        printf(" \\\n            '%sword:(",
               entry->operands == COHI_OPERAND_BENCHMARKS ? "*:" : "1:");
        cohi_completion_print_operands(entry->operands);
        printf(")'");
    }
    printf("\n        ;;\n");
}

static void print_commands(const cohi_completion *completion)
{
    printf("    commands=(\n");
    for (size_t i = 0; i < completion->count; i++) {
        if (!completion->entries[i].summary)
            continue;
        printf("        '%s:", completion->entries[i].path);
        cohi_completion_print_quoted(completion->entries[i].summary, special, quote);
        printf("'\n");
    }
    printf(
        "    )\n"
        "    if ((CURRENT == 2)); then\n"
        "        _describe command commands\n"
        "        _arguments '(- *)'{-h,--help}'[show this]' '(- *)--version[print the version]'\n"
        "        return\n"
        "    fi\n");
}

void cohi_completion_zsh(const cohi_completion *completion)
{
    fputs(begin, stdout);
    print_commands(completion);
    for (size_t i = 0; i < completion->count; i++)
        if (strchr(completion->entries[i].path, ' '))
            printf("    if ((CURRENT > 3)) && [[ \"$words[2] $words[3]\" == '%s' ]]; then\n"
                   "        command='%s' first=2\n"
                   "    fi\n",
                   completion->entries[i].path, completion->entries[i].path);
    printf("    shift $first words\n"
           "    ((CURRENT -= first))\n"
           "    case $command in\n");
    for (size_t i = 0; i < completion->count; i++)
        print_entry(&completion->entries[i]);
    printf("    esac\n");
    fputs(end, stdout);
}
