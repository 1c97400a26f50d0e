/* bench/against.c - Cohort and its peers in turns, and what came of all turns. */
#include "bench/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 5, QUICK_TURNS = 3, ROUNDS_IN_A_TURN = 5, MOST_PEERS = 8 };

struct turns {
    json_t *ours;              /* one array of results for each turn */
    json_t *peers[MOST_PEERS]; /* one object of times for each turn; NULL: not measured */
    size_t count;
};

static double number_in(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* ---- taking turns ---- */

static int run_ours(const cohi_bench_options *options, struct turns *turns, json_t *probes)
{
    cohi_bench_options once = *options;
    once.rounds = ROUNDS_IN_A_TURN;
    json_t *results = json_array();
    int status = cohi_bench_job(&once, results, probes);
    json_array_append_new(turns->ours, results);
    return status;
}

/* A peer that fails in one turn is out of all: there is nothing left to compare it by. */
static void run_peer(cohi_bench_peers *peers, size_t index, const cohi_bench_options *options,
                     const cohi_bench_points *points, struct turns *turns)
{
    if (!turns->peers[index])
        return;
    json_t *times = cohi_bench_peer_run(peers, index, options, points);
    if (times) {
        json_array_append_new(turns->peers[index], times);
        return;
    }
    json_decref(turns->peers[index]);
    turns->peers[index] = NULL;
}

static int run_turns(cohi_bench_peers *peers, const cohi_bench_options *options,
                     struct turns *turns, json_t *probes)
{
    int status = 0;
    cohi_bench_points points = cohi_bench_points_of(options);
    for (size_t turn = 0; turn < turns->count && status == 0; turn++) {
        status = run_ours(options, turns, probes);
        for (size_t i = 0; cohi_bench_peer_name(i) && status == 0; i++) {
            run_peer(peers, i, options, &points, turns);
            status = cohi_bench_stopped() ? 128 + cohi_bench_stopped() : 0;
        }
    }
    free(points.at);
    return status;
}

/* ---- putting them together ---- */

/* The figure over all turns, and in `medians` the turns' own. Names are the JSON's. */
static void merge_figure(const struct turns *turns, size_t result, size_t loop, double *medians,
                         cohi_bench_figure *figure)
{
    double fractions[COHI_BENCH_TURNS], times[COHI_BENCH_TURNS];
    for (size_t turn = 0; turn < turns->count; turn++) {
        const json_t *one = json_array_get(json_array_get(turns->ours, turn), result);
        const json_t *found = loop == 0 ? json_object_get(one, "ours")
                                        : json_array_get(json_object_get(one, "loops"), loop - 1);
        figure->name = json_string_value(json_object_get(found, "name"));
        figure->aside = json_is_true(json_object_get(found, "aside"));
        medians[turn] = times[turn] = number_in(found, "median_ns");
        fractions[turn] = number_in(found, "fraction");
    }
    cohi_bench_figure of_fractions;
    cohi_bench_spread(times, turns->count, figure);
    cohi_bench_spread(fractions, turns->count, &of_fractions);
    figure->fraction = of_fractions.median;
}

/* A peer's figure beside Cohort's medians; NULL where it was not measured. */
static json_t *peer_figure(const struct turns *turns, size_t peer, const char *key,
                           const double *ours)
{
    double times[COHI_BENCH_TURNS], ratios[COHI_BENCH_TURNS];
    for (size_t turn = 0; turn < turns->count; turn++) {
        times[turn] = number_in(json_array_get(turns->peers[peer], turn), key);
        if (times[turn] <= 0)
            return NULL;
        ratios[turn] = ours[turn] / times[turn];
    }
    cohi_bench_figure time, ratio;
    cohi_bench_spread(times, turns->count, &time);
    cohi_bench_spread(ratios, turns->count, &ratio);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "median_ns", time.median, "low_ns", time.low,
                     "high_ns", time.high, "ratio", ratio.median, "ratio_low", ratio.low,
                     "ratio_high", ratio.high);
}

static json_t *merge_peers(const struct turns *turns, const cohi_bench_point *point,
                           const double *ours)
{
    char name[96], key[128];
    json_t *peers = json_object();
    cohi_bench_point_key(point, name, sizeof name);
    snprintf(key, sizeof key, "%s %" PRIu64, name, point->bytes);
    for (size_t i = 0; cohi_bench_peer_name(i); i++) {
        json_t *figure = turns->peers[i] ? peer_figure(turns, i, key, ours) : NULL;
        if (figure)
            json_object_set_new(peers, cohi_bench_peer_name(i), figure);
    }
    return peers;
}

static json_t *merge_result(const struct turns *turns, size_t index, const cohi_bench_point *point,
                            int ranks)
{
    const json_t *first = json_array_get(json_array_get(turns->ours, 0), index);
    double ours[COHI_BENCH_TURNS], unused[COHI_BENCH_TURNS];
    cohi_bench_result result = {.benchmark = point->row->name,
                                .ranks = ranks,
                                .bytes = point->bytes,
                                .collective = point->row->collective,
                                .variant = point->variant,
                                .count = 1 + json_array_size(json_object_get(first, "loops"))};
    for (size_t i = 0; i < result.count; i++)
        merge_figure(turns, index, i, i == 0 ? ours : unused, &result.figures[i]);
    cohi_bench_find_best(&result);
    json_t *json = cohi_bench_result_json(&result);
    json_object_set_new(json, "peers", merge_peers(turns, point, ours));
    return json;
}

/* Whether every turn has a result for each point, in their order. */
static int are_of(const struct turns *turns, const cohi_bench_points *points)
{
    for (size_t turn = 0; turn < turns->count; turn++) {
        const json_t *results = json_array_get(turns->ours, turn);
        if (json_array_size(results) != points->count)
            return 0;
        for (size_t i = 0; i < points->count; i++) {
            const json_t *bytes = json_object_get(json_array_get(results, i), "bytes");
            if ((uint64_t)json_integer_value(bytes) != points->at[i].bytes)
                return 0;
        }
    }
    return 1;
}

static int merge(const struct turns *turns, const cohi_bench_options *options, json_t *results)
{
    cohi_bench_points points = cohi_bench_points_of(options);
    int match = are_of(turns, &points);
    for (size_t i = 0; i < points.count && match; i++)
        json_array_append_new(results, merge_result(turns, i, &points.at[i], (int)options->ranks));
    free(points.at);
    if (match)
        return 0;
    fprintf(stderr, "cohort bench: the ranks did not measure what they were asked to\n");
    return EXIT_FAILURE;
}

/* ---- */

static size_t turns_of(const cohi_bench_options *options)
{
    if (options->rounds)
        return options->rounds;
    int few = options->quick || options->crowded || options->load || options->check;
    return few ? QUICK_TURNS : TURNS;
}

static struct turns make_turns(const cohi_bench_options *options)
{
    struct turns turns = {.ours = json_array(), .count = turns_of(options)};
    for (size_t i = 0; cohi_bench_peer_name(i) && i < MOST_PEERS; i++)
        turns.peers[i] = options->against >> i & 1 ? json_array() : NULL;
    return turns;
}

int cohi_bench_turns(cohi_bench_peers *peers, const cohi_bench_options *options,
                     const cohi_bench_findings *found)
{
    struct turns turns = make_turns(options);
    int status = cohi_bench_stopped() ? 128 + cohi_bench_stopped()
                                      : run_turns(peers, options, &turns, found->probes);
    if (status == 0)
        status = merge(&turns, options, found->results);
    for (size_t i = 0; cohi_bench_peer_name(i); i++)
        json_decref(turns.peers[i]);
    json_decref(turns.ours);
    return status;
}

/* The next benchmark of those chosen, alone; 0 when there is none. `index` moves on. */
static int next_benchmark(const cohi_bench_options *options, size_t *index,
                          cohi_bench_options *alone)
{
    for (; cohi_bench_case_at(*index); ++*index) {
        *alone = *options;
        alone->chosen = options->chosen & 1u << *index;
        if (!alone->chosen)
            continue;
        ++*index;
        return 1;
    }
    return 0;
}

void cohi_bench_tell_peers(const cohi_bench_peers *peers, const cohi_bench_options *options,
                           const cohi_bench_findings *found)
{
    for (size_t i = 0; cohi_bench_peer_name(i); i++) {
        json_t *peer = cohi_bench_peer_json(peers, i);
        if (!peer)
            continue;
        json_object_set_new(peer, "ranks", json_integer((json_int_t)options->ranks));
        json_array_append_new(found->peers, peer);
    }
}

int cohi_bench_against(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    cohi_bench_options alone;
    int status = 0;
    cohi_bench_peers *open = cohi_bench_peers_open(options);
    if (!open)
        return EXIT_FAILURE;
    for (size_t index = 0; status == 0 && next_benchmark(options, &index, &alone);)
        status = cohi_bench_turns(open, &alone, found);
    cohi_bench_tell_peers(open, options, found);
    cohi_bench_peers_close(open);
    return status;
}

double cohi_bench_against_weight(const cohi_bench_options *options)
{
    cohi_bench_points points = cohi_bench_points_of(options);
    double weight = 0;
    for (size_t i = 0; i < points.count; i++)
        weight += cohi_bench_weight(&points.at[i]);
    free(points.at);
    return weight * (double)turns_of(options);
}
