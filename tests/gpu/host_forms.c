/* Collectives of the host's with memory of the card: grouped, started, with empty blocks: docs/semantics.md S54. */
#include "gpu.h"

#include <stdatomic.h>
#include <string.h>

enum { LONG = 30000 };

static bool holds(test_rank *self, const int32_t *words, size_t count, int32_t wanted)
{
    static _Thread_local int32_t seen[LONG];
    bool good = test_load(self, seen, words, count * sizeof *seen);
    for (size_t i = 0; i < count && good; i++)
        good = CHECK_EQ(seen[i], wanted);
    return good;
}

static void fill(test_rank *self, int32_t *words, size_t count, int32_t value)
{
    static _Thread_local int32_t made[LONG];
    for (size_t i = 0; i < count; i++)
        made[i] = value;
    test_store(self, words, made, count * sizeof *made);
}

/* Short and long parts of the card, an empty one, and one of the host. */
static void groups_with_memory_of_the_card(test_rank *self)
{
    int32_t *words, own = self->rank, sum = self->size * (self->size - 1) / 2;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_malloc(self->world, 3 * LONG * sizeof *words, (void **)&words));
    for (int way = 0; way < 2 && !test_failed(); way++) {
        coh_group_part parts[] = {
            {words, words + LONG, 100, COH_I32, COH_SUM},
            {words + 200, words + 200, LONG - 200, COH_I32, COH_SUM},
            {NULL, NULL, 0, COH_I32, COH_SUM},
            {&own, &own, 1, COH_I32, COH_MAX},
            {words + 2 * LONG, words + 2 * LONG, 1000, COH_I32, COH_MAX},
        };
        coh_request *request = NULL;
        own = self->rank;
        fill(self, words, LONG, self->rank);
        fill(self, words + 2 * LONG, LONG, self->rank);
        if (way == 0) {
            CHECK_OK(coh_all_reduce_group(team, parts, sizeof parts / sizeof *parts));
        } else {
            CHECK_OK(
                coh_all_reduce_group_start(team, parts, sizeof parts / sizeof *parts, &request));
            CHECK_OK(coh_request_wait(&request, NULL));
        }
        holds(self, words + LONG, 100, sum);
        holds(self, words + 200, LONG - 200, sum);
        CHECK_EQ(own, self->size - 1);
        holds(self, words + 2 * LONG, 1000, self->size - 1);
        holds(self, words, 200, self->rank);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

static void started_with_memory_of_the_card(test_rank *self)
{
    int32_t *words, seen[16];
    size_t n = (size_t)self->size;
    coh_request *requests[3] = {NULL};
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_malloc(self->world, (4 + n) * sizeof *words, (void **)&words));
    fill(self, words, 1, self->rank + 1);
    CHECK_OK(coh_all_reduce_start(team, COH_I32, COH_SUM, words, words + 1, 1, &requests[0]));
    CHECK_OK(coh_all_gather_start(team, COH_I32, words, words + 4, 1, &requests[1]));
    CHECK_OK(coh_broadcast_start(team, COH_I32, words, words + 2, 1, self->size - 1, &requests[2]));
    for (int i = 0; i < 3; i++)
        CHECK_OK(coh_request_wait(&requests[i], NULL));
    holds(self, words + 1, 1, self->size * (self->size + 1) / 2);
    holds(self, words + 2, 1, self->size);
    test_load(self, seen, words + 4, n * sizeof *seen);
    for (int i = 0; i < self->size; i++)
        CHECK_EQ(seen[i], i + 1);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* A member without elements passes no buffers, or some of the host. */
static void members_without_elements(test_rank *self)
{
    int32_t *words, elsewhere = 0;
    size_t counts[16] = {0};
    coh_team *team = coh_team_world(self->world);
    int last = self->size - 1;
    bool out = self->rank == last && last > 0;
    CHECK_OK(coh_malloc(self->world, 64 * sizeof *words, (void **)&words));
    for (int i = 0; i < self->size; i++)
        counts[i] = i == last && last > 0 ? 0 : 2;
    for (int way = 0; way < 2 && !test_failed(); way++) {
        int32_t *none = way == 0 ? NULL : &elsewhere;
        fill(self, words, 64, self->rank);
        CHECK_OK(coh_gather_v(team, COH_I32, out ? none : words, self->rank == 0 ? words + 8 : none,
                              counts, 0));
        for (int i = 0; self->rank == 0 && i < self->size; i++)
            holds(self, words + 8 + 2 * i, counts[i], i);
        CHECK_OK(coh_scatter_v(team, COH_I32, self->rank == 0 ? words + 8 : none,
                               out ? none : words + 32, counts, 0));
        holds(self, words + 32, counts[self->rank], self->rank);
        CHECK_OK(coh_all_gather_v(team, COH_I32, out ? none : words, words + 40, counts));
        for (int i = 0; i < self->size; i++)
            holds(self, words + 40 + 2 * i, counts[i], i);
        CHECK_OK(coh_reduce_scatter_v(team, COH_I32, COH_SUM, words + 40, out ? none : words + 60,
                                      counts));
        holds(self, words + 60, counts[self->rank], self->size * self->rank);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* One side is memory of the host, on all members. */
static void host_and_card_in_a_call(test_rank *self)
{
    int32_t *words, own[8], sum = self->size * (self->size - 1) / 2;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_malloc(self->world, 8 * sizeof *words, (void **)&words));
    for (int i = 0; i < 8; i++)
        own[i] = self->rank;
    CHECK_OK(coh_all_reduce(team, COH_I32, COH_SUM, own, words, 8));
    holds(self, words, 8, sum);
    CHECK_OK(coh_all_reduce(team, COH_I32, COH_MAX, words, own, 8));
    for (int i = 0; i < 8; i++)
        CHECK_EQ(own[i], sum);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* Threads have the default stream in common, which would wait for each other's. */
static void default_stream_of_threads(test_rank *self)
{
    gpu_rank gpu;
    float *words;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, 8, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    if (gpu.sharing == COH_CUDA_THREADS) {
        CHECK_REFUSED(coh_cuda_barrier(team, NULL), COH_INVALID_ARGUMENT, "stream of its own");
        CHECK_REFUSED(coh_cuda_all_reduce(team, COH_F32, COH_SUM, words, words, 8, NULL),
                      COH_INVALID_ARGUMENT, "stream of its own");
    } else {
        CHECK_OK(coh_cuda_barrier(team, NULL));
        CHECK_EQ(gpu.driver->synchronize(NULL), 0);
    }
    CHECK_OK(coh_cuda_barrier(team, gpu.stream));
    gpu_finish(self, &gpu);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

/* More than a table of any length would hold, all before the first signal. */
static void many_waits_under_way(test_rank *self)
{
    enum { WAITS = 200 };
    gpu_rank gpu, other;
    uint64_t *word;
    CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word));
    if (!gpu_open(self, &gpu) || !gpu_open(self, &other))
        return;
    CHECK_OK(coh_barrier(self->world));
    for (uint64_t i = 1; i <= WAITS; i++)
        CHECK_OK(coh_cuda_wait_until(self->world, word, COH_GE, i, gpu_left(self), gpu.stream));
    for (uint64_t i = 1; i <= WAITS; i++)
        CHECK_OK(
            coh_cuda_signal(self->world, word, i, COH_SIGNAL_SET, gpu_right(self), other.stream));
    gpu_finish(self, &other);
    gpu_finish(self, &gpu);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&other);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, word));
}

/*
 * A member that has no room for its part on the card ends the call of the others, who have met it on the host. Of 32
 * queues, 26 are for streams that wait: with 25 of them taken, one of two ranks gets the last.
 */
static void member_that_cannot_enqueue(test_rank *self)
{
    enum { TAKEN = 25, COUNT = 16 };
    gpu_rank taken[TAKEN];
    uint64_t *word;
    float *words;
    _Atomic uint64_t *seen = self->shared;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word));
    CHECK_OK(coh_calloc(self->world, (size_t)2 * COUNT, sizeof *words, (void **)&words));
    for (int i = 0; i < TAKEN && self->rank == 0; i++)
        if (gpu_open(self, &taken[i]))
            CHECK_OK(coh_cuda_wait_until(self->world, word, COH_GE, 1, 1, taken[i].stream));
    CHECK_OK(coh_barrier(self->world));
    coh_status status = coh_all_reduce(team, COH_F32, COH_SUM, words, words + COUNT, COUNT);
    if (status == COH_TRANSPORT)
        CHECK(strstr(coh_last_error(), "could not enqueue") != NULL);
    atomic_fetch_or(seen, UINT64_C(1) << status);
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(atomic_load(seen), UINT64_C(1) << COH_LIMIT | UINT64_C(1) << COH_TRANSPORT);
    CHECK_STATUS(coh_all_reduce(team, COH_F32, COH_SUM, words, words + COUNT, COUNT),
                 COH_TRANSPORT);
    if (self->rank == 1)
        CHECK_OK(coh_signal(self->world, word, 1, COH_SIGNAL_SET, 0));
    for (int i = 0; i < TAKEN && self->rank == 0; i++) {
        CHECK_EQ(taken[i].driver->synchronize(taken[i].stream), 0);
        gpu_close(&taken[i]);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_free(self->world, word));
}

const test_case gpu_host_forms[] = {
    CASE(groups_with_memory_of_the_card, "S54", ON_GPU, GPU_SIZES),
    CASE(started_with_memory_of_the_card, "S54", ON_GPU, GPU_SIZES),
    CASE(members_without_elements, "S54", ON_GPU, GPU_SIZES),
    CASE(host_and_card_in_a_call, "S54", ON_GPU, GPU_SIZES),
    CASE(default_stream_of_threads, "F17", ON_THREADS | ON_SHM | ON_CARD, GPU_SIZES),
    CASE(many_waits_under_way, "S41", ON_THREADS | ON_SHM | ON_CARD, GPU_SIZES),
    CASE(member_that_cannot_enqueue, "S54", ON_THREADS | ON_CARD, SIZE(2),
         .environment = "CUDA_DEVICE_MAX_CONNECTIONS=32"),
};
GPU_COUNT(host_forms);
