#include "completion.h"

#include "bench/bench.h"

#include <cohort.h>
#include <string.h>

static const struct {
    const char *name;
    void (*print)(const cohi_completion *completion);
} shells[] = {
    {"bash", cohi_completion_bash},
    {"zsh", cohi_completion_zsh},
    {"fish", cohi_completion_fish},
};

enum { SHELLS = sizeof shells / sizeof *shells };

/* ---- the words ---- */

cohi_flag_value cohi_completion_value_kind(const cohi_flag_row *row)
{
    if (!row->value)
        return COHI_FLAG_VALUE_NONE;
    if (strcmp(row->value, "FILE") == 0)
        return COHI_FLAG_VALUE_FILE;
    if (strcmp(row->value, "ENGINE") == 0 || strchr(row->value, '|'))
        return COHI_FLAG_VALUE_WORDS;
    return COHI_FLAG_VALUE_OTHER;
}

void cohi_completion_print_quoted(const char *text, const char *escaped, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, stdout);
            continue;
        }
        if (strchr(escaped, *text))
            putchar('\\');
        putchar(*text);
    }
}

void cohi_completion_print_values(const cohi_flag_row *row, const char *escaped)
{
    if (strcmp(row->value, "ENGINE") == 0) {
        printf("any");
        for (int i = 0; coh_engine_name(i); i++) {
            putchar(' ');
            cohi_completion_print_quoted(coh_engine_name(i), escaped, "");
        }
        return;
    }
    for (const char *at = row->value; *at; at++)
        putchar(*at == '|' ? ' ' : *at);
}

static const char *benchmark(size_t index)
{
    static const char *const apart[] = {"collectives", "pipeline", "links", "gpu", NULL};
    size_t cases = 0;
    while (cohi_bench_case_at(cases))
        cases++;
    return index < cases ? cohi_bench_case_at(index)->name : apart[index - cases];
}

const char *cohi_completion_operand(cohi_operands operands, size_t index)
{
    switch (operands) {
    case COHI_OPERAND_BENCHMARKS:
        return benchmark(index);
    case COHI_OPERAND_COMMAND:
        return cohi_command_at(index) ? cohi_command_at(index)->name : NULL;
    case COHI_OPERAND_SHELL:
        return index < SHELLS ? shells[index].name : NULL;
    case COHI_OPERAND_PROGRAM:
    case COHI_NO_OPERANDS:
        break;
    }
    return NULL;
}

void cohi_completion_print_operands(cohi_operands operands)
{
    const char *word;
    for (size_t i = 0; (word = cohi_completion_operand(operands, i)); i++)
        printf("%s%s", i ? " " : "", word);
}

/* ---- the entries, each asked for its help ---- */

static void keep_usage(void *arg, const cohi_usage *usage)
{
    *(const cohi_usage **)arg = usage;
}

/* The function is asked as `cohort NAME WORD --help` would ask it; without a word, `cohort NAME --help`. */
static const cohi_usage *ask_usage(const cohi_command *command, const char *word)
{
    const cohi_usage *usage = NULL;
    char name[32], operand[32], help[] = "--help";
    char *with_word[] = {name, operand, help, NULL}, *without[] = {name, help, NULL};
    snprintf(name, sizeof name, "%s", command->name);
    snprintf(operand, sizeof operand, "%s", word ? word : "");
    cohi_flags_help_to(keep_usage, &usage);
    command->function(word ? 3 : 2, word ? with_word : without);
    cohi_flags_help_to(NULL, NULL);
    return usage;
}

static void add_entry(cohi_completion *completion, cohi_completion_entry entry)
{
    if (completion->count < COHI_COMPLETION_ROOM)
        completion->entries[completion->count++] = entry;
}

static void collect(cohi_completion *completion)
{
    const cohi_command *command;
    completion->count = 0;
    for (size_t i = 0; (command = cohi_command_at(i)); i++) {
        add_entry(completion, (cohi_completion_entry){
                                  .path = command->name,
                                  .summary = command->summary,
                                  .usage = command->has_flags ? ask_usage(command, NULL) : NULL,
                                  .operands = command->operands});
        if (command->operands != COHI_OPERAND_BENCHMARKS)
            continue;
        add_entry(completion, (cohi_completion_entry){.path = "bench pipeline",
                                                      .usage = ask_usage(command, "pipeline"),
                                                      .operands = COHI_NO_OPERANDS});
        add_entry(completion, (cohi_completion_entry){.path = "bench gpu",
                                                      .usage = ask_usage(command, "gpu"),
                                                      .operands = COHI_NO_OPERANDS});
        add_entry(completion, (cohi_completion_entry){.path = "bench links",
                                                      .usage = ask_usage(command, "links"),
                                                      .operands = COHI_NO_OPERANDS});
    }
}

/* ---- the command ---- */

static const cohi_flag_row flags[] = {
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort completion",
    .synopsis = "bash|zsh|fish",
    .summary = "Prints the script by which that shell completes the commands and flags of cohort.",
    .flags = flags,
    .notes = "make install puts them where the shells look. By hand, for this shell alone:\n"
             "  bash, zsh:  source <(cohort completion bash)\n"
             "  fish:       cohort completion fish | source",
};

int cohi_tool_completion(int argc, char **argv)
{
    int first = cohi_flags_parse(&usage, argc, argv, NULL);
    if (first < 0)
        return first == COHI_FLAGS_HELP ? 0 : COHI_EXIT_USAGE;
    if (argc - first != 1)
        return cohi_flags_refuse(&usage, "it takes the name of one shell: bash, zsh or fish");
    for (size_t i = 0; i < SHELLS; i++) {
        if (strcmp(shells[i].name, argv[first]) == 0) {
            cohi_completion completion;
            collect(&completion);
            shells[i].print(&completion);
            return 0;
        }
    }
    return cohi_flags_refuse(
        &usage, "there is no completion for '%s'; there is for bash, zsh, fish", argv[first]);
}
