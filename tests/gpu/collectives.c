/* Every collective on a stream against the oracle: docs/semantics.md S36 to S41. */
#include "gpu.h"

#include "collectives/calls.h"
#include "collectives/oracle.h"

#include <stdlib.h>
#include <string.h>

struct stage {
    test_rank *self;
    gpu_rank gpu;
    call_card card;
    call_rig rig;
};

static _Thread_local gpu_rank *current; /* of the rank whose thread this is, for copies */

static coh_status run(const coh_collective *described, void *arg)
{
    struct stage *stage = arg;
    gpu_delay(&stage->gpu);
    coh_status status = coh_cuda_collective(described, stage->gpu.stream);
    if (status == COH_OK)
        status = cohi_card_status(stage->gpu.driver->synchronize(stage->gpu.stream),
                                  "cuStreamSynchronize");
    return status == COH_OK ? coh_cuda_status(stage->self->world) : status;
}

static bool copy(void *target, const void *source, size_t bytes)
{
    return current->driver->copy(target, source, bytes) == 0
           && current->driver->synchronize(NULL) == 0;
}

static bool open_stage(test_rank *self, struct stage *stage, size_t bytes)
{
    *stage = (struct stage){.self = self};
    if (!call_rig_open(&stage->rig, self->world, bytes) || !gpu_open(self, &stage->gpu))
        return false;
    current = &stage->gpu;
    stage->card = (call_card){run, copy, gpu_private(&stage->gpu, 2 * stage->rig.room), stage};
    stage->rig.card = &stage->card;
    return true;
}

/* Memory is freed when the kernels of all ranks are over: the driver waits for those of the whole process, and of thread-ranks
 * lets nobody start what they wait for. */
static void close_stage(struct stage *stage)
{
    CHECK_OK(coh_barrier(stage->self->world));
    CHECK_EQ(stage->gpu.driver->free(stage->card.own), 0);
    gpu_close(&stage->gpu);
    call_rig_close(&stage->rig);
}

/* Those that the host's forms alone have. */
static bool has_stream_form(call_kind kind)
{
    return kind != CALL_ALL_TO_ALL_V && kind != CALL_ALL_TO_ALL_STRIDED;
}

static test_call way_of(const test_rank *self, call_kind kind, size_t count, int way)
{
    int roots[] = {0, self->size - 1, self->size / 2};
    return (test_call){.kind = kind,
                       .dtype = COH_F32,
                       .op = COH_SUM,
                       .count = count,
                       .root = roots[way % 3],
                       .parts = (call_parts)(way % PARTS_COUNT),
                       .place = (call_place)(way % PLACE_BY_MEMBER),
                       .in_place = way / 2 % 2,
                       .shifted = way / 3 % 2,
                       .seed = self->seed + (uint64_t)way * 7 + count};
}

static void lengths(test_rank *self)
{
    static const size_t counts[] = {0, 1, 3, 4, 17, 1024, 4097, 70001, 1300001};
    enum { LENGTHS = sizeof counts / sizeof *counts, WAYS = 8 };
    call_kind kind = call_kind_in(self->row->name);
    test_call largest = {.kind = kind, .dtype = COH_F32, .count = counts[LENGTHS - 1]};
    struct stage stage;
    if (!open_stage(self, &stage, call_bytes(&largest, self->size)))
        return;
    for (size_t i = 0; i < LENGTHS; i++)
        for (int way = 0; way < (counts[i] > 100000 ? 4 : WAYS); way++) {
            test_call call = way_of(self, kind, counts[i], way + (int)i % 2 * 4);
            if (!call_perform(&stage.rig, coh_team_world(self->world), &call))
                return;
        }
    close_stage(&stage);
}

static const coh_dtype dtypes[] = {
#define TYPE(constant, value, name, bytes) constant,
    COH_DTYPE_TABLE(TYPE)
#undef TYPE
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, OPERATIONS = 8 };

static void types(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    test_call largest = {.kind = kind, .dtype = COH_F64, .count = 5003};
    bool reduces = call_table[kind].reduces;
    bool scans = kind == CALL_SCAN || kind == CALL_SCAN_EXCLUSIVE;
    struct stage stage;
    if (!open_stage(self, &stage, call_bytes(&largest, self->size)))
        return;
    for (int type = 0; type < DTYPES; type++)
        for (int op = 0; op < (reduces ? OPERATIONS : 1); op++) {
            test_call call = way_of(self, kind, type % 2 ? 5003 : 129, type + op);
            call.dtype = dtypes[type];
            call.op = (coh_reduce_op)op;
            if (reduces && (!oracle_allows(call.dtype, call.op) || (scans && op == COH_MEAN)))
                continue;
            if (!call_perform(&stage.rig, coh_team_world(self->world), &call))
                return;
        }
    close_stage(&stage);
}

/* One after the other on the stream, of all kinds and on all kinds of teams. */
static void any_after_any_on_a_stream(test_rank *self)
{
    enum { CALLS = 150, MOST = 9000 };
    test_call largest = {.kind = CALL_ALL_GATHER_V, .dtype = COH_F64, .count = MOST};
    coh_team *teams[3] = {coh_team_world(self->world), NULL, NULL};
    uint64_t dice = self->seed;
    struct stage stage;
    CHECK_OK(coh_team_split_strided(teams[0], self->size - 1, -1, self->size, &teams[1]));
    CHECK_OK(coh_team_split_color(teams[0], self->rank % 2, 0, &teams[2]));
    if (!open_stage(self, &stage, call_bytes(&largest, self->size)))
        return;
    for (int i = 0; i < CALLS && !test_failed(); i++) {
        uint64_t draw = test_random(&dice); /* the same on all ranks */
        coh_team *team = teams[draw % 3];
        call_kind kind = (call_kind)((draw >> 4) % CALL_KIND_COUNT);
        test_call call = way_of(self, kind, (size_t)(draw >> 12) % MOST, (int)(draw >> 40 & 63));
        call.root = (int)((draw >> 50) % (uint64_t)(coh_team_size(team)));
        if (draw % 3 == 2) /* the halves may differ in size */
            call.root = 0;
        if (has_stream_form(kind))
            call_perform(&stage.rig, team, &call);
    }
    close_stage(&stage);
    CHECK_OK(coh_team_destroy(teams[1]));
    CHECK_OK(coh_team_destroy(teams[2]));
}

/* Many without a wait of the host between, each on what the one before brought. */
static void chained(test_rank *self)
{
    enum { COUNT = 10007, CALLS = 60 };
    gpu_rank gpu;
    int32_t *words, *mine = malloc(COUNT * sizeof *mine);
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_malloc(self->world, 2 * COUNT * sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    for (int i = 0; i < COUNT; i++)
        mine[i] = i + self->rank;
    CHECK_EQ(gpu.driver->copy(words, mine, COUNT * sizeof *mine), 0);
    for (int i = 0; i < CALLS && !test_failed(); i++) {
        int32_t *from = words + (i % 2) * COUNT, *to = words + ((i + 1) % 2) * COUNT;
        gpu_delay(&gpu);
        CHECK_OK(
            i % 2 ? coh_cuda_broadcast(team, COH_I32, from, to, COUNT, i % self->size, gpu.stream)
                  : coh_cuda_all_reduce(team, COH_I32, COH_SUM, from, to, COUNT, gpu.stream));
    }
    gpu_finish(self, &gpu);
    CHECK_EQ(gpu.driver->copy(mine, words, COUNT * sizeof *mine), 0);
    uint32_t size = (uint32_t)self->size, factor = 1;
    for (int i = 1; i < CALLS / 2; i++)
        factor *= size; /* after the first sum all have the same */
    for (uint32_t i = 0; i < COUNT; i++)
        if (!CHECK_EQ((uint32_t)mine[i], factor * (size * i + size * (size - 1) / 2)))
            break;
    CHECK_OK(coh_barrier(self->world));
    free(mine);
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

/* Each member's scale is its own. */
static void scaled_on_a_stream(test_rank *self)
{
    enum { COUNT = 1000 };
    gpu_rank gpu;
    float *words, mine[COUNT];
    coh_reduction how = COH_REDUCTION_INIT;
    coh_collective call = COH_COLLECTIVE_INIT;
    CHECK_OK(coh_malloc(self->world, sizeof mine, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    for (int i = 0; i < COUNT; i++)
        mine[i] = (float)(i % 100);
    test_store(self, words, mine, sizeof mine);
    how.scale = self->rank + 0.5;
    call.kind = COH_COLLECTIVE_ALL_REDUCE;
    call.team = coh_team_world(self->world);
    call.source = call.target = words;
    call.count = COUNT;
    call.how = &how;
    CHECK_OK(coh_cuda_collective(&call, gpu.stream));
    gpu_finish(self, &gpu);
    test_load(self, mine, words, sizeof mine);
    float factor = (float)(self->size * self->size) / 2.0f;
    for (int i = 0; i < COUNT; i++)
        if (!CHECK(mine[i] == (float)(i % 100) * factor))
            break;
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, words));
}

#define LENGTHS_OF(kind)                                                                       \
    {                                                                                          \
        .name = "lengths_of_" kind, .rows = "S36 S37 S38", .body = lengths, .engines = ON_GPU, \
        .sizes = GPU_SIZES, .limit_s = 90                                                      \
    }
#define TYPES_OF(kind)                                                                 \
    {                                                                                  \
        .name = "types_of_" kind, .rows = "S37 S40", .body = types, .engines = ON_GPU, \
        .sizes = GPU_SIZES, .limit_s = 90                                              \
    }

const test_case gpu_collectives[] = {
    LENGTHS_OF("all_reduce"),
    LENGTHS_OF("reduce"),
    LENGTHS_OF("reduce_scatter"),
    LENGTHS_OF("reduce_scatter_v"),
    LENGTHS_OF("all_gather"),
    LENGTHS_OF("all_gather_v"),
    LENGTHS_OF("gather"),
    LENGTHS_OF("gather_v"),
    LENGTHS_OF("scatter"),
    LENGTHS_OF("scatter_v"),
    LENGTHS_OF("broadcast"),
    LENGTHS_OF("all_to_all"),
    LENGTHS_OF("scan"),
    LENGTHS_OF("scan_exclusive"),
    TYPES_OF("all_reduce"),
    TYPES_OF("reduce"),
    TYPES_OF("reduce_scatter"),
    TYPES_OF("all_gather"),
    TYPES_OF("broadcast"),
    TYPES_OF("all_to_all"),
    TYPES_OF("scan"),
    TYPES_OF("scan_exclusive"),
    CASE(any_after_any_on_a_stream, "S41", ON_GPU, GPU_SIZES, .limit_s = 60),
    CASE(chained, "S41", ON_GPU, GPU_SIZES),
    CASE(scaled_on_a_stream, "S40", ON_GPU, GPU_SIZES),
};
GPU_COUNT(collectives);
