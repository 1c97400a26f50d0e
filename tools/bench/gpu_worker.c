#include "bench/gpu.h"

#include "json_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FULL_ROUNDS = 15,
    QUICK_ROUNDS = 5,
    SHARE = 6 /* of the card's free memory for all ranks */
};

static const uint64_t ALIGNMENT = 512;

/* ---- lines for the parent ---- */

static void emit(const char *key, json_t *value)
{
    json_t *line = json_pack("{s:o}", key, value);
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static void emit_card(const cohi_gpu_rank *self)
{
    static const char *const modes[] = {"one rank alone", "threads of one process",
                                        "processes under MPS", "processes that take turns"};
    coh_cuda_card card = {.size = sizeof card};
    if (coh_cuda_query(self->device, &card) != COH_OK)
        return;
    emit("card", json_pack("{s:i, s:o, s:i, s:i, s:I, s:s}", "ranks", self->size, "name",
                           cohi_json_text(card.name), "driver", card.driver, "multiprocessors",
                           card.multiprocessors, "memory", (json_int_t)card.memory, "sharing",
                           modes[self->sharing]));
}

static void emit_result(const cohi_gpu_case *row, cohi_gpu_way way, const cohi_bench_result *found,
                        const cohi_bench_figure *peer)
{
    json_t *result = cohi_bench_result_json(found);
    json_object_set_new(result, "benchmark",
                        json_sprintf("gpu_%s_%s", row->name, cohi_gpu_way_names[way]));
    json_object_set_new(result, "what", json_string(row->what));
    json_object_set_new(result, "limit_is", json_string(row->limit));
    if (peer->median > 0)
        json_object_set_new(result, "peers",
                            json_pack("{s:{s:s, s:f, s:f, s:f, s:f}}", "nvshmem", "name", "nvshmem",
                                      "median_ns", peer->median, "low_ns", peer->low, "high_ns",
                                      peer->high, "ratio",
                                      found->figures[0].median / peer->median));
    emit("result", result);
}

/* ---- memory ---- */

static coh_status fill(cohi_gpu_rank *self, char *memory, uint64_t bytes)
{
    enum { PIECE = 1 << 20 };
    float *pattern = malloc(PIECE);
    int error = 0;
    if (!pattern)
        return coh_fail(COH_NO_MEMORY, "no memory for a pattern of %d bytes", PIECE);
    for (size_t i = 0; i < PIECE / sizeof *pattern; i++)
        pattern[i] = (float)(self->rank + 1);
    for (uint64_t at = 0; at < bytes && error == 0; at += PIECE)
        error = self->driver->copy(memory + at, pattern, bytes - at < PIECE ? bytes - at : PIECE);
    free(pattern);
    return cohi_card_status(error, "cuMemcpy");
}

static coh_status make_private(cohi_gpu_rank *self, uint64_t most)
{
    uint64_t bytes = most * (uint64_t)self->size;
    bytes = bytes < COHI_GPU_COPY_MOST ? bytes : COHI_GPU_COPY_MOST;
    if (self->rank > 0)
        return COH_OK;
    int error = self->driver->allocate((void **)&self->from, bytes);
    if (error == 0)
        error = self->driver->allocate((void **)&self->to, bytes);
    coh_status status = cohi_card_status(error, "cuMemAlloc");
    return status == COH_OK ? fill(self, self->from, bytes) : status;
}

static coh_status make_peers(cohi_gpu_rank *self, uint64_t most)
{
    if (!self->nvshmem)
        return COH_OK;
    self->peer_source = self->nvshmem->align(ALIGNMENT, most);
    self->peer_target = self->nvshmem->align(ALIGNMENT, most);
    self->peer_signal = self->nvshmem->align(ALIGNMENT, sizeof *self->peer_signal);
    if (!self->peer_source || !self->peer_target || !self->peer_signal)
        return coh_fail(COH_NO_MEMORY, "NVSHMEM has no memory for two buffers of %llu bytes",
                        (unsigned long long)most);
    coh_status status = fill(self, self->peer_source, most);
    return status == COH_OK ? cohi_card_status(
               self->driver->fill(self->peer_signal, 0, sizeof(uint64_t)), "cuMemsetD8")
                            : status;
}

static coh_status make_memory(cohi_gpu_rank *self, coh_heap *heap, uint64_t most)
{
    coh_status status = coh_heap_malloc(heap, most, (void **)&self->source);
    if (status == COH_OK)
        status = coh_heap_malloc(heap, most, (void **)&self->target);
    if (status == COH_OK)
        status = coh_heap_calloc(heap, 1, sizeof *self->signal, (void **)&self->signal);
    if (status == COH_OK)
        status = fill(self, self->source, most);
    if (status == COH_OK)
        status = make_private(self, most);
    if (status == COH_OK)
        status = make_peers(self, most);
    return status == COH_OK ? coh_barrier(self->world) : status;
}

/* ---- points ---- */

static uint64_t largest_of(const cohi_gpu_options *options)
{
    uint64_t most = 0;
    for (size_t i = 0; i < options->size_count; i++)
        most = options->sizes[i] > most ? options->sizes[i] : most;
    return most;
}

/* What fits beside the other ranks' and the copies'. */
static uint64_t largest_that_fits(cohi_gpu_rank *self, const cohi_gpu_options *options)
{
    size_t free_bytes = 0, total = 0;
    uint64_t most = 8, room = 0;
    (void)self->driver->free_bytes(&free_bytes, &total);
    room = free_bytes / (SHARE * (uint64_t)self->size);
    (void)coh_all_reduce(self->team, COH_U64, COH_MIN, &room, &room, 1);
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] <= room && options->sizes[i] > most)
            most = options->sizes[i];
    return most;
}

static int is_measured(const cohi_gpu_rank *self, const cohi_gpu_case *row, cohi_gpu_way way)
{
    if (self->size < row->least_ranks || (way == COHI_GPU_HOST && !row->host))
        return 0;
    return way != COHI_GPU_GRAPH || (self->sharing != COH_CUDA_TURNS && !row->round_trips);
}

/* The result of one call is looked at before calls are timed. */
static coh_status check(cohi_gpu_rank *self, const cohi_gpu_case *row)
{
    coh_status status = COH_OK;
    if (!row->check)
        return COH_OK;
    status = row->ours(self);
    if (status == COH_OK)
        status = cohi_card_status(self->driver->synchronize(self->stream), "cuStreamSynchronize");
    if (status == COH_OK)
        status = coh_cuda_status(self->world);
    return status == COH_OK ? row->check(self) : status;
}

static coh_status run_point(cohi_gpu_rank *self, const cohi_gpu_case *row, cohi_gpu_way way,
                            uint64_t bytes)
{
    cohi_bench_result result = {.benchmark = row->name, .ranks = self->size, .bytes = bytes};
    cohi_bench_figure peer = {0};
    uint64_t moved = bytes ? bytes : 8;
    self->bytes = moved;
    self->dtype = row->dtype;
    self->copied = (uint64_t)row->copies((double)moved, (double)self->size);
    coh_status status = coh_barrier(self->world);
    if (status == COH_OK && way == COHI_GPU_STREAM)
        status = check(self, row);
    if (status == COH_OK)
        status = cohi_gpu_measure(self, row, way, &result, &peer);
    if (status == COH_OK && self->rank == 0)
        emit_result(row, way, &result, &peer);
    return status;
}

static coh_status run_row(cohi_gpu_rank *self, const cohi_gpu_options *options,
                          const cohi_gpu_case *row, cohi_gpu_way way, uint64_t most)
{
    coh_status status = COH_OK;
    uint64_t least = coh_dtype_size(row->dtype) * (uint64_t)self->size;
    if (!row->sized)
        return run_point(self, row, way, 0);
    for (size_t i = 0; i < options->size_count && status == COH_OK; i++)
        if (options->sizes[i] <= most && (row->pair || options->sizes[i] >= least))
            status = run_point(self, row, way, options->sizes[i]);
    return status;
}

static coh_status run_rows(cohi_gpu_rank *self, const cohi_gpu_options *options, uint64_t most)
{
    const cohi_gpu_case *row;
    coh_status status = COH_OK;
    for (size_t i = 0; (row = cohi_gpu_case_at(i)) && status == COH_OK; i++)
        for (int way = 0; way < COHI_GPU_WAYS && status == COH_OK; way++)
            if ((options->chosen >> i & 1) && (options->ways >> way & 1)
                && is_measured(self, row, (cohi_gpu_way)way))
                status = run_row(self, options, row, (cohi_gpu_way)way, most);
    return status;
}

/* ---- a rank ---- */

static coh_status open_card(cohi_gpu_rank *self)
{
    coh_status status = coh_cuda_device(self->world, &self->device, &self->sharing);
    self->driver = status == COH_OK ? cohi_card_open() : NULL;
    if (!self->driver)
        return status == COH_OK ? COH_NOT_AVAILABLE : status;
    status = cohi_card_use(self->device);
    if (status == COH_OK)
        status = cohi_card_status(self->driver->stream_create(&self->stream, 1), "cuStreamCreate");
    for (int i = 0; i < 2 && status == COH_OK; i++)
        status = cohi_card_status(self->driver->event_create(&self->events[i], 0), "cuEventCreate");
    return status;
}

static void open_peer(cohi_gpu_rank *self, const cohi_gpu_options *options, uint64_t most)
{
    char why[512] = "its ranks are processes, and these are threads";
    if (options->no_peers)
        return;
    uint64_t heap = strcmp(options->engine, "nvshmem") == 0 ? 0 : 2 * most + (64 << 20);
    if (strcmp(options->engine, "threads") != 0)
        self->nvshmem = cohi_gpu_nvshmem_open(self->world, heap, why, sizeof why);
    if (self->rank > 0)
        return;
    json_t *peer = json_pack("{s:s, s:i}", "name", "nvshmem", "ranks", self->size);
    if (self->nvshmem) {
        json_object_set_new(peer, "version", json_string(self->nvshmem->version));
        json_object_set_new(peer, "command", json_string("in the same processes, in turns"));
    } else {
        json_object_set_new(peer, "why", cohi_json_text(why));
    }
    emit("peer", peer);
}

static void close_card(cohi_gpu_rank *self)
{
    if (self->nvshmem) {
        self->nvshmem->free(self->peer_source);
        self->nvshmem->free(self->peer_target);
        self->nvshmem->free(self->peer_signal);
        cohi_gpu_nvshmem_close(self->nvshmem);
    }
    (void)self->driver->free(self->from);
    (void)self->driver->free(self->to);
    (void)self->driver->stream_destroy(self->stream);
}

static coh_status run_rank(coh_world *world, const cohi_gpu_options *options)
{
    cohi_gpu_rank self = {.world = world,
                          .team = coh_team_world(world),
                          .rank = coh_rank(world),
                          .size = coh_size(world)};
    coh_heap_options how = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    how.kind = COH_HEAP_CUDA;
    if (strcmp(options->engine, "nvshmem") == 0) /* it does not grow */
        how.bytes = 2 * largest_of(options) + (64 << 20);
    self.rounds = options->rounds ? options->rounds : options->quick ? QUICK_ROUNDS : FULL_ROUNDS;
    coh_status status = coh_heap_create(world, &how, &heap);
    if (status == COH_OK)
        status = open_card(&self);
    if (status != COH_OK)
        return status;
    if (self.rank == 0)
        emit_card(&self);
    uint64_t most = largest_that_fits(&self, options);
    open_peer(&self, options, most);
    status = make_memory(&self, heap, most);
    if (status == COH_OK)
        status = run_rows(&self, options, most);
    if (status != COH_OK)
        return status;
    close_card(&self);
    status = coh_heap_destroy(heap);
    coh_status left = coh_finalize(world);
    return status == COH_OK ? left : status;
}

/* ---- as threads, as processes ---- */

struct thread_rank {
    coh_world *world;
    const cohi_gpu_options *options;
    pthread_t thread;
};

/* The first that fails ends the process: others' streams may wait for it. */
static void *thread_main(void *arg)
{
    struct thread_rank *self = arg;
    if (run_rank(self->world, self->options) != COH_OK) {
        fprintf(stderr, "cohort bench gpu: %s\n", coh_last_error());
        exit(EXIT_FAILURE);
    }
    return NULL;
}

static coh_status run_threads(const cohi_gpu_options *options)
{
    static struct thread_rank ranks[COHI_BENCH_RANKS];
    static coh_world *worlds[COHI_BENCH_RANKS];
    int count = (int)options->ranks[0];
    coh_options how = COH_OPTIONS_INIT;
    how.engine = options->engine;
    coh_status status = coh_init_threads(count, &how, worlds);
    for (int i = 0; i < count && status == COH_OK; i++) {
        ranks[i] = (struct thread_rank){.world = worlds[i], .options = options};
        if (pthread_create(&ranks[i].thread, NULL, thread_main, &ranks[i]) != 0) {
            fprintf(stderr, "cohort bench gpu: thread %d of %d could not be started\n", i, count);
            exit(EXIT_FAILURE);
        }
    }
    for (int i = 0; i < count && status == COH_OK; i++)
        pthread_join(ranks[i].thread, NULL);
    return status;
}

static coh_status run_process(const cohi_gpu_options *options)
{
    coh_options how = COH_OPTIONS_INIT;
    coh_world *world;
    char why[512];
    how.engine = options->engine;
    if (!options->no_peers) /* if it is not there, open_peer tells */
        (void)cohi_gpu_nvshmem_prepare((int)options->ranks[0], why, sizeof why);
    coh_status status = coh_init(&how, &world);
    return status == COH_OK ? run_rank(world, options) : status;
}

int cohi_gpu_worker(const cohi_gpu_options *options)
{
    int threads = strcmp(options->engine, "threads") == 0;
    coh_status status = threads ? run_threads(options) : run_process(options);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort bench gpu: %s\n", coh_last_error());
    return EXIT_FAILURE;
}
