/*
 * tune.c - `cohort tune`: measures every row of this host's profile at length, and saves it.
 *
 * The long form of the calibration that a job's start does (memory/host_profile.h): all candidates,
 * several rounds, also the rows that a start has no time for. What takes two ranks is measured by a
 * job of two (tune_worker.c). With --hosts it is the rows of messages between hosts alone, by a job of
 * one rank on each of two (tune_hosts.c); the others stay as the file has them.
 */
#include "tune.h"

#include "bench/bench.h"
#include "command.h"
#include "flags.h"
#include "table.h"

#include "base/os.h"
#include "memory/calibrate.h"
#include "memory/host_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, ROUNDS = 7, SAMPLES = 3 };

struct options {
    const char *output;
    const char *hosts; /* NULL: this host is tuned */
    const char *shell; /* by which the others are reached, or NULL */
    int dry_run;
};

/* Of --hosts: two ranks of this machine play them. */
static const char played[] = "pretend";

static int take_output(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((struct options *)target)->output = value;
    return 0;
}

static int take_hosts(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((struct options *)target)->hosts = value;
    return 0;
}

static int take_shell(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((struct options *)target)->shell = value;
    return 0;
}

static int take_dry_run(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((struct options *)target)->dry_run = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"output", 'o', "FILE", "where to save (cohort/profile-... in the user's cache folder)",
     take_output},
    {"hosts", 0, "A,B",
     "measure messages between these two hosts, and nothing else; \"pretend\": two ranks of this "
     "one",
     take_hosts},
    {"shell", 0, "COMMAND", "of --hosts: how to reach them, as cohort run has it (ssh)",
     take_shell},
    {"dry-run", 0, NULL, "print what was measured and save nothing", take_dry_run},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort tune",
    .synopsis = "[FLAGS...]",
    .summary = "Measures at length what jobs measure a little of at each start: which loops copy "
               "and reduce\n"
               "fastest, from which sizes on to store past the caches, how fast lines, bytes and "
               "calls go\n"
               "between two ranks, and which way collectives take on a card. It takes some ten "
               "seconds, and\n"
               "a quiet machine. With --hosts it measures what messages between two hosts cost: "
               "the latency,\n"
               "each further one, each byte.",
    .flags = flags,
    .notes = "Jobs read the file that COHORT_PROFILE names, or the one in the cache folder; cohort "
             "info\n"
             "--host shows it.",
};

/* ---- what one thread can measure ---- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Of a quantity the median of some samples; of a choice the one that costs least, all samples
 * added. */
static bool settle(const cohi_sample *samples, int count, double *value)
{
    double values[SAMPLES];
    cohi_sample sum = samples[0];
    for (int i = 0; i < count; i++)
        values[i] = samples[i].value[0];
    for (int i = 1; i < count; i++)
        for (int candidate = 0; candidate < sum.count; candidate++)
            sum.cost[candidate] += samples[i].cost[candidate];
    qsort(values, (size_t)count, sizeof *values, compare);
    *value = sum.count == 1 ? values[count / 2] : cohi_sample_best(&sum, -1);
    return true;
}

static bool measure_row(cohi_calibration *calibration, cohi_row row, double *value)
{
    cohi_sample samples[SAMPLES];
    int count = 0;
    for (int i = 0; i < SAMPLES && !cohi_bench_stopped(); i++)
        count += cohi_calibrate(calibration, row, &samples[count]);
    return count > 0 && settle(samples, count, value);
}

static void measure_alone(cohi_host_profile *host)
{
    cohi_calibration calibration = cohi_calibration_open(ROUNDS, true, UINT64_MAX);
    for (cohi_row row = 0; row < COHI_ROWS; row++) {
        double value;
        if (cohi_calibrate_cost_ns(row) > 0 && measure_row(&calibration, row, &value)
            && cohi_row_could_be(row, value)) /* on a busy machine none may have won */
            cohi_host_profile_tune(host, row, value);
    }
    cohi_calibration_close(&calibration);
}

/* ---- what takes two ranks ---- */

static void take_line(void *arg, const char *line)
{
    cohi_host_profile *host = arg;
    char name[32];
    double value;
    bool took = sscanf(line, "%31s %lf", name, &value) == 2;
    for (cohi_row row = 0; took && row < COHI_ROWS; row++) {
        if (strcmp(cohi_row_at(row)->name, name) != 0 || !cohi_row_could_be(row, value))
            continue;
        cohi_host_profile_tune(host, row, value);
        return;
    }
    fprintf(stderr, "%s\n", line);
}

static int find_self(char self[PATH_ROOM])
{
    ssize_t length = readlink("/proc/self/exe", self, PATH_ROOM - 1);
    if (length < 0)
        fprintf(stderr, "cohort tune: /proc/self/exe cannot be read: %s\n", strerror(errno));
    else
        self[length] = '\0';
    return length < 0 ? -1 : 0;
}

static int run_job(char *const *arguments, cohi_host_profile *host)
{
    cohi_bench_child child = {.arguments = arguments, .take = take_line, .arg = host};
    setenv("COHORT_PROFILE", "described", 1);
    int status = cohi_bench_child_run(&child);
    if (status < 0)
        fprintf(stderr, "cohort tune: the job could not be started: %s\n", strerror(errno));
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}

static int measure_between(cohi_host_profile *host)
{
    char self[PATH_ROOM];
    if (find_self(self) != 0)
        return EXIT_FAILURE;
    const char *arguments[] = {self,   "run", "-n",   "2",        "--bind",
                               "core", self,  "tune", "--worker", NULL};
    return run_job((char *const *)(uintptr_t)arguments, host);
}

static int measure_hosts(const struct options *options, cohi_host_profile *host)
{
    char self[PATH_ROOM];
    int plays = strcmp(options->hosts, played) == 0;
    if (find_self(self) != 0)
        return EXIT_FAILURE;
    const char *arguments[16] = {self,
                                 "run",
                                 "-n",
                                 "2",
                                 plays ? "--pretend-hosts" : "--hosts",
                                 plays ? "2" : options->hosts};
    size_t count = 6;
    if (options->shell) {
        arguments[count++] = "--shell";
        arguments[count++] = options->shell;
    }
    arguments[count++] = self;
    arguments[count++] = "tune";
    arguments[count++] = "--hosts-worker";
    return run_job((char *const *)(uintptr_t)arguments, host);
}

/* ---- telling ---- */

static int print(const cohi_host_profile *host)
{
    static const char *const titles[] = {"row",  "here",   "described",
                                         "unit", "origin", "what it is"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    cohi_profile described = cohi_profile_describe(cohi_host());
    cohi_table table;
    if (cohi_table_make(&table, titles, COLUMNS, COHI_ROWS) != 0)
        return -1;
    for (cohi_row row = 0; row < COHI_ROWS; row++) {
        const cohi_row_info *info = cohi_row_at(row);
        char(*cell)[COHI_TABLE_CELL_BYTES] = table.rows[row].cell;
        snprintf(cell[0], COHI_TABLE_CELL_BYTES, "%s", info->name);
        cohi_row_text(row, host->profile.value[row], cell[1], COHI_TABLE_CELL_BYTES);
        cohi_row_text(row, described.value[row], cell[2], COHI_TABLE_CELL_BYTES);
        snprintf(cell[3], COHI_TABLE_CELL_BYTES, "%s", info->unit);
        snprintf(cell[4], COHI_TABLE_CELL_BYTES, "%s",
                 cohi_origin_word(host->findings[row].origin));
        snprintf(cell[5], COHI_TABLE_CELL_BYTES, "%s", info->what);
    }
    cohi_table_print(&table, "", stdout);
    cohi_table_free(&table);
    return 0;
}

/* ---- the command ---- */

/* Where it is saved. Nothing of what is there plays a part, but with --hosts, which keeps the rest. */
static int choose_file(const struct options *options, cohi_host_profile *host)
{
    const char *knob = getenv("COHORT_PROFILE");
    bool named = knob && *knob && strcmp(knob, "described") != 0;
    cohi_host_profile_read(!options->hosts   ? "fresh"
                           : options->output ? options->output
                           : named           ? knob
                                             : "",
                           host);
    if (options->output || (named && strcmp(knob, "fresh") != 0))
        snprintf(host->path, sizeof host->path, "%s", options->output ? options->output : knob);
    if (*host->path || options->dry_run)
        return 0;
    fprintf(stderr, "cohort tune: neither XDG_CACHE_HOME nor HOME is set; give --output FILE\n");
    return EXIT_FAILURE;
}

static int save(const cohi_host_profile *host)
{
    if (cohi_host_profile_save(host) != 0) {
        fprintf(stderr, "cohort tune: %s could not be written: %s\n", host->path, strerror(errno));
        return EXIT_FAILURE;
    }
    printf("\nsaved to %s\n", host->path);
    return 0;
}

static int measure_here(cohi_host_profile *host)
{
    measure_alone(host);
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    if (cohi_os_core_count() > 1)
        return measure_between(host);
    fprintf(stderr, "cohort tune: there is one core: what takes two ranks stays described\n");
    return 0;
}

static int is_worker(int argc, char **argv, const char *word)
{
    return argc == 2 && strcmp(argv[1], word) == 0;
}

int cohi_tool_tune(int argc, char **argv)
{
    static cohi_host_profile host;
    struct options options = {.output = NULL};
    int status;
    if (is_worker(argc, argv, "--worker"))
        return cohi_tune_worker();
    if (is_worker(argc, argv, "--hosts-worker"))
        return cohi_tune_hosts_worker();
    if (cohi_flags_only(&usage, argc, argv, &options, &status) != 0)
        return status;
    if (options.shell && !options.hosts) {
        fprintf(stderr, "cohort tune: --shell is of use with --hosts alone\n");
        return 2;
    }
    if (choose_file(&options, &host) != 0)
        return EXIT_FAILURE;
    cohi_bench_catch_signals();
    status = options.hosts ? measure_hosts(&options, &host) : measure_here(&host);
    if (status != 0)
        return status;
    if (print(&host) != 0)
        return EXIT_FAILURE;
    return options.dry_run ? 0 : save(&host);
}
