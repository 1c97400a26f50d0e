/* Bad input: a status and a sentence, nothing moved. docs/faults.md F16, F17; docs/semantics.md S42. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

struct scene {
    gpu_rank gpu;
    unsigned char *memory; /* symmetric, on the card */
    uint64_t *word;
    unsigned char *own; /* in the world's own heap */
    unsigned char pageable[64];
};

static bool open_scene(test_rank *self, struct scene *scene)
{
    memset(scene->pageable, 9, sizeof scene->pageable);
    return CHECK_OK(coh_calloc(self->world, 1, 4096, (void **)&scene->memory))
           && CHECK_OK(coh_calloc(self->world, 4, 8, (void **)&scene->word))
           && CHECK_OK((coh_calloc)(self->world, 1, 4096, (void **)&scene->own))
           && gpu_open(self, &scene->gpu);
}

/* What was refused changed nothing, and the stream goes on. */
static void close_scene(test_rank *self, struct scene *scene)
{
    CHECK_OK(coh_cuda_barrier(coh_team_world(self->world), scene->gpu.stream));
    gpu_finish(self, &scene->gpu);
    test_is_zero(self, scene->memory, 4096);
    test_is_zero(self, scene->word, 32);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(scene->pageable[i], 9);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&scene->gpu);
    CHECK_OK(coh_free(self->world, scene->own));
    CHECK_OK(coh_free(self->world, scene->word));
    CHECK_OK(coh_free(self->world, scene->memory));
}

static void host_memory_for_the_cards(test_rank *self)
{
    struct scene at;
    coh_world *world = self->world;
    coh_team *team = coh_team_world(world);
    if (!open_scene(self, &at))
        return;
    coh_cuda_stream stream = at.gpu.stream;
    CHECK_REFUSED(coh_cuda_put(world, at.memory, at.pageable, 64, 0, stream), COH_INVALID_ARGUMENT,
                  "coh_cuda_put");
    CHECK_REFUSED(coh_cuda_get(world, at.pageable, at.memory, 64, 0, stream), COH_INVALID_ARGUMENT,
                  "coh_cuda_get");
    CHECK_STATUS(coh_cuda_put_signal(world, at.memory, at.pageable, 8, at.word, 1, COH_SIGNAL_SET,
                                     0, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_all_reduce(team, COH_U8, COH_SUM, at.pageable, at.memory, 64, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_all_reduce(team, COH_U8, COH_SUM, at.memory, at.pageable, 64, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_atomic(world, COH_ATOMIC_FETCH, COH_U64, at.word, NULL, NULL, at.pageable,
                                 0, stream),
                 COH_INVALID_ARGUMENT);
    /* Targets in the world's own heap, and nowhere. */
    CHECK_STATUS(coh_cuda_put(world, at.own, at.memory, 64, 0, stream), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_get(world, at.memory, at.own, 64, 0, stream), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_signal(world, (uint64_t *)at.own, 1, COH_SIGNAL_SET, 0, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_put(world, at.pageable, at.memory, 64, 0, stream), COH_NOT_SYMMETRIC);
    close_scene(self, &at);
}

static void values_that_are_not_taken(test_rank *self)
{
    struct scene at;
    coh_world *world = self->world;
    if (!open_scene(self, &at))
        return;
    coh_cuda_stream stream = at.gpu.stream;
    uint64_t *askew = (uint64_t *)((char *)at.word + 4), one = 1;
    unsigned char *source = at.memory + 2048;
    CHECK_REFUSED(coh_cuda_put(world, at.memory, source, 8, self->size, stream), COH_UNKNOWN_RANK,
                  "coh_cuda_put");
    CHECK_STATUS(coh_cuda_get(world, source, at.memory, 8, -1, stream), COH_UNKNOWN_RANK);
    CHECK_STATUS(coh_cuda_put(world, at.memory, source, (size_t)1 << 46, 0, stream),
                 COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_cuda_put(world, at.memory, NULL, 8, 0, stream), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_put_strided(world, at.memory, 3, source, 8, 8, 2, 0, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(
        coh_cuda_put_signal(world, at.memory, source, 8, askew, 1, COH_SIGNAL_SET, 0, stream),
        COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_cuda_signal(world, at.word, 1, (coh_signal_op)7, 0, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_wait_until(world, askew, COH_EQ, 1, 0, stream), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_cuda_wait_until(world, at.word, (coh_compare)0, 1, 0, stream),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_wait_until(world, at.word, COH_EQ, 1, self->size, stream),
                 COH_UNKNOWN_RANK);
    CHECK_STATUS(
        coh_cuda_atomic(world, COH_ATOMIC_ADD, COH_F64, at.word, &one, NULL, NULL, 0, stream),
        COH_INVALID_ARGUMENT);
    CHECK_STATUS(
        coh_cuda_atomic(world, (coh_atomic_op)9, COH_U64, at.word, &one, NULL, NULL, 0, stream),
        COH_INVALID_ARGUMENT);
    CHECK_STATUS(
        coh_cuda_atomic(world, COH_ATOMIC_ADD, COH_U64, askew, &one, NULL, NULL, 0, stream),
        COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_cuda_put(NULL, at.memory, source, 8, 0, stream), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_barrier(NULL, stream), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_collective(NULL, stream), COH_INVALID_ARGUMENT);
    close_scene(self, &at);
}

static void plus(void *into, const void *from, size_t count, void *user)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        ((unsigned char *)into)[i] =
            (unsigned char)(((unsigned char *)into)[i] + ((const unsigned char *)from)[i]);
}

/* What the host's forms alone have: UNSUPPORTED on all members, and the next call works. */
static void forms_that_streams_do_not_have(test_rank *self)
{
    struct scene at;
    coh_reduction how = COH_REDUCTION_INIT;
    coh_collective call = COH_COLLECTIVE_INIT;
    size_t counts[16] = {0};
    coh_parts parts = {counts, NULL};
    if (!open_scene(self, &at))
        return;
    call.kind = COH_COLLECTIVE_ALL_REDUCE;
    call.team = coh_team_world(self->world);
    call.source = at.memory;
    call.target = at.memory;
    call.count = 16;
    how.function = plus;
    how.element = 1;
    call.how = &how;
    CHECK_REFUSED(coh_cuda_collective(&call, at.gpu.stream), COH_UNSUPPORTED, "function");
    call.how = NULL;
    call.kind = COH_COLLECTIVE_ALL_TO_ALL;
    call.target = at.memory + 2048;
    call.source_stride = call.target_stride = 2;
    CHECK_STATUS(coh_cuda_collective(&call, at.gpu.stream), COH_UNSUPPORTED);
    call.source_stride = call.target_stride = 1;
    call.source_parts = call.target_parts = &parts;
    CHECK_STATUS(coh_cuda_collective(&call, at.gpu.stream), COH_UNSUPPORTED);
    close_scene(self, &at);
}

/* A stream of another context than the card's primary one. */
static void streams_of_others(test_rank *self)
{
    struct scene at;
    void *context;
    coh_cuda_stream foreign;
    if (!open_scene(self, &at))
        return;
    if (!CHECK_EQ(at.gpu.driver->context_create(&context, 0, at.gpu.device), 0))
        return;
    CHECK_EQ(at.gpu.driver->stream_create(&foreign, 1), 0);
    CHECK_OK(cohi_card_use(at.gpu.device));
    CHECK_REFUSED(coh_cuda_put(self->world, at.memory, at.memory + 2048, 8, 0, foreign),
                  COH_INVALID_ARGUMENT, "context");
    CHECK_STATUS(coh_cuda_barrier(coh_team_world(self->world), foreign), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_all_reduce(coh_team_world(self->world), COH_U8, COH_SUM, at.memory,
                                     at.memory, 8, foreign),
                 COH_INVALID_ARGUMENT);
    CHECK_EQ(at.gpu.driver->stream_destroy(foreign), 0);
    CHECK_EQ(at.gpu.driver->context_destroy(context), 0);
    CHECK_OK(cohi_card_use(at.gpu.device));
    CHECK_EQ(at.gpu.driver->release(at.gpu.device), 0);
    CHECK_EQ(at.gpu.driver->release(at.gpu.device), 0);
    close_scene(self, &at);
}

/* A heap that was destroyed: its addresses are nobody's. */
static void heaps_that_are_gone(test_rank *self)
{
    struct scene at;
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    void *memory = NULL;
    if (!open_scene(self, &at))
        return;
    options.kind = COH_HEAP_CUDA;
    CHECK_OK(coh_heap_create(self->world, &options, &heap));
    CHECK_OK(coh_heap_malloc(heap, 64, &memory));
    CHECK_OK(coh_heap_destroy(heap));
    CHECK_STATUS(coh_cuda_put(self->world, memory, at.memory, 8, 0, at.gpu.stream),
                 COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_cuda_get(self->world, at.memory, memory, 8, 0, at.gpu.stream),
                 COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_heap_malloc(heap, 8, &memory), COH_INVALID_ARGUMENT);
    close_scene(self, &at);
}

/* Members that disagree hear of it, the streams end, and nothing came from a member that differed. */
static void members_that_disagree(test_rank *self)
{
    gpu_rank gpu;
    int32_t *words, mine[64], seen[64];
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_malloc(self->world, 2 * sizeof mine, (void **)&words));
    for (int i = 0; i < 64; i++)
        mine[i] = i + 1;
    test_store(self, words, mine, sizeof mine);
    test_store(self, words + 64, mine, sizeof mine);
    if (!gpu_open(self, &gpu))
        return;
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_cuda_all_reduce(team, COH_I32, self->rank == 0 ? COH_SUM : COH_MAX, words,
                                 words + 64, 64, gpu.stream));
    CHECK(gpu_ends_within(&gpu, 10));
    CHECK_REFUSED(coh_cuda_status(self->world), COH_MISMATCH, "all_reduce");
    test_load(self, seen, words + 64, sizeof seen);
    CHECK(memcmp(seen, mine, sizeof mine) == 0);
    CHECK_STATUS(coh_cuda_all_reduce(team, COH_I32, COH_SUM, words, words, 64, gpu.stream),
                 COH_MISMATCH);
    (void)coh_finalize(self->world); /* may tell of it once more */
    self->world = NULL;
}

/* A private buffer on one member and a symmetric one on the others. */
static void places_that_disagree(test_rank *self)
{
    gpu_rank gpu;
    float *words, *own;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, 64, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    own = gpu_private(&gpu, 64 * sizeof *own);
    CHECK_OK(coh_cuda_all_reduce(team, COH_F32, COH_SUM, self->rank == 0 ? own : words, words, 64,
                                 gpu.stream));
    CHECK(gpu_ends_within(&gpu, 10));
    CHECK_STATUS(coh_cuda_status(self->world), COH_MISMATCH);
    (void)coh_finalize(self->world);
    self->world = NULL;
}

/* Calls for memory of the host take memory of the card, or say that they do not. */
static void host_calls_with_memory_of_the_card(test_rank *self)
{
    struct scene at;
    unsigned char found[64];
    coh_team *team = coh_team_world(self->world);
    if (!open_scene(self, &at))
        return;
    unsigned char *own = gpu_private(&at.gpu, 64);
    CHECK_EQ(at.gpu.driver->fill(own, 7, 64), 0);
    CHECK_EQ(at.gpu.driver->synchronize(NULL), 0);
    /* To and from the world's own heap, with private memory of the card as the local side. */
    CHECK_OK(coh_put(self->world, at.own, own, 64, gpu_right(self)));
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < 64; i++)
        CHECK_EQ(at.own[i], 7);
    CHECK_OK(coh_get(self->world, own, at.own + 64, 64, gpu_right(self)));
    CHECK_EQ(at.gpu.driver->copy(found, own, 64), 0);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(found[i], 0);
    coh_status sent = self->size < 2    ? COH_UNSUPPORTED
                      : self->rank == 0 ? coh_send(team, 1, 1, own, 64)
                      : self->rank == 1 ? coh_receive(team, 0, 1, own, 64, NULL)
                                        : COH_OK;
    CHECK(sent == COH_OK || sent == COH_UNSUPPORTED || sent == COH_INVALID_ARGUMENT);
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(at.gpu.driver->free(own), 0);
    close_scene(self, &at);
}

const test_case gpu_refused[] = {
    CASE(host_memory_for_the_cards, "F17", ON_GPU, GPU_SIZES),
    CASE(values_that_are_not_taken, "F16 F17", ON_GPU, GPU_SIZES),
    CASE(forms_that_streams_do_not_have, "F17", ON_GPU, GPU_SIZES),
    CASE(streams_of_others, "F17", ON_GPU, GPU_SIZES),
    CASE(heaps_that_are_gone, "F17 S55", ON_GPU, GPU_SIZES),
    CASE(members_that_disagree, "S42", ON_GPU, GPU_SEVERAL),
    CASE(places_that_disagree, "S42", ON_GPU, GPU_SEVERAL),
    CASE(host_calls_with_memory_of_the_card, "S54", ON_GPU, GPU_SIZES),
};
GPU_COUNT(refused);
