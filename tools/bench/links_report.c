#include "bench/links.h"

#include "bench/bench.h"
#include "table.h"

#include "base/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

/* ---- merging ---- */

/* The median over all turns of one figure of a row. */
static double over_turns(const json_t *turns, size_t row, const char *name)
{
    double values[COHI_LINKS_ROUNDS_MAX];
    size_t count = json_array_size(turns);
    cohi_bench_figure figure;
    for (size_t i = 0; i < count; i++)
        values[i] =
            number(json_array_get(json_object_get(json_array_get(turns, i), "ours"), row), name);
    cohi_bench_spread(values, count, &figure);
    return figure.median;
}

/* Cohort's time divided by the peer's in the same turn, the median; NULL: it has no such row. */
static json_t *beside_peer(const json_t *turns, size_t row, const char *peer, const char *key)
{
    double times[COHI_LINKS_ROUNDS_MAX], ratios[COHI_LINKS_ROUNDS_MAX];
    size_t count = json_array_size(turns);
    cohi_bench_figure time, ratio;
    for (size_t i = 0; i < count; i++) {
        const json_t *turn = json_array_get(turns, i);
        times[i] = number(json_object_get(json_object_get(turn, "peers"), peer), key);
        if (times[i] <= 0)
            return NULL;
        ratios[i] =
            number(json_array_get(json_object_get(turn, "ours"), row), "median_ns") / times[i];
    }
    cohi_bench_spread(times, count, &time);
    cohi_bench_spread(ratios, count, &ratio);
    return json_pack("{s:f, s:f, s:f, s:f}", "median_ns", time.median, "ratio", ratio.median,
                     "ratio_low", ratio.low, "ratio_high", ratio.high);
}

static json_t *merge_row(const json_t *turns, const json_t *beside, size_t index)
{
    const json_t *first = json_array_get(json_object_get(json_array_get(turns, 0), "ours"), index);
    json_t *row = json_copy((json_t *)(uintptr_t)first), *peers = json_object();
    char key[96];
    static const char *const figures[] = {"median_ns", "limit_ns", "fraction"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_object_set_new(row, figures[i], json_real(over_turns(turns, index, figures[i])));
    snprintf(key, sizeof key, "%s %lld", json_string_value(json_object_get(row, "benchmark")),
             (long long)json_integer_value(json_object_get(row, "bytes")));
    for (size_t i = 0; i < json_array_size(beside); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(beside, i), "name"));
        json_t *peer = beside_peer(turns, index, name, key);
        if (peer)
            json_object_set_new(peers, name, peer);
    }
    json_object_set_new(row, "peers", peers);
    return row;
}

static json_t *merge(const json_t *turns, const json_t *beside)
{
    json_t *results = json_array();
    size_t count = json_array_size(json_object_get(json_array_get(turns, 0), "ours"));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(results, merge_row(turns, beside, i));
    return results;
}

/* ---- cells ---- */

enum { BENCHMARK, BYTES, NET, TIME, RATE, LIMIT, FRACTION, COLUMNS, PEERS_MOST = 8 };

struct sheet {
    const char *titles[COLUMNS + PEERS_MOST];
    const char *peers[PEERS_MOST];
    int columns;
};

static struct sheet make_sheet(const json_t *peers)
{
    struct sheet sheet = {
        .titles = {"benchmark", "bytes", "network", "time", "GB/s", "limit", "fraction"},
        .columns = COLUMNS};
    for (size_t i = 0; i < json_array_size(peers) && i < PEERS_MOST; i++) {
        sheet.peers[i] = json_string_value(json_object_get(json_array_get(peers, i), "name"));
        sheet.titles[sheet.columns++] = sheet.peers[i];
    }
    return sheet;
}

static void fill_cells(const struct sheet *sheet, const json_t *row, cohi_table_row *cells)
{
    int sealed = json_is_true(json_object_get(row, "sealed"));
    double bytes = number(row, "bytes"), time = number(row, "median_ns");
    snprintf(cells->cell[BENCHMARK], COHI_TABLE_CELL_BYTES, "%s",
             json_string_value(json_object_get(row, "benchmark")));
    cohi_bytes_text((uint64_t)bytes, cells->cell[BYTES], COHI_TABLE_CELL_BYTES);
    snprintf(cells->cell[NET], COHI_TABLE_CELL_BYTES, "%s", sealed ? "sealed" : "in the clear");
    cohi_bench_time_text(time, cells->cell[TIME], COHI_TABLE_CELL_BYTES);
    snprintf(cells->cell[RATE], COHI_TABLE_CELL_BYTES, "%.3g", bytes / time);
    cohi_bench_time_text(number(row, "limit_ns"), cells->cell[LIMIT], COHI_TABLE_CELL_BYTES);
    snprintf(cells->cell[FRACTION], COHI_TABLE_CELL_BYTES, "%.2f", number(row, "fraction"));
    for (int i = COLUMNS; i < sheet->columns; i++) {
        const json_t *peer =
            json_object_get(json_object_get(row, "peers"), sheet->peers[i - COLUMNS]);
        if (peer)
            snprintf(cells->cell[i], COHI_TABLE_CELL_BYTES, "%.2f", number(peer, "ratio"));
        else
            snprintf(cells->cell[i], COHI_TABLE_CELL_BYTES, "-");
    }
}

static int make_table(const struct sheet *sheet, const json_t *results, cohi_table *table)
{
    if (cohi_table_make(table, sheet->titles, sheet->columns, json_array_size(results)) != 0)
        return -1;
    for (size_t i = 0; i < json_array_size(results); i++)
        fill_cells(sheet, json_array_get(results, i), &table->rows[i]);
    return 0;
}

/* ---- the forms ---- */

static const char legend[] =
    "limit: bare sockets whose ends poll, one for each pair of ranks; sealed, a bare loop that "
    "seals, "
    "sends,\nreceives, opens and copies; of an all_reduce each pair's share, exchanged, added and "
    "exchanged.\nfraction: of its speed that Cohort reaches, the median of all rounds. Beside a "
    "library: Cohort's time\ndivided by its, in the clear by TCP on the loopback, the median of "
    "all "
    "turns.\n";

static int print_table(const cohi_links_options *options, const json_t *results,
                       const json_t *peers)
{
    struct sheet sheet = make_sheet(peers);
    cohi_table table;
    if (make_table(&sheet, results, &table) != 0)
        return -1;
    printf("links: two hosts that this machine plays, %llu %s each, over TCP on its loopback\n%s",
           (unsigned long long)options->ranks, options->ranks == 1 ? "rank" : "ranks", legend);
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *peer = json_array_get(peers, i);
        printf("%s: %s\n", json_string_value(json_object_get(peer, "name")),
               json_string_value(json_object_get(peer, "version")));
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return fflush(stdout);
}

static int print_json(const cohi_links_options *options, json_t *results, json_t *peers)
{
    json_t *report =
        json_pack("{s:s, s:s, s:I, s:O, s:O}", "version", coh_version_string(), "benchmark",
                  "links", "ranks", (json_int_t)options->ranks, "peers", peers, "results", results);
    int status = report ? json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : -1;
    putchar('\n');
    json_decref(report);
    return status;
}

static void write_text(FILE *file, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(file, "&#%d;", *text);
        else
            fputc(*text, file);
}

static void write_row(FILE *file, const char *tag, const char *const *cells, int count)
{
    fputs("<tr>", file);
    for (int i = 0; i < count; i++) {
        fprintf(file, "<%s>", tag);
        write_text(file, cells[i]);
        fprintf(file, "</%s>", tag);
    }
    fputs("</tr>\n", file);
}

/* One page that needs nothing else. */
static int write_page(const cohi_links_options *options, const json_t *results, const json_t *peers)
{
    static const char head[] =
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Cohort between "
        "hosts</title>\n<style>body{font:15px sans-serif;margin:2em;max-width:70em}"
        "table{border-collapse:collapse}th,td{padding:.3em .8em;text-align:right;border-bottom:1px "
        "solid #ccc}th:first-child,td:first-child{text-align:left}</style>\n";
    struct sheet sheet = make_sheet(peers);
    cohi_table table;
    FILE *file = make_table(&sheet, results, &table) == 0 ? fopen(options->html, "w") : NULL;
    if (!file)
        return -1;
    fprintf(file,
            "%s<h1>Cohort %s between hosts</h1>\n<p>Two hosts that one machine plays, %llu "
            "ranks each. ",
            head, coh_version_string(), (unsigned long long)options->ranks);
    write_text(file, legend);
    fputs("</p>\n<table>\n", file);
    write_row(file, "th", sheet.titles, sheet.columns);
    for (size_t i = 0; i < json_array_size(results); i++) {
        const char *cells[COLUMNS + PEERS_MOST];
        for (int k = 0; k < sheet.columns; k++)
            cells[k] = table.rows[i].cell[k];
        write_row(file, "td", cells, sheet.columns);
    }
    fputs("</table>\n<ul>\n", file);
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *peer = json_array_get(peers, i);
        fputs("<li>", file);
        write_text(file, json_string_value(json_object_get(peer, "version")));
        fputs(": <code>", file);
        write_text(file, json_string_value(json_object_get(peer, "command")));
        fputs("</code></li>\n", file);
    }
    fputs("</ul></html>\n", file);
    cohi_table_free(&table);
    return fclose(file);
}

int cohi_links_report(const cohi_links_options *options, const json_t *turns, json_t *peers)
{
    json_t *results = merge(turns, peers);
    int status =
        options->json ? print_json(options, results, peers) : print_table(options, results, peers);
    if (status == 0 && options->html && (status = write_page(options, results, peers)) != 0)
        fprintf(stderr, "cohort bench links: %s could not be written: %s\n", options->html,
                strerror(errno));
    json_decref(results);
    return status;
}
