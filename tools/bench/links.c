/*
 * bench/links.c - `cohort bench links`: what engine tcp makes of a connection between two hosts, sealed
 * and in the clear, beside bare loops on the same cores (bench/limit/limit_link.h).
 *
 * Two ranks play two hosts. For each way a job of its own; in it Cohort's calls and the bare loop take
 * turns, round by round, and rank 0 takes the time.
 */
#include "bench/links.h"

#include "bench/bench.h"
#include "bench/limit/limit_link.h"
#include "command.h"
#include "flags.h"
#include "table.h"

#include "base/clock.h"
#include "base/config.h"
#include "secure/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MAX = 1000, MOST_BYTES = 16 << 20, TAG = 1 };

typedef struct options {
    uint64_t rounds;
    int json;
    int worker; /* 0, or is a rank */
    int sealed; /* of a rank */
} options;

/* ---- what is measured ---- */

static const struct links_row {
    const char *name;
    uint64_t bytes;
    uint64_t repeats; /* in a round */
    int turns;        /* there and back; half of that is the time */
} rows[] = {
    {"message", 8, 100, 1},
    {"put", 64 << 10, 30, 0},
    {"put", 1 << 20, 4, 0},
    {"put", 16 << 20, 1, 0},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* One of the two ranks. */
struct side {
    coh_world *world;
    int leads;
    char *shared, *private;
    cohi_limit_link link;
    double cohort[ROWS][ROUNDS_MAX], limit[ROWS][ROUNDS_MAX], fraction[ROWS][ROUNDS_MAX];
};

static coh_status take_turns(struct side *side, uint64_t bytes, uint64_t repeats)
{
    coh_team *team = coh_team_world(side->world);
    char word[64] = "";
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++) {
        if (side->leads)
            status = coh_send(team, 1, TAG, word, bytes);
        if (status == COH_OK)
            status = coh_receive(team, 1 - !side->leads, TAG, word, bytes, NULL);
        if (status == COH_OK && !side->leads)
            status = coh_send(team, 0, TAG, word, bytes);
    }
    return status;
}

/* The other one waits in the barrier that follows. */
static coh_status put_all(struct side *side, uint64_t bytes, uint64_t repeats)
{
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < repeats && status == COH_OK && side->leads; i++) {
        status = coh_put(side->world, side->shared, side->private, bytes, 1);
        if (status == COH_OK)
            status = coh_quiet(side->world);
    }
    return status;
}

static coh_status run_cohort(struct side *side, const struct links_row *row, double *nanoseconds)
{
    coh_status status = coh_barrier(side->world);
    uint64_t began_ns = cohi_now_ns();
    if (status == COH_OK)
        status = (row->turns ? take_turns : put_all)(side, row->bytes, row->repeats);
    *nanoseconds = (double)(cohi_now_ns() - began_ns) / (double)row->repeats / (row->turns ? 2 : 1);
    return status == COH_OK ? coh_barrier(side->world) : status;
}

static coh_status run_limit(struct side *side, const struct links_row *row, double *nanoseconds)
{
    char *memory = side->leads ? side->private : side->shared;
    coh_status status = coh_barrier(side->world);
    int failed = 0;
    uint64_t began_ns = cohi_now_ns();
    if (row->turns)
        failed = cohi_limit_link_turns(&side->link, row->bytes, row->repeats);
    for (uint64_t i = 0; i < row->repeats && !failed && !row->turns; i++)
        failed = cohi_limit_link_move(&side->link, memory, row->bytes);
    *nanoseconds = (double)(cohi_now_ns() - began_ns) / (double)row->repeats / (row->turns ? 2 : 1);
    return status == COH_OK && failed ? COH_TRANSPORT : status;
}

static coh_status run_rounds(struct side *side, uint64_t rounds)
{
    coh_status status = COH_OK;
    for (uint64_t round = 0; round <= rounds && status == COH_OK; round++)
        for (int i = 0; i < ROWS && status == COH_OK; i++) {
            double ours = 0, theirs = 0;
            status = run_cohort(side, &rows[i], &ours);
            if (status == COH_OK)
                status = run_limit(side, &rows[i], &theirs);
            if (round == 0) /* what is touched for the first time takes longer */
                continue;
            side->cohort[i][round - 1] = ours;
            side->limit[i][round - 1] = theirs;
            side->fraction[i][round - 1] = theirs / ours;
        }
    return status;
}

/* ---- a rank ---- */

static coh_status meet(struct side *side, int sealed)
{
    uint16_t port = 0;
    int listener = -1, failed = side->leads ? cohi_limit_link_listen(&listener, &port) : 0;
    coh_team *team = coh_team_world(side->world);
    coh_status status = failed        ? COH_TRANSPORT
                        : side->leads ? coh_send(team, 1, TAG, &port, sizeof port)
                                      : coh_receive(team, 0, TAG, &port, sizeof port, NULL);
    if (status == COH_OK && cohi_limit_link_open(&side->link, side->leads, listener, port, sealed))
        status = COH_TRANSPORT;
    if (listener >= 0)
        close(listener);
    return status;
}

static void print_results(struct side *side, const options *chosen)
{
    for (int i = 0; i < ROWS; i++) {
        cohi_bench_figure ours, theirs, fraction;
        cohi_bench_spread(side->cohort[i], chosen->rounds, &ours);
        cohi_bench_spread(side->limit[i], chosen->rounds, &theirs);
        cohi_bench_spread(side->fraction[i], chosen->rounds, &fraction);
        printf("{\"benchmark\": \"%s\", \"bytes\": %llu, \"sealed\": %s, \"median_ns\": %.1f, "
               "\"low_ns\": %.1f, \"high_ns\": %.1f, \"limit_ns\": %.1f, \"fraction\": %.4f, "
               "\"least_ns\": %.1f, "
               "\"limit_least_ns\": %.1f}\n",
               rows[i].name, (unsigned long long)rows[i].bytes, chosen->sealed ? "true" : "false",
               ours.median, ours.low, ours.high, theirs.median, fraction.median, side->cohort[i][0],
               side->limit[i][0]); /* they are sorted by now */
    }
    fflush(stdout);
}

static coh_status run_side(struct side *side, const options *chosen)
{
    coh_options how = COH_OPTIONS_INIT;
    const char *rank = getenv("COHORT_RANK");
    how.engine = "tcp";
    cohi_bench_move_to_core(rank ? atoi(rank) : 0); /* the engine's thread goes along */
    coh_status status = coh_init(&how, &side->world);
    if (status != COH_OK)
        return status;
    side->leads = coh_rank(side->world) == 0;
    status = coh_malloc(side->world, MOST_BYTES, (void **)&side->shared);
    side->private = malloc(MOST_BYTES);
    if (status == COH_OK && !side->private)
        status = COH_NO_MEMORY;
    if (status == COH_OK) {
        memset(side->shared, COHI_BENCH_BYTE, MOST_BYTES);
        memset(side->private, COHI_BENCH_BYTE, MOST_BYTES);
        status = meet(side, chosen->sealed);
    }
    if (status == COH_OK)
        status = run_rounds(side, chosen->rounds);
    if (status == COH_OK && side->leads)
        print_results(side, chosen);
    cohi_limit_link_close(&side->link);
    free(side->private);
    coh_status left = coh_finalize(side->world);
    return status == COH_OK ? left : status;
}

static int be_rank(const options *chosen)
{
    static struct side side = {.link = {.fd = -1}};
    coh_status status = cohi_tls_available();
    if (status == COH_OK)
        status = run_side(&side, chosen);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort bench links: %s: %s\n", coh_status_name(status), coh_last_error());
    return EXIT_FAILURE;
}

/* ---- the jobs ---- */

static void take_line(void *arg, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    if (line)
        json_array_append_new(arg, line);
    else
        fprintf(stderr, "%s\n", text);
}

static int run_job(const options *chosen, int sealed, json_t *results)
{
    char self[4096], rounds[24];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return EXIT_FAILURE;
    self[length] = '\0';
    snprintf(rounds, sizeof rounds, "%llu", (unsigned long long)chosen->rounds);
    const char *arguments[] = {self,
                               "run",
                               "-n",
                               "2",
                               "--pretend-hosts",
                               "2",
                               "--env",
                               sealed ? "COHORT_NET=seal" : "COHORT_NET=clear",
                               self,
                               "bench",
                               "links",
                               sealed ? "--worker-sealed" : "--worker",
                               "--rounds",
                               rounds,
                               NULL};
    cohi_bench_child child = {
        .arguments = (char *const *)(uintptr_t)arguments, .take = take_line, .arg = results};
    int status = cohi_bench_child_run(&child);
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}

/* ---- the report ---- */

enum { BENCHMARK, BYTES, NET, TIME, RATE, LIMIT, FRACTION, COLUMNS };

static double number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void fill_cells(const json_t *row, cohi_table_row *cells)
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
}

static int print_table(const json_t *results)
{
    static const char *const titles[COLUMNS] = {"benchmark", "bytes", "network", "time",
                                                "GB/s",      "limit", "fraction"};
    cohi_table table;
    if (cohi_table_make(&table, titles, COLUMNS, json_array_size(results)) != 0)
        return -1;
    for (size_t i = 0; i < json_array_size(results); i++)
        fill_cells(json_array_get(results, i), &table.rows[i]);
    printf("links: two ranks that play two hosts, over TCP on the loopback of this machine\n"
           "limit: a bare socket whose ends poll; sealed, a bare loop that seals, sends, receives, "
           "opens\n"
           "and copies; fraction: of its speed that Cohort reaches, the median of all rounds\n");
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return fflush(stdout);
}

static int print_json(json_t *results)
{
    json_t *report = json_pack("{s:s, s:s, s:O}", "version", coh_version_string(), "benchmark",
                               "links", "results", results);
    int status = report ? json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : -1;
    putchar('\n');
    json_decref(report);
    return status;
}

/* ---- the command ---- */

static int take_rounds(void *target, const char *flag, const char *value)
{
    return cohi_parse_count(flag, value, 1, ROUNDS_MAX, &((options *)target)->rounds) == COH_OK
               ? 0
               : -1;
}

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((options *)target)->json = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"rounds", 0, "COUNT", "how often each is measured, in turns, 1 to 1000 (31)", take_rounds},
    {"json", 0, NULL, "print one JSON object", take_json},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort bench links",
    .synopsis = "[FLAGS...]",
    .summary = "Measures messages and puts between two ranks that play two hosts, by engine tcp, "
               "sealed and in\n"
               "the clear, beside a bare socket and a bare loop that seals and opens.",
    .flags = flags,
};

static int run_both(const options *chosen)
{
    json_t *results = json_array();
    cohi_bench_catch_signals();
    int status = run_job(chosen, 0, results);
    if (status == 0)
        status = run_job(chosen, 1, results);
    if (status == 0 && (chosen->json ? print_json(results) : print_table(results)) != 0) {
        fprintf(stderr, "cohort bench links: the report could not be written\n");
        status = EXIT_FAILURE;
    }
    json_decref(results);
    return status;
}

int cohi_bench_links(int argc, char **argv)
{
    options chosen = {.rounds = 31};
    int status;
    chosen.sealed = argc > 1 && strcmp(argv[1], "--worker-sealed") == 0;
    chosen.worker = chosen.sealed || (argc > 1 && strcmp(argv[1], "--worker") == 0);
    if (cohi_flags_only(&usage, argc - chosen.worker, argv + chosen.worker, &chosen, &status) != 0)
        return status;
    return chosen.worker ? be_rank(&chosen) : run_both(&chosen);
}
