#include "run/run.h"

#include "base/config.h"
#include "base/error.h"
#include "command.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take_ranks(void *target, const char *flag, const char *value)
{
    uint64_t count;
    if (cohi_parse_count(flag, value, 1, COHI_RUN_RANKS_MAX, &count) != COH_OK)
        return -1;
    ((cohi_run_options *)target)->ranks = (int)count;
    ((cohi_run_options *)target)->ranks_given = 1;
    return 0;
}

/* Whether it can serve so many ranks is asked when their number is known. */
static int take_engine(void *target, const char *flag, const char *value)
{
    if (!*value) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: the name is empty", flag);
        return -1;
    }
    ((cohi_run_options *)target)->engine = value;
    return 0;
}

static int take_heap(void *target, const char *flag, const char *value)
{
    uint64_t bytes;
    ((cohi_run_options *)target)->heap = value;
    return cohi_parse_size(flag, value, &bytes) == COH_OK ? 0 : -1;
}

static int sets_variable(const char *assignment, const char *name)
{
    size_t length = strlen(name);
    return strncmp(assignment, name, length) == 0 && assignment[length] == '=';
}

static coh_status check_assignment(const char *flag, const char *assignment)
{
    static const char *const own[] = {"COHORT_RANK", "COHORT_SIZE", "COHORT_JOB_FD"};
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: '%s' is not NAME=VALUE, with a name before the first '='", flag,
                         assignment);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (sets_variable(assignment, own[i]))
            return cohi_fail(COH_INVALID_ARGUMENT,
                             "%s: '%s': cohort run sets %s itself, for each rank", flag, assignment,
                             own[i]);
    }
    return COH_OK;
}

static int take_env(void *target, const char *flag, const char *value)
{
    cohi_run_options *options = target;
    if (check_assignment(flag, value) != COH_OK)
        return -1;
    if (options->environment_count == COHI_RUN_ENV_MAX) {
        cohi_fail(COH_LIMIT, "%s: '%s' is one too many; it can be given %d times", flag, value,
                  COHI_RUN_ENV_MAX);
        return -1;
    }
    options->environment[options->environment_count++] = (char *)(uintptr_t)value;
    return 0;
}

static int take_tag_output(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((cohi_run_options *)target)->tag_output = 1;
    return 0;
}

static int take_timeout(void *target, const char *flag, const char *value)
{
    uint64_t *timeout = &((cohi_run_options *)target)->timeout_ns;
    return cohi_parse_seconds(flag, value, timeout) == COH_OK ? 0 : -1;
}

static int take_grace(void *target, const char *flag, const char *value)
{
    uint64_t *grace = &((cohi_run_options *)target)->grace_ns;
    if (strcmp(value, "0") == 0) {
        *grace = 0;
        return 0;
    }
    return cohi_parse_seconds(flag, value, grace) == COH_OK ? 0 : -1;
}

static int take_bind(void *target, const char *flag, const char *value)
{
    static const char *const words[] = {"none", "core"};
    for (int i = 0; i < 2; i++) {
        if (strcmp(value, words[i]) == 0) {
            ((cohi_run_options *)target)->bind_core = i;
            return 0;
        }
    }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not one of none, core", flag, value);
    return -1;
}

static int take_keep_going(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((cohi_run_options *)target)->keep_going = 1;
    return 0;
}

static int take_pretend_hosts(void *target, const char *flag, const char *value)
{
    uint64_t count;
    if (cohi_parse_count(flag, value, 1, COHI_RUN_RANKS_MAX, &count) != COH_OK)
        return -1;
    ((cohi_run_options *)target)->pretend_hosts = (int)count;
    return 0;
}

static int take_race_check(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((cohi_run_options *)target)->race_check = 1;
    return 0;
}

static int take_trust_network(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((cohi_run_options *)target)->trust_network = 1;
    return 0;
}

/* Parsed when all flags are known. */
static int take_hosts(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_run_options *)target)->hosts_text = value;
    return 0;
}

static int take_hostfile(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_run_options *)target)->hostfile = value;
    return 0;
}

static int take_shell(void *target, const char *flag, const char *value)
{
    if (!*value) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: the command is empty", flag);
        return -1;
    }
    ((cohi_run_options *)target)->shell = value;
    return 0;
}

static int take_oversubscribe(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((cohi_run_options *)target)->oversubscribe = 1;
    return 0;
}

static int take_host_timeout(void *target, const char *flag, const char *value)
{
    uint64_t *timeout = &((cohi_run_options *)target)->host_timeout_ns;
    return cohi_parse_seconds(flag, value, timeout) == COH_OK ? 0 : -1;
}

static const cohi_flag_row flags[] = {
    {"ranks", 'n', "N", "how many ranks, 1 to 1024; when not given all slots of the hosts, or 1",
     take_ranks},
    {"hosts", 0, "LIST", "run them on these hosts, with as many slots: a:4,b:4", take_hosts},
    {"hostfile", 0, "FILE", "the same from a file: a line a host, or MLX's JSON", take_hostfile},
    {"shell", 0, "COMMAND", "what reaches a host, as COMMAND HOST cohort agent; ssh", take_shell},
    {"oversubscribe", 0, NULL, "allow more ranks than slots", take_oversubscribe},
    {"host-timeout", 0, "SECONDS", "how long a host may take to answer at the start; 30",
     take_host_timeout},
    {"trust-network", 0, NULL,
     "send in the clear between hosts what is sealed otherwise; sets COHORT_NET",
     take_trust_network},
    {"engine", 0, "ENGINE", "engine that connects them, see cohort info; sets COHORT_ENGINE",
     take_engine},
    {"heap", 0, "SIZE", "most that each rank's heap can grow to: 64M, 2G, auto; sets COHORT_HEAP",
     take_heap},
    {"env", 0, "NAME=VALUE", "set a variable for the ranks; may be repeated", take_env},
    {"tag-output", 0, NULL, "begin each line of output by its rank, '[2] '", take_tag_output},
    {"timeout", 0, "SECONDS", "end the job after this time, with status 124", take_timeout},
    {"grace", 0, "SECONDS", "time for the others to end when a rank has failed; 0.7", take_grace},
    {"bind", 0, "none|core", "core: rank r runs on the r-th allowed core only, round robin; none",
     take_bind},
    {"keep-going", 0, NULL, "when a rank fails, let the others run on", take_keep_going},
    {"race-check", 0, NULL,
     "show what a forgotten barrier, wait, quiet or fence does; sets COHORT_CHECK",
     take_race_check},
    {"pretend-hosts", 0, "K",
     "let the ranks play K hosts on this one, in blocks; sets COHORT_HOST for each",
     take_pretend_hosts},
    {NULL, 0, NULL, NULL, NULL},
};

const cohi_usage cohi_run_usage = {
    .command = "cohort run",
    .synopsis = "[-n N] [FLAGS...] PROGRAM [ARGUMENTS...]",
    .summary = "Starts N processes of PROGRAM as the ranks of one job, on this host or on those "
               "given,\n"
               "and ends them all when one fails.",
    .flags = flags,
    .also = "-np", /* what fingers type that know mpirun */
    .also_means = "-n",
    .notes =
        "status: 0; or that of the rank that failed first, 128 + the signal that killed it; 124\n"
        "after --timeout; 128 + the signal that interrupted cohort run; 126 or 127 when PROGRAM\n"
        "cannot be started; 1 when a host is not reached or lost.\n"
        "\n"
        "hosts: cohort must be installed there in the same version, and PROGRAM lie at the same "
        "path.\n"
        "COMMAND is read by sh; the host and 'cohort agent' are added to it as words. Of the\n"
        "environment, COHORT_*, SHMEM_* and --env go along. Inside a Slurm allocation, -n alone\n"
        "takes its hosts; docs/hosts.md.\n"
        "\n"
        "race check: puts arrive only when something orders them, or else late. Gets, puts, "
        "atomics\n"
        "and collectives that touch a put which nothing has ordered fail, with both named (RACE).\n"
        "Loads and stores of the program are not seen: those that come too early find old data, "
        "and\n"
        "the program has to notice. Not seen at all: loads and stores through coh_ptr, which is\n"
        "refused; order made outside of Cohort, or by loads in a loop without calls; atomics "
        "without\n"
        "a quiet; what this run did not do. Slower; for engines shm and threads; "
        "docs/race-check.md.",
};

static void add_variable(cohi_run_options *options, const char *name, const char *value)
{
    char *text;
    if (value && asprintf(&text, "%s=%s", name, value) >= 0)
        options->environment[options->environment_count++] = text;
}

/* After all of --env, so that a flag of its own has the last word. */
static void add_flag_variables(cohi_run_options *options)
{
    options->environment_given = options->environment_count;
    add_variable(options, "COHORT_ENGINE", options->engine);
    add_variable(options, "COHORT_HEAP", options->heap);
    add_variable(options, "COHORT_CHECK", options->race_check ? "order" : NULL);
    add_variable(options, "COHORT_NET", options->trust_network ? "clear" : NULL);
    options->environment[options->environment_count] = NULL;
}

void cohi_run_options_free(cohi_run_options *options)
{
    for (int i = options->environment_given; i < options->environment_count; i++)
        free(options->environment[i]);
    cohi_hosts_free(&options->hosts);
}

static int find_hosts(cohi_run_options *options)
{
    return cohi_run_find_hosts(options) == COH_OK
               ? 0
               : cohi_flags_refuse(&cohi_run_usage, "%s", coh_last_error());
}

/* One that is not named is chosen by the ranks; but a job of several hosts is refused here if there is
 * none for it. Other hosts have what this one has: the same version. */
static int check_engine(const cohi_run_options *options)
{
    const cohi_engine *engine;
    int hosts = options->hosts.count;
    cohi_need need = {.size = options->ranks, .in_process = 0, .hosts = hosts};
    const char *name = options->engine;
    if (!name && hosts > 1)
        name = "any";
    if (!name || cohi_engine_select(name, &need, &engine) == COH_OK)
        return 0;
    return cohi_flags_refuse(&cohi_run_usage, "%s%s: %s",
                             options->engine ? "--engine " : "several hosts",
                             options->engine ? options->engine : "", coh_last_error());
}

int cohi_run_parse(int argc, char **argv, cohi_run_options *options, int *status)
{
    *options = (cohi_run_options){
        .ranks = 1, .grace_ns = 700 * COHI_NS_PER_MS, .host_timeout_ns = 30 * COHI_NS_PER_S};
    int first = cohi_flags_parse(&cohi_run_usage, argc, argv, options);
    *status = first == COHI_FLAGS_HELP ? 0 : COHI_EXIT_USAGE;
    if (first < 0)
        return -1;
    if (first >= argc) {
        *status = cohi_flags_refuse(&cohi_run_usage, "no PROGRAM was given");
        return -1;
    }
    *status = find_hosts(options);
    if (*status == 0)
        *status = check_engine(options);
    if (*status != 0) {
        cohi_hosts_free(&options->hosts);
        return -1;
    }
    options->command = argv + first;
    add_flag_variables(options);
    return 0;
}
