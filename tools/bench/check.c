/*
 * bench/check.c - measures a short set of everything, and once more what is below a floor.
 *
 * Starting the ranks of a peer takes far longer than what they measure here, so benchmarks take
 * their turns in groups, each of which one program of a peer can do as a whole.
 */
#include "bench/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Turns and rounds of a row that is measured again. */
enum { AGAIN_TURNS = 7, AGAIN_ROUNDS = 21, IN_A_GROUP = 8 };

static const char *const groups[][IN_A_GROUP] = {
    {"barrier", "message", "private_message", "rate"},
    {"get", "quiet", "strided", "fetch_add", "compare_swap", "signal"},
    {"all_reduce", "reduce", "reduce_scatter"},
    {"all_gather", "gather", "scatter"},
    {"broadcast", "all_to_all", "scan"},
};

enum { GROUPS = sizeof groups / sizeof *groups };

static unsigned bit_of(const char *name)
{
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (strcmp(row->name, name) == 0)
            return 1u << i;
    }
    return 0;
}

static unsigned mask_of(const char *const *names)
{
    unsigned mask = 0;
    for (size_t i = 0; i < IN_A_GROUP && names[i]; i++)
        mask |= bit_of(names[i]);
    return mask;
}

/* ---- the set ---- */

static int run_group(cohi_bench_peers *peers, cohi_bench_options options, unsigned chosen,
                     const cohi_bench_findings *found)
{
    options.chosen &= chosen;
    return options.chosen ? cohi_bench_turns(peers, &options, found) : 0;
}

/* What no group has and no peer either is Cohort's job alone. */
static int run_alone(cohi_bench_options options, unsigned chosen, const cohi_bench_findings *found)
{
    options.chosen &= chosen;
    return options.chosen ? cohi_bench_job(&options, found->results, found->probes) : 0;
}

/* Benchmarks that peers have and that are in no group are one for themselves. */
static int run_others(cohi_bench_peers *peers, const cohi_bench_options *options, unsigned others,
                      const cohi_bench_findings *found)
{
    int status = 0;
    for (size_t i = 0; cohi_bench_case_at(i) && status == 0; i++)
        status = run_group(peers, *options, others & 1u << i, found);
    return status;
}

static int run_set(cohi_bench_peers *peers, const cohi_bench_options *options,
                   const cohi_bench_findings *found)
{
    unsigned shared = cohi_bench_peer_cases(options->against), grouped = 0;
    int status = run_alone(*options, ~shared, found);
    for (size_t i = 0; i < GROUPS && status == 0; i++) {
        unsigned group = mask_of(groups[i]) & shared;
        status = run_group(peers, *options, group, found);
        grouped |= group;
    }
    return status == 0 ? run_others(peers, options, shared & ~grouped, found) : status;
}

/* ---- once more ---- */

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

/* The options that choose this one row; `size` is what they refer to. */
static cohi_bench_options options_of(const cohi_bench_options *options, const json_t *result,
                                     char size[24])
{
    cohi_bench_options one = *options;
    one.chosen = bit_of(text_at(result, "benchmark"));
    one.sizes[0] = (uint64_t)json_integer_value(json_object_get(result, "bytes"));
    one.size_count = one.sizes[0] ? 1 : 0;
    snprintf(size, 24, "%" PRIu64, one.sizes[0]);
    one.size_text = one.sizes[0] ? size : NULL;
    if (!json_object_get(result, "dtype"))
        return one;
    const char *dtype = text_at(result, "dtype");
    for (size_t i = 0; i < options->dtype_count; i++) {
        if (strcmp(coh_dtype_name(options->dtypes[i]), dtype) == 0)
            one.dtypes[0] = options->dtypes[i];
    }
    one.dtype_count = options->dtype_count ? 1 : 0;
    one.dtype_text = options->dtype_count ? dtype : NULL;
    one.private = strcmp(text_at(result, "memory"), "private") == 0;
    one.heap = !one.private;
    one.cold = strcmp(text_at(result, "caches"), "cold") == 0;
    one.warm = !one.cold;
    return one;
}

/* Beside peers where it was slower than one; what it is below is the limit otherwise. */
static int measure_again(cohi_bench_peers *peers, const cohi_bench_options *options, unsigned why,
                         const cohi_bench_findings *again)
{
    cohi_bench_options one = *options;
    if (why & COHI_FLOOR_SLOWER) {
        one.rounds = options->rounds ? options->rounds : AGAIN_TURNS;
        return cohi_bench_turns(peers, &one, again);
    }
    one.rounds = options->rounds ? options->rounds : options->load ? 0 : AGAIN_ROUNDS;
    return cohi_bench_job(&one, again->results, again->probes);
}

/* The second figures, and the peers of the first where there are none. */
static int replace(json_t *results, size_t index, const json_t *second)
{
    json_t *first = json_array_get(results, index), *now = json_deep_copy(second);
    cohi_floor_row before = cohi_bench_floor_row(first, NULL);
    if (!now)
        return -1;
    if (json_object_size(json_object_get(now, "peers")) == 0 && json_object_get(first, "peers"))
        json_object_set(now, "peers", json_object_get(first, "peers"));
    json_t *had = json_pack("{s:f}", "fraction", before.fraction);
    if (before.ratio > 0)
        json_object_set_new(had, "ratio", json_real(before.ratio));
    json_object_set_new(now, "first", had);
    return json_array_set_new(results, index, now);
}

static int run_again(cohi_bench_peers *peers, const cohi_bench_options *options,
                     const cohi_floor_failure *failure, const cohi_bench_findings *found)
{
    char size[24];
    const json_t *result = json_array_get(found->results, failure->row);
    cohi_bench_findings again = {json_array(), found->peers, found->probes};
    cohi_bench_options one = options_of(options, result, size);
    int status = measure_again(peers, &one, failure->why, &again);
    if (status == 0
        && (json_array_size(again.results) != 1
            || replace(found->results, failure->row, json_array_get(again.results, 0)) != 0)) {
        fprintf(stderr, "cohort bench: %s could not be measured again\n",
                text_at(result, "benchmark"));
        status = EXIT_FAILURE;
    }
    json_decref(again.results);
    return status;
}

/* Those from `from` on are of this job. */
static int run_failures(cohi_bench_peers *peers, const cohi_bench_options *options, size_t from,
                        const cohi_bench_findings *found)
{
    size_t count;
    int status = 0;
    cohi_floor_failure *failures = cohi_bench_check_failures(found->results, &count);
    if (!failures)
        return EXIT_FAILURE;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (failures[i].row >= from)
            status = run_again(peers, options, &failures[i], found);
    }
    free(failures);
    return status;
}

/* ---- */

static double weight_of(const cohi_bench_options *options)
{
    cohi_bench_options alone = *options, beside = *options;
    beside.chosen &= cohi_bench_peer_cases(options->against);
    alone.chosen &= ~beside.chosen;
    cohi_bench_points points = cohi_bench_points_of(&alone);
    double weight = cohi_bench_against_weight(&beside);
    for (size_t i = 0; i < points.count; i++)
        weight += cohi_bench_weight(&points.at[i]);
    free(points.at);
    return weight;
}

static int check_job(cohi_bench_peers *peers, const cohi_bench_options *options,
                     const cohi_bench_findings *found)
{
    size_t from = json_array_size(found->results);
    int status = run_set(peers, options, found);
    if (status == 0)
        status = run_failures(peers, options, from, found);
    cohi_bench_tell_peers(peers, options, found);
    return status;
}

int cohi_bench_check(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    cohi_bench_options jobs[COHI_BENCH_LISTED];
    size_t count = cohi_bench_plan_jobs(options, jobs);
    double weight = 0;
    int status = 0;
    for (size_t i = 0; i < count; i++)
        weight += weight_of(&jobs[i]);
    cohi_bench_peers *peers = cohi_bench_peers_open(options);
    if (!peers)
        return EXIT_FAILURE;
    cohi_bench_progress_begin(weight);
    for (size_t i = 0; i < count && status == 0; i++)
        status = check_job(peers, &jobs[i], found);
    cohi_bench_progress_end();
    cohi_bench_peers_close(peers);
    return status;
}
