#include "bench/pipeline.h"

#include "command.h"
#include "flags.h"
#include "table.h"

#include "base/config.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW_BYTES = COHI_PRODUCT_INNER * sizeof(float) }; /* tiles are whole pairs of rows */

typedef struct options {
    cohi_loop_options loop;
    int json;
} options;

/* Source and share of a case: where copies and computation weigh the same, all of one must hide
 * behind the other. */
static const struct bench_row {
    const char *source;
    int from_file;
    double share;
} rows[] = {
    {"memory", 0, 0.5}, {"memory", 0, 1}, {"memory", 0, 2},
    {"file", 1, 0.5},   {"file", 1, 1},   {"file", 1, 2},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* ---- flags ---- */

static int take_tile(void *target, const char *flag, const char *value)
{
    return cohi_parse_size(flag, value, &((options *)target)->loop.tile) == COH_OK ? 0 : -1;
}

static int take_bytes(void *target, const char *flag, const char *value)
{
    return cohi_parse_size(flag, value, &((options *)target)->loop.bytes) == COH_OK ? 0 : -1;
}

static int take_depth(void *target, const char *flag, const char *value)
{
    options *chosen = target;
    return cohi_parse_count(flag, value, 2, 1024, &chosen->loop.depth) == COH_OK ? 0 : -1;
}

static int take_rounds(void *target, const char *flag, const char *value)
{
    options *chosen = target;
    return cohi_parse_count(flag, value, 1, 100000, &chosen->loop.rounds) == COH_OK ? 0 : -1;
}

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((options *)target)->json = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"tile", 0, "SIZE", "bytes of a tile, a multiple of 2K (1M)", take_tile},
    {"bytes", 0, "SIZE", "bytes of all tiles, a multiple of a tile's (64M)", take_bytes},
    {"depth", 0, "COUNT", "tiles that there is room for, 2 to 1024 (4)", take_depth},
    {"rounds", 0, "COUNT", "how often each loop is measured, in turns (21)", take_rounds},
    {"json", 0, NULL, "print one JSON object", take_json},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort bench pipeline",
    .synopsis = "[FLAGS...]",
    .summary =
        "Measures a pipelined loop over tiles, whose computation is a matrix product, beside its "
        "copies\n"
        "alone, its computation alone, and both at once but unrelated; from memory and from a "
        "file.",
    .flags = flags,
};

/* ---- the file ---- */

static coh_status write_all(int fd, const char *path, const char *bytes, uint64_t count)
{
    while (count > 0) {
        ssize_t wrote = write(fd, bytes, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return cohi_fail_os(errno, "writing '%s'", path);
        bytes += wrote;
        count -= (uint64_t)wrote;
    }
    return COH_OK;
}

/* A file with these bytes, which has no name any more when it is open. */
static coh_status make_file(const void *bytes, uint64_t count, coh_file **file)
{
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/cohort-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return cohi_fail_os(errno, "making '%s'", path);
    coh_status status = write_all(fd, path, bytes, count);
    if (status == COH_OK)
        status = coh_file_open(path, file);
    close(fd);
    unlink(path);
    return status;
}

/* ---- the report ---- */

enum { SOURCE, COPY, COMPUTE, APART, PIPELINED, RATIO, SPREAD, OF_APART, RATE, COLUMNS };

static void milliseconds(double nanoseconds, char *cell)
{
    snprintf(cell, COHI_TABLE_CELL_BYTES, "%.3g ms", nanoseconds / 1e6);
}

static void fill_cells(const options *chosen, int index, const cohi_loop_result *result,
                       cohi_table_row *row)
{
    snprintf(row->cell[SOURCE], COHI_TABLE_CELL_BYTES, "%s", rows[index].source);
    milliseconds(result->copy.median, row->cell[COPY]);
    milliseconds(result->compute.median, row->cell[COMPUTE]);
    milliseconds(result->apart.median, row->cell[APART]);
    milliseconds(result->pipelined.median, row->cell[PIPELINED]);
    snprintf(row->cell[RATIO], COHI_TABLE_CELL_BYTES, "%.2f", result->ratio.median);
    snprintf(row->cell[SPREAD], COHI_TABLE_CELL_BYTES, "%.2f .. %.2f", result->ratio.low,
             result->ratio.high);
    snprintf(row->cell[OF_APART], COHI_TABLE_CELL_BYTES, "%.2f", result->of_apart.median);
    snprintf(row->cell[RATE], COHI_TABLE_CELL_BYTES, "%.4g",
             (double)chosen->loop.bytes / result->pipelined.median);
}

static int print_table(const options *chosen, const cohi_loop_result *results)
{
    static const char *const titles[COLUMNS] = {"source",    "copy",       "compute",
                                                "at once",   "pipelined",  "ratio",
                                                "quartiles", "of at once", "GB/s"};
    char tile[32], all[32];
    cohi_table table;
    if (cohi_table_make(&table, titles, COLUMNS, ROWS) != 0)
        return -1;
    for (int i = 0; i < ROWS; i++)
        fill_cells(chosen, i, &results[i], &table.rows[i]);
    cohi_bytes_text(chosen->loop.tile, tile, sizeof tile);
    cohi_bytes_text(chosen->loop.bytes, all, sizeof all);
    printf(
        "pipeline: a loop over %s in tiles of %s, %llu deep\n"
        "ratio: its time / the larger of its copies alone, by one thread, and its computation "
        "alone,\n"
        "the median of all rounds; a thread that would wait for a tile helps to copy it\n"
        "at once: copies and computation on two threads, unrelated: what this machine overlaps\n",
        all, tile, (unsigned long long)chosen->loop.depth);
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return fflush(stdout);
}

static json_t *figure_json(const cohi_bench_figure *figure)
{
    return json_pack("{s:f, s:f, s:f}", "median_ns", figure->median, "low_ns", figure->low,
                     "high_ns", figure->high);
}

static int print_json(const options *chosen, const cohi_loop_result *results)
{
    json_t *list = json_array();
    for (int i = 0; i < ROWS; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f}", "source",
                      rows[i].source, "share", rows[i].share, "copy", figure_json(&results[i].copy),
                      "compute", figure_json(&results[i].compute), "at_once",
                      figure_json(&results[i].apart), "pipelined",
                      figure_json(&results[i].pipelined), "ratio", results[i].ratio.median,
                      "ratio_low", results[i].ratio.low, "ratio_high", results[i].ratio.high,
                      "of_at_once", results[i].of_apart.median));
    json_t *report = json_pack("{s:s, s:s, s:I, s:I, s:I, s:o}", "version", coh_version_string(),
                               "benchmark", "pipeline", "bytes", (json_int_t)chosen->loop.bytes,
                               "tile", (json_int_t)chosen->loop.tile, "depth",
                               (json_int_t)chosen->loop.depth, "results", list);
    int status = report ? json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : -1;
    putchar('\n');
    json_decref(report);
    return status;
}

/* ---- the whole ---- */

static coh_status measure_all(const options *chosen, cohi_loop_result *results)
{
    coh_file *file = NULL;
    char *memory = malloc(chosen->loop.bytes);
    if (!memory)
        return cohi_fail(COH_NO_MEMORY, "no memory for %llu bytes",
                         (unsigned long long)chosen->loop.bytes);
    memset(memory, 1, chosen->loop.bytes); /* zeros would all be one page of the kernel's */
    coh_status status = make_file(memory, chosen->loop.bytes, &file);
    for (int i = 0; status == COH_OK && i < ROWS; i++)
        status = cohi_loop_measure(&chosen->loop, memory, rows[i].from_file ? file : NULL,
                                   rows[i].share, &results[i]);
    coh_file_close(file);
    free(memory);
    return status;
}

int cohi_bench_pipeline(int argc, char **argv)
{
    options chosen = {.loop = {.bytes = 64 << 20, .tile = 1 << 20, .depth = 4, .rounds = 21}};
    cohi_loop_result results[ROWS];
    int status;
    if (cohi_flags_only(&usage, argc, argv, &chosen, &status) != 0)
        return status;
    if (chosen.loop.tile == 0 || chosen.loop.tile % (2 * ROW_BYTES) != 0)
        return cohi_flags_refuse(&usage, "--tile: %llu is not a multiple of %d bytes",
                                 (unsigned long long)chosen.loop.tile, 2 * ROW_BYTES);
    if (chosen.loop.bytes == 0 || chosen.loop.bytes % chosen.loop.tile != 0)
        return cohi_flags_refuse(&usage, "--bytes: %llu is not a multiple of the tile's %llu",
                                 (unsigned long long)chosen.loop.bytes,
                                 (unsigned long long)chosen.loop.tile);
    if (measure_all(&chosen, results) != COH_OK) {
        fprintf(stderr, "cohort bench pipeline: %s\n", coh_last_error());
        return EXIT_FAILURE;
    }
    if ((chosen.json ? print_json : print_table)(&chosen, results) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort bench pipeline: the report could not be written\n");
    return EXIT_FAILURE;
}
