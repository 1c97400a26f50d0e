/*
 * Ranks that a card does not map, which engine nvshmem serves by NVSHMEM's own calls: docs/semantics.md S5, S7, S27.
 * COHORT_TEST_NVSHMEM_REACH=calls makes all ranks such ones.
 */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 40000, ROUNDS = 20 };

static bool is_by_calls(test_rank *self)
{
    const char *reach = getenv("COHORT_TEST_NVSHMEM_REACH");
    bool so = strcmp(self->engine, "nvshmem") == 0 && reach && strcmp(reach, "calls") == 0;
    if (!so)
        test_skip("for engine nvshmem with COHORT_TEST_NVSHMEM_REACH=calls");
    return so;
}

/* What goes around the ring on the stream arrives, blocks of it too, and is read back. */
static void puts_and_gets_by_calls(test_rank *self)
{
    gpu_rank gpu;
    unsigned char *area, *source, *back, mine[BYTES];
    uint64_t *signals;
    void *there;
    if (!is_by_calls(self))
        return;
    CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&area));
    CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&source));
    CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&back));
    CHECK_OK(coh_calloc(self->world, 1, sizeof *signals, (void **)&signals));
    if (!gpu_open(self, &gpu))
        return;
    if (self->size > 1)
        CHECK_EQ(coh_ptr(self->world, area, gpu_right(self), &there), COH_UNSUPPORTED);
    for (uint64_t round = 1; round <= ROUNDS && !test_failed(); round++) {
        size_t bytes = (size_t)(round * 7919 % BYTES) + 1;
        test_fill(mine, BYTES, (uint64_t)self->rank + round);
        test_store(self, source, mine, BYTES);
        CHECK_OK(coh_cuda_put_signal(self->world, area, source, bytes, signals, round,
                                     COH_SIGNAL_SET, gpu_right(self), gpu.stream));
        CHECK_OK(
            coh_cuda_wait_until(self->world, signals, COH_GE, round, gpu_left(self), gpu.stream));
        CHECK_OK(coh_cuda_get(self->world, back, area, bytes, gpu_right(self), gpu.stream));
        CHECK_OK(coh_cuda_quiet(self->world, gpu.stream));
        gpu_finish(self, &gpu);
        test_load(self, mine, area, bytes);
        CHECK_EQ(test_differs(mine, bytes, (uint64_t)gpu_left(self) + round), bytes);
        test_load(self, mine, back, bytes);
        CHECK_EQ(test_differs(mine, bytes, (uint64_t)self->rank + round), bytes);
        CHECK_OK(coh_barrier(self->world));
    }
    gpu_close(&gpu);
}

/* The host's put and get between heaps on cards, and what is refused on a stream. */
static void the_rest_by_calls(test_rank *self)
{
    gpu_rank gpu;
    unsigned char *area, *source, mine[BYTES];
    uint64_t *word, one = 1, found = 0;
    if (!is_by_calls(self))
        return;
    CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&area));
    CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&source));
    CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word));
    if (!gpu_open(self, &gpu))
        return;
    test_fill(mine, BYTES, (uint64_t)self->rank);
    test_store(self, source, mine, BYTES);
    CHECK_OK(coh_put(self->world, area, source, BYTES, gpu_right(self)));
    CHECK_OK(coh_barrier(self->world));
    test_load(self, mine, area, BYTES);
    CHECK_EQ(test_differs(mine, BYTES, (uint64_t)gpu_left(self)), BYTES);
    CHECK_OK(coh_cuda_put_strided(self->world, area, 100, source, 200, 64, 30, gpu_right(self),
                                  gpu.stream));
    CHECK_OK(coh_cuda_atomic(self->world, COH_ATOMIC_ADD, COH_U64, word, &one, NULL, NULL,
                             gpu_right(self), gpu.stream));
    CHECK_OK(coh_cuda_barrier(coh_team_world(self->world), gpu.stream));
    gpu_finish(self, &gpu);
    test_load(self, &found, word, sizeof found);
    CHECK_EQ(found, 1);
    void *private = gpu_private(&gpu, BYTES);
    if (self->size > 1) {
        CHECK_REFUSED(coh_cuda_put(self->world, area, private, 64, gpu_right(self), gpu.stream),
                      COH_UNSUPPORTED, "private|NVSHMEM");
        CHECK_REFUSED(coh_cuda_atomic(self->world, COH_ATOMIC_XOR, COH_U64, word, &one, NULL, NULL,
                                      gpu_right(self), gpu.stream),
                      COH_UNSUPPORTED, "without a stream");
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(gpu.driver->free(private), 0);
    gpu_close(&gpu);
}

static void collective(test_rank *self, gpu_rank *gpu, coh_collective_kind kind, float *source,
                       float *target, size_t count)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = kind;
    call.team = coh_team_world(self->world);
    call.source = source;
    call.target = target;
    call.count = count;
    CHECK_OK(coh_cuda_collective(&call, gpu->stream));
    gpu_finish(self, gpu);
}

/* Every element is what the ranks' numbers make of it. */
static void collectives_by_calls(test_rank *self)
{
    enum { COUNT = 1000 };
    gpu_rank gpu;
    float *source, *target, values[4 * COUNT];
    size_t all = (size_t)self->size * COUNT;
    float sum = (float)(self->size * (self->size + 1)) / 2;
    if (!is_by_calls(self))
        return;
    CHECK_OK(coh_calloc(self->world, all, sizeof *source, (void **)&source));
    CHECK_OK(coh_calloc(self->world, all, sizeof *target, (void **)&target));
    if (!gpu_open(self, &gpu))
        return;
    for (size_t i = 0; i < all; i++)
        values[i] = (float)(self->rank + 1);
    test_store(self, source, values, all * sizeof *values);
    CHECK_OK(coh_barrier(self->world));
    collective(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, source, target, COUNT);
    test_load(self, values, target, COUNT * sizeof *values);
    for (size_t i = 0; i < COUNT && !test_failed(); i++)
        CHECK(values[i] == sum);
    collective(self, &gpu, COH_COLLECTIVE_REDUCE_SCATTER, source, target, COUNT);
    test_load(self, values, target, COUNT * sizeof *values);
    for (size_t i = 0; i < COUNT && !test_failed(); i++)
        CHECK(values[i] == sum);
    for (int kind = 0; kind < 2; kind++) {
        collective(self, &gpu, kind ? COH_COLLECTIVE_ALL_TO_ALL : COH_COLLECTIVE_ALL_GATHER, source,
                   target, COUNT);
        test_load(self, values, target, all * sizeof *values);
        for (size_t i = 0; i < all && !test_failed(); i++)
            CHECK(values[i] == (float)(i / COUNT + 1));
    }
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
}

const test_case gpu_by_calls[] = {
    CASE(puts_and_gets_by_calls, "S5 S7 S27", ONE_HOST, GPU_SIZES),
    CASE(the_rest_by_calls, "S27 S31", ONE_HOST, GPU_SIZES),
    CASE(collectives_by_calls, "S36", ONE_HOST, GPU_SIZES),
};
GPU_COUNT(by_calls);
