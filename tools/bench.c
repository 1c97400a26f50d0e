/* bench.c - `cohort bench`: Cohort's calls beside the limits of this machine. */
#include "bench.h"

#include "command.h"
#include "flags.h"

#include "base/config.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks for each core where there are to be more ranks than cores. */
enum { CROWD = 4 };

static int take_ranks(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    return cohi_parse_count(flag, value, 1, COHI_BENCH_RANKS, &options->ranks) == COH_OK ? 0 : -1;
}

static int take_rounds(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    return cohi_parse_count(flag, value, 1, 100000, &options->rounds) == COH_OK ? 0 : -1;
}

/* The engines whose memory is mapped: beside the others a copy is no limit. */
static int take_engine(void *target, const char *flag, const char *value)
{
    static const char *const engines[] = {"shm", "threads"};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        if (strcmp(value, engines[i]) == 0) {
            ((cohi_bench_options *)target)->engine = engines[i];
            return 0;
        }
    }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' cannot be measured; give shm or threads", flag,
              value);
    return -1;
}

static int take_size(cohi_bench_options *options, const char *flag, const char *text)
{
    uint64_t bytes;
    if (cohi_parse_size(flag, text, &bytes) != COH_OK || bytes == 0) {
        cohi_fail(COH_INVALID_ARGUMENT,
                  "%s: '%s' is not a size; give 1 byte to 128T, such as 8,64K,1M", flag, text);
        return -1;
    }
    if (options->size_count == COHI_BENCH_SIZES) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is one size too many; give at most %d", flag,
                  text, COHI_BENCH_SIZES);
        return -1;
    }
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((cohi_bench_options *)target)->json = 1;
    return 0;
}

static int take_quick(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((cohi_bench_options *)target)->quick = 1;
    return 0;
}

static int take_peer(cohi_bench_options *options, const char *flag, const char *text)
{
    const char *name;
    char known[128] = "";
    size_t used = 0;
    for (size_t i = 0; (name = cohi_bench_peer_name(i)); i++) {
        if (strcmp(name, text) == 0) {
            options->against |= 1u << i;
            return 0;
        }
        if (used < sizeof known)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", name);
    }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: there is no peer '%s'; there are %s", flag, text, known);
    return -1;
}

/* Each of the texts between commas; 0, or -1 from the first that is refused. */
static int take_list(cohi_bench_options *options, const char *flag, const char *value,
                     int (*take)(cohi_bench_options *options, const char *flag, const char *text))
{
    char *copy = strdup(value), *rest = copy, *text;
    int status = copy ? 0 : -1;
    while (status == 0 && (text = strsep(&rest, ",")))
        status = take(options, flag, text);
    free(copy);
    return status;
}

static int take_sizes(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    options->size_count = 0;
    options->size_text = value;
    return take_list(options, flag, value, take_size);
}

static int take_against(void *target, const char *flag, const char *value)
{
    return take_list(target, flag, value, take_peer);
}

static const cohi_flag_row flags[] = {
    {"ranks", 'n', "RANKS",
     "how many ranks, 1 to 1024 (2; for the barrier also four for each core)", take_ranks},
    {"engine", 0, "ENGINE", "shm (processes) or threads (shm)", take_engine},
    {"sizes", 0, "LIST", "bytes to move, such as 8,64K,1M", take_sizes},
    {"rounds", 0, "COUNT", "how often each is measured, in turns (21; quick, or --against, 7)",
     take_rounds},
    {"against", 0, "LIST", "openmpi, oshmem, mpich: those that are installed, in turns with Cohort",
     take_against},
    {"json", 0, NULL, "print one JSON object", take_json},
    {"quick", 0, NULL, "fewer sizes and rounds", take_quick},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    "cohort bench",
    "[BENCHMARK...] [FLAGS...]",
    "Measures Cohort's calls in turns with raw loops on the same memory, and prints which\n"
    "fraction of the machine's limit they reach.",
    flags,
    "benchmarks (all, when none is named; with --against those that the peers have too):\n"
    "barrier, sync, put, get, quiet, deliver, strided, fetch_add, compare_swap, signal,\n"
    "message, private_message, rate, thread_puts, thread_adds",
};

static int choose(cohi_bench_options *options, const char *name)
{
    char known[256] = "";
    size_t used = 0;
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (strcmp(row->name, name) == 0) {
            options->chosen |= 1u << i;
            return 0;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     row->name);
    }
    return cohi_flags_refuse(&usage, "there is no benchmark '%s'; there are %s", name, known);
}

/* Names and flags in any order. 0 to go on, else *status is what to exit with. */
static int parse(int argc, char **argv, cohi_bench_options *options, int *status)
{
    for (int at = 1; at < argc; at++) {
        int took = cohi_flags_parse(&usage, argc - at + 1, argv + at - 1, options);
        if (took < 0) {
            *status = took == COHI_FLAGS_HELP ? 0 : COHI_EXIT_USAGE;
            return -1;
        }
        at += took - 1;
        if (at < argc && (*status = choose(options, argv[at])) != 0)
            return -1;
    }
    return 0;
}

/* The chosen that `ranks` are enough for, of those that crowd if they must; 0: none. */
static unsigned runnable(const cohi_bench_options *options, int must_crowd)
{
    unsigned mask = 0;
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (options->ranks >= (uint64_t)row->least_ranks && (row->crowded || !must_crowd))
            mask |= 1u << i;
    }
    return mask & options->chosen;
}

/* A benchmark that was asked for by name and cannot run with that few ranks. */
static int refuse_few_ranks(const cohi_bench_options *options)
{
    const cohi_bench_case *row;
    unsigned missing = options->chosen & ~runnable(options, 0);
    for (size_t i = 0; missing && (row = cohi_bench_case_at(i)); i++) {
        if (missing >> i & 1)
            return cohi_flags_refuse(&usage, "--ranks: %s needs at least %d ranks, not %d",
                                     row->name, row->least_ranks, (int)options->ranks);
    }
    return 0;
}

static int run_job(cohi_bench_options options, uint64_t ranks, int must_crowd, json_t *results)
{
    options.ranks = ranks;
    options.crowded = ranks > (uint64_t)cohi_os_core_count();
    options.chosen = runnable(&options, must_crowd);
    return options.chosen ? cohi_bench_job(&options, results) : 0;
}

static int run_against(cohi_bench_options options, json_t *results, json_t *peers)
{
    options.ranks = options.ranks ? options.ranks : 2;
    options.crowded = options.ranks > (uint64_t)cohi_os_core_count();
    options.chosen = runnable(&options, 0);
    return cohi_bench_against(&options, results, peers);
}

static int run_alone(const cohi_bench_options *options, json_t *results)
{
    int status = run_job(*options, options->ranks ? options->ranks : 2, 0, results);
    if (status == 0 && options->ranks == 0)
        status = run_job(*options, (uint64_t)cohi_os_core_count() * CROWD, 1, results);
    return status;
}

static int run_all(const cohi_bench_options *options)
{
    json_t *results = json_array(), *peers = json_array();
    int status = EXIT_FAILURE;
    if (results && peers)
        status =
            options->against ? run_against(*options, results, peers) : run_alone(options, results);
    if (status == 0 && cohi_bench_report(options, results, peers) != 0) {
        fprintf(stderr, "cohort bench: the report could not be written\n");
        status = EXIT_FAILURE;
    }
    json_decref(results);
    json_decref(peers);
    return status;
}

int cohi_tool_bench(int argc, char **argv)
{
    cohi_bench_options options = {.engine = "shm"};
    int worker = argc > 1 && strcmp(argv[1], "--worker") == 0;
    options.crowded = argc > 1 && strcmp(argv[1], "--worker-crowded") == 0;
    worker = worker || options.crowded;
    int status;
    if (parse(argc - worker, argv + worker, &options, &status) != 0)
        return status;
    if (worker)
        return cohi_bench_worker(&options);
    if (options.chosen && options.ranks && (status = refuse_few_ranks(&options)) != 0)
        return status;
    if (options.against && options.rounds > COHI_BENCH_TURNS)
        return cohi_flags_refuse(&usage, "--rounds: %d is more than the %d turns of --against",
                                 (int)options.rounds, COHI_BENCH_TURNS);
    if (!options.chosen)
        options.chosen = options.against ? cohi_bench_peer_cases(options.against) : ~0u;
    cohi_bench_catch_signals();
    return run_all(&options);
}
