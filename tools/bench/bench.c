/* bench.c - `cohort bench`: Cohort's calls beside the limits of this machine. */
#include "bench/bench.h"

#include "bench/check.h"
#include "bench/load.h"
#include "bench/gpu.h"
#include "bench/links.h"
#include "bench/pipeline.h"
#include "command.h"
#include "flags.h"

#include "base/config.h"
#include "base/error.h"
#include "memory/host_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of lists that have room for a few. */
static int refuse_many(const char *flag, const char *text, int most)
{
    cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is one too many; give at most %d", flag, text, most);
    return -1;
}

static int take_rank_count(cohi_bench_options *options, const char *flag, const char *text)
{
    uint64_t ranks;
    if (cohi_parse_count(flag, text, 1, COHI_BENCH_RANKS, &ranks) != COH_OK)
        return -1;
    if (options->rank_count == COHI_BENCH_LISTED)
        return refuse_many(flag, text, COHI_BENCH_LISTED);
    options->rank_list[options->rank_count++] = ranks;
    return 0;
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

static int add_size(cohi_bench_options *options, const char *flag, const char *text, uint64_t bytes)
{
    if (options->size_count == COHI_BENCH_SIZES)
        return refuse_many(flag, text, COHI_BENCH_SIZES);
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int parse_one_size(const char *flag, const char *text, uint64_t *bytes)
{
    if (cohi_parse_size(flag, text, bytes) == COH_OK && *bytes > 0)
        return 0;
    cohi_fail(COH_INVALID_ARGUMENT,
              "%s: '%s' is not a size; give 1 byte to 128T, such as 8,64K,1M or 1K-16M", flag,
              text);
    return -1;
}

/* "1K-16M": from the first on, four times as much each time, up to the second. */
static int take_range(cohi_bench_options *options, const char *flag, char *text, char *dash)
{
    uint64_t from, to;
    *dash = '\0';
    if (parse_one_size(flag, text, &from) != 0 || parse_one_size(flag, dash + 1, &to) != 0)
        return -1;
    *dash = '-';
    if (from > to) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' ends before it begins", flag, text);
        return -1;
    }
    for (uint64_t bytes = from; bytes <= to; bytes *= 4) {
        if (add_size(options, flag, text, bytes) != 0)
            return -1;
    }
    return 0;
}

static int take_size(cohi_bench_options *options, const char *flag, const char *text)
{
    char copy[64];
    uint64_t bytes;
    snprintf(copy, sizeof copy, "%s", text);
    char *dash = strchr(copy, '-');
    if (dash && dash != copy)
        return take_range(options, flag, copy, dash);
    return parse_one_size(flag, text, &bytes) == 0 ? add_size(options, flag, text, bytes) : -1;
}

static int take_dtype(cohi_bench_options *options, const char *flag, const char *text)
{
    static const coh_dtype types[] = {
#define ONE_TYPE(constant, value, name, bytes) constant,
        COH_DTYPE_TABLE(ONE_TYPE)
#undef ONE_TYPE
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(coh_dtype_name(types[i]), text) != 0)
            continue;
        if (options->dtype_count == COHI_BENCH_LISTED)
            return refuse_many(flag, text, COHI_BENCH_LISTED);
        options->dtypes[options->dtype_count++] = types[i];
        return 0;
    }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: there is no type '%s'; there are f32, bf16, f16, i64, ...",
              flag, text);
    return -1;
}

static int take_runs(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    return cohi_parse_count(flag, value, 1, COHI_BENCH_TURNS, &options->runs) == COH_OK ? 0 : -1;
}

static int take_load(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    return cohi_parse_count(flag, value, 0, COHI_BENCH_LOAD, &options->load) == COH_OK ? 0 : -1;
}

static int take_from(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_bench_options *)target)->from = value;
    return 0;
}

static int take_html(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_bench_options *)target)->html = value;
    return 0;
}

/* Flags without a value. */
#define TAKE_SWITCH(field)                                                     \
    static int take_##field(void *target, const char *flag, const char *value) \
    {                                                                          \
        (void)flag, (void)value;                                               \
        ((cohi_bench_options *)target)->field = 1;                             \
        return 0;                                                              \
    }
TAKE_SWITCH(json)
TAKE_SWITCH(csv)
TAKE_SWITCH(quick)
TAKE_SWITCH(heap)
TAKE_SWITCH(private)
TAKE_SWITCH(warm)
TAKE_SWITCH(cold)
TAKE_SWITCH(in_place)
TAKE_SWITCH(load_pinned)
TAKE_SWITCH(check)

static int take_peer(cohi_bench_options *options, const char *flag, const char *text)
{
    const char *name;
    char known[128] = "";
    size_t used = 0;
    if (strcmp(text, "installed") == 0) {
        options->against |= cohi_bench_peers_installed();
        return 0;
    }
    if (strcmp(text, "none") == 0)
        return 0;
    for (size_t i = 0; (name = cohi_bench_peer_name(i)); i++) {
        if (strcmp(name, text) == 0) {
            options->against |= 1u << i;
            return 0;
        }
        if (used < sizeof known)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", name);
    }
    cohi_fail(COH_INVALID_ARGUMENT,
              "%s: there is no peer '%s'; there are %s, installed, none; over TCP, by cohort bench "
              "links, also gloo and mlx",
              flag, text, known);
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

static int take_ranks(void *target, const char *flag, const char *value)
{
    ((cohi_bench_options *)target)->rank_count = 0;
    return take_list(target, flag, value, take_rank_count);
}

static int take_dtypes(void *target, const char *flag, const char *value)
{
    cohi_bench_options *options = target;
    options->dtype_count = 0;
    options->dtype_text = value;
    return take_list(options, flag, value, take_dtype);
}

static int take_against(void *target, const char *flag, const char *value)
{
    ((cohi_bench_options *)target)->against_text = value;
    return take_list(target, flag, value, take_peer);
}

static const cohi_flag_row flags[] = {
    {"ranks", 'n', "LIST",
     "how many ranks, 1 to 1024, such as 2,4,8 (2; for the barrier also four for each core)",
     take_ranks},
    {"engine", 0, "shm|threads", "ranks as processes or as threads (shm)", take_engine},
    {"sizes", 0, "LIST", "bytes to move, such as 8,64K,1M; 1K-16M: four times as much each time",
     take_sizes},
    {"dtype", 0, "LIST", "types of collectives, such as f32,bf16", take_dtypes},
    {"heap", 0, NULL, "collectives from the symmetric heap", take_heap},
    {"private", 0, NULL, "and from private memory (both for all_reduce of two ranks)",
     take_private},
    {"warm", 0, NULL, "collectives with buffers in the caches", take_warm},
    {"cold", 0, NULL, "and with buffers that were taken out of them (both for two ranks)",
     take_cold},
    {"in-place", 0, NULL, "collectives in place", take_in_place},
    {"rounds", 0, "COUNT",
     "how often each is measured, in turns (21; quick 7; turns of --against 5)", take_rounds},
    {"runs", 0, "COUNT", "do everything so often, and show the worst beside the median (1)",
     take_runs},
    {"against", 0, "LIST",
     "openmpi, oshmem, mpich, in turns with Cohort; installed: those that are; none", take_against},
    {"check", 0, NULL,
     "a short set of all, a minute; fails with the rows that are below a floor or slower than a "
     "peer",
     take_check},
    {"load", 0, "COUNT", "so many busy processes beside all that is measured, 0 to 64 (0)",
     take_load},
    {"load-pinned", 0, NULL, "each of them on one core, in turn over those that may be used",
     take_load_pinned},
    {"json", 0, NULL, "print one JSON object", take_json},
    {"csv", 0, NULL, "print comma-separated values", take_csv},
    {"html", 0, "FILE", "write a page with charts as well", take_html},
    {"from", 0, "FILE", "measure nothing; report what --json printed into FILE", take_from},
    {"quick", 0, NULL, "fewer sizes and rounds", take_quick},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort bench",
    .synopsis = "[BENCHMARK...] [FLAGS...]",
    .summary =
        "Measures Cohort's calls in turns with raw loops on the same memory, and prints which\n"
        "fraction of the machine's limit they reach.",
    .flags = flags,
    .notes =
        "benchmarks (all, when none is named; with --against those that the peers have too, but\n"
        "for collectives, which take long beside peers and must be named):\n"
        "barrier, sync, put, get, quiet, deliver, strided, fetch_add, compare_swap, signal,\n"
        "message, private_message, rate, thread_puts, thread_adds, all_reduce, reduce,\n"
        "reduce_scatter, all_gather, gather, scatter, broadcast, all_to_all, scan, to_bf16,\n"
        "from_bf16, to_f16, from_f16, to_f8e4m3, from_f8e4m3, to_f8e5m2, from_f8e5m2;\n"
        "collectives: barrier and those from all_reduce to scan\n"
        "apart from these, with flags of their own (--help): pipeline; links, between two hosts;\n"
        "gpu, on a card",
};

static int choose(cohi_bench_options *options, const char *name)
{
    char known[512] = "";
    size_t used = 0;
    const cohi_bench_case *row;
    if (strcmp(name, "collectives") == 0) {
        options->chosen |= cohi_bench_collective_cases();
        return choose(options, "barrier");
    }
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

/* A benchmark that was asked for by name and cannot run with that few ranks. */
static int refuse_few_ranks(cohi_bench_options options)
{
    const cohi_bench_case *row;
    for (size_t at = 0; at < options.rank_count; at++) {
        options.ranks = options.rank_list[at];
        unsigned missing = options.chosen & ~cohi_bench_runnable(&options, 0);
        for (size_t i = 0; missing && (row = cohi_bench_case_at(i)); i++) {
            if (missing >> i & 1)
                return cohi_flags_refuse(&usage, "--ranks: %s needs at least %d ranks, not %d",
                                         row->name, row->least_ranks, (int)options.ranks);
        }
    }
    return 0;
}

/* ---- the whole ---- */

static int print(const cohi_bench_options *options, json_t *report)
{
    if (options->check && cohi_bench_check_verdict(report) != 0)
        return -1;
    if (options->check && !options->json)
        return cohi_bench_check_print(report);
    cohi_bench_settle(report);
    return cohi_bench_report(options, report);
}

/* Whether nothing was checked, or all that was holds. */
static int holds(const json_t *report)
{
    const json_t *verdict = json_object_get(report, "check");
    return !verdict || json_is_true(json_object_get(verdict, "passed"));
}

static int report(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    json_t *json = cohi_bench_report_json(options, found);
    int status = json ? print(options, json) : -1;
    if (status != 0)
        fprintf(stderr, "cohort bench: the report could not be written\n");
    status = status == 0 && holds(json) ? 0 : EXIT_FAILURE;
    json_decref(json);
    return status;
}

/* Under the load that was asked for, which is gone when this returns. */
static int measure(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    cohi_bench_load load;
    if (cohi_bench_load_start(&load, options->load, options->load_pinned) != 0)
        return EXIT_FAILURE;
    int status =
        options->check ? cohi_bench_check(options, found) : cohi_bench_runs(options, found);
    if (cohi_bench_load_stop(&load) != 0 && status == 0)
        status = EXIT_FAILURE;
    return status;
}

static int run_all(const cohi_bench_options *options)
{
    cohi_bench_findings found = {json_array(), json_array(), json_array()};
    int status = EXIT_FAILURE;
    if (found.results && found.peers && found.probes)
        status = measure(options, &found);
    if (status == 0)
        status = report(options, &found);
    json_decref(found.results);
    json_decref(found.peers);
    json_decref(found.probes);
    return status;
}

/* What makes no sense with --check: its set is short already, its verdict no table of figures, and
 * what fails is measured again. */
static int refuse_with_check(const cohi_bench_options *options)
{
    const char *with = options->csv     ? "--csv"
                       : options->html  ? "--html"
                       : options->quick ? "--quick"
                       : options->runs  ? "--runs"
                                        : NULL;
    if (!options->check || !with)
        return 0;
    return cohi_flags_refuse(&usage, "--check and %s: give one of them", with);
}

/* What cannot be is refused before anything runs. 0, or what to exit with. */
static int refuse_combination(const cohi_bench_options *options)
{
    int status = 0;
    if (options->chosen && options->rank_count && (status = refuse_few_ranks(*options)) != 0)
        return status;
    if (options->against && options->rounds > COHI_BENCH_TURNS)
        return cohi_flags_refuse(&usage, "--rounds: %d is more than the %d turns of --against",
                                 (int)options->rounds, COHI_BENCH_TURNS);
    if (options->json && options->csv)
        return cohi_flags_refuse(&usage, "--json and --csv: give one of them");
    if (options->load_pinned && !options->load)
        return cohi_flags_refuse(&usage, "--load-pinned: there is no --load to pin");
    if (options->from && (options->chosen || options->check || options->against))
        return cohi_flags_refuse(&usage,
                                 "--from measures nothing: give it no benchmark, --check or "
                                 "--against");
    return refuse_with_check(options);
}

/* What is measured where the options do not say: a check is of all, beside whom there is. */
static void choose_the_rest(cohi_bench_options *options)
{
    if (options->check && !options->against_text) {
        options->against_text = "installed";
        options->against = cohi_bench_peers_installed();
    }
    if (!options->chosen && options->against && !options->check)
        options->chosen = cohi_bench_peer_cases(options->against) & ~cohi_bench_collective_cases();
    if (!options->chosen)
        options->chosen = ~0u;
}

/* Before the first job, so that none of them is measured with less known of the host than the
 * next. */
static void prepare_profile(void)
{
    static cohi_host_profile host;
    const char *knob = getenv("COHORT_PROFILE");
    cohi_host_profile_prepare(knob ? knob : "", &host);
    if (*host.warning)
        fprintf(stderr, "cohort bench: warning: %s\n", host.warning);
}

int cohi_tool_bench(int argc, char **argv)
{
    cohi_bench_options options = {.engine = "shm"};
    int worker = argc > 1 && strcmp(argv[1], "--worker") == 0;
    options.crowded = argc > 1 && strcmp(argv[1], "--worker-crowded") == 0;
    worker = worker || options.crowded;
    int status;
    if (argc > 1 && strcmp(argv[1], "pipeline") == 0)
        return cohi_bench_pipeline(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "links") == 0)
        return cohi_bench_links(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "gpu") == 0)
        return cohi_bench_gpu(argc - 1, argv + 1);
    if (parse(argc - worker, argv + worker, &options, &status) != 0)
        return status;
    if (worker) {
        options.ranks = options.rank_list[0];
        return cohi_bench_worker(&options);
    }
    if ((status = refuse_combination(&options)) != 0)
        return status;
    if (options.from)
        return cohi_bench_report_again(&options);
    choose_the_rest(&options);
    cohi_bench_catch_signals();
    prepare_profile();
    return run_all(&options);
}
