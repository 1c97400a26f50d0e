#include "completion.h"

#include <string.h>

/* `valued` are the flags whose value is the next word. */
static const char begin[] =
    "# bash completion of cohort, made by 'cohort completion bash'\n"
    "_cohort()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=${COMP_WORDS[1]} first=2 flags= valued= operands= values= i\n"
    "    COMPREPLY=()\n"
    "    # '=' is a word of its own here: --flag=value is three.\n"
    "    if [[ $current == '=' ]]; then\n"
    "        current=\n"
    "    elif [[ $before == '=' ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n";

static const char end[] =
    "    # Behind the program of cohort run are its own arguments.\n"
    "    if [[ $operands == PROGRAM ]]; then\n"
    "        for ((i = first; i < COMP_CWORD; i++)); do\n"
    "            case ${COMP_WORDS[i]} in\n"
    "            =) ((i++)) ;;\n"
    "            --) ((++i < COMP_CWORD)) && return ;;\n"
    "            -*) [[ \" $valued \" == *\" ${COMP_WORDS[i]} \"* && ${COMP_WORDS[i + 1]-} != '=' "
    "]] && ((i++)) ;;\n"
    "            *) return ;;\n"
    "            esac\n"
    "        done\n"
    "    fi\n"
    "    if [[ \" $valued \" == *\" $before \"* ]]; then\n"
    "        if [[ $values == FILE ]]; then\n"
    "            return\n"
    "        fi\n"
    "        compopt +o default 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
    "    elif [[ $current == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$current\")\n"
    "    elif [[ $operands != PROGRAM ]]; then\n"
    "        compopt +o default 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$operands\" -- \"$current\")\n"
    "    elif [[ $current != */* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -c -A file -- \"$current\")\n"
    "    fi\n"
    "}\n"
    "# What the function leaves empty is completed by files.\n"
    "complete -o default -F _cohort cohort\n";

static void print_flags(const cohi_usage *usage, int valued)
{
    for (const cohi_flag_row *row = usage->flags; row->name; row++) {
        if (valued && !row->value)
            continue;
        printf("--%s ", row->name);
        if (row->letter)
            printf("-%c ", row->letter);
    }
    fputs(valued ? "" : "--help -h", stdout);
}

static void print_values(const cohi_usage *usage)
{
    printf("        case $before in\n");
    for (const cohi_flag_row *row = usage->flags; row->name; row++) {
        cohi_flag_value kind = cohi_completion_value_kind(row);
        if (kind != COHI_FLAG_VALUE_FILE && kind != COHI_FLAG_VALUE_WORDS)
            continue;
        printf("        --%s", row->name);
        if (row->letter)
            printf(" | -%c", row->letter);
        printf(") values='");
        if (kind == COHI_FLAG_VALUE_FILE)
            printf("FILE");
        else
            cohi_completion_print_values(row, "");
        printf("' ;;\n");
    }
    printf("        esac\n");
}

static void print_entry(const cohi_completion_entry *entry)
{
    printf("    '%s')\n", entry->path);
    if (entry->usage) {
        printf("        flags='");
        print_flags(entry->usage, 0);
        printf("'\n        valued='");
        print_flags(entry->usage, 1);
        printf("'\n");
        print_values(entry->usage);
    }
    printf("        operands='");
    if (entry->operands == COHI_OPERAND_PROGRAM)
        printf("PROGRAM");
    cohi_completion_print_operands(entry->operands);
    printf("'\n        ;;\n");
}

/* A path of two words is a command of its own from its third word on. */
static void print_nested(const cohi_completion *completion)
{
    for (size_t i = 0; i < completion->count; i++)
        if (strchr(completion->entries[i].path, ' '))
            printf("    if ((COMP_CWORD > 2)) && [[ \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" == '%s' "
                   "]]; then\n"
                   "        command='%s' first=3\n"
                   "    fi\n",
                   completion->entries[i].path, completion->entries[i].path);
}

void cohi_completion_bash(const cohi_completion *completion)
{
    fputs(begin, stdout);
    printf("    if ((COMP_CWORD == 1)); then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    cohi_completion_print_operands(COHI_OPERAND_COMMAND);
    printf(" --help -h --version' -- \"$current\")\n"
           "        return\n"
           "    fi\n");
    print_nested(completion);
    printf("    case $command in\n");
    for (size_t i = 0; i < completion->count; i++)
        print_entry(&completion->entries[i]);
    printf("    *) return ;;\n    esac\n");
    fputs(end, stdout);
}
