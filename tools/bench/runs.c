/* bench/runs.c - several runs of the same: their medians, and the worst of them beside. */
#include "bench/bench.h"

#include <string.h>

static double number_in(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* The index-th result of every run is of the same point. */
static const json_t *result_of(const json_t *runs, size_t run, size_t index)
{
    return json_array_get(json_array_get(runs, run), index);
}

/* Where a figure is in a result: "ours" and "limit" in itself (NULL), a peer's in "peers", a loop's in
 * "loops". */
static json_t *figure_of(const json_t *result, const char *group, const char *name)
{
    const json_t *place = group ? json_object_get(result, group) : result;
    size_t index;
    json_t *loop;
    if (!json_is_array(place))
        return json_object_get(place, name);
    json_array_foreach(place, index, loop)
    {
        const char *own = json_string_value(json_object_get(loop, "name"));
        if (own && strcmp(own, name) == 0)
            return loop;
    }
    return NULL;
}

/* Sets `key` of the figure to the median over the runs. */
static void merge_number(const json_t *runs, size_t index, json_t *figure, const char *group,
                         const char *name, const char *key)
{
    double samples[COHI_BENCH_TURNS];
    size_t count = 0;
    cohi_bench_figure spread;
    for (size_t run = 0; run < json_array_size(runs) && run < COHI_BENCH_TURNS; run++) {
        const json_t *found = figure_of(result_of(runs, run, index), group, name);
        if (json_object_get(found, key))
            samples[count++] = number_in(found, key);
    }
    if (count == 0)
        return;
    cohi_bench_spread(samples, count, &spread);
    json_object_set_new(figure, key, json_real(spread.median));
}

static void merge_figure(const json_t *runs, size_t index, json_t *result, const char *group,
                         const char *name)
{
    static const char *const keys[] = {"median_ns", "low_ns",    "high_ns",   "fraction",
                                       "ratio",     "ratio_low", "ratio_high"};
    json_t *figure = figure_of(result, group, name);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_object_get(figure, keys[i]))
            merge_number(runs, index, figure, group, name, keys[i]);
    }
}

/* The slowest time, the smallest fraction and the largest ratio to a peer. */
static json_t *find_worst(const json_t *runs, size_t index)
{
    double slowest = 0, least = 0, most = 0;
    for (size_t run = 0; run < json_array_size(runs); run++) {
        const json_t *result = result_of(runs, run, index);
        double time = number_in(json_object_get(result, "ours"), "median_ns");
        double fraction = number_in(json_object_get(result, "limit"), "median_ns") / time;
        double ratio = cohi_bench_of_faster_peer(result);
        slowest = time > slowest ? time : slowest;
        least = run == 0 || fraction < least ? fraction : least;
        most = ratio > most ? ratio : most;
    }
    json_t *worst = json_pack("{s:f, s:f}", "median_ns", slowest, "fraction", least);
    if (most > 0)
        json_object_set_new(worst, "peer_ratio", json_real(most));
    return worst;
}

/* A result's own fraction, which is no figure's: the median of the runs'. */
static void merge_own(const json_t *runs, size_t index, json_t *result, const char *key)
{
    double samples[COHI_BENCH_TURNS];
    size_t count = 0;
    cohi_bench_figure spread;
    for (size_t run = 0; run < json_array_size(runs) && run < COHI_BENCH_TURNS; run++) {
        const json_t *found = json_object_get(result_of(runs, run, index), key);
        if (found)
            samples[count++] = json_number_value(found);
    }
    if (count == 0)
        return;
    cohi_bench_spread(samples, count, &spread);
    json_object_set_new(result, key, json_real(spread.median));
}

static json_t *merge_one(const json_t *runs, size_t index)
{
    static const char *const own[] = {"fraction", "memcpy_fraction", "f32_ratio", "peer_ratio",
                                      "gigabytes_per_second"};
    json_t *result = json_deep_copy(result_of(runs, 0, index));
    merge_figure(runs, index, result, NULL, "ours");
    merge_figure(runs, index, result, NULL, "limit");
    for (size_t i = 0; cohi_bench_peer_name(i); i++) {
        if (figure_of(result, "peers", cohi_bench_peer_name(i)))
            merge_figure(runs, index, result, "peers", cohi_bench_peer_name(i));
    }
    const json_t *loop;
    size_t at;
    json_array_foreach(json_object_get(result, "loops"), at, loop)
    {
        merge_figure(runs, index, result, "loops",
                     json_string_value(json_object_get(loop, "name")));
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        merge_own(runs, index, result, own[i]);
    json_object_set_new(result, "worst", find_worst(runs, index));
    return result;
}

void cohi_bench_merge_runs(json_t *runs, json_t *results)
{
    const json_t *first = json_array_get(runs, 0);
    if (json_array_size(runs) == 1) {
        json_array_extend(results, json_array_get(runs, 0));
        return;
    }
    for (size_t i = 0; i < json_array_size(first); i++)
        json_array_append_new(results, merge_one(runs, i));
}
