/* Put, get and barriers on a stream: docs/semantics.md S4 to S6, S27 and S28. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0x5a, LONGEST = 3000001, AREA = LONGEST + 2 * GUARD + 16 };

/* Where local buffers are. */
typedef enum local { IN_HEAP, PRIVATE, PINNED, LOCALS } local;

struct scene {
    gpu_rank gpu;
    unsigned char *area; /* symmetric */
    unsigned char *locals[LOCALS];
    unsigned char *mine; /* of the host */
};

static bool open_scene(test_rank *self, struct scene *scene)
{
    if (!CHECK_OK(coh_malloc(self->world, AREA, (void **)&scene->area))
        || !CHECK_OK(coh_malloc(self->world, AREA, (void **)&scene->locals[IN_HEAP]))
        || !gpu_open(self, &scene->gpu))
        return false;
    scene->locals[PRIVATE] = gpu_private(&scene->gpu, AREA);
    scene->locals[PINNED] = gpu_pinned(&scene->gpu, AREA);
    scene->mine = malloc(AREA);
    return CHECK(scene->mine != NULL);
}

/* Memory is freed when the kernels of all ranks are over: the driver waits for those of the whole process, and of thread-ranks
 * lets nobody start what they wait for. */
static void close_scene(test_rank *self, struct scene *scene)
{
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(scene->gpu.driver->free(scene->locals[PRIVATE]), 0);
    CHECK_EQ(scene->gpu.driver->free_pinned(scene->locals[PINNED]), 0);
    free(scene->mine);
    gpu_close(&scene->gpu);
    CHECK_OK(coh_free(self->world, scene->locals[IN_HEAP]));
    CHECK_OK(coh_free(self->world, scene->area));
}

static bool set_bytes(struct scene *scene, unsigned char *target, size_t bytes)
{
    return CHECK_EQ(scene->gpu.driver->copy(target, scene->mine, bytes), 0)
           && CHECK_EQ(scene->gpu.driver->synchronize(NULL), 0);
}

static bool holds(struct scene *scene, const unsigned char *memory, size_t from, size_t bytes,
                  uint64_t seed)
{
    if (!CHECK_EQ(scene->gpu.driver->copy(scene->mine, memory, AREA), 0)
        || !CHECK_EQ(test_differs(scene->mine + from, bytes, seed), bytes))
        return false;
    for (size_t i = 0; i < AREA; i++)
        if ((i < from || i >= from + bytes) && !CHECK_EQ(scene->mine[i], GUARD_BYTE))
            return false;
    return true;
}

static bool put_once(test_rank *self, struct scene *scene, size_t bytes, local where)
{
    gpu_rank *gpu = &scene->gpu;
    coh_team *team = coh_team_world(self->world);
    size_t at = GUARD + bytes % 13, from = GUARD + bytes % 5;
    uint64_t seed = bytes + (uint64_t)where;
    memset(scene->mine, GUARD_BYTE, AREA);
    if (!set_bytes(scene, scene->area, AREA))
        return false;
    test_fill(scene->mine + from, bytes, seed + (uint64_t)self->rank);
    if (!set_bytes(scene, scene->locals[where], AREA) || !CHECK_OK(coh_barrier(self->world)))
        return false;
    gpu_delay(gpu);
    return CHECK_OK(coh_cuda_put(self->world, scene->area + at, scene->locals[where] + from, bytes,
                                 gpu_right(self), gpu->stream))
           && CHECK_OK(coh_cuda_barrier(team, gpu->stream)) && gpu_finish(self, gpu)
           && holds(scene, scene->area, at, bytes, seed + (uint64_t)gpu_left(self));
}

static bool get_once(test_rank *self, struct scene *scene, size_t bytes, local where)
{
    gpu_rank *gpu = &scene->gpu;
    coh_team *team = coh_team_world(self->world);
    size_t at = GUARD + bytes % 13, to = GUARD + bytes % 7;
    uint64_t seed = bytes + (uint64_t)where;
    memset(scene->mine, GUARD_BYTE, AREA);
    if (!set_bytes(scene, scene->locals[where], AREA))
        return false;
    gpu_delay(gpu);
    return CHECK_OK(coh_cuda_get(self->world, scene->locals[where] + to, scene->area + at, bytes,
                                 gpu_right(self), gpu->stream))
           && CHECK_OK(coh_cuda_barrier(team, gpu->stream)) && gpu_finish(self, gpu)
           && holds(scene, scene->locals[where], to, bytes, seed + (uint64_t)self->rank);
}

static void lengths_on_a_stream(test_rank *self)
{
    static const size_t lengths[] = {0, 1, 4, 8, 15, 64, 1000, 4096, 65537, LONGEST};
    struct scene scene;
    if (!open_scene(self, &scene))
        return;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int where = 0; where < LOCALS; where++)
            if (!put_once(self, &scene, lengths[i], (local)where)
                || !get_once(self, &scene, lengths[i], (local)where))
                return;
    close_scene(self, &scene);
}

static void blocks_on_a_stream(test_rank *self)
{
    static const size_t shapes[][4] = {{8, 500, 64, 8},      {1, 300, 3, 1},
                                       {100, 100, 100, 300}, {4096, 80, 4200, 4096},
                                       {17, 60, 19, 23},     {3, 1, 3, 3}};
    struct scene scene;
    unsigned char *wanted = malloc(AREA), *source = malloc(AREA);
    if (!open_scene(self, &scene))
        return;
    gpu_rank *gpu = &scene.gpu;
    coh_team *team = coh_team_world(self->world);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !test_failed(); i++) {
        size_t block = shapes[i][0], count = shapes[i][1], to = shapes[i][2], from = shapes[i][3];
        memset(wanted, GUARD_BYTE, AREA);
        memset(scene.mine, GUARD_BYTE, AREA);
        set_bytes(&scene, scene.area, AREA);
        test_fill(scene.mine, AREA, i + (uint64_t)self->rank);
        set_bytes(&scene, scene.locals[PRIVATE], AREA);
        CHECK_OK(coh_barrier(self->world));
        CHECK_OK(coh_cuda_put_strided(self->world, scene.area + 8, to, scene.locals[PRIVATE], from,
                                      block, count, gpu_right(self), gpu->stream));
        CHECK_OK(coh_cuda_barrier(team, gpu->stream));
        gpu_finish(self, gpu);
        test_fill(source, AREA, i + (uint64_t)gpu_left(self));
        for (size_t k = 0; k < count; k++)
            memcpy(wanted + 8 + k * to, source + k * from, block);
        CHECK_EQ(gpu->driver->copy(scene.mine, scene.area, AREA), 0);
        CHECK(memcmp(scene.mine, wanted, AREA) == 0);
        /* And back from there, into memory that is all guards. */
        memset(scene.mine, GUARD_BYTE, AREA);
        set_bytes(&scene, scene.locals[PINNED], AREA);
        CHECK_OK(coh_cuda_get_strided(self->world, scene.locals[PINNED], from, scene.area + 8, to,
                                      block, count, gpu_right(self), gpu->stream));
        CHECK_OK(coh_cuda_barrier(team, gpu->stream));
        gpu_finish(self, gpu);
        test_fill(source, AREA, i + (uint64_t)self->rank);
        for (size_t k = 0; k < count; k++)
            CHECK(memcmp(scene.locals[PINNED] + k * from, source + k * from, block) == 0);
    }
    free(wanted);
    free(source);
    close_scene(self, &scene);
}

/* Enqueued without a wait of the host between: each round reads what the one before brought. */
static void rounds_in_order(test_rank *self)
{
    enum { ROUNDS = 100 };
    gpu_rank gpu;
    uint64_t *words, first = (uint64_t)self->rank, found[ROUNDS + 1];
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, ROUNDS + 1, sizeof *words, (void **)&words));
    test_store(self, words, &first, sizeof first);
    if (!gpu_open(self, &gpu))
        return;
    for (int round = 0; round < ROUNDS && !test_failed(); round++) {
        gpu_delay(&gpu);
        CHECK_OK(coh_cuda_put(self->world, &words[round + 1], &words[round], sizeof *words,
                              gpu_right(self), gpu.stream));
        if (round % 3 == 0) {
            CHECK_OK(coh_cuda_quiet(self->world, gpu.stream));
            CHECK_OK(coh_cuda_sync(team, gpu.stream));
        } else {
            CHECK_OK(coh_cuda_barrier(team, gpu.stream));
        }
    }
    gpu_finish(self, &gpu);
    test_load(self, found, words, sizeof found);
    for (int round = 0; round <= ROUNDS; round++) {
        int origin = (self->rank + self->size * ROUNDS - round) % self->size;
        if (!CHECK_EQ(found[round], origin))
            break;
    }
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

/* Operations of one team on several streams, the default one among them, keep the order of the calls. */
static void several_streams(test_rank *self)
{
    enum { ROUNDS = 20 };
    gpu_rank gpu, other;
    uint64_t *word, start = 1, found = 0;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word));
    if (!gpu_open(self, &gpu) || !gpu_open(self, &other))
        return;
    test_store(self, word, &start, sizeof start);
    for (int round = 0; round < ROUNDS && !test_failed(); round++) {
        /* Threads have the default stream in common, and would wait in it for each other. */
        coh_cuda_stream third = gpu.sharing == COH_CUDA_THREADS ? gpu.stream : NULL;
        coh_cuda_stream streams[] = {gpu.stream, other.stream, third};
        gpu_delay(round % 2 ? &gpu : &other);
        /* Each sum takes up the result of the one before, which was on another stream. */
        CHECK_OK(coh_cuda_all_reduce(team, COH_U64, COH_MAX, word, word, 1, streams[round % 3]));
        CHECK_OK(
            coh_cuda_all_reduce(team, COH_U64, COH_SUM, word, word, 1, streams[(round + 1) % 3]));
    }
    CHECK_EQ(gpu.driver->synchronize(NULL), 0);
    gpu_finish(self, &other);
    gpu_finish(self, &gpu);
    uint64_t wanted = 1;
    for (int round = 0; round < ROUNDS; round++)
        wanted *= (uint64_t)self->size;
    test_load(self, &found, word, sizeof found);
    CHECK_EQ(found, wanted);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&other);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, word));
}

/* Teams that have nothing in common do not wait for each other. */
static void teams_apart(test_rank *self)
{
    enum { ROUNDS = 40 };
    gpu_rank gpu;
    coh_team *half = NULL;
    int32_t *words, one = 1, found = 0;
    CHECK_OK(coh_calloc(self->world, 1, sizeof *words, (void **)&words));
    CHECK_OK(coh_team_split_color(coh_team_world(self->world), self->rank % 2, 0, &half));
    if (!gpu_open(self, &gpu))
        return;
    for (int round = 0; round < ROUNDS * (1 + self->rank % 2) && !test_failed(); round++) {
        test_store(self, words, &one, sizeof one);
        CHECK_OK(coh_cuda_all_reduce(half, COH_I32, COH_SUM, words, words, 1, gpu.stream));
        gpu_finish(self, &gpu);
        test_load(self, &found, words, sizeof found);
        CHECK_EQ(found, coh_team_size(half));
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_team_destroy(half));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

const test_case gpu_streams[] = {
    CASE(lengths_on_a_stream, "S27 S28", ON_GPU, GPU_SIZES, .limit_s = 60),
    CASE(blocks_on_a_stream, "S27 S28", ON_GPU, GPU_SIZES),
    CASE(rounds_in_order, "S5 S6", ON_GPU, GPU_SIZES),
    CASE(several_streams, "S41", ON_GPU, GPU_SIZES),
    CASE(teams_apart, "S18", ON_GPU, GPU_SEVERAL),
};
GPU_COUNT(streams);
