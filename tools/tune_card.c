/*
 * tune_card.c - measures which way collectives on a card are fastest by their sizes: an all_reduce of two ranks that
 * share one, by packets, by scratch memory, and straight from the ranks' buffers.
 */
#include "tune.h"

#include "bench/bench.h"
#include "card.h"

#include "base/clock.h"
#include "coll/tuning.h"

#include <cohort-cuda.h>
#include <stdio.h>

enum { LEAST_LOG = 14, MOST_LOG = 22, SIZES = MOST_LOG - LEAST_LOG + 1, SAMPLES = 5, CALLS = 100 };

enum way { PACKETS, SCRATCH, DIRECT, WAYS };

static const cohi_card_tuning tunings[WAYS] = {
    [PACKETS] = {UINT32_MAX, UINT32_MAX}, [SCRATCH] = {0, UINT32_MAX}, [DIRECT] = {0, 0}};

struct bench {
    coh_world *world;
    const cohi_card_driver *driver;
    coh_cuda_stream stream;
    float *source, *target;
};

/* Nanoseconds of a call. */
static coh_status time_once(struct bench *bench, size_t bytes, double *each)
{
    coh_team *team = coh_team_world(bench->world);
    coh_status status = coh_barrier(bench->world);
    uint64_t start = cohi_now_ns();
    for (int i = 0; i < CALLS && status == COH_OK; i++)
        status = coh_cuda_all_reduce(team, COH_F32, COH_SUM, bench->source, bench->target,
                                     bytes / sizeof *bench->source, bench->stream);
    if (status == COH_OK)
        status = cohi_card_status(bench->driver->synchronize(bench->stream), "cuStreamSynchronize");
    *each = cohi_bench_each(status, start, CALLS);
    return status == COH_OK ? coh_cuda_status(bench->world) : status;
}

static coh_status time_way(struct bench *bench, enum way way, size_t bytes, double *each)
{
    double samples[SAMPLES];
    coh_status status = coh_barrier(bench->world);
    cohi_tuning_set_card(bench->world, tunings[way]);
    if (status == COH_OK)
        status = time_once(bench, bytes, each); /* the first is not typical */
    for (int i = 0; i < SAMPLES && status == COH_OK; i++)
        status = time_once(bench, bytes, &samples[i]);
    cohi_bench_figure figure;
    if (status == COH_OK)
        cohi_bench_spread(samples, SAMPLES, &figure);
    *each = status == COH_OK ? figure.median : 0;
    return status;
}

/* Packets up to where another way is faster; then the scratch, up to where it is so for the last time. */
static void tell(double (*times)[WAYS], int ranks)
{
    int packets = 0, direct = SIZES;
    while (packets < SIZES && times[packets][PACKETS] <= times[packets][SCRATCH]
           && times[packets][PACKETS] <= times[packets][DIRECT])
        packets++;
    while (direct > 0 && times[direct - 1][DIRECT] <= times[direct - 1][SCRATCH])
        direct--;
    size_t most = packets > 0 ? ((size_t)1 << (LEAST_LOG + packets - 1)) * (size_t)ranks : 0;
    printf("card_packets_to %zu\ncard_direct_from %zu\n", most, (size_t)1 << (LEAST_LOG + direct));
    fflush(stdout);
}

static coh_status measure(struct bench *bench)
{
    double times[SIZES][WAYS];
    coh_status status = COH_OK;
    for (int size = 0; size < SIZES; size++)
        for (int way = 0; way < WAYS && status == COH_OK; way++)
            status =
                time_way(bench, (enum way)way, (size_t)1 << (LEAST_LOG + size), &times[size][way]);
    if (status == COH_OK && coh_rank(bench->world) == 0)
        tell(times, coh_size(bench->world));
    return status;
}

static coh_status open_bench(struct bench *bench, coh_heap *heap, int device)
{
    size_t bytes = (size_t)1 << MOST_LOG;
    bench->driver = cohi_card_open();
    coh_status status = bench->driver ? cohi_card_use(device) : COH_NOT_AVAILABLE;
    if (status == COH_OK)
        status =
            cohi_card_status(bench->driver->stream_create(&bench->stream, 1), "cuStreamCreate");
    if (status == COH_OK)
        status = coh_heap_calloc(heap, 1, bytes, (void **)&bench->source);
    if (status == COH_OK)
        status = coh_heap_calloc(heap, 1, bytes, (void **)&bench->target);
    return status;
}

static coh_status say(const coh_world *world, const char *why)
{
    if (coh_rank(world) == 0)
        fprintf(stderr, "cohort tune: the rows of cards stay described: %s\n", why);
    return COH_OK;
}

coh_status cohi_tune_card(coh_world *world)
{
    struct bench bench = {.world = world};
    coh_heap_options how = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    coh_cuda_sharing sharing = COH_CUDA_ALONE;
    int cards = 0, device = 0;
    how.kind = COH_HEAP_CUDA;
    if (coh_cuda_count(&cards) != COH_OK || cards == 0)
        return COH_OK; /* most hosts have none */
    coh_status status = coh_heap_create(world, &how, &heap);
    if (status != COH_OK)
        return say(world, coh_last_error());
    status = coh_cuda_device(world, &device, &sharing);
    if (status == COH_OK && sharing == COH_CUDA_TURNS)
        return say(world, "processes take turns on the card; start nvidia-cuda-mps-control -d");
    if (status == COH_OK)
        status = open_bench(&bench, heap, device);
    if (status == COH_OK)
        status = measure(&bench);
    return status;
}
