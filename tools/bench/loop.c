/*
 * bench/loop.c - one case of `cohort bench pipeline`.
 *
 * The loops go over the same number of tiles, in turns, round by round: copies alone, by one
 * thread; computation alone, on a tile that is there already; those two at once, on two threads
 * that know nothing of each other; and the pipelined loop. What the third takes longer than the
 * first two is the machine's. The fourth may take less than the copies alone, since the thread that
 * computes copies while it would have to wait.
 */
#include "bench/pipeline.h"

#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES, COMPUTATION, APART, PIPELINED, LOOPS };

/* Each kind of work has the same core in all loops, since cores are not alike: on a shared host one
 * took up to a sixth longer for the same copies than another. */
enum { COMPUTING_CORE, COPYING_CORE };

typedef struct loop {
    coh_tiles tiles;
    coh_pipeline *pipeline;
    float *resident; /* a tile for the computation alone */
    size_t tile_bytes;
    uint64_t count;
    uint64_t pairs; /* of rows, that are multiplied for each tile */
    _Alignas(64) float factor[COHI_PRODUCT_INNER * COHI_PRODUCT_WIDE];
    float sums[2 * COHI_PRODUCT_WIDE];
    char *apart; /* tiles for the copies of the other thread, `depth` of them */
    uint64_t depth;
    coh_status copied; /* of the other thread, with its time and error message */
    uint64_t copy_ns;
    cohi_error error;
} loop;

/* ---- the loops ---- */

static coh_status compute_product(void *arg, size_t index, void *tile, size_t bytes)
{
    loop *self = arg;
    size_t rows = bytes / (COHI_PRODUCT_INNER * sizeof(float));
    (void)index;
    cohi_product(tile, rows < COHI_PRODUCT_ROWS ? rows : COHI_PRODUCT_ROWS, self->pairs,
                 self->factor, self->sums);
    return COH_OK;
}

static coh_status run_computation(loop *self, double *nanoseconds)
{
    uint64_t start = cohi_now_ns();
    coh_status status = COH_OK;
    for (uint64_t i = 0; status == COH_OK && i < self->count; i++)
        status = compute_product(self, i, self->resident, self->tile_bytes);
    *nanoseconds = (double)(cohi_now_ns() - start);
    return status;
}

static coh_status copy_tile(loop *self, uint64_t index)
{
    uint64_t at = index * self->tile_bytes;
    char *tile = self->apart + index % self->depth * self->tile_bytes;
    if (self->tiles.file)
        return coh_file_read(self->tiles.file, at, tile, self->tile_bytes);
    memcpy(tile, (const char *)self->tiles.memory + at, self->tile_bytes);
    return COH_OK;
}

static void *copy_tiles(void *arg)
{
    loop *self = arg;
    cohi_bench_move_to_core(COPYING_CORE);
    uint64_t start = cohi_now_ns();
    self->copied = COH_OK;
    for (uint64_t i = 0; self->copied == COH_OK && i < self->count; i++)
        self->copied = copy_tile(self, i);
    self->copy_ns = cohi_now_ns() - start;
    cohi_error_keep(&self->error);
    return NULL;
}

static coh_status start_copies(loop *self, pthread_t *thread)
{
    int error = pthread_create(thread, NULL, copy_tiles, self);
    return error ? cohi_fail_os(error, "starting a thread for the copies") : COH_OK;
}

static coh_status end_copies(loop *self, pthread_t thread)
{
    pthread_join(thread, NULL);
    if (self->copied != COH_OK)
        (void)cohi_fail_again(&self->error);
    return self->copied;
}

/* The thread's own time, without that of its start. */
static coh_status run_copies(loop *self, double *nanoseconds)
{
    pthread_t thread;
    coh_status status = start_copies(self, &thread);
    if (status == COH_OK)
        status = end_copies(self, thread);
    *nanoseconds = (double)self->copy_ns;
    return status;
}

static coh_status run_apart(loop *self, double *nanoseconds)
{
    pthread_t thread;
    coh_status status = start_copies(self, &thread);
    if (status != COH_OK)
        return status;
    status = run_computation(self, nanoseconds);
    coh_status copied = end_copies(self, thread);
    if ((double)self->copy_ns > *nanoseconds)
        *nanoseconds = (double)self->copy_ns;
    return status == COH_OK ? copied : status;
}

static coh_status run_pipelined(loop *self, double *nanoseconds)
{
    uint64_t start = cohi_now_ns();
    coh_status status = coh_pipeline_run(self->pipeline, &self->tiles, compute_product, self);
    *nanoseconds = (double)(cohi_now_ns() - start);
    return status;
}

static coh_status (*const loops[LOOPS])(loop *self, double *nanoseconds) = {
    [COPIES] = run_copies,
    [COMPUTATION] = run_computation,
    [APART] = run_apart,
    [PIPELINED] = run_pipelined,
};

/* ---- measuring ---- */

/* So many pairs of rows that the computation takes `share` of the time of the copies: the shortest
 * of a few tries of both. */
static coh_status balance(loop *self, double share)
{
    enum { TRIES = 5 };
    double copies = 1e18, computation = 1e18;
    self->pairs = 256;
    for (int i = 0; i < TRIES; i++) {
        double copy, compute;
        coh_status status = run_copies(self, &copy);
        if (status == COH_OK)
            status = run_computation(self, &compute);
        if (status != COH_OK)
            return status;
        copies = copy < copies ? copy : copies;
        computation = compute < computation ? compute : computation;
    }
    self->pairs = (uint64_t)(256 * share * copies / computation) + 1;
    return COH_OK;
}

static void summarize(double *samples, uint64_t rounds, cohi_loop_result *result)
{
    double *copy = samples + COPIES * rounds, *compute = samples + COMPUTATION * rounds;
    double *apart = samples + APART * rounds, *pipelined = samples + PIPELINED * rounds;
    double *ratio = samples + LOOPS * rounds, *of_apart = ratio + rounds;
    for (uint64_t i = 0; i < rounds; i++) {
        ratio[i] = pipelined[i] / (copy[i] > compute[i] ? copy[i] : compute[i]);
        of_apart[i] = pipelined[i] / apart[i];
    }
    cohi_bench_spread(copy, rounds, &result->copy);
    cohi_bench_spread(compute, rounds, &result->compute);
    cohi_bench_spread(apart, rounds, &result->apart);
    cohi_bench_spread(pipelined, rounds, &result->pipelined);
    cohi_bench_spread(ratio, rounds, &result->ratio);
    cohi_bench_spread(of_apart, rounds, &result->of_apart);
}

static coh_status measure(loop *self, uint64_t rounds, cohi_loop_result *result)
{
    double *samples = calloc(rounds * (LOOPS + 2), sizeof *samples);
    coh_status status = samples ? COH_OK : coh_fail(COH_NO_MEMORY, "no memory for the samples");
    for (uint64_t round = 0; status == COH_OK && round < rounds; round++) {
        for (int i = 0; status == COH_OK && i < LOOPS; i++) {
            int which = (int)((round + (uint64_t)i) % LOOPS);
            status = loops[which](self, &samples[(uint64_t)which * rounds + round]);
        }
    }
    if (status == COH_OK)
        summarize(samples, rounds, result);
    free(samples);
    return status;
}

static coh_status make_loop(const cohi_loop_options *options, coh_copier *copier, loop *self)
{
    coh_pipeline_options depth = {sizeof depth, (uint32_t)options->depth, NULL};
    self->tile_bytes = options->tile;
    self->count = options->bytes / options->tile;
    self->resident = aligned_alloc(4096, (options->tile + 4095) / 4096 * 4096);
    self->depth = options->depth;
    self->apart = calloc(options->depth, options->tile);
    if (!self->resident || !self->apart)
        return coh_fail(COH_NO_MEMORY, "no memory for tiles of %llu bytes",
                        (unsigned long long)options->tile);
    for (size_t i = 0; i < options->tile / sizeof(float); i++)
        self->resident[i] = 1;
    for (size_t i = 0; i < sizeof self->factor / sizeof *self->factor; i++)
        self->factor[i] = 0.5f;
    return coh_pipeline_create(copier, options->tile, &depth, &self->pipeline);
}

coh_status cohi_loop_measure(const cohi_loop_options *options, const void *memory, coh_file *file,
                             double share, cohi_loop_result *result)
{
    loop self = {.tiles = COH_TILES_INIT};
    coh_copier *copier;
    self.tiles.memory = file ? NULL : memory;
    self.tiles.file = file;
    self.tiles.bytes = options->bytes;
    cohi_bench_move_to_core(COPYING_CORE); /* the copier's worker comes along, and stays */
    coh_status status = coh_copier_create(NULL, &copier);
    cohi_bench_move_to_core(COMPUTING_CORE);
    if (status != COH_OK)
        return status;
    status = make_loop(options, copier, &self);
    if (status == COH_OK)
        status = balance(&self, share);
    if (status == COH_OK)
        status = measure(&self, options->rounds, result);
    (void)coh_pipeline_destroy(self.pipeline);
    (void)coh_copier_destroy(copier);
    free(self.resident);
    free(self.apart);
    return status;
}
