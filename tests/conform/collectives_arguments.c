/* What a collective refuses, on all ranks alike: the error names the value, and nothing is written.
 * docs/semantics.md S23, S34 and S36. */
#include "conform.h"

#include "sabotage.h"

static bool open_rig(test_rank *self, call_rig *rig)
{
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = 64};
    return call_rig_open(rig, self->world, call_bytes(&largest, self->size));
}

static bool works(test_rank *self, call_rig *rig, coh_team *team, call_kind kind)
{
    test_call call = sabotage_call(kind, self->seed);
    return call_perform(rig, team, &call);
}

/* All spoil it in the same way; where only some members can, nothing is tried. */
static void refuse(test_rank *self, call_rig *rig, const sabotage *row, call_kind kind, int turn)
{
    coh_team *team = coh_team_world(self->world);
    test_call good = sabotage_call(kind, self->seed + (uint64_t)turn), bad = good;
    call_prepare(rig, team, &good);
    bool partly = call_table[kind].rooted && self->size > 1
                  && (test_holds(row->words, "source") || test_holds(row->words, "target")
                      || test_holds(row->words, "overlap"));
    if (!row->spoil(rig, &bad, team) || partly)
        return;
    call_expect_nothing(rig);
    if (sabotage_check(row, &bad, sabotage_outcome(rig, team, &bad)))
        call_check(rig, &good);
}

static void refused_by_all(test_rank *self)
{
    call_rig rig;
    call_kind kind = call_kind_in(self->row->name);
    if (!open_rig(self, &rig))
        return;
    for (const sabotage *row = sabotages; row->name && !test_failed(); row++)
        for (int turn = 0; turn < 4; turn++)
            refuse(self, &rig, row, kind, turn);
    if (!test_failed() && works(self, &rig, coh_team_world(self->world), kind))
        call_rig_close(&rig);
}

/* Nothing is told through what is not a team. */
static void not_a_team(test_rank *self)
{
    call_rig rig;
    coh_team *team = NULL;
    if (!open_rig(self, &rig))
        return;
    for (call_kind kind = 0; kind < CALL_KIND_COUNT; kind++) {
        test_call call = sabotage_call(kind, 0);
        if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &team)))
            return;
        call_prepare(&rig, team, &call);
        call_expect_nothing(&rig);
        CHECK_OK(coh_team_destroy(team));
        CHECK_STATUS(call_make(&rig, NULL, &call), COH_INVALID_ARGUMENT);
        CHECK_STATUS(call_make(&rig, team, &call), COH_INVALID_ARGUMENT);
        call.started = true;
        CHECK(sabotage_outcome(&rig, NULL, &call) == COH_INVALID_ARGUMENT);
        CHECK(sabotage_outcome(&rig, team, &call) == COH_INVALID_ARGUMENT);
        if (!call_check(&rig, &call))
            return;
    }
    CHECK_OK(coh_barrier(self->world));
    call_rig_close(&rig);
}

static void missing_arrays(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    float source[64] = {0}, target[64];
    size_t ones[CALL_MEMBERS];
    for (int i = 0; i < CALL_MEMBERS; i++)
        ones[i] = 1;
    coh_parts parts = {ones, NULL}, none = {NULL, NULL};
    CHECK_REFUSED(coh_reduce_scatter_v(team, COH_F32, COH_SUM, source, target, NULL),
                  COH_INVALID_ARGUMENT, "counts|NULL");
    CHECK_REFUSED(coh_all_gather_v(team, COH_F32, source, target, NULL), COH_INVALID_ARGUMENT,
                  "counts|NULL");
    CHECK_REFUSED(coh_gather_v(team, COH_F32, source, target, NULL, 0), COH_INVALID_ARGUMENT,
                  "counts|NULL");
    CHECK_REFUSED(coh_scatter_v(team, COH_F32, source, target, NULL, 0), COH_INVALID_ARGUMENT,
                  "counts|NULL");
    CHECK_REFUSED(coh_all_to_all_v(team, COH_F32, source, NULL, target, &parts),
                  COH_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(coh_all_to_all_v(team, COH_F32, source, &parts, target, NULL),
                  COH_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(coh_all_to_all_v(team, COH_F32, source, &none, target, &parts),
                  COH_INVALID_ARGUMENT, "counts|NULL");
    CHECK_OK(coh_all_to_all_v(team, COH_F32, source, &parts, target, &parts));
}

/* Without a place for the request nothing is started. */
static void no_request(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    float one = 1, two = 2, four[CALL_MEMBERS];
    CHECK_REFUSED(coh_all_reduce_start(team, COH_F32, COH_SUM, &one, &two, 1, NULL),
                  COH_INVALID_ARGUMENT, "request|NULL");
    CHECK_REFUSED(coh_broadcast_start(team, COH_F32, &one, &two, 1, 0, NULL), COH_INVALID_ARGUMENT,
                  "request|NULL");
    CHECK_REFUSED(coh_all_gather_start(team, COH_F32, &one, four, 1, NULL), COH_INVALID_ARGUMENT,
                  "request|NULL");
    CHECK_REFUSED(coh_barrier_start(team, NULL), COH_INVALID_ARGUMENT, "request|NULL");
    CHECK(two > 1.5f);
    CHECK_OK(coh_barrier(self->world));
}

/* With nothing to move, no buffer is needed; the members still meet in order. */
static void nothing_needs_no_memory(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    size_t none[CALL_MEMBERS] = {0};
    coh_parts parts = {none, NULL};
    CHECK_OK(coh_all_reduce(team, COH_F32, COH_SUM, NULL, NULL, 0));
    CHECK_OK(coh_reduce(team, COH_F32, COH_SUM, NULL, NULL, 0, 0));
    CHECK_OK(coh_reduce_scatter(team, COH_F32, COH_SUM, NULL, NULL, 0));
    CHECK_OK(coh_reduce_scatter_v(team, COH_F32, COH_SUM, NULL, NULL, none));
    CHECK_OK(coh_all_gather(team, COH_F32, NULL, NULL, 0));
    CHECK_OK(coh_all_gather_v(team, COH_F32, NULL, NULL, none));
    CHECK_OK(coh_gather(team, COH_F32, NULL, NULL, 0, 0));
    CHECK_OK(coh_scatter(team, COH_F32, NULL, NULL, 0, 0));
    CHECK_OK(coh_broadcast(team, COH_F32, NULL, NULL, 0, 0));
    CHECK_OK(coh_all_to_all(team, COH_F32, NULL, NULL, 0));
    CHECK_OK(coh_all_to_all_v(team, COH_F32, NULL, &parts, NULL, &parts));
    CHECK_OK(coh_all_to_all_strided(team, COH_F32, NULL, 1, NULL, 1, 0));
    CHECK_OK(coh_scan(team, COH_F32, COH_SUM, NULL, NULL, 0));
    CHECK_OK(coh_scan_exclusive(team, COH_F32, COH_SUM, NULL, NULL, 0));
}

/* Of a call that is made again all is checked that can have changed. */
static void repeated_with_other_arguments(test_rank *self)
{
    enum { COUNT = 8, TURNS = 6 };
    coh_team *team = coh_team_world(self->world);
    int32_t source[2][COUNT], target[2][COUNT], sum = self->size * (self->size + 1) / 2;
    for (int i = 0; i < 2 * COUNT; i++)
        source[i / COUNT][i % COUNT] = self->rank + 1;
    for (int turn = 0; turn < TURNS && !test_failed(); turn++) {
        int32_t *from = source[turn % 2], *to = target[turn / 2 % 2];
        to[COUNT - 1] = 0;
        CHECK_OK(coh_all_reduce(team, COH_I32, COH_SUM, from, to, COUNT));
        CHECK_EQ(to[COUNT - 1], sum);
        CHECK_REFUSED(coh_all_reduce(team, COH_I32, COH_SUM, from, from + 1, COUNT),
                      COH_INVALID_ARGUMENT, "overlap");
        CHECK_REFUSED(coh_all_reduce(team, COH_I32, COH_SUM, from, NULL, COUNT),
                      COH_INVALID_ARGUMENT, "target|NULL");
        CHECK_REFUSED(coh_all_reduce(team, COH_I32, COH_SUM, NULL, to, COUNT), COH_INVALID_ARGUMENT,
                      "source|NULL");
        CHECK_REFUSED(coh_all_reduce(team, (coh_dtype)(COH_I32 + 4096), COH_SUM, from, to, COUNT),
                      COH_INVALID_ARGUMENT, "type");
        CHECK_REFUSED(coh_all_reduce(team, COH_I32, (coh_reduce_op)4096, from, to, COUNT),
                      COH_INVALID_ARGUMENT, "reduction");
        CHECK_OK(coh_all_reduce(team, COH_I32, COH_SUM, from, to, COUNT));
        CHECK_EQ(to[COUNT - 1], sum);
    }
    CHECK_OK(coh_all_reduce(team, COH_I32, COH_SUM, source[0], source[0], COUNT));
    CHECK_EQ(source[0][0], sum);
}

#define REFUSED(constant, kind, reduces, rooted, in_place) \
    {.name = "refused_by_all_" #kind,                      \
     .rows = "S23 S34 S36",                                \
     .body = refused_by_all,                               \
     .engines = ON_ALL,                                    \
     .sizes = SIZE(1) | SIZE(3)},

const test_case conform_coll_arguments[] = {
    CALL_KINDS(REFUSED) CASE(not_a_team, "F17", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(missing_arrays, "F17", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(no_request, "F17", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(nothing_needs_no_memory, "S37", ON_ALL, ANY_SIZE),
    CASE(repeated_with_other_arguments, "S23 S34", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(coll_arguments);
