/* Collectives of teams that span hosts: docs/semantics.md S34, S37, S38, S42. Where the ranks play no
 * hosts the same calls go by other algorithms. */
#include "conform.h"

#include "collectives/calls.h"

#include <string.h>

enum { LONG = 20000 }; /* elements: every member of a host takes a share of them */

static const coh_dtype dtypes[] = {COH_F32, COH_F16, COH_BF16, COH_I64, COH_U8, COH_BOOL};

static bool perform(call_rig *rig, coh_team *team, test_call call)
{
    if (!team)
        return true;
    call.root %= coh_team_size(team);
    return call_perform(rig, team, &call);
}

/* Long arrays of every width, whole and in place. */
static void long_reductions(test_rank *self)
{
    test_call largest = {.kind = CALL_ALL_REDUCE, .dtype = COH_I64, .count = LONG};
    coh_team *team = coh_team_world(self->world);
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes && !test_failed(); i++) {
        test_call call = {.kind = i % 2 ? CALL_REDUCE : CALL_ALL_REDUCE,
                          .dtype = dtypes[i],
                          .op = COH_MAX,
                          .count = LONG - i,
                          .root = (int)i,
                          .place = i % 2 ? PLACE_PRIVATE : PLACE_HEAP,
                          .in_place = i % 3 == 0,
                          .seed = self->seed + i};
        (void)perform(&rig, team, call);
        call.kind = CALL_ALL_REDUCE;
        call.place = PLACE_BY_MEMBER;
        (void)perform(&rig, team, call);
    }
    call_rig_close(&rig);
}

/* The first rank of each host: no member is mapped to another. */
static bool open_leaders(test_rank *self, coh_team **team)
{
    int list[TEST_RANKS_MAX], count = 0;
    for (int rank = 0; rank < self->size; rank++) {
        int first = 0;
        while (first < rank && test_host_of(first, self->size) != test_host_of(rank, self->size))
            first++;
        if (first == rank)
            list[count++] = rank;
    }
    return CHECK_OK(coh_team_from_list(coh_team_world(self->world), list, count, team));
}

/* Teams whose members are scattered over the hosts, and all but one on one host. */
static void scattered_members(test_rank *self)
{
    enum { TEAMS = 4, COUNT = 300 };
    coh_team *world = coh_team_world(self->world), *teams[TEAMS] = {NULL};
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = COUNT};
    int n = self->size;
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, n)) || !open_leaders(self, &teams[0])
        || !CHECK_OK(coh_team_split_strided(world, n - 1, -2, (n + 1) / 2, &teams[1]))
        || !CHECK_OK(coh_team_split_strided(world, 1, 1, n - 1, &teams[2]))
        || !CHECK_OK(coh_team_split_color(world, self->rank % 2, -self->rank, &teams[3])))
        return;
    for (int i = 0; i < TEAMS * CALL_KIND_COUNT && !test_failed(); i++) {
        test_call call = {.kind = (call_kind)(i % CALL_KIND_COUNT),
                          .dtype = i % 5 ? COH_F32 : COH_U8,
                          .count = (size_t)(i % 7 ? i : COUNT),
                          .root = i,
                          .parts = (call_parts)(i % PARTS_COUNT),
                          .place = (call_place)(i % PLACE_COUNT),
                          .seed = self->seed + (uint64_t)i};
        call.op = call.kind == CALL_SCAN || call.kind == CALL_SCAN_EXCLUSIVE ? COH_SUM : COH_MEAN;
        if (call.dtype == COH_U8)
            call.op = COH_XOR;
        (void)perform(&rig, teams[i / CALL_KIND_COUNT], call);
    }
    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(coh_team_destroy(teams[i]));
    call_rig_close(&rig);
}

/* A member that has no memory for its part in the middle of a call: all members hear of it, on all
 * hosts, and the team goes on. */
static void no_memory_in_the_middle(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    size_t ones[TEST_RANKS_MAX];
    int32_t source[TEST_RANKS_MAX], target[TEST_RANKS_MAX];
    coh_parts parts = {ones, NULL};
    for (int i = 0; i < self->size; i++) {
        ones[i] = 1;
        source[i] = self->rank;
    }
    bool shares = test_hosts > 1 && test_hosts < self->size; /* some do a host, and are mapped */
    if (!shares || !test_has_memory(self->engine))
        return;
    CHECK_REFUSED(coh_all_to_all_v(team, COH_I32, source, &parts, target, &parts), COH_NO_MEMORY,
                  self->rank == 1 ? "COHORT_FAULT" : "rank 1");
    if (CHECK_OK(coh_all_to_all_v(team, COH_I32, source, &parts, target, &parts)))
        for (int i = 0; i < self->size; i++)
            CHECK_EQ(target[i], i);
}

/* Calls that differ on one rank after many that do not, on every rank in turn: each team is broken for
 * all of its members, with both sides' arguments, and other teams go on. */
static void differs_on_each_in_turn(test_rank *self)
{
    enum { COUNT = 5 };
    coh_team *world = coh_team_world(self->world), *team;
    int32_t source[COUNT + 1] = {1, 2, 3, 4, 5, 6}, target[COUNT + 1];
    for (int odd = 0; odd < self->size && !test_failed(); odd++) {
        if (!CHECK_OK(coh_team_split_strided(world, 0, 1, self->size, &team)))
            return;
        for (int i = 0; i < odd; i++)
            CHECK_OK(coh_broadcast(team, COH_I32, source, target, COUNT, i));
        size_t count = self->rank == odd ? COUNT + 1 : COUNT;
        CHECK_REFUSED(coh_all_reduce(team, COH_I32, COH_SUM, source, target, count), COH_MISMATCH,
                      "sum of 5 i32|sum of 6 i32");
        (void)coh_team_destroy(team);
        CHECK_OK(coh_barrier(self->world));
    }
}

const test_case conform_coll_hosts[] = {
    CASE(long_reductions, "S37", ON_ALL, FROM_TWO),
    CASE(scattered_members, "S34 S38", ON_ALL, SIZE(3) | SIZE(4) | SIZE(5) | SIZE(6) | SIZE(7)),
    CASE(no_memory_in_the_middle, "S42 S57", ON_ALL, FROM_TWO,
         .environment = "COHORT_FAULT=fail@commit,rank=1"),
    CASE(differs_on_each_in_turn, "S42", ON_ALL, FROM_TWO),
};
CONFORM_COUNT(coll_hosts);
