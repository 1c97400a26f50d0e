/* bench/report.c - what was found, for programs and for people. */
#include "bench/bench.h"

#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *figure_json(const cohi_bench_figure *figure)
{
    json_t *json =
        json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", figure->name, "median_ns", figure->median,
                  "low_ns", figure->low, "high_ns", figure->high, "fraction", figure->fraction);
    if (figure->aside)
        json_object_set_new(json, "aside", json_true());
    return json;
}

/* How a collective was measured. */
static void add_variant(const cohi_bench_result *result, json_t *json)
{
    const cohi_bench_variant *variant = &result->variant;
    json_object_set_new(json, "dtype", json_string(coh_dtype_name(variant->dtype)));
    json_object_set_new(json, "memory", json_string(variant->private ? "private" : "heap"));
    json_object_set_new(json, "caches", json_string(variant->cold ? "cold" : "warm"));
    json_object_set_new(json, "in_place", json_boolean(variant->in_place));
    for (size_t i = 1; i < result->count; i++) {
        if (result->figures[i].aside)
            json_object_set_new(json, "f32_ratio", json_real(1 / result->figures[i].fraction));
    }
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
    if (result->collective)
        add_variant(result, json);
    if (memcpy_figure)
        json_object_set_new(json, "memcpy_fraction", json_real(memcpy_figure->fraction));
    if (result->bytes)
        json_object_set_new(json, "gigabytes_per_second",
                            json_real((double)result->bytes / result->figures[0].median));
    return json;
}

/* Three digits that mean something. */
void cohi_bench_time_text(double nanoseconds, char *text, size_t room)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; nanoseconds >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        nanoseconds /= 1000;
    int digits = nanoseconds < 10 ? 2 : nanoseconds < 100 ? 1 : 0;
    snprintf(text, room, "%.*f %s", digits, nanoseconds, units[unit]);
}

static double number_at(const json_t *result, const char *object, const char *key)
{
    return json_number_value(json_object_get(json_object_get(result, object), key));
}

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

double cohi_bench_of_faster_peer(const json_t *result)
{
    const char *name;
    const json_t *peer;
    double most = 0;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(result, "peers"), name, peer)
    {
        double ratio = json_number_value(json_object_get(peer, "ratio"));
        most = ratio > most ? ratio : most;
    }
    return most;
}

void cohi_bench_curve_text(const json_t *result, char *text, size_t room)
{
    json_int_t ranks = json_integer_value(json_object_get(result, "ranks"));
    if (json_object_get(result, "dtype"))
        snprintf(text, room, "%s, %s, %" JSON_INTEGER_FORMAT " ranks, %s, caches %s%s",
                 text_at(result, "benchmark"), text_at(result, "dtype"), ranks,
                 text_at(result, "memory"), text_at(result, "caches"),
                 json_is_true(json_object_get(result, "in_place")) ? ", in place" : "");
    else if (json_integer_value(json_object_get(result, "bytes")))
        snprintf(text, room, "%s, %" JSON_INTEGER_FORMAT " ranks", text_at(result, "benchmark"),
                 ranks);
    else
        snprintf(text, room, "%s", text_at(result, "benchmark"));
}

/* ---- tables ---- */

/* A table's columns are chosen by what its results have. */
struct column {
    char title[32];
    const char *peer;
    void (*fill)(const json_t *result, const char *peer, char *cell);
};

static void fill_key(const json_t *result, const char *peer, char *cell)
{
    json_int_t bytes = json_integer_value(json_object_get(result, "bytes"));
    (void)peer;
    if (bytes)
        cohi_bytes_text((uint64_t)bytes, cell, COHI_TABLE_CELL_BYTES);
    else
        snprintf(cell, COHI_TABLE_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(result, "ranks")));
}

static void fill_ours(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    cohi_bench_time_text(number_at(result, "ours", "median_ns"), cell, COHI_TABLE_CELL_BYTES);
}

static void fill_spread(const json_t *result, const char *peer, char *cell)
{
    char low[32], high[32];
    (void)peer;
    cohi_bench_time_text(number_at(result, "ours", "low_ns"), low, sizeof low);
    cohi_bench_time_text(number_at(result, "ours", "high_ns"), high, sizeof high);
    snprintf(cell, COHI_TABLE_CELL_BYTES, "%s .. %s", low, high);
}

static void fill_worst(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    cohi_bench_time_text(number_at(result, "worst", "median_ns"), cell, COHI_TABLE_CELL_BYTES);
}

static void fill_limit(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    cohi_bench_time_text(number_at(result, "limit", "median_ns"), cell, COHI_TABLE_CELL_BYTES);
}

static void fill_form(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    snprintf(cell, COHI_TABLE_CELL_BYTES, "%s", text_at(json_object_get(result, "limit"), "name"));
}

static void ratio_text(double ratio, char *cell)
{
    if (ratio > 0)
        snprintf(cell, COHI_TABLE_CELL_BYTES, "%.*f", ratio < 0.01 ? 4 : 2, ratio);
}

static void fill_fraction(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(json_number_value(json_object_get(result, "fraction")), cell);
}

static void fill_worst_fraction(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(number_at(result, "worst", "fraction"), cell);
}

static void fill_memcpy(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(json_number_value(json_object_get(result, "memcpy_fraction")), cell);
}

static void fill_f32(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(json_number_value(json_object_get(result, "f32_ratio")), cell);
}

static void fill_rate(const json_t *result, const char *peer, char *cell)
{
    double rate = json_number_value(json_object_get(result, "gigabytes_per_second"));
    (void)peer;
    if (rate > 0)
        snprintf(cell, COHI_TABLE_CELL_BYTES, "%.4g", rate);
}

static void fill_faster(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(cohi_bench_of_faster_peer(result), cell);
}

static void fill_worst_peer(const json_t *result, const char *peer, char *cell)
{
    (void)peer;
    ratio_text(number_at(result, "worst", "peer_ratio"), cell);
}

static void fill_peer(const json_t *result, const char *peer, char *cell)
{
    char median[32], low[32], high[32];
    const json_t *figure = json_object_get(json_object_get(result, "peers"), peer);
    if (!figure)
        return;
    cohi_bench_time_text(json_number_value(json_object_get(figure, "median_ns")), median,
                         sizeof median);
    cohi_bench_time_text(json_number_value(json_object_get(figure, "low_ns")), low, sizeof low);
    cohi_bench_time_text(json_number_value(json_object_get(figure, "high_ns")), high, sizeof high);
    double ratio = json_number_value(json_object_get(figure, "ratio"));
    snprintf(cell, COHI_TABLE_CELL_BYTES, "%s (%s .. %s): %.*f", median, low, high,
             ratio < 0.01 ? 4 : 2, ratio);
}

struct columns {
    struct column at[COHI_TABLE_COLUMNS];
    int count;
};

static void add(struct columns *columns, const char *title, const char *peer,
                void (*fill)(const json_t *result, const char *peer, char *cell))
{
    if (columns->count == COHI_TABLE_COLUMNS)
        return;
    struct column *column = &columns->at[columns->count++];
    snprintf(column->title, sizeof column->title, "%s", title);
    column->peer = peer;
    column->fill = fill;
}

static void add_peers(struct columns *columns, const json_t *first)
{
    const char *name;
    const json_t *peer;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(first, "peers"), name, peer)
    {
        add(columns, name, name, fill_peer);
    }
    if (json_object_size(json_object_get(first, "peers")) == 0)
        return;
    add(columns, "of faster", NULL, fill_faster);
    if (json_object_get(first, "worst"))
        add(columns, "worst", NULL, fill_worst_peer);
}

static struct columns choose_columns(const json_t *first)
{
    struct columns columns = {.count = 0};
    int worst = json_object_get(first, "worst") != NULL;
    add(&columns, json_integer_value(json_object_get(first, "bytes")) ? "size" : "ranks", NULL,
        fill_key);
    add(&columns, "cohort", NULL, fill_ours);
    add(&columns, "quartiles", NULL, fill_spread);
    if (worst)
        add(&columns, "worst", NULL, fill_worst);
    add(&columns, "limit", NULL, fill_limit);
    add(&columns, "by", NULL, fill_form);
    add(&columns, "of limit", NULL, fill_fraction);
    if (worst)
        add(&columns, "worst", NULL, fill_worst_fraction);
    if (json_object_get(first, "memcpy_fraction") && !json_object_get(first, "peers"))
        add(&columns, "of memcpy", NULL, fill_memcpy);
    if (json_object_get(first, "f32_ratio"))
        add(&columns, "of f32", NULL, fill_f32);
    add_peers(&columns, first);
    if (json_object_get(first, "gigabytes_per_second") && !json_object_get(first, "peers"))
        add(&columns, "GB/s", NULL, fill_rate);
    return columns;
}

static int is_of(const json_t *result, const char *curve)
{
    char text[192];
    cohi_bench_curve_text(result, text, sizeof text);
    return strcmp(text, curve) == 0;
}

static int fill_table(json_t *results, const char *curve, const struct columns *columns,
                      cohi_table *table)
{
    size_t index, row = 0;
    const json_t *result;
    json_array_foreach(results, index, result)
    {
        if (!is_of(result, curve))
            continue;
        for (int column = 0; column < columns->count; column++)
            columns->at[column].fill(result, columns->at[column].peer,
                                     table->rows[row].cell[column]);
        row++;
    }
    return 0;
}

static const cohi_bench_case *case_named(const char *name)
{
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (strcmp(row->name, name) == 0)
            break;
    }
    return row;
}

/* The results from `first` on that are of the same curve. */
static int print_curve(const char *engine, json_t *results, size_t first)
{
    char curve[192];
    const char *titles[COHI_TABLE_COLUMNS];
    const json_t *one = json_array_get(results, first);
    size_t count = 0;
    cohi_bench_curve_text(one, curve, sizeof curve);
    for (size_t i = 0; i < json_array_size(results); i++)
        count += is_of(json_array_get(results, i), curve) ? 1 : 0;
    struct columns columns = choose_columns(one);
    for (int i = 0; i < columns.count; i++)
        titles[i] = columns.at[i].title;
    cohi_table table;
    if (cohi_table_make(&table, titles, columns.count, count) != 0)
        return -1;
    fill_table(results, curve, &columns, &table);
    const cohi_bench_case *row = case_named(text_at(one, "benchmark"));
    printf("%s (%s): %s\nlimit: %s\n", curve, engine, row ? row->what : text_at(one, "what"),
           row ? row->limit : text_at(one, "limit_is"));
    cohi_table_print(&table, "  ", stdout);
    putchar('\n');
    cohi_table_free(&table);
    return 0;
}

/* Whether an earlier one is of the same curve. */
static int was_seen(json_t *results, size_t index)
{
    char curve[192];
    cohi_bench_curve_text(json_array_get(results, index), curve, sizeof curve);
    for (size_t i = 0; i < index; i++) {
        if (is_of(json_array_get(results, i), curve))
            return 1;
    }
    return 0;
}

/* What they were run with, before what came of it. */
static void print_peers(const json_t *peers)
{
    size_t index;
    const json_t *peer;
    json_array_foreach(peers, index, peer)
    {
        const char *why = json_string_value(json_object_get(peer, "why"));
        printf("%s, %" JSON_INTEGER_FORMAT " ranks: ", text_at(peer, "name"),
               json_integer_value(json_object_get(peer, "ranks")));
        if (why)
            printf("not available: %s\n", why);
        else
            printf("%s\n  %s\n", text_at(peer, "version"), text_at(peer, "command"));
    }
    if (json_array_size(peers) > 0)
        putchar('\n');
}

static void print_noise(const json_t *noise)
{
    double low = json_number_value(json_object_get(noise, "line_low_ns"));
    double high = json_number_value(json_object_get(noise, "line_high_ns"));
    if (low > 0)
        printf("A cache line took %.0f to %.0f ns from rank to rank while this was measured.\n\n",
               low, high);
}

static void print_load(const json_t *report)
{
    json_int_t load = json_integer_value(json_object_get(report, "load"));
    if (load > 0)
        printf("%" JSON_INTEGER_FORMAT " busy process%s beside, %s, all the time.\n\n", load,
               load == 1 ? "" : "es",
               json_is_true(json_object_get(report, "load_pinned")) ? "a core for each in turn"
                                                                    : "on any core");
}

/* How many ranks shared which card, and how. */
static void print_cards(const json_t *cards)
{
    size_t index;
    const json_t *card;
    json_array_foreach(cards, index, card)
    {
        printf("%" JSON_INTEGER_FORMAT " ranks on %s: %s\n",
               json_integer_value(json_object_get(card, "ranks")), text_at(card, "name"),
               text_at(card, "sharing"));
    }
    if (json_array_size(cards) > 0)
        putchar('\n');
}

void cohi_bench_print_head(const json_t *report)
{
    print_cards(json_object_get(report, "cards"));
    print_peers(json_object_get(report, "peers"));
    print_load(report);
    print_noise(json_object_get(report, "noise"));
}

static int print_tables(const json_t *report)
{
    json_t *results = json_object_get(report, "results");
    cohi_bench_print_head(report);
    if (json_array_size(json_object_get(report, "peers")) > 0)
        printf(
            "Each peer: its median (the quartiles): Cohort's time divided by its. Of faster: the "
            "same for the faster one.\n\n");
    for (size_t i = 0; i < json_array_size(results); i++) {
        if (!was_seen(results, i) && print_curve(text_at(report, "engine"), results, i) != 0)
            return -1;
    }
    return fflush(stdout);
}

int cohi_bench_report(const cohi_bench_options *options, json_t *report)
{
    if (options->html && cohi_bench_report_html(report, options->html) != 0) {
        fprintf(stderr, "cohort bench: %s could not be written: %s\n", options->html,
                strerror(errno));
        return -1;
    }
    if (options->csv)
        return cohi_bench_report_csv(report, stdout);
    if (!options->json)
        return print_tables(report);
    int status = json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    return status;
}
