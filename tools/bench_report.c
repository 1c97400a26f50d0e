/* bench_report.c - what was found, for programs and for people. */
#include "bench.h"

#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *figure_json(const cohi_bench_figure *figure)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", figure->name, "median_ns", figure->median,
                     "low_ns", figure->low, "high_ns", figure->high, "fraction", figure->fraction);
}

static const cohi_bench_figure *find_figure(const cohi_bench_result *result, const char *name)
{
    for (size_t i = 1; i < result->count; i++) {
        if (strcmp(result->figures[i].name, name) == 0)
            return &result->figures[i];
    }
    return NULL;
}

json_t *cohi_bench_result_json(const cohi_bench_result *result)
{
    const cohi_bench_figure *best = &result->figures[result->best];
    const cohi_bench_figure *memcpy_figure = find_figure(result, "memcpy");
    json_t *loops = json_array();
    for (size_t i = 1; i < result->count; i++)
        json_array_append_new(loops, figure_json(&result->figures[i]));
    json_t *json = json_pack("{s:s, s:i, s:I, s:o, s:o, s:f, s:o}", "benchmark", result->benchmark,
                             "ranks", result->ranks, "bytes", (json_int_t)result->bytes, "ours",
                             figure_json(&result->figures[0]), "limit", figure_json(best),
                             "fraction", best->fraction, "loops", loops);
    if (memcpy_figure)
        json_object_set_new(json, "memcpy_fraction", json_real(memcpy_figure->fraction));
    if (result->bytes)
        json_object_set_new(json, "gigabytes_per_second",
                            json_real((double)result->bytes / result->figures[0].median));
    return json;
}

void cohi_bench_size_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double shown = (double)bytes;
    for (; shown >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        shown /= 1024;
    snprintf(text, room, "%.4g %s", shown, units[unit]);
}

/* Three digits that mean something: "9.21 ns", "14.0 us", "1.31 ms". */
static void time_text(double nanoseconds, char *text, size_t room)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; nanoseconds >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        nanoseconds /= 1000;
    int digits = nanoseconds < 10 ? 2 : nanoseconds < 100 ? 1 : 0;
    snprintf(text, room, "%.*f %s", digits, nanoseconds, units[unit]);
}

enum { KEY, OURS, SPREAD, LIMIT, FORM, FRACTION, OF_MEMCPY, BANDWIDTH, COLUMNS };

static double number_at(const json_t *result, const char *object, const char *key)
{
    return json_number_value(json_object_get(json_object_get(result, object), key));
}

static void fill_row(const json_t *result, cohi_table_row *row)
{
    json_int_t bytes = json_integer_value(json_object_get(result, "bytes"));
    char low[32], high[32];
    if (bytes)
        cohi_bench_size_text((uint64_t)bytes, row->cell[KEY], COHI_CELL_BYTES);
    else
        snprintf(row->cell[KEY], COHI_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(result, "ranks")));
    time_text(number_at(result, "ours", "median_ns"), row->cell[OURS], COHI_CELL_BYTES);
    time_text(number_at(result, "ours", "low_ns"), low, sizeof low);
    time_text(number_at(result, "ours", "high_ns"), high, sizeof high);
    snprintf(row->cell[SPREAD], COHI_CELL_BYTES, "%s .. %s", low, high);
    time_text(number_at(result, "limit", "median_ns"), row->cell[LIMIT], COHI_CELL_BYTES);
    snprintf(row->cell[FORM], COHI_CELL_BYTES, "%s",
             json_string_value(json_object_get(json_object_get(result, "limit"), "name")));
    snprintf(row->cell[FRACTION], COHI_CELL_BYTES, "%.2f",
             json_number_value(json_object_get(result, "fraction")));
    const json_t *of_memcpy = json_object_get(result, "memcpy_fraction");
    if (of_memcpy)
        snprintf(row->cell[OF_MEMCPY], COHI_CELL_BYTES, "%.2f", json_number_value(of_memcpy));
    const json_t *rate = json_object_get(result, "gigabytes_per_second");
    if (rate)
        snprintf(row->cell[BANDWIDTH], COHI_CELL_BYTES, "%.4g", json_number_value(rate));
}

/* What a row has whoever it is compared with. */
enum { PEER_FRACTION = LIMIT + 1, PEER_FIRST };

static void fill_peer(const json_t *figure, char *cell)
{
    char median[32], low[32], high[32];
    if (!figure)
        return;
    time_text(json_number_value(json_object_get(figure, "median_ns")), median, sizeof median);
    time_text(json_number_value(json_object_get(figure, "low_ns")), low, sizeof low);
    time_text(json_number_value(json_object_get(figure, "high_ns")), high, sizeof high);
    double ratio = json_number_value(json_object_get(figure, "ratio"));
    snprintf(cell, COHI_CELL_BYTES, "%s (%s .. %s): %.*f", median, low, high, ratio < 0.01 ? 4 : 2,
             ratio);
}

static void fill_peers_row(const json_t *result, json_t *peers, cohi_table_row *row)
{
    size_t index;
    const json_t *peer;
    snprintf(row->cell[PEER_FRACTION], COHI_CELL_BYTES, "%.2f",
             json_number_value(json_object_get(result, "fraction")));
    for (int column = PEER_FIRST; column < COHI_TABLE_COLUMNS; column++)
        row->cell[column][0] = '\0';
    json_array_foreach(peers, index, peer)
    {
        const char *name = json_string_value(json_object_get(peer, "name"));
        if (PEER_FIRST + index < COHI_TABLE_COLUMNS)
            fill_peer(json_object_get(json_object_get(result, "peers"), name),
                      row->cell[PEER_FIRST + index]);
    }
}

static int is_of(const json_t *result, const cohi_bench_case *row)
{
    return strcmp(json_string_value(json_object_get(result, "benchmark")), row->name) == 0;
}

/* The titles of a table, and how many it has. */
static int choose_titles(const cohi_bench_case *row, json_t *peers,
                         const char *titles[COHI_TABLE_COLUMNS])
{
    static const char *const plain[COHI_TABLE_COLUMNS] = {"size", "cohort",   "quartiles", "limit",
                                                          "by",   "of limit", "of memcpy", "GB/s"};
    size_t index;
    const json_t *peer;
    int count = row->sized ? COLUMNS : FRACTION + 1;
    memcpy(titles, plain, sizeof plain);
    titles[KEY] = row->sized ? "size" : "ranks";
    if (json_array_size(peers) == 0)
        return count;
    titles[PEER_FRACTION] = "of limit";
    count = PEER_FIRST;
    json_array_foreach(peers, index, peer)
    {
        if (count < COHI_TABLE_COLUMNS)
            titles[count++] = json_string_value(json_object_get(peer, "name"));
    }
    return count;
}

static int print_case(const cohi_bench_case *row, const cohi_bench_options *options,
                      json_t *results, json_t *peers)
{
    const char *titles[COHI_TABLE_COLUMNS];
    size_t index, count = 0;
    const json_t *result;
    json_array_foreach(results, index, result) count += is_of(result, row) ? 1 : 0;
    if (count == 0)
        return 0;
    cohi_table table;
    if (cohi_table_make(&table, titles, choose_titles(row, peers, titles), count) != 0)
        return -1;
    count = 0;
    json_array_foreach(results, index, result)
    {
        if (!is_of(result, row))
            continue;
        fill_row(result, &table.rows[count]);
        if (json_array_size(peers) > 0)
            fill_peers_row(result, peers, &table.rows[count]);
        count++;
    }
    printf("%s (%s): %s\nlimit: %s\n", row->name, options->engine, row->what, row->limit);
    cohi_table_print(&table, "  ", stdout);
    putchar('\n');
    cohi_table_free(&table);
    return 0;
}

/* What they were run with, before what came of it. */
static void print_peers(json_t *peers)
{
    size_t index;
    const json_t *peer;
    json_array_foreach(peers, index, peer)
    {
        const char *name = json_string_value(json_object_get(peer, "name"));
        const char *why = json_string_value(json_object_get(peer, "why"));
        if (why)
            printf("%s: not available: %s\n", name, why);
        else
            printf("%s: %s\n  %s\n", name, json_string_value(json_object_get(peer, "version")),
                   json_string_value(json_object_get(peer, "command")));
    }
    if (json_array_size(peers) > 0)
        printf("Each peer: its median (the quartiles): Cohort's time divided by its.\n\n");
}

static int print_json(const cohi_bench_options *options, json_t *results, json_t *peers)
{
    json_t *report = json_pack("{s:s, s:s, s:O}", "version", coh_version_string(), "engine",
                               options->engine, "results", results);
    if (!report)
        return -1;
    if (json_array_size(peers) > 0)
        json_object_set(report, "peers", peers);
    int status = json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(report);
    return status;
}

int cohi_bench_report(const cohi_bench_options *options, json_t *results, json_t *peers)
{
    if (options->json)
        return print_json(options, results, peers);
    print_peers(peers);
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (print_case(row, options, results, peers) != 0)
            return -1;
    }
    return fflush(stdout);
}
