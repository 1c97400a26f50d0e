/* bench/check_report.c - what came of a check: the verdict as JSON, a line for each curve, and a
 * table of the rows that do not hold. */
#include "bench/check.h"

#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static double number_at(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* ---- rows ---- */

cohi_floor_row cohi_bench_floor_row(const json_t *result, const char **peer)
{
    const char *name;
    const json_t *figure;
    cohi_floor_row row = {.bytes = (uint64_t)json_integer_value(json_object_get(result, "bytes")),
                          .fraction = number_at(result, "fraction")};
    if (peer)
        *peer = NULL;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(result, "peers"), name, figure)
    {
        if (number_at(figure, "ratio") <= row.ratio)
            continue;
        row.ratio = number_at(figure, "ratio");
        row.ratio_low = number_at(figure, "ratio_low");
        if (peer)
            *peer = name;
    }
    return row;
}

cohi_floor_failure *cohi_bench_check_failures(const json_t *results, size_t *count)
{
    size_t rows = json_array_size(results);
    cohi_floor_row *measured = calloc(rows + 1, sizeof *measured);
    cohi_floor_failure *failures = calloc(rows + 1, sizeof *failures);
    for (size_t i = 0; i < rows && measured; i++)
        measured[i] = cohi_bench_floor_row(json_array_get(results, i), NULL);
    if (measured && failures)
        *count = cohi_floor_failures(measured, rows, failures);
    int whole = measured && failures;
    free(measured);
    if (whole)
        return failures;
    free(failures);
    return NULL;
}

/* ---- the verdict ---- */

static json_t *failure_json(const json_t *result, unsigned why)
{
    const char *peer;
    char curve[192];
    cohi_floor_row row = cohi_bench_floor_row(result, &peer);
    cohi_bench_curve_text(result, curve, sizeof curve);
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:f, s:f, s:b, s:b}", "row", curve, "benchmark",
                  text_at(result, "benchmark"), "bytes", (json_int_t)row.bytes, "fraction",
                  row.fraction, "floor", cohi_floor_of(row.bytes), "below_limit",
                  (why & COHI_FLOOR_BELOW_LIMIT) != 0, "slower", (why & COHI_FLOOR_SLOWER) != 0);
    if (peer) {
        json_object_set_new(json, "peer", json_string(peer));
        json_object_set_new(json, "ratio", json_real(row.ratio));
    }
    json_object_set(json, "first", json_object_get(result, "first"));
    return json;
}

int cohi_bench_check_verdict(json_t *report)
{
    const json_t *results = json_object_get(report, "results");
    size_t count, again = 0;
    cohi_floor_failure *failures = cohi_bench_check_failures(results, &count);
    json_t *failed = json_array();
    for (size_t i = 0; i < json_array_size(results); i++)
        again += json_object_get(json_array_get(results, i), "first") ? 1 : 0;
    for (size_t i = 0; failures && i < count; i++)
        json_array_append_new(
            failed, failure_json(json_array_get(results, failures[i].row), failures[i].why));
    json_t *verdict =
        json_pack("{s:b, s:I, s:I, s:f, s:f, s:I, s:f, s:o}", "passed",
                  json_array_size(failed) == 0 && json_array_size(results) > 0, "checked",
                  (json_int_t)json_array_size(results), "again", (json_int_t)again, "floor",
                  COHI_FLOOR_LONG, "floor_short", COHI_FLOOR_SHORT, "short_below",
                  (json_int_t)COHI_FLOOR_LONG_BYTES, "spread", COHI_FLOOR_SPREAD, "failed", failed);
    int known = failures != NULL;
    free(failures);
    return known && verdict ? json_object_set_new(report, "check", verdict) : -1;
}

/* ---- a line for each curve ---- */

/* "64 KiB 0.92 (0.31)"; in parentheses what it is of the faster peer. */
static void print_row(const json_t *result, int first)
{
    char size[32] = "";
    cohi_floor_row row = cohi_bench_floor_row(result, NULL);
    if (row.bytes)
        cohi_bytes_text(row.bytes, size, sizeof size);
    printf("%s%s%s%.2f", first ? "" : ", ", size, *size ? " " : "", row.fraction);
    if (row.ratio > 0)
        printf(" (%.2f)", row.ratio);
    if (cohi_floor_judge(&row))
        putchar('!');
}

static int is_of(const json_t *result, const char *curve)
{
    char text[192];
    cohi_bench_curve_text(result, text, sizeof text);
    return strcmp(text, curve) == 0;
}

/* The results from `from` on that are of its curve, unless an earlier one is. */
static void print_curve(const json_t *results, size_t from)
{
    char curve[192];
    cohi_bench_curve_text(json_array_get(results, from), curve, sizeof curve);
    for (size_t i = 0; i < from; i++) {
        if (is_of(json_array_get(results, i), curve))
            return;
    }
    printf("  %s: ", curve);
    for (size_t i = from; i < json_array_size(results); i++) {
        if (is_of(json_array_get(results, i), curve))
            print_row(json_array_get(results, i), i == from);
    }
    putchar('\n');
}

/* In the order of the benchmarks, not of the groups that they were measured in. */
static void print_curves(const json_t *results)
{
    const cohi_bench_case *row;
    for (size_t at = 0; (row = cohi_bench_case_at(at)); at++) {
        for (size_t i = 0; i < json_array_size(results); i++) {
            if (strcmp(text_at(json_array_get(results, i), "benchmark"), row->name) == 0)
                print_curve(results, i);
        }
    }
}

/* ---- the rows that do not hold ---- */

enum { ROW, SIZE, OURS, LIMIT, FLOOR, BY, PEER, RATIO, FIRST, COLUMNS };

static void fill_failure(const json_t *result, cohi_table_row *row)
{
    const char *peer;
    char first[32] = "";
    cohi_floor_row figures = cohi_bench_floor_row(result, &peer);
    const json_t *before = json_object_get(result, "first");
    cohi_bench_curve_text(result, row->cell[ROW], COHI_TABLE_CELL_BYTES);
    if (figures.bytes)
        cohi_bytes_text(figures.bytes, row->cell[SIZE], COHI_TABLE_CELL_BYTES);
    cohi_bench_time_text(number_at(json_object_get(result, "ours"), "median_ns"), row->cell[OURS],
                         COHI_TABLE_CELL_BYTES);
    snprintf(row->cell[LIMIT], COHI_TABLE_CELL_BYTES, "%.3f", figures.fraction);
    snprintf(row->cell[FLOOR], COHI_TABLE_CELL_BYTES, "%.2f", cohi_floor_of(figures.bytes));
    snprintf(row->cell[BY], COHI_TABLE_CELL_BYTES, "%s",
             text_at(json_object_get(result, "limit"), "name"));
    if (peer) {
        snprintf(row->cell[PEER], COHI_TABLE_CELL_BYTES, "%s", peer);
        snprintf(row->cell[RATIO], COHI_TABLE_CELL_BYTES, "%.3f", figures.ratio);
    }
    if (json_object_get(before, "ratio"))
        snprintf(first, sizeof first, " (%.3f)", number_at(before, "ratio"));
    snprintf(row->cell[FIRST], COHI_TABLE_CELL_BYTES, "%.3f%s", number_at(before, "fraction"),
             first);
}

static int print_failures(const json_t *results, size_t checked)
{
    static const char *const titles[COLUMNS] = {
        "row", "size", "cohort", "of limit", "floor", "by", "faster peer", "of peer", "at first"};
    size_t count;
    cohi_table table;
    cohi_floor_failure *failures = cohi_bench_check_failures(results, &count);
    if (!failures || cohi_table_make(&table, titles, COLUMNS, count) != 0) {
        free(failures);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        fill_failure(json_array_get(results, failures[i].row), &table.rows[i]);
    printf("\ncheck: %zu of %zu rows are below a floor, measured twice:\n", count, checked);
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    free(failures);
    return 0;
}

int cohi_bench_check_print(const json_t *report)
{
    const json_t *results = json_object_get(report, "results");
    const json_t *verdict = json_object_get(report, "check");
    size_t checked = json_array_size(results);
    cohi_bench_print_head(report);
    printf("Fraction of the limit; in parentheses Cohort's time divided by the faster peer's. "
           "Floors: %.1f of the limit\nfrom 64 KiB on, %.1f below, and not slower than the faster "
           "peer by more than the turns differ by.\n",
           COHI_FLOOR_LONG, COHI_FLOOR_SHORT);
    print_curves(results);
    if (checked == 0)
        printf("\ncheck: there is nothing to check\n");
    else if (json_is_true(json_object_get(verdict, "passed")))
        printf("\ncheck: %zu rows, none below a floor; %d were measured twice\n", checked,
               (int)json_integer_value(json_object_get(verdict, "again")));
    else if (print_failures(results, checked) != 0)
        return -1;
    return fflush(stdout);
}
