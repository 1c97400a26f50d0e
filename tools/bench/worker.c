/* bench/worker.c - the ranks that measure: this process is one of them, or runs all as threads. */
#include "bench/bench.h"

#include "base/os.h"
#include "table.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL_ROUNDS = 21, QUICK_ROUNDS = 7 };

/* The largest size times how often its benchmark wants it. */
static uint64_t room_for(const cohi_bench_points *points)
{
    uint64_t most = cohi_os_page_bytes();
    for (size_t i = 0; i < points->count; i++) {
        uint64_t bytes = points->at[i].bytes * (uint64_t)points->at[i].row->room;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* One line, at once: the parent shows it while the next one is measured. */
static void emit(const char *key, json_t *value)
{
    json_t *line = json_pack("{s:o}", key, value);
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static void emit_step(const cohi_bench_point *point, int ranks)
{
    char size[32] = "", key[96];
    cohi_bench_point_key(point, key, sizeof key);
    if (point->bytes)
        cohi_bytes_text(point->bytes, size, sizeof size);
    emit("step",
         json_pack("{s:o, s:f}", "text",
                   json_sprintf("%s%s, %d ranks%s%s", key, point->variant.private ? "/private" : "",
                                ranks, point->bytes ? ", " : "", size),
                   "weight", cohi_bench_weight(point)));
}

/* One measurement, between barriers so that the ranks that only wait do so. */
static coh_status run_one(cohi_bench_rank *self, const cohi_bench_point *point)
{
    cohi_bench_result result = {.benchmark = point->row->name,
                                .ranks = self->size,
                                .bytes = point->bytes,
                                .collective = point->row->collective,
                                .variant = point->variant};
    if (self->rank == 0)
        emit_step(point, self->size);
    self->variant = point->variant;
    coh_status status = coh_barrier(self->world);
    if (status == COH_OK)
        status = point->row->run(self, point->bytes, &result);
    if (status == COH_OK)
        status = coh_barrier(self->world);
    if (status == COH_OK && self->rank == 0)
        emit("result", cohi_bench_result_json(&result));
    return status;
}

/* A cache line's way between the first two ranks, the fastest of a few rounds: what the machine is
 * like just now. */
static coh_status probe(cohi_bench_rank *self)
{
    enum { ROUNDS = 5, TURNS = 1000, SHARED_TURNS = 20 };
    cohi_bench_board *theirs;
    cohi_limit_pair pair;
    double best = 0;
    if (self->size < 2 || self->rank > 1)
        return COH_OK;
    coh_status status = cohi_bench_pair(self, !self->rank, &theirs, &pair);
    if (status != COH_OK)
        return status;
    const cohi_limit_turn_form *form = cohi_limit_turn_form_at(0);
    for (size_t i = 1; form->yields != self->crowded && cohi_limit_turn_form_at(i); i++)
        form = cohi_limit_turn_form_at(i);
    for (int i = 0; i < ROUNDS; i++) {
        double each =
            cohi_limit_turns(form, &pair, self->crowded || self->loaded ? SHARED_TURNS : TURNS);
        best = i == 0 || each < best ? each : best;
    }
    if (self->rank == 0)
        emit("probe", json_pack("{s:i, s:f}", "ranks", self->size, "line_ns", best));
    return COH_OK;
}

static coh_status run_points(cohi_bench_rank *self, const cohi_bench_points *points)
{
    coh_status status = probe(self);
    for (size_t i = 0; i < points->count && status == COH_OK; i++)
        status = run_one(self, &points->at[i]);
    return status;
}

/* Symmetric memory and private memory, all of it touched so that no page is missing later. */
static coh_status make_memory(cohi_bench_rank *self, uint64_t bytes)
{
    coh_status status = coh_malloc(self->world, bytes, (void **)&self->shared);
    if (status == COH_OK)
        status = coh_calloc(self->world, 1, sizeof *self->board, (void **)&self->board);
    if (status != COH_OK)
        return status;
    memset(self->shared, 1, bytes);
    if (cohi_os_map_private(bytes, cohi_os_page_bytes(), (void **)&self->private) != 0
        || cohi_os_commit_private(self->private, 0, bytes) != 0) {
        fprintf(stderr, "cohort bench: no memory for %llu bytes\n", (unsigned long long)bytes);
        return COH_NO_MEMORY;
    }
    memset(self->private, 2, bytes);
    return COH_OK;
}

static coh_status run_rank(coh_world *world, const cohi_bench_options *options)
{
    cohi_bench_rank self = {.world = world,
                            .rank = coh_rank(world),
                            .size = coh_size(world),
                            .crowded = options->crowded,
                            .loaded = options->load > 0};
    int few = options->quick || options->check || self.loaded;
    self.rounds = options->rounds ? options->rounds : few ? QUICK_ROUNDS : FULL_ROUNDS;
    cohi_bench_points points = cohi_bench_points_of(options);
    uint64_t bytes = room_for(&points);
    coh_status status = make_memory(&self, bytes);
    if (status == COH_OK)
        status = run_points(&self, &points);
    free(points.at);
    if (self.private)
        cohi_os_unmap(self.private, bytes);
    coh_status left = coh_finalize(world);
    return status == COH_OK ? left : status;
}

/* ---- as threads ---- */

struct thread_rank {
    coh_world *world;
    const cohi_bench_options *options;
    int index;
    pthread_t thread;
};

/* The first that fails ends the process, since others may be spinning on its line. */
static void *thread_main(void *arg)
{
    struct thread_rank *self = arg;
    if (!self->options->crowded)
        cohi_bench_move_to_core(self->index);
    if (run_rank(self->world, self->options) != COH_OK) {
        fprintf(stderr, "cohort bench: %s\n", coh_last_error());
        exit(EXIT_FAILURE);
    }
    return NULL;
}

static coh_status run_threads(const cohi_bench_options *options)
{
    static struct thread_rank ranks[COHI_BENCH_RANKS];
    static coh_world *worlds[COHI_BENCH_RANKS];
    int count = (int)options->ranks;
    coh_options how = COH_OPTIONS_INIT;
    how.engine = options->engine;
    coh_status status = coh_init_threads(count, &how, worlds);
    if (status != COH_OK)
        return status;
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct thread_rank){.world = worlds[i], .options = options, .index = i};
        if (pthread_create(&ranks[i].thread, NULL, thread_main, &ranks[i]) != 0) {
            fprintf(stderr, "cohort bench: thread %d of %d could not be started\n", i, count);
            exit(EXIT_FAILURE);
        }
    }
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    return COH_OK;
}

/* ---- as processes ---- */

static coh_status run_process(const cohi_bench_options *options)
{
    coh_options how = COH_OPTIONS_INIT;
    how.engine = options->engine;
    coh_world *world;
    coh_status status = coh_init(&how, &world);
    return status == COH_OK ? run_rank(world, options) : status;
}

int cohi_bench_worker(const cohi_bench_options *options)
{
    int threads = strcmp(options->engine, "threads") == 0;
    coh_status status = threads ? run_threads(options) : run_process(options);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort bench: %s\n", coh_last_error());
    return EXIT_FAILURE;
}
