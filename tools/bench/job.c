/* bench/job.c - starts the ranks that measure, under the real launcher, and reads their lines. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS = 128, PATH_ROOM = 4096 };

/* A command line in the making. */
struct command {
    char *arguments[ARGUMENTS];
    size_t count;
    char self[PATH_ROOM];
    char ranks[24];
    char rounds[24];
    char load[24];
};

/* There is room for all that build_command can add; what is added outlives the command. */
static void add(struct command *command, const char *argument)
{
    if (command->count + 1 < ARGUMENTS)
        command->arguments[command->count++] = (char *)(uintptr_t)argument;
}

static int find_self(struct command *command)
{
    ssize_t length = readlink("/proc/self/exe", command->self, sizeof command->self - 1);
    if (length < 0) {
        fprintf(stderr, "cohort bench: /proc/self/exe cannot be read: %s\n", strerror(errno));
        return -1;
    }
    command->self[length] = '\0';
    return 0;
}

static void add_launcher(struct command *command, const cohi_bench_options *options)
{
    add(command, command->self);
    add(command, "run");
    add(command, "-n");
    add(command, command->ranks);
    if (!options->crowded) {
        add(command, "--bind");
        add(command, "core");
    }
}

static void add_worker(struct command *command, const cohi_bench_options *options)
{
    add(command, command->self);
    add(command, "bench");
    add(command, options->crowded ? "--worker-crowded" : "--worker");
    add(command, "-n");
    add(command, command->ranks);
    add(command, "--engine");
    add(command, options->engine);
    if (options->quick)
        add(command, "--quick");
    if (options->heap)
        add(command, "--heap");
    if (options->private)
        add(command, "--private");
    if (options->warm)
        add(command, "--warm");
    if (options->cold)
        add(command, "--cold");
    if (options->in_place)
        add(command, "--in-place");
    if (options->check)
        add(command, "--check");
    if (options->load) { /* how long a round takes depends on it */
        add(command, "--load");
        add(command, command->load);
    }
    if (options->dtype_text) {
        add(command, "--dtype");
        add(command, options->dtype_text);
    }
    if (options->rounds) {
        add(command, "--rounds");
        add(command, command->rounds);
    }
    if (options->size_text) {
        add(command, "--sizes");
        add(command, options->size_text);
    }
    if (options->against_text) { /* what is measured depends on whether peers are */
        add(command, "--against");
        add(command, options->against_text);
    }
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (options->chosen >> i & 1)
            add(command, row->name);
    }
}

static void build_command(struct command *command, const cohi_bench_options *options)
{
    snprintf(command->ranks, sizeof command->ranks, "%" PRIu64, options->ranks);
    snprintf(command->rounds, sizeof command->rounds, "%" PRIu64, options->rounds);
    snprintf(command->load, sizeof command->load, "%" PRIu64, options->load);
    if (strcmp(options->engine, "threads") != 0)
        add_launcher(command, options);
    add_worker(command, options);
    command->arguments[command->count] = NULL;
}

struct reader {
    json_t *results, *probes;
};

static void take_line(void *arg, const char *text)
{
    struct reader *reader = arg;
    json_t *line = json_loads(text, 0, NULL);
    json_t *result = json_object_get(line, "result"), *probe = json_object_get(line, "probe");
    const json_t *step = json_object_get(line, "step");
    if (step)
        cohi_bench_progress_step(json_string_value(json_object_get(step, "text")),
                                 json_number_value(json_object_get(step, "weight")));
    else if (probe)
        json_array_append(reader->probes, probe);
    else if (result)
        json_array_append(reader->results, result);
    else
        fprintf(stderr, "%s\n", text);
    json_decref(line);
}

int cohi_bench_job(const cohi_bench_options *options, json_t *results, json_t *probes)
{
    struct command command = {.count = 0};
    if (find_self(&command) != 0)
        return EXIT_FAILURE;
    build_command(&command, options);
    struct reader reader = {results, probes};
    cohi_bench_child child = {.arguments = command.arguments, .take = take_line, .arg = &reader};
    int status = cohi_bench_child_run(&child);
    if (status < 0)
        fprintf(stderr, "cohort bench: the job could not be started: %s\n", strerror(errno));
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}
