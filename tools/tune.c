/* tune.c - `cohort tune`: measures this host and saves what the choice of algorithms goes by. */
#include "tune.h"

#include "bench.h"
#include "command.h"
#include "flags.h"
#include "table.h"
#include "whole_file.h"

#include "base/error.h"
#include "base/os.h"
#include "coll/model.h"
#include "coll/tuning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

static const struct constant {
    const char *name;
    double otherwise;
    const char *unit;
    const char *what;
} constants[] = {
#define ONE(field, otherwise, unit, what) {#field, otherwise, unit, what},
    COHI_MODEL_TABLE(ONE)
#undef ONE
};

enum { CONSTANTS = sizeof constants / sizeof *constants };

struct options {
    const char *output;
    int dry_run;
};

static int take_output(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((struct options *)target)->output = value;
    return 0;
}

static int take_dry_run(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((struct options *)target)->dry_run = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"output", 'o', "FILE", "where to save (cohort/tuning in the user's configuration folder)",
     take_output},
    {"dry-run", 0, NULL, "print what was measured and save nothing", take_dry_run},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    "cohort tune",
    "[FLAGS...]",
    "Measures how fast lines, bytes and messages go between two ranks of this host, and saves\n"
    "what collectives choose their algorithms by. It takes some seconds, and a quiet machine.",
    flags,
    "Jobs read the file that COHORT_TUNING names, or the one in the configuration folder.",
};

/* ---- measuring ---- */

struct found {
    double value[CONSTANTS]; /* 0: not told */
};

static void take_line(void *arg, const char *line)
{
    struct found *found = arg;
    char name[32];
    double value;
    int took = sscanf(line, "%31s %lf", name, &value) == 2;
    for (size_t i = 0; took && i < CONSTANTS; i++) {
        if (strcmp(constants[i].name, name) == 0) {
            found->value[i] = value;
            return;
        }
    }
    fprintf(stderr, "%s\n", line);
}

static int measure(struct found *found)
{
    char self[PATH_ROOM];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        fprintf(stderr, "cohort tune: /proc/self/exe cannot be read: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    self[length] = '\0';
    char *arguments[] = {self,          (char[]){"run"},    (char[]){"-n"},
                         (char[]){"2"}, (char[]){"--bind"}, (char[]){"core"},
                         self,          (char[]){"tune"},   (char[]){"--worker"},
                         NULL};
    cohi_bench_child child = {.arguments = arguments, .take = take_line, .arg = found};
    int status = cohi_bench_child_run(&child);
    if (status < 0)
        fprintf(stderr, "cohort tune: the job could not be started: %s\n", strerror(errno));
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}

/* All of them, and such as could be. */
static int is_whole(const struct found *found)
{
    for (size_t i = 0; i < CONSTANTS; i++) {
        if (cohi_model_could_be(found->value[i]))
            continue;
        fprintf(stderr, "cohort tune: %s could not be measured\n", constants[i].name);
        return 0;
    }
    return 1;
}

/* ---- telling ---- */

static int print(const struct found *found)
{
    static const char *const titles[] = {"constant", "here", "built in", "unit", "what it is"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    cohi_table table;
    if (cohi_table_make(&table, titles, COLUMNS, CONSTANTS) != 0)
        return -1;
    for (size_t i = 0; i < CONSTANTS; i++) {
        cohi_table_row *row = &table.rows[i];
        snprintf(row->cell[0], COHI_CELL_BYTES, "%s", constants[i].name);
        snprintf(row->cell[1], COHI_CELL_BYTES, "%.4g", found->value[i]);
        snprintf(row->cell[2], COHI_CELL_BYTES, "%.4g", constants[i].otherwise);
        snprintf(row->cell[3], COHI_CELL_BYTES, "%s", constants[i].unit);
        snprintf(row->cell[4], COHI_CELL_BYTES, "%s", constants[i].what);
    }
    cohi_table_print(&table, "", stdout);
    cohi_table_free(&table);
    return 0;
}

/* ---- saving ---- */

/* The folders above the file, as far as they are missing. */
static int make_folders(const char *path)
{
    char folder[PATH_ROOM];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return 0;
}

static int write_constants(FILE *stream, const void *argument)
{
    const struct found *found = argument;
    fprintf(stream, "# Measured by cohort tune %s; made anew by the same command.\n",
            coh_version_string());
    for (size_t i = 0; i < CONSTANTS; i++)
        fprintf(stream, "# %s (%s)\n%s %.6g\n", constants[i].what, constants[i].unit,
                constants[i].name, found->value[i]);
    return ferror(stream) ? -1 : 0;
}

static int save_where_it_belongs(const struct options *options, const struct found *found)
{
    char path[PATH_ROOM];
    const char *knob = getenv("COHORT_TUNING");
    if (options->output)
        snprintf(path, sizeof path, "%s", options->output);
    else
        cohi_model_path(knob ? knob : "", path, sizeof path);
    if (!*path) {
        fprintf(stderr, "cohort tune: neither XDG_CONFIG_HOME nor HOME is set, or COHORT_TUNING is "
                        "off; give --output FILE\n");
        return EXIT_FAILURE;
    }
    if (make_folders(path) != 0 || cohi_whole_file_write(path, write_constants, found) != 0) {
        fprintf(stderr, "cohort tune: %s could not be written: %s\n", path, strerror(errno));
        return EXIT_FAILURE;
    }
    printf("\nsaved to %s\n", path);
    return 0;
}

int cohi_tool_tune(int argc, char **argv)
{
    struct options options = {NULL, 0};
    struct found found = {{0}};
    int status;
    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        return cohi_tune_worker();
    if (cohi_flags_only(&usage, argc, argv, &options, &status) != 0)
        return status;
    if (cohi_os_core_count() < 2) {
        fprintf(stderr, "cohort tune: two ranks need two cores, and there is one\n");
        return EXIT_FAILURE;
    }
    cohi_bench_catch_signals();
    status = measure(&found);
    if (status != 0)
        return status;
    if (!is_whole(&found) || print(&found) != 0)
        return EXIT_FAILURE;
    return options.dry_run ? 0 : save_where_it_belongs(&options, &found);
}
