/* Signals, waits and atomics on a stream: docs/semantics.md S7, S8, S12, S31. */
#include "gpu.h"

#include <string.h>

/* All rounds are enqueued at once; the host waits at the end. */
static void signals_on_a_stream(test_rank *self)
{
    enum { ROUNDS = 50, BYTES = 5000 };
    gpu_rank gpu;
    unsigned char *data, *source, mine[BYTES];
    uint64_t *signals;
    CHECK_OK(coh_malloc(self->world, ROUNDS * BYTES, (void **)&data));
    CHECK_OK(coh_malloc(self->world, BYTES, (void **)&source));
    CHECK_OK(coh_calloc(self->world, 2, sizeof *signals, (void **)&signals));
    test_fill(mine, BYTES, (uint64_t)self->rank);
    test_store(self, source, mine, BYTES);
    if (!gpu_open(self, &gpu))
        return;
    for (uint64_t round = 1; round <= ROUNDS && !test_failed(); round++) {
        size_t bytes = (size_t)(round * 1237 % BYTES);
        coh_signal_op op = round % 2 ? COH_SIGNAL_ADD : COH_SIGNAL_SET;
        uint64_t value = op == COH_SIGNAL_ADD ? 1 : round;
        gpu_delay(&gpu);
        CHECK_OK(coh_cuda_put_signal(self->world, data + (round - 1) * BYTES, source, bytes,
                                     &signals[0], value, op, gpu_right(self), gpu.stream));
        CHECK_OK(coh_cuda_wait_until(self->world, &signals[0], COH_GE, round, gpu_left(self),
                                     gpu.stream));
        CHECK_OK(coh_cuda_signal(self->world, &signals[1], value, op, gpu_left(self), gpu.stream));
        CHECK_OK(coh_cuda_wait_until(self->world, &signals[1], COH_EQ, round, gpu_right(self),
                                     gpu.stream));
    }
    gpu_finish(self, &gpu);
    for (uint64_t round = 1; round <= ROUNDS && !test_failed(); round++) {
        size_t bytes = (size_t)(round * 1237 % BYTES);
        test_load(self, mine, data + (round - 1) * BYTES, bytes);
        CHECK_EQ(test_differs(mine, bytes, (uint64_t)gpu_left(self)), bytes);
    }
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, signals));
    CHECK_OK(coh_free(self->world, source));
    CHECK_OK(coh_free(self->world, data));
}

/* The host's signals reach a stream that waits, and a stream's reach the host. */
static void host_and_stream(test_rank *self)
{
    gpu_rank gpu;
    uint64_t *words, value = 0;
    CHECK_OK(coh_calloc(self->world, 2, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    for (uint64_t round = 1; round <= 20 && !test_failed(); round++) {
        CHECK_OK(
            coh_cuda_wait_until(self->world, &words[0], COH_EQ, round, gpu_left(self), gpu.stream));
        CHECK_OK(coh_cuda_signal(self->world, &words[1], round, COH_SIGNAL_SET, gpu_left(self),
                                 gpu.stream));
        CHECK_OK(coh_signal(self->world, &words[0], round, COH_SIGNAL_SET, gpu_right(self)));
        CHECK_OK(coh_wait_until(self->world, COH_U64, &words[1], COH_EQ, &round, gpu_right(self)));
    }
    gpu_finish(self, &gpu);
    CHECK_OK(coh_signal_fetch(self->world, &words[1], &value));
    CHECK_EQ(value, 20);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

struct comparison {
    coh_compare compare;
    uint64_t value, word;
};

/* A stream can wait for a word by itself, without a kernel that looks, if it is to be equal or greater. */
static bool is_kernels_alone(const struct comparison *row)
{
    return row->compare == COH_NE || row->compare == COH_LT || row->compare == COH_LE
           || (row->compare != COH_EQ && row->value > UINT64_C(1) << 63);
}

static void every_comparison(test_rank *self)
{
    static const struct comparison rows[] = {
        {COH_EQ, 7, 7},
        {COH_NE, 0, 3},
        {COH_GT, 6, INT64_MAX},
        {COH_GE, UINT64_C(1) << 63, UINT64_MAX},
        {COH_GT, UINT64_MAX - 1, UINT64_MAX},
        {COH_LT, 5, 4},
        {COH_LE, 4, 4},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    gpu_rank gpu;
    uint64_t *words, blocked = 0;
    CHECK_OK(coh_calloc(self->world, ROWS, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    for (size_t i = 0; i < ROWS && !test_failed(); i++) {
        /* A value for which it does not hold, then one for which it does. */
        blocked = rows[i].compare == COH_NE   ? 0
                  : rows[i].compare == COH_LT ? 5
                  : rows[i].compare == COH_LE ? 9
                                              : 1;
        test_store(self, &words[i], &blocked, sizeof blocked);
        CHECK_OK(coh_barrier(self->world));
        coh_status status = coh_cuda_wait_until(self->world, &words[i], rows[i].compare,
                                                rows[i].value, COH_ANY_RANK, gpu.stream);
        if (status == COH_UNSUPPORTED && is_kernels_alone(&rows[i])) {
            CHECK(strstr(coh_last_error(), "without MPS"));
            continue;
        }
        CHECK_OK(status);
        CHECK(!gpu_ends_within(&gpu, 0.02));
        CHECK_OK(coh_barrier(self->world)); /* all have looked */
        CHECK_OK(coh_put(self->world, &words[i], &rows[i].word, sizeof *words, gpu_right(self)));
        CHECK_OK(coh_quiet(self->world));
        CHECK(gpu_ends_within(&gpu, 10));
        gpu_finish(self, &gpu);
    }
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

static void atomics_on_a_stream(test_rank *self)
{
    enum { TIMES = 100 };
    gpu_rank gpu;
    uint64_t *words, *results, one = 1, wanted, found[TIMES], sum = 0, old = 0, fresh = 77;
    uint32_t bits = UINT32_C(1) << self->rank, all = 0;
    CHECK_OK(coh_calloc(self->world, 4, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    results = gpu_private(&gpu, TIMES * sizeof *results);
    for (int i = 0; i < TIMES && !test_failed(); i++) {
        gpu_delay(&gpu);
        CHECK_OK(coh_cuda_atomic(self->world, COH_ATOMIC_ADD, COH_U64, &words[0], &one, NULL,
                                 &results[i], 0, gpu.stream));
    }
    CHECK_OK(coh_cuda_atomic(self->world, COH_ATOMIC_OR, COH_U32, &words[1], &bits, NULL, NULL, 0,
                             gpu.stream));
    CHECK_OK(coh_cuda_barrier(coh_team_world(self->world), gpu.stream));
    gpu_finish(self, &gpu);
    CHECK_EQ(gpu.driver->copy(found, results, sizeof found), 0);
    for (int i = 1; i < TIMES; i++)
        CHECK(found[i] > found[i - 1]); /* each saw what this rank had added before */
    CHECK_OK(coh_get(self->world, &sum, &words[0], sizeof sum, 0));
    CHECK_EQ(sum, (uint64_t)TIMES * (uint64_t)self->size);
    CHECK_OK(coh_get(self->world, &all, &words[1], sizeof all, 0));
    CHECK_EQ(all, (UINT32_C(1) << self->size) - 1);
    CHECK_OK(coh_barrier(self->world));
    /* One of them swaps. */
    wanted = sum;
    CHECK_OK(coh_cuda_atomic(self->world, COH_ATOMIC_COMPARE_SWAP, COH_U64, &words[0], &fresh,
                             &wanted, results, 0, gpu.stream));
    CHECK_OK(coh_cuda_barrier(coh_team_world(self->world), gpu.stream));
    gpu_finish(self, &gpu);
    CHECK_EQ(gpu.driver->copy(&old, results, sizeof old), 0);
    CHECK(old == sum || old == fresh);
    CHECK_OK(coh_get(self->world, &sum, &words[0], sizeof sum, 0));
    CHECK_EQ(sum, fresh);
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(gpu.driver->free(results), 0);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

const test_case gpu_words[] = {
    CASE(signals_on_a_stream, "S7 S8", ON_GPU, GPU_SIZES),
    CASE(host_and_stream, "S7 S12", ON_GPU, GPU_SIZES),
    CASE(every_comparison, "S12", ON_GPU, GPU_SIZES),
    CASE(atomics_on_a_stream, "S31 S32", ON_GPU, GPU_SIZES),
};
GPU_COUNT(words);
