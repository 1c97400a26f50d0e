/*
 * bench/settle.c - fractions and ratios that follow from the times beside them.
 *
 * While it is measured, a fraction is the median over rounds in which both were measured close
 * together: noise that comes and goes hits both. Floors are held against that one. But it need not be the
 * quotient of the two medians: a call that takes 0.5 or 2.7 us by turns can have a median of 2.7 us
 * and a fraction of 1 of 0.56 us. A reader takes that for a mistake, and for how fast the call is the
 * quotient tells more. So reports have the quotient, and the other as "paired_...".
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double median_of(const json_t *figure)
{
    return json_number_value(json_object_get(figure, "median_ns"));
}

/* Keeps what stood under the key, the first time. */
static void replace(json_t *json, const char *key, const char *paired, double value)
{
    if (!(value > 0))
        return;
    if (paired && json_object_get(json, key) && !json_object_get(json, paired))
        json_object_set(json, paired, json_object_get(json, key));
    json_object_set_new(json, key, json_real(value));
}

static void settle_loops(json_t *result, double ours)
{
    size_t index;
    json_t *loop;
    json_array_foreach(json_object_get(result, "loops"), index, loop)
    {
        const char *name = json_string_value(json_object_get(loop, "name"));
        replace(loop, "fraction", NULL, median_of(loop) / ours);
        if (json_is_true(json_object_get(loop, "aside")))
            replace(result, "f32_ratio", NULL, ours / median_of(loop));
        else if (name && strcmp(name, "memcpy") == 0)
            replace(result, "memcpy_fraction", NULL, median_of(loop) / ours);
    }
}

static void settle_peers(json_t *result, double ours)
{
    const char *name;
    json_t *peer;
    json_object_foreach(json_object_get(result, "peers"), name, peer)
    {
        if (median_of(peer) > 0)
            replace(peer, "ratio", "paired_ratio", ours / median_of(peer));
    }
    replace(result, "peer_ratio", NULL, cohi_bench_of_faster_peer(result));
}

/* The worst of several runs is no better than what they have in common. */
static void settle_worst(json_t *result)
{
    json_t *worst = json_object_get(result, "worst");
    double fraction = json_number_value(json_object_get(result, "fraction"));
    double ratio = json_number_value(json_object_get(result, "peer_ratio"));
    if (worst && json_number_value(json_object_get(worst, "fraction")) > fraction)
        replace(worst, "fraction", NULL, fraction);
    if (worst && json_number_value(json_object_get(worst, "peer_ratio")) < ratio)
        replace(worst, "peer_ratio", NULL, ratio);
}

static void settle_result(json_t *result)
{
    json_t *limit = json_object_get(result, "limit");
    double ours = median_of(json_object_get(result, "ours"));
    if (!(ours > 0))
        return;
    replace(result, "fraction", "paired_fraction", median_of(limit) / ours);
    replace(limit, "fraction", NULL, median_of(limit) / ours);
    settle_loops(result, ours);
    settle_peers(result, ours);
    replace(result, "gigabytes_per_second", NULL,
            json_number_value(json_object_get(result, "bytes")) / ours);
    settle_worst(result);
}

/* Reports of before had a peer without a word where none of its benchmarks was run. */
static void settle_absent(json_t *peer)
{
    const char *command = json_string_value(json_object_get(peer, "command"));
    if (command && !*command)
        json_object_set_new(peer, "why", json_string(COHI_BENCH_NOT_RUN));
}

void cohi_bench_settle(json_t *report)
{
    size_t index;
    json_t *result;
    json_array_foreach(json_object_get(report, "results"), index, result)
    {
        settle_result(result);
    }
    json_array_foreach(json_object_get(report, "peers"), index, result)
    {
        settle_absent(result);
    }
}

/* ---- reports of before ---- */

int cohi_bench_report_again(const cohi_bench_options *options)
{
    json_error_t error;
    json_t *report = json_load_file(options->from, 0, &error);
    int status = EXIT_FAILURE;
    if (!report) {
        fprintf(stderr, "cohort bench: %s: %s\n", options->from, error.text);
    } else if (!json_is_array(json_object_get(report, "results"))) {
        fprintf(stderr, "cohort bench: %s: it is not what cohort bench --json prints\n",
                options->from);
    } else {
        cohi_bench_settle(report);
        status = cohi_bench_report(options, report) == 0 ? 0 : EXIT_FAILURE;
    }
    json_decref(report);
    return status;
}
