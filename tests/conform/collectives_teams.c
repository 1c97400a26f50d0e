/* Collectives of teams: of parts, in other orders, several at once:
 * docs/semantics.md S18 and S34. */
#include "conform.h"

#include "collectives/calls.h"

#include <pthread.h>

enum { MOST = 700, PARTIES = 4 };

/* A call drawn by a number that all members share. */
static test_call draw_call(uint64_t *dice, int members, size_t most)
{
    static const coh_dtype dtypes[] = {COH_F32, COH_I32, COH_U8, COH_F64, COH_F16};
    uint64_t draw = test_random(dice);
    test_call call = {.kind = (call_kind)(draw % CALL_KIND_COUNT),
                      .dtype = dtypes[(draw >> 8) % 5],
                      .op = (draw >> 16) % 2 ? COH_SUM : COH_MIN,
                      .root = (int)((draw >> 20) % (uint64_t)members),
                      .parts = (call_parts)((draw >> 28) % PARTS_COUNT),
                      .place = (call_place)((draw >> 32) % PLACE_COUNT),
                      .in_place = draw >> 36 & 1,
                      .started = (draw >> 37) % 4 == 0,
                      .shifted = draw >> 40 & 1,
                      .seed = test_random(dice)};
    call.count = (size_t)(draw >> 44) % ((draw >> 41) % 4 ? 40 : most);
    return call;
}

static size_t room_of(int members)
{
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = MOST};
    return call_bytes(&largest, members);
}

static bool many_calls(const test_rank *self, call_rig *rig, coh_team *team, uint64_t dice,
                       int calls)
{
    for (int i = 0; i < calls && !test_failed(); i++) {
        test_call call = draw_call(&dice, coh_team_size(team), MOST);
        if (!call_perform(rig, team, &call)) {
            test_fail("that was call %d on a team of %d, seed %llu", i, coh_team_size(team),
                      (unsigned long long)self->seed);
            return false;
        }
    }
    return true;
}

/* Each kind of team, of which every rank makes the calls of those that it is in. */
static void every_kind_of_team(test_rank *self)
{
    enum { TEAMS = 6 };
    coh_team *world = coh_team_world(self->world), *teams[TEAMS] = {NULL};
    int n = self->size, list[TEST_RANKS_MAX];
    call_rig rig;
    for (int i = 0; i < n; i++) /* a permutation: 3 is prime to what it goes with */
        list[i] = (n % 3 ? i * 3 + 1 : i + 1) % n;
    if (!call_rig_open(&rig, self->world, room_of(n))
        || !CHECK_OK(coh_team_split_strided(world, n - 1, -1, n, &teams[0]))
        || !CHECK_OK(coh_team_split_strided(world, 0, 2, (n + 1) / 2, &teams[1]))
        || !CHECK_OK(coh_team_split_color(world, self->rank % 2, -self->rank, &teams[2]))
        || !CHECK_OK(coh_team_from_list(world, list, n, &teams[3]))
        || !CHECK_OK(coh_team_split_strided(world, self->size / 2, 0, 1, &teams[4]))
        || !CHECK_OK(coh_team_split_color(world, self->rank, 0, &teams[5])))
        return;
    for (int i = 0; i < TEAMS; i++)
        if (teams[i]
            && !many_calls(self, &rig, teams[i], self->seed + (uint64_t)i, test_scaled(self, 60)))
            return;
    if (!many_calls(self, &rig, coh_team_host(self->world), self->seed + 9, test_scaled(self, 20)))
        return;
    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(coh_team_destroy(teams[i]));
    call_rig_close(&rig);
}

/* Even and odd ranks do different things, a different number of times. */
static void disjoint_teams_at_once(test_rank *self)
{
    coh_team *mine = NULL;
    call_rig rig;
    bool even = self->rank % 2 == 0;
    if (!call_rig_open(&rig, self->world, room_of(self->size))
        || !CHECK_OK(coh_team_split_color(coh_team_world(self->world), even, 0, &mine))
        || !many_calls(self, &rig, mine, self->seed + even, test_scaled(self, even ? 300 : 200)))
        return;
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_team_destroy(mine));
    call_rig_close(&rig);
}

/* ---- overlapping teams, a thread each ---- */

struct party {
    test_rank *self;
    coh_team *team;
    call_rig rig;
    uint64_t dice;
    pthread_t thread;
    bool started;
};

static void *attend(void *arg)
{
    struct party *party = arg;
    test_this_is_rank(party->self->rank);
    many_calls(party->self, &party->rig, party->team, party->dice, test_scaled(party->self, 150));
    return NULL;
}

/* All, all reversed, the first half and the second with one in common. */
static void overlapping_teams_at_once(test_rank *self)
{
    static struct party crews[TEST_RANKS_MAX][PARTIES]; /* ranks may share a process */
    struct party *parties = crews[self->rank];
    int n = self->size, half = n / 2 + 1;
    const int shapes[PARTIES][3] = {{0, 1, n}, {n - 1, -1, n}, {0, 1, half}, {n - half, 1, half}};
    coh_team *world = coh_team_world(self->world);
    for (int i = 0; i < PARTIES; i++) {
        parties[i] = (struct party){.self = self, .dice = self->seed + (uint64_t)i};
        if (!call_rig_open(&parties[i].rig, self->world, room_of(n))
            || !CHECK_OK(coh_team_split_strided(world, shapes[i][0], shapes[i][1], shapes[i][2],
                                                &parties[i].team)))
            return;
    }
    for (int i = 0; i < PARTIES; i++)
        if (parties[i].team)
            parties[i].started =
                CHECK(pthread_create(&parties[i].thread, NULL, attend, &parties[i]) == 0);
    for (int i = 0; i < PARTIES; i++)
        if (parties[i].started)
            pthread_join(parties[i].thread, NULL);
    for (int i = 0; i < PARTIES && !test_failed(); i++)
        if (CHECK_OK(coh_team_destroy(parties[i].team)))
            call_rig_close(&parties[i].rig);
}

/* ---- order ---- */

/* Members of a reversed team are counted from its own 0. */
static void roots_are_indices(test_rank *self)
{
    coh_team *team;
    int n = self->size;
    int64_t mine = self->rank, all[TEST_RANKS_MAX], heard = -1;
    if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), n - 1, -1, n, &team)))
        return;
    CHECK_OK(coh_broadcast(team, COH_I64, &mine, &heard, 1, 0));
    CHECK_EQ(heard, n - 1);
    CHECK_OK(coh_all_gather(team, COH_I64, &mine, all, 1));
    for (int i = 0; i < n; i++)
        CHECK_EQ(all[i], n - 1 - i);
    CHECK_OK(coh_scan(team, COH_I64, COH_SUM, &mine, &heard, 1));
    int64_t sum = 0;
    for (int rank = self->rank; rank < n; rank++)
        sum += rank;
    CHECK_EQ(heard, sum);
    CHECK_OK(coh_team_destroy(team));
}

/* Teams come and go; a new one in the place of an old one starts afresh. */
static void teams_one_after_another(test_rank *self)
{
    call_rig rig;
    int n = self->size;
    if (!call_rig_open(&rig, self->world, room_of(n)))
        return;
    for (int i = 0; i < test_scaled(self, 60) && !test_failed(); i++) {
        coh_team *team = NULL;
        int size = 1 + i % n, start = i % (n - size + 1);
        if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), start, 1, size, &team))
            || (team && !many_calls(self, &rig, team, self->seed + (uint64_t)i, 4))
            || !CHECK_OK(coh_team_destroy(team)))
            return;
    }
    call_rig_close(&rig);
}

const test_case conform_coll_teams[] = {
    CASE(every_kind_of_team, "S34", ON_ALL | ON_CARD, ANY_SIZE, .limit_s = 60),
    CASE(disjoint_teams_at_once, "S18", ON_ALL | ON_CARD, FROM_TWO, .limit_s = 60),
    CASE(overlapping_teams_at_once, "S18", ON_ALL | ON_CARD, FROM_TWO, .limit_s = 60),
    CASE(roots_are_indices, "S34", ON_ALL, ANY_SIZE),
    CASE(teams_one_after_another, "S35", ON_ALL, ANY_SIZE, .limit_s = 60),
};
CONFORM_COUNT(coll_teams);
