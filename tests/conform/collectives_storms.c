/* One call right after the other, with ranks that dawdle: docs/semantics.md S15, S17 and S41. */
#include "conform.h"

#include "collectives/calls.h"

#include <string.h>

enum { SMALL = 24, LARGE = 9000 };

/* What a storm is made of. */
struct storm {
    const call_kind *kinds;
    int kind_count;
    size_t most;
    bool meets;        /* meetings, allocations and splits in between */
    bool root_is_fast; /* only the others dawdle */
};

static void dawdle(uint64_t *own, const struct storm *storm, bool is_root)
{
    if (storm->root_is_fast && is_root)
        return;
    uint64_t dice = test_random(own);
    if (dice % 6 == 0)
        test_sleep((double)((dice >> 8) % 150) * 1e-6);
}

static test_call draw_call(const struct storm *storm, uint64_t *dice, int members)
{
    uint64_t draw = test_random(dice);
    test_call call = {.kind = storm->kinds[draw % (uint64_t)storm->kind_count],
                      .dtype = (draw >> 8) % 3 ? COH_F32 : COH_U8,
                      .op = COH_SUM,
                      .root = (int)((draw >> 12) % (uint64_t)members),
                      .parts = (call_parts)((draw >> 20) % PARTS_COUNT),
                      .place = (call_place)((draw >> 24) % PLACE_COUNT),
                      .in_place = draw >> 28 & 1,
                      .started = (draw >> 29) % 8 == 0,
                      .described = (draw >> 52) % 4 == 0,
                      .seed = test_random(dice)};
    call.count = (size_t)(draw >> 33) % ((draw >> 50) % 4 == 0 ? storm->most : SMALL);
    return call;
}

/* Both buffers are the caller's again at once. */
static void scribble(const call_rig *rig)
{
    for (int side = 0; side < 2; side++)
        memset(rig->area[side], 0xa5, rig->used[side]);
}

static bool meet(test_rank *self, uint64_t dice)
{
    coh_team *team = coh_team_world(self->world), *half = NULL;
    void *memory = NULL;
    switch (dice % 6) {
    case 0:
        return CHECK_OK(coh_team_sync(team));
    case 1:
        return CHECK_OK(coh_barrier(self->world));
    case 2:
        return CHECK_OK(coh_team_split_strided(team, 0, 1, (self->size + 1) / 2, &half))
               && CHECK_OK(coh_team_destroy(half));
    case 3:
        return !test_has_memory(self->engine)
               || (CHECK_OK(coh_malloc(self->world, 1000 + dice % 5000, &memory))
                   && CHECK_OK(coh_free(self->world, memory)));
    default:
        return true;
    }
}

static void blow(test_rank *self, const struct storm *storm, int rounds)
{
    uint64_t dice = self->seed, own = self->seed * 31 + (uint64_t)self->rank;
    coh_team *team = coh_team_world(self->world);
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F32, .count = storm->most};
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (int i = 0; i < rounds && !test_failed(); i++) {
        test_call call = draw_call(storm, &dice, self->size);
        dawdle(&own, storm, self->rank == call.root);
        if (!call_perform(&rig, team, &call)) {
            test_fail("that was call %d of the storm", i);
            return;
        }
        scribble(&rig);
        if (storm->meets && !meet(self, test_random(&dice)))
            return;
    }
    call_rig_close(&rig);
}

static const call_kind all_kinds[] = {
#define KIND(constant, name, reduces, rooted, in_place) constant,
    CALL_KINDS(KIND)
#undef KIND
};
static const call_kind rooted_kinds[] = {CALL_BROADCAST, CALL_REDUCE,  CALL_GATHER,
                                         CALL_GATHER_V,  CALL_SCATTER, CALL_SCATTER_V};

static size_t most_of(const test_rank *self)
{
    return strncmp(self->engine, "sim", 3) == 0 ? 600 : LARGE;
}

static void any_after_any(test_rank *self)
{
    struct storm storm = {all_kinds, CALL_KIND_COUNT, most_of(self), false, false};
    blow(self, &storm, test_scaled(self, 400));
}

static void small_ones(test_rank *self)
{
    struct storm storm = {all_kinds, CALL_KIND_COUNT, SMALL, false, false};
    blow(self, &storm, test_scaled(self, 800));
}

static void with_meetings(test_rank *self)
{
    struct storm storm = {all_kinds, CALL_KIND_COUNT, 600, true, false};
    blow(self, &storm, test_scaled(self, 300));
}

static void roots_change(test_rank *self)
{
    struct storm storm = {rooted_kinds, 4, most_of(self), false, false};
    blow(self, &storm, test_scaled(self, 400));
}

static void roots_run_ahead(test_rank *self)
{
    struct storm storm = {rooted_kinds, 4, SMALL, false, true};
    blow(self, &storm, test_scaled(self, 600));
}

/* ---- a root that never waits for anybody ---- */

/* Rank 0 broadcasts as fast as it can; each of the others takes its time, one a long one. */
static void broadcasts_to_the_slow(test_rank *self)
{
    enum { COUNT = 900 };
    static const size_t counts[] = {1, 9, COUNT, 64};
    uint32_t data[COUNT];
    uint64_t own = self->seed + (uint64_t)self->rank;
    coh_team *team = coh_team_world(self->world);
    for (uint32_t round = 0; round < (uint32_t)test_scaled(self, 600); round++) {
        size_t count = counts[round % 4];
        for (size_t i = 0; i < count; i++)
            data[i] = self->rank == 0 ? round * 1000 + (uint32_t)i : 0xffffffff;
        if (self->rank != 0 && test_random(&own) % 40 == 0)
            test_sleep(0.002);
        if (!CHECK_OK(coh_broadcast(team, COH_U32, data, data, count, 0)))
            return;
        for (size_t i = 0; i < count; i++)
            if (!CHECK_EQ(data[i], round * 1000 + (uint32_t)i))
                return;
    }
}

/* The others give as fast as they can, and the root is slow to take. */
static void gathered_by_the_slow(test_rank *self)
{
    enum { COUNT = 300 };
    uint32_t mine[COUNT], all[16 * COUNT], sum[COUNT];
    coh_team *team = coh_team_world(self->world);
    uint32_t n = (uint32_t)self->size, rounds = (uint32_t)test_scaled(self, 400);
    for (uint32_t round = 0; round < rounds; round++) {
        size_t count = round % 3 == 0 ? COUNT : 1 + round % 7;
        int root = (int)(round / 50 % n);
        for (size_t i = 0; i < count; i++)
            mine[i] = (uint32_t)self->rank * 100000 + round * 10 + (uint32_t)i;
        if (self->rank == root && round % 20 == 0)
            test_sleep(0.002);
        if (!CHECK_OK(coh_gather(team, COH_U32, mine, all, count, root))
            || !CHECK_OK(coh_reduce(team, COH_U32, COH_SUM, mine, sum, count, root)))
            return;
        memset(mine, 0x5a, sizeof mine);
        for (uint32_t i = 0; self->rank == root && i < n * count; i++) {
            uint32_t k = i % (uint32_t)count, r = i / (uint32_t)count;
            uint32_t expected = n * (n - 1) / 2 * 100000 + n * (round * 10 + k);
            if (!CHECK_EQ(all[i], r * 100000 + round * 10 + k) || !CHECK_EQ(sum[k], expected))
                return;
        }
    }
}

const test_case conform_coll_storms[] = {
    CASE(any_after_any, "S41", ON_ALL | ON_CARD, ANY_SIZE, .limit_s = 90),
    CASE(small_ones, "S17 S41", ON_ALL | ON_CARD, ANY_SIZE, .limit_s = 90),
    CASE(with_meetings, "S15 S17", ON_ALL | ON_CARD, FROM_TWO, .limit_s = 90),
    CASE(roots_change, "S17 S41", ON_ALL, FROM_TWO, .limit_s = 90),
    CASE(roots_run_ahead, "S17", ON_ALL, FROM_TWO, .limit_s = 90),
    CASE(broadcasts_to_the_slow, "S17 S41", ON_ALL, FROM_TWO, .limit_s = 60),
    CASE(gathered_by_the_slow, "S17 S41", ON_ALL, FROM_TWO, .limit_s = 60),
};
CONFORM_COUNT(coll_storms);
