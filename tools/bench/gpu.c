#include "bench/gpu.h"

#include "base/config.h"
#include "base/error.h"
#include "command.h"
#include "flags.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_BYTES = 4, ARGUMENTS = 64, PATH_ROOM = 4096 };

static const uint64_t MOST_BYTES = (uint64_t)1 << 30;

/* ---- flags ---- */

/* Each of the texts between commas; 0, or -1 from the first that is refused. */
static int take_list(cohi_gpu_options *options, const char *flag, const char *value,
                     int (*take)(cohi_gpu_options *options, const char *flag, const char *text))
{
    char *copy = strdup(value), *rest = copy, *text;
    int status = copy ? 0 : -1;
    while (status == 0 && (text = strsep(&rest, ",")))
        status = take(options, flag, text);
    free(copy);
    return status;
}

static int refuse_many(const char *flag, int most)
{
    cohi_fail(COH_INVALID_ARGUMENT, "%s: at most %d values", flag, most);
    return -1;
}

static int take_one_size(cohi_gpu_options *options, const char *flag, const char *text)
{
    uint64_t bytes = 0;
    if (options->size_count == COHI_GPU_SIZES)
        return refuse_many(flag, COHI_GPU_SIZES);
    if (cohi_parse_size(flag, text, &bytes) != COH_OK)
        return -1;
    if (bytes < LEAST_BYTES || bytes % 4 != 0) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: %s is not a multiple of 4 bytes, from 4 on", flag,
                  text);
        return -1;
    }
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int take_one_count(cohi_gpu_options *options, const char *flag, const char *text)
{
    if (options->rank_count == COHI_GPU_RANK_COUNTS)
        return refuse_many(flag, COHI_GPU_RANK_COUNTS);
    return cohi_parse_count(flag, text, 1, 64, &options->ranks[options->rank_count++]) == COH_OK
               ? 0
               : -1;
}

static int take_one_way(cohi_gpu_options *options, const char *flag, const char *text)
{
    for (int way = 0; way < COHI_GPU_WAYS; way++)
        if (strcmp(text, cohi_gpu_way_names[way]) == 0) {
            options->ways |= 1u << way;
            return 0;
        }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: there is no way '%s'; there are stream, graph, host", flag,
              text);
    return -1;
}

static int take_sizes(void *target, const char *flag, const char *value)
{
    ((cohi_gpu_options *)target)->size_count = 0;
    ((cohi_gpu_options *)target)->size_text = value;
    return take_list(target, flag, value, take_one_size);
}

static int take_ranks(void *target, const char *flag, const char *value)
{
    ((cohi_gpu_options *)target)->rank_count = 0;
    return take_list(target, flag, value, take_one_count);
}

static int take_ways(void *target, const char *flag, const char *value)
{
    ((cohi_gpu_options *)target)->ways = 0;
    return take_list(target, flag, value, take_one_way);
}

static int take_engine(void *target, const char *flag, const char *value)
{
    static const char *const names[] = {"shm", "threads", "nvshmem"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            ((cohi_gpu_options *)target)->engine = names[i];
            return 0;
        }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not shm, threads or nvshmem", flag, value);
    return -1;
}

static int take_rounds(void *target, const char *flag, const char *value)
{
    cohi_gpu_options *options = target;
    return cohi_parse_count(flag, value, 1, 1000, &options->rounds) == COH_OK ? 0 : -1;
}

static int take_against(void *target, const char *flag, const char *value)
{
    ((cohi_gpu_options *)target)->no_peers = strcmp(value, "none") == 0;
    if (strcmp(value, "none") == 0 || strcmp(value, "nvshmem") == 0)
        return 0;
    cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not nvshmem or none", flag, value);
    return -1;
}

static int take_html(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_gpu_options *)target)->html = value;
    return 0;
}

#define TAKE_SWITCH(field)                                                     \
    static int take_##field(void *target, const char *flag, const char *value) \
    {                                                                          \
        (void)flag, (void)value;                                               \
        ((cohi_gpu_options *)target)->field = 1;                               \
        return 0;                                                              \
    }
TAKE_SWITCH(json)
TAKE_SWITCH(csv)
TAKE_SWITCH(quick)

static const cohi_flag_row flags[] = {
    {"ranks", 'n', "LIST", "how many ranks, 1 to 64, such as 2,4,8 (2,4)", take_ranks},
    {"engine", 0, "shm|threads|nvshmem",
     "ranks as processes or as threads; nvshmem: processes, on NVSHMEM's memory (shm)",
     take_engine},
    {"sizes", 0, "LIST", "bytes, such as 4,4K,64M (4 to 1G, sixteen times as much each time)",
     take_sizes},
    {"way", 0, "LIST", "stream, graph, host (all that can be here)", take_ways},
    {"rounds", 0, "COUNT", "how often each is measured, in turns (15; quick 5)", take_rounds},
    {"against", 0, "nvshmem|none", "measure NVSHMEM in turns, where it is installed (nvshmem)",
     take_against},
    {"json", 0, NULL, "print one JSON object", take_json},
    {"csv", 0, NULL, "print comma-separated values", take_csv},
    {"html", 0, "FILE", "write a page with charts as well", take_html},
    {"quick", 0, NULL, "fewer sizes and rounds", take_quick},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort bench gpu",
    .synopsis = "[BENCHMARK...] [FLAGS...]",
    .summary = "Measures operations on memory of a card, on a stream, in a captured graph and by "
               "calls of\n"
               "the host, in turns with a copy on the card and with NVSHMEM where it is installed\n"
               "(libnvshmem_host.so.3, or the file that NVSHMEM_HOST_LIBRARY names).",
    .flags = flags,
    .notes = "benchmarks (all, when none is named): put, get, signal, barrier, all_reduce,\n"
             "all_reduce_bf16, reduce, reduce_scatter, all_gather, gather, scatter, broadcast,\n"
             "all_to_all, scan",
};

static int choose(cohi_gpu_options *options, const char *name)
{
    const cohi_gpu_case *row;
    for (size_t i = 0; (row = cohi_gpu_case_at(i)); i++)
        if (strcmp(row->name, name) == 0) {
            options->chosen |= 1u << i;
            return 0;
        }
    return cohi_flags_refuse(&usage, "there is no benchmark '%s'", name);
}

/* Names and flags in any order. 0 to go on, else *status is what to exit with. */
static int parse(int argc, char **argv, cohi_gpu_options *options, int *status)
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

static void choose_the_rest(cohi_gpu_options *options)
{
    if (!options->chosen)
        options->chosen = ~0u;
    if (!options->ways)
        options->ways = ~0u;
    if (options->rank_count == 0) {
        options->ranks[options->rank_count++] = 2;
        options->ranks[options->rank_count++] = 4;
    }
    for (uint64_t bytes = LEAST_BYTES; options->size_text == NULL && bytes <= MOST_BYTES;
         bytes *= options->quick ? 256 : 16)
        options->sizes[options->size_count++] = bytes;
}

/* ---- a job ---- */

struct command {
    char *arguments[ARGUMENTS];
    size_t count;
    char self[PATH_ROOM], ranks[24], rounds[24], ways[32];
};

static void add(struct command *command, const char *argument)
{
    if (command->count + 1 < ARGUMENTS)
        command->arguments[command->count++] = (char *)(uintptr_t)argument;
    command->arguments[command->count] = NULL;
}

static void add_value(struct command *command, const char *flag, const char *value)
{
    add(command, flag);
    add(command, value);
}

static void list_ways(const cohi_gpu_options *options, char *text, size_t room)
{
    size_t used = 0;
    for (int way = 0; way < COHI_GPU_WAYS; way++)
        if (options->ways >> way & 1)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "," : "",
                                     cohi_gpu_way_names[way]);
}

static void build_command(struct command *command, const cohi_gpu_options *options, uint64_t ranks)
{
    const cohi_gpu_case *row;
    snprintf(command->ranks, sizeof command->ranks, "%" PRIu64, ranks);
    snprintf(command->rounds, sizeof command->rounds, "%" PRIu64, options->rounds);
    list_ways(options, command->ways, sizeof command->ways);
    if (strcmp(options->engine, "threads") != 0) {
        add(command, command->self);
        add(command, "run");
        add_value(command, "-n", command->ranks);
    }
    add(command, command->self);
    add(command, "bench");
    add(command, "gpu");
    add(command, "--worker");
    add_value(command, "-n", command->ranks);
    add_value(command, "--engine", options->engine);
    add_value(command, "--way", command->ways);
    if (options->size_text)
        add_value(command, "--sizes", options->size_text);
    if (options->rounds)
        add_value(command, "--rounds", command->rounds);
    if (options->no_peers)
        add_value(command, "--against", "none");
    if (options->quick)
        add(command, "--quick");
    for (size_t i = 0; (row = cohi_gpu_case_at(i)); i++)
        if (options->chosen >> i & 1)
            add(command, row->name);
}

/* What the lines of the jobs add up to. */
struct findings {
    cohi_bench_findings found;
    json_t *cards;
};

static void take_line(void *arg, const char *text)
{
    struct findings *findings = arg;
    json_t *line = json_loads(text, 0, NULL);
    json_t *result = json_object_get(line, "result"), *peer = json_object_get(line, "peer");
    json_t *card = json_object_get(line, "card");
    if (result)
        json_array_append(findings->found.results, result);
    else if (peer)
        json_array_append(findings->found.peers, peer);
    else if (card)
        json_array_append(findings->cards, card);
    else
        fprintf(stderr, "%s\n", text);
    json_decref(line);
}

static int run_job(const cohi_gpu_options *options, uint64_t ranks, struct findings *findings)
{
    struct command command = {.count = 0};
    ssize_t length = readlink("/proc/self/exe", command.self, sizeof command.self - 1);
    if (length < 0) {
        fprintf(stderr, "cohort bench gpu: /proc/self/exe cannot be read: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    command.self[length] = '\0';
    build_command(&command, options, ranks);
    cohi_bench_child child = {.arguments = command.arguments, .take = take_line, .arg = findings};
    int status = cohi_bench_child_run(&child);
    if (status < 0)
        fprintf(stderr, "cohort bench gpu: the job could not be started: %s\n", strerror(errno));
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}

/* ---- the whole ---- */

static int report(const cohi_gpu_options *options, const struct findings *findings)
{
    cohi_bench_options shown = {.engine = options->engine,
                                .json = options->json,
                                .csv = options->csv,
                                .html = options->html};
    json_t *json = cohi_bench_report_json(&shown, &findings->found);
    int status = json ? json_object_set(json, "cards", findings->cards) : -1;
    if (status == 0) {
        cohi_bench_settle(json);
        status = cohi_bench_report(&shown, json);
    }
    if (status != 0)
        fprintf(stderr, "cohort bench gpu: the report could not be written\n");
    json_decref(json);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* NVSHMEM ends the processes where it cannot go on: then they are started once more without it. */
static int run_job_or_without(const cohi_gpu_options *options, uint64_t ranks,
                              struct findings *findings)
{
    size_t before = json_array_size(findings->found.results);
    size_t cards = json_array_size(findings->cards), peers = json_array_size(findings->found.peers);
    int status = run_job(options, ranks, findings);
    if (status == 0 || options->no_peers || cohi_bench_stopped())
        return status;
    cohi_gpu_options without = *options;
    without.no_peers = 1;
    while (json_array_size(findings->found.results) > before)
        json_array_remove(findings->found.results, before);
    while (json_array_size(findings->cards) > cards)
        json_array_remove(findings->cards, cards);
    while (json_array_size(findings->found.peers) > peers)
        json_array_remove(findings->found.peers, peers);
    json_array_append_new(findings->found.peers,
                          json_pack("{s:s, s:I, s:o}", "name", "nvshmem", "ranks",
                                    (json_int_t)ranks, "why",
                                    json_sprintf("the job with it ended with status %d", status)));
    return run_job(&without, ranks, findings);
}

static int run_jobs(const cohi_gpu_options *options)
{
    struct findings findings = {{json_array(), json_array(), json_array()}, json_array()};
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < options->rank_count && status == 0; i++)
        status = run_job_or_without(options, options->ranks[i], &findings);
    if (status == 0)
        status = report(options, &findings);
    json_decref(findings.found.results);
    json_decref(findings.found.peers);
    json_decref(findings.found.probes);
    json_decref(findings.cards);
    return status;
}

int cohi_bench_gpu(int argc, char **argv)
{
    cohi_gpu_options options = {.engine = "shm"};
    int status, count = 0;
    options.worker = argc > 1 && strcmp(argv[1], "--worker") == 0;
    if (parse(argc - options.worker, argv + options.worker, &options, &status) != 0)
        return status;
    if (options.json && options.csv)
        return cohi_flags_refuse(&usage, "--json and --csv: give one of them");
    choose_the_rest(&options);
    if (options.worker)
        return cohi_gpu_worker(&options);
    if (coh_cuda_count(&count) != COH_OK) {
        fprintf(stderr, "cohort bench gpu: %s\n", coh_last_error());
        return EXIT_FAILURE;
    }
    cohi_bench_catch_signals();
    return run_jobs(&options);
}
