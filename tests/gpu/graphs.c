/* Captured once, replayed many times: include/cohort-cuda.h; docs/semantics.md S41. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

enum { THIS_THREAD = 1 }; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */

static void launch(gpu_rank *gpu, void *program)
{
    CHECK_EQ(gpu->driver->graph_launch(program, gpu->stream), 0);
}

/* Where it cannot be, each call says so, and the capture goes on without it. */
static void refuses_capture(test_rank *self, gpu_rank *gpu, float *words)
{
    void *program = NULL;
    coh_team *team = coh_team_world(self->world);
    CHECK_EQ(gpu->driver->capture_begin(gpu->stream, THIS_THREAD), 0);
    const char *advice = gpu->sharing == COH_CUDA_TURNS ? "nvidia-cuda-mps-control" : "captur";
    CHECK_REFUSED(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 4, gpu->stream),
                  COH_UNSUPPORTED, advice);
    CHECK_STATUS(coh_cuda_barrier(team, gpu->stream), COH_UNSUPPORTED);
    CHECK_OK(cohi_card_captured(gpu->stream, &program));
    CHECK_EQ(gpu->driver->program_free(program), 0);
    CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 4, gpu->stream));
    gpu_finish(self, gpu);
}

/* Twenty sums of 4 KB, as a training step has them, with inputs that change between replays. */
static void sums_replayed(test_rank *self)
{
    enum { SUMS = 20, COUNT = 1024 };
    gpu_rank gpu;
    float *words, *mine = malloc(SUMS * COUNT * sizeof *mine);
    void *program = NULL;
    coh_team *team = coh_team_world(self->world);
    uint64_t replays = TEST_SANITIZED ? 50 : 1000;
    CHECK_OK(coh_malloc(self->world, 2 * SUMS * COUNT * sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    float *sources = words, *targets = words + SUMS * COUNT;
    if (!gpu_captures(self, &gpu)) {
        refuses_capture(self, &gpu, words);
        goto out;
    }
    CHECK_EQ(gpu.driver->capture_begin(gpu.stream, THIS_THREAD), 0);
    for (int i = 0; i < SUMS; i++)
        CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, sources + i * COUNT,
                                     targets + i * COUNT, COUNT, gpu.stream));
    if (!CHECK_OK(cohi_card_captured(gpu.stream, &program)))
        return;
    for (uint64_t replay = 0; replay < replays && !test_failed(); replay++) {
        for (size_t i = 0; i < SUMS * COUNT; i++)
            mine[i] = (float)((i * 7 + replay) % 1000) + (float)self->rank;
        CHECK_EQ(gpu.driver->copy(sources, mine, SUMS * COUNT * sizeof *mine), 0);
        CHECK_EQ(gpu.driver->synchronize(NULL), 0);
        launch(&gpu, program);
        gpu_finish(self, &gpu);
        CHECK_EQ(gpu.driver->copy(mine, targets, SUMS * COUNT * sizeof *mine), 0);
        float ranks = (float)(self->size * (self->size - 1) / 2);
        for (size_t i = 0; i < SUMS * COUNT; i++)
            if (!CHECK(mine[i] == (float)self->size * (float)((i * 7 + replay) % 1000) + ranks)) {
                test_fail("replay %llu, element %zu", (unsigned long long)replay, i);
                break;
            }
    }
    CHECK_EQ(gpu.driver->program_free(program), 0);
out:
    CHECK_OK(coh_barrier(self->world));
    free(mine);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

/* Every collective, put, signals that count, atomics and barriers in one graph, replayed without a wait between,
 * and calls outside of it before and after. */
static void everything_replayed(test_rank *self)
{
    enum { REPLAYS = 200, COUNT = 3000 };
    gpu_rank gpu;
    uint64_t *words, *counter, one = 1, found = 0, sum = 0;
    void *program = NULL;
    coh_team *team = coh_team_world(self->world);
    size_t n = (size_t)self->size;
    CHECK_OK(coh_calloc(self->world, (2 * n + 4) * COUNT, sizeof *words, (void **)&words));
    CHECK_OK(coh_calloc(self->world, 4, sizeof *counter, (void **)&counter));
    if (!gpu_open(self, &gpu))
        return;
    if (!gpu_captures(self, &gpu))
        goto out; /* sums_replayed shows what is said then */
    test_store(self, words, &one, sizeof one);
    CHECK_OK(coh_cuda_barrier(team, gpu.stream));
    CHECK_EQ(gpu.driver->capture_begin(gpu.stream, THIS_THREAD), 0);
    CHECK_OK(coh_cuda_atomic(self->world, COH_ATOMIC_ADD, COH_U64, &counter[0], &one, NULL, NULL,
                             gpu_right(self), gpu.stream));
    CHECK_OK(coh_cuda_put_signal(self->world, words + COUNT, words, 64, &counter[1], 1,
                                 COH_SIGNAL_ADD, gpu_right(self), gpu.stream));
    CHECK_OK(coh_cuda_barrier(team, gpu.stream));
    CHECK_OK(coh_cuda_wait_until(self->world, &counter[1], COH_GE, 1, gpu_left(self), gpu.stream));
    CHECK_OK(coh_cuda_all_reduce(team, COH_U64, COH_SUM, words, words + COUNT, COUNT, gpu.stream));
    CHECK_OK(coh_cuda_all_gather(team, COH_U64, words, words + 4 * COUNT, COUNT, gpu.stream));
    CHECK_OK(coh_cuda_reduce_scatter(team, COH_U64, COH_MAX, words + 4 * COUNT, words + 2 * COUNT,
                                     COUNT, gpu.stream));
    CHECK_OK(coh_cuda_all_to_all(team, COH_U64, words + 4 * COUNT, words + (4 + n) * COUNT, COUNT,
                                 gpu.stream));
    CHECK_OK(coh_cuda_broadcast(team, COH_U64, words + COUNT, words + 3 * COUNT, COUNT,
                                self->size - 1, gpu.stream));
    CHECK_OK(coh_cuda_all_reduce(team, COH_U64, COH_SUM, words, words, 1, gpu.stream));
    if (!CHECK_OK(cohi_card_captured(gpu.stream, &program)))
        return;
    for (int replay = 0; replay < REPLAYS; replay++)
        launch(&gpu, program);
    CHECK_OK(coh_cuda_all_reduce(team, COH_U64, COH_SUM, words, words, 1, gpu.stream));
    gpu_finish(self, &gpu);
    uint64_t wanted = 1;
    for (int replay = 0; replay <= REPLAYS; replay++)
        wanted *= (uint64_t)self->size; /* wraps alike */
    test_load(self, &found, words, sizeof found);
    CHECK_EQ(found, wanted);
    /* The last replay's broadcast gave all what the sum before it was. */
    test_load(self, &sum, words + 3 * COUNT, sizeof sum);
    test_load(self, &found, words + COUNT, sizeof found);
    CHECK_EQ(sum, found);
    for (int word = 0; word < 2; word++) {
        test_load(self, &found, &counter[word], sizeof found);
        CHECK_EQ(found, REPLAYS);
    }
    CHECK_OK(coh_get(self->world, &found, words + 3 * COUNT, sizeof found, gpu_right(self)));
    CHECK_EQ(found, sum);
    CHECK_EQ(gpu.driver->program_free(program), 0);
out:
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, counter));
    CHECK_OK(coh_free(self->world, words));
}

/* While one is captured, another stream for the same team is refused. A team of one waits for nobody, on any stream. */
static void capture_keeps_to_one_stream(test_rank *self)
{
    gpu_rank gpu, other;
    float *words;
    void *program = NULL;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, 8, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu) || !gpu_open(self, &other))
        return;
    if (gpu_captures(self, &gpu)) {
        CHECK_EQ(gpu.driver->capture_begin(gpu.stream, THIS_THREAD), 0);
        CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 8, gpu.stream));
        CHECK_STATUS(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 8, other.stream),
                     COH_UNSUPPORTED);
        CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 8, gpu.stream));
        CHECK_OK(cohi_card_captured(gpu.stream, &program));
        launch(&gpu, program);
        gpu_finish(self, &gpu);
        CHECK_EQ(gpu.driver->program_free(program), 0);
        CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 8, other.stream));
        gpu_finish(self, &other);
    }
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&other);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

const test_case gpu_graphs[] = {
    CASE(sums_replayed, "S41", ON_GPU, GPU_SIZES, .limit_s = 120),
    CASE(everything_replayed, "S41", ON_GPU, GPU_SIZES, .limit_s = 60),
    CASE(capture_keeps_to_one_stream, "S41 F17", ON_GPU, GPU_SIZES & ~SIZE(1)),
};
GPU_COUNT(graphs);
