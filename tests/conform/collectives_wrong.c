/* What is wrong on one rank is told to all that need something of it: none waits, none believes it
 * a success, and the team goes on. */
#include "conform.h"

#include "sabotage.h"

#include <stdio.h>
#include <string.h>

/* Whether the member needs something of the odd one. Otherwise it may be through with its part. */
static bool depends(const test_call *call, int member, int odd)
{
    switch (call->kind) {
    case CALL_REDUCE:
    case CALL_GATHER:
    case CALL_GATHER_V:
        return member == call->root;
    case CALL_SCATTER:
    case CALL_SCATTER_V:
    case CALL_BROADCAST:
        return odd == call->root;
    case CALL_SCAN:
    case CALL_SCAN_EXCLUSIVE:
        return member > odd;
    default:
        return true;
    }
}

static void spoil(call_rig *rig, const sabotage *row, coh_team *team, const test_call *good)
{
    test_call bad = *good;
    call_expect_nothing(rig);
    if (CHECK(row->spoil(rig, &bad, team))
        && sabotage_check(row, &bad, sabotage_outcome(rig, team, &bad)))
        call_check(rig, good);
}

/* The one that is wrong is told of its own mistake, the others of the rank that made it. */
static void spoil_on(test_rank *self, call_rig *rig, const sabotage *row, const test_call *good,
                     int odd)
{
    coh_team *team = coh_team_world(self->world);
    char text[256], words[32];
    call_prepare(rig, team, good);
    if (self->rank == odd) {
        spoil(rig, row, team, good);
        return;
    }
    coh_status status = sabotage_outcome(rig, team, good);
    snprintf(words, sizeof words, "rank %d", odd);
    bool told = status != COH_OK && test_holds(coh_last_error(), words);
    if (!told && (status != COH_OK || depends(good, self->rank, odd)))
        test_fail("%s on rank %d alone: %s ended here with %s and \"%s\"", row->name, odd,
                  call_text(good, text), coh_status_name(status), coh_last_error());
}

/* Whether the odd member of such a call has what the row spoils. */
static bool concerns(const sabotage *row, const test_call *good, coh_team *team, int odd)
{
    unsigned char bytes[4096];
    call_rig scratch = {.source = bytes, .target = bytes};
    test_call call = *good;
    int me = coh_team_index(team); /* as if this member were the odd one */
    call.root = good->root == odd ? me : (me + 1) % coh_team_size(team);
    return row->spoil(&scratch, &call, team);
}

static bool try_row(test_rank *self, call_rig *rig, const sabotage *row, call_kind kind, int odd,
                    int root)
{
    coh_team *team = coh_team_world(self->world);
    test_call good = sabotage_call(kind, self->seed + (uint64_t)odd), after = good;
    good.root = root;
    if (!concerns(row, &good, team, odd))
        return true;
    spoil_on(self, rig, row, &good, odd);
    if (test_failed())
        return false;
    after.root = self->size / 2;
    if (call_perform(rig, team, &after) && CHECK_OK(coh_team_sync(team)))
        return true;
    test_fail("that was after %s on rank %d", row->name, odd);
    return false;
}

static void wrong_on_one(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = 64};
    int n = self->size, step = n > 2 ? n - 1 : 1; /* the first and the last */
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (const sabotage *row = sabotages; row->name; row++)
        for (int odd = 0; odd < n; odd += step)
            if (!try_row(self, &rig, row, kind, odd, odd)
                || !try_row(self, &rig, row, kind, odd, (odd + 1) % n))
                return;
    call_rig_close(&rig);
}

/*
 * A refused call leaves no trace in what the next one chooses. Of three members the limit of
 * one-shot scatters is within a class of sizes; the first call is above it, the second below.
 */
static void refused_then_right(test_rank *self)
{
    enum { ABOVE = 12000, BELOW = 9000 };
    coh_team *team = coh_team_world(self->world);
    static unsigned char sources[ABOVE * TEST_RANKS_MAX], targets[TEST_RANKS_MAX][ABOVE];
    unsigned char *target = targets[self->rank];
    int odd = self->size - 1;
    const void *source = self->rank == 0 ? sources : NULL;
    if (self->rank == 0)
        memset(sources, 1, sizeof sources);
    coh_status status =
        coh_scatter(team, COH_U8, source, self->rank == odd ? NULL : target, ABOVE, 0);
    CHECK(self->rank == odd ? status == COH_INVALID_ARGUMENT
                            : status == COH_OK || status == COH_INVALID_ARGUMENT);
    if (CHECK_OK(coh_scatter(team, COH_U8, source, target, BELOW, 0)))
        for (int i = 0; i < BELOW; i++)
            if (!CHECK_EQ(target[i], 1))
                return;
}

/* Strides that are not the same on all are told with both members' own. The team is broken then. */
static void strides_differ(test_rank *self)
{
    enum { COUNT = 40 };
    static int32_t areas[TEST_RANKS_MAX][2][COUNT * 2 * TEST_RANKS_MAX];
    coh_team *team;
    bool odd = self->rank == self->size - 1;
    if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &team)))
        return;
    CHECK_REFUSED(coh_all_to_all_strided(team, COH_I32, areas[self->rank][0], odd ? 1 : 2,
                                         areas[self->rank][1], odd ? 2 : 1, COUNT),
                  COH_MISMATCH, "strides 2 and 1|strides 1 and 2");
}

/*
 * A call that is made again and again is compared by what it was when it was first made. Here one
 * member changes the count after more calls than there are places to post them; the error message
 * has both members' arguments.
 */
static void differs_after_many_alike(test_rank *self)
{
    enum { ALIKE = 11, COUNT = 3 };
    coh_team *team;
    int32_t source[COUNT + 1] = {1, 2, 3, 4}, target[COUNT + 1];
    bool odd = self->rank == self->size - 1;
    if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &team)))
        return;
    for (int i = 0; i < ALIKE; i++)
        CHECK_OK(coh_all_reduce(team, COH_I32, COH_SUM, source, target, COUNT));
    CHECK_REFUSED(coh_all_reduce(team, COH_I32, COH_SUM, source, target, odd ? COUNT + 1 : COUNT),
                  COH_MISMATCH, "sum of 3 i32|sum of 4 i32");
}

/* ---- one that cannot back its staging area ---- */

enum { BLOCK = 100 }; /* of u64: one fits a post, two do not */

/* The root gives the blocks of all members at once. */
static void scatter_without_memory(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    uint64_t source[BLOCK * TEST_RANKS_MAX], target[BLOCK];
    test_fill(source, sizeof source, self->seed);
    CHECK_STATUS(coh_scatter(team, COH_U64, source, target, BLOCK, 0), COH_NO_MEMORY);
    if (CHECK_OK(coh_scatter(team, COH_U64, source, target, BLOCK, 0)))
        CHECK(memcmp(target, source + self->rank * BLOCK, sizeof target) == 0);
}

/* What would fit a post is staged all the same where it is asked for. */
static void staged_without_memory(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    uint64_t one = 1, sum = 0;
    CHECK_STATUS(coh_all_reduce(team, COH_U64, COH_SUM, &one, &sum, 1), COH_NO_MEMORY);
    if (CHECK_OK(coh_all_reduce(team, COH_U64, COH_SUM, &one, &sum, 1)))
        CHECK_EQ(sum, (uint64_t)self->size);
}

#define WRONG(constant, kind, reduces, rooted, in_place) \
    {.name = "wrong_on_one_" #kind,                      \
     .rows = "S42 F17",                                  \
     .body = wrong_on_one,                               \
     .engines = ON_ALL,                                  \
     .sizes = SIZE(2) | SIZE(3) | SIZE(5),               \
     .limit_s = 40},

const test_case conform_coll_wrong[] = {
    CALL_KINDS(WRONG) CASE(refused_then_right, "S42", ON_ALL, FROM_TWO),
    CASE(strides_differ, "S42", ON_ALL, FROM_TWO),
    CASE(differs_after_many_alike, "S42", ON_ALL, FROM_TWO),
    CASE(scatter_without_memory, "S42 S57", ON_MAPPED, FROM_TWO,
         .environment = "COHORT_FAULT=fail@commit,rank=0 COHORT_SCATTER=one-shot"),
    CASE(staged_without_memory, "S42 S57", ON_MAPPED, FROM_TWO,
         .environment = "COHORT_FAULT=fail@commit,rank=0 COHORT_ALL_REDUCE=staged"),
};
CONFORM_COUNT(coll_wrong);
