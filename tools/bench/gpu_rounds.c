#include "bench/gpu.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { THIS_THREAD = 1, REPEATS_MOST = 200, TRIES = 3 };

#define ROUND_NS (1.5 * (double)COHI_NS_PER_MS)

/* Where processes take turns the card changes hands some hundred times in a round: with a few times the figure would be
 * whose turn it was at the beginning. */
#define TURNS_ROUND_NS (30 * (double)COHI_NS_PER_MS)

const char *const cohi_gpu_way_names[COHI_GPU_WAYS] = {"stream", "graph", "host"};

/* One of those that take turns. */
typedef struct contender {
    cohi_gpu_enqueue *enqueue;
    cohi_gpu_way way;
    uint64_t repeats;
    void *program; /* of way graph */
    double *times; /* [rounds], ns of one operation */
} contender;

static coh_status enqueue_all(cohi_gpu_rank *self, const contender *one)
{
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < one->repeats && status == COH_OK; i++)
        status = one->enqueue(self);
    return status;
}

/* ---- a round ---- */

static coh_status run_on_stream(cohi_gpu_rank *self, const contender *one, double *nanoseconds)
{
    float milliseconds = 0;
    const cohi_card_driver *driver = self->driver;
    coh_status status = coh_cuda_barrier(self->team, self->stream); /* all begin together */
    if (status == COH_OK)
        status =
            cohi_card_status(driver->event_record(self->events[0], self->stream), "cuEventRecord");
    if (status == COH_OK)
        status = one->program ? cohi_card_status(driver->graph_launch(one->program, self->stream),
                                                 "cuGraphLaunch")
                              : enqueue_all(self, one);
    if (status == COH_OK)
        status =
            cohi_card_status(driver->event_record(self->events[1], self->stream), "cuEventRecord");
    if (status == COH_OK)
        status = cohi_card_status(driver->synchronize(self->stream), "cuStreamSynchronize");
    if (status == COH_OK)
        status = coh_cuda_status(self->world);
    if (status == COH_OK)
        status =
            cohi_card_status(driver->event_elapsed(&milliseconds, self->events[0], self->events[1]),
                             "cuEventElapsedTime");
    *nanoseconds = (double)milliseconds * COHI_NS_PER_MS / (double)one->repeats;
    return status;
}

static coh_status run_by_host(cohi_gpu_rank *self, const contender *one, double *nanoseconds)
{
    uint64_t start = cohi_now_ns();
    coh_status status = enqueue_all(self, one);
    if (status == COH_OK && one->enqueue == cohi_gpu_copy)
        status = cohi_card_status(self->driver->synchronize(self->stream), "cuStreamSynchronize");
    *nanoseconds = (double)(cohi_now_ns() - start) / (double)one->repeats;
    return status;
}

static coh_status run_round(cohi_gpu_rank *self, const contender *one, double *nanoseconds)
{
    coh_status status = coh_barrier(self->world);
    if (status != COH_OK)
        return status;
    return one->way == COHI_GPU_HOST ? run_by_host(self, one, nanoseconds)
                                     : run_on_stream(self, one, nanoseconds);
}

/* ---- how many make a round ---- */

/* Rank 0 decides. The first rounds are not typical. */
static coh_status choose_repeats(cohi_gpu_rank *self, contender *one)
{
    double each = 0, round = self->sharing == COH_CUDA_TURNS ? TURNS_ROUND_NS : ROUND_NS;
    coh_status status = COH_OK;
    one->repeats = 2;
    for (int i = 0; i < TRIES && status == COH_OK; i++)
        status = run_round(self, one, &each);
    double wanted = each > 0 ? round / each : 1;
    uint64_t repeats = wanted < 1 ? 1 : wanted > REPEATS_MOST ? REPEATS_MOST : (uint64_t)wanted;
    if (status == COH_OK)
        status = coh_broadcast(self->team, COH_U64, &repeats, &one->repeats, 1, 0);
    return status;
}

static coh_status capture(cohi_gpu_rank *self, contender *one)
{
    coh_status status = cohi_card_status(self->driver->capture_begin(self->stream, THIS_THREAD),
                                         "cuStreamBeginCapture");
    if (status != COH_OK)
        return status;
    status = enqueue_all(self, one);
    coh_status ended = cohi_card_captured(self->stream, &one->program);
    return status == COH_OK ? ended : status;
}

/* The number of repeats is found on the stream, before they are captured. */
static coh_status prepare(cohi_gpu_rank *self, contender *one)
{
    coh_status status = choose_repeats(self, one);
    if (status == COH_OK && one->way == COHI_GPU_GRAPH)
        status = capture(self, one);
    return status;
}

/* ---- all of it ---- */

enum { OURS, COPY, PEER, CONTENDERS };

static void summarize(const cohi_gpu_rank *self, const contender *all, int index, double factor,
                      const char *name, cohi_bench_figure *figure)
{
    size_t rounds = (size_t)self->rounds;
    double *sorted = malloc(2 * rounds * sizeof *sorted), *ratios = sorted + rounds;
    cohi_bench_figure of_ratios;
    if (!sorted)
        return;
    for (size_t i = 0; i < rounds; i++) {
        sorted[i] = all[index].times[i] * factor;
        ratios[i] = sorted[i] / all[OURS].times[i];
    }
    cohi_bench_spread(sorted, rounds, figure);
    cohi_bench_spread(ratios, rounds, &of_ratios);
    figure->name = name;
    figure->fraction = of_ratios.median;
    free(sorted);
}

static coh_status run_all(cohi_gpu_rank *self, contender *all, int count)
{
    coh_status status = COH_OK;
    for (uint64_t round = 0; round < self->rounds && status == COH_OK; round++)
        for (int turn = 0; turn < count && status == COH_OK; turn++) {
            contender *one = &all[(round + (uint64_t)turn) % (uint64_t)count];
            status = run_round(self, one, &one->times[round]);
        }
    return status;
}

coh_status cohi_gpu_measure(cohi_gpu_rank *self, const cohi_gpu_case *row, cohi_gpu_way way,
                            cohi_bench_result *result, cohi_bench_figure *peer)
{
    int count = way == COHI_GPU_STREAM && row->peer && self->nvshmem ? CONTENDERS : PEER;
    contender all[CONTENDERS] = {{way == COHI_GPU_HOST ? row->host : row->ours, way, 0, NULL, NULL},
                                 {cohi_gpu_copy, way, 0, NULL, NULL},
                                 {row->peer, way, 0, NULL, NULL}};
    double *times = calloc(CONTENDERS * (size_t)self->rounds, sizeof *times);
    coh_status status = times ? COH_OK : coh_fail(COH_NO_MEMORY, "no memory for the rounds");
    for (int i = 0; i < count && status == COH_OK; i++) {
        all[i].times = times + (size_t)i * self->rounds;
        status = prepare(self, &all[i]);
    }
    if (status == COH_OK)
        status = run_all(self, all, count);
    for (int i = 0; i < count; i++)
        if (all[i].program)
            (void)self->driver->program_free(all[i].program);
    if (status == COH_OK) {
        double turn = row->round_trips ? 0.5 : 1;
        for (uint64_t i = 0; i < self->rounds; i++)
            all[OURS].times[i] *= turn;
        result->count = 2;
        result->best = 1;
        summarize(self, all, OURS, 1, "cohort", &result->figures[0]);
        summarize(self, all, COPY, cohi_gpu_copy_share(self), "copy on the card",
                  &result->figures[1]);
        if (count == CONTENDERS)
            summarize(self, all, PEER, turn, "nvshmem", peer);
    }
    free(times);
    return status;
}
