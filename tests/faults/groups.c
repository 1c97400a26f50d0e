/* Teams with a lost member, and teams whose members disagree: docs/faults.md F1, F18, F26, F34. */
#include "faults.h"

#include <stdatomic.h>
#include <string.h>

enum { VICTIM_RANK = 1, OUTSIDER = 2 };

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t finished;
};

static bool make_team(test_rank *self, const int *list, int count, coh_team **team)
{
    *team = NULL;
    return CHECK_OK(coh_team_from_list(coh_team_world(self->world), list, count, team));
}

static void leave_together(test_rank *self, int ranks)
{
    struct scene *scene = self->shared;
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)ranks, 10));
    (void)coh_finalize(self->world); /* it may report what was found; it must come back */
}

/* ---- a lost member ---- */

static void check_broken(test_rank *self, coh_team *team)
{
    struct scene *scene = self->shared;
    coh_team *child = NULL;
    coh_status status = COH_OK;
    for (int i = 0; status == COH_OK && i < 1000000; i++) /* its last meetings may still succeed */
        status = coh_team_sync(team);
    fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    CHECK_REFUSED(coh_team_barrier(team), COH_PEER_LOST, "rank 1|coh_team_barrier");
    CHECK_REFUSED(coh_team_split_strided(team, 0, 1, 1, &child), COH_PEER_LOST, "rank 1");
    CHECK(child == NULL);
    CHECK_REFUSED(coh_team_destroy(team), COH_PEER_LOST, "rank 1");
}

/* Meetings and splits of teams that the lost rank is not in. */
static void check_whole(coh_team *team)
{
    coh_team *child = NULL;
    for (int i = 0; i < 100; i++)
        if (!CHECK_OK(coh_team_sync(team)) || !CHECK_OK(coh_team_barrier(team)))
            return;
    if (CHECK_OK(
            coh_team_split_strided(team, coh_team_size(team) - 1, -1, coh_team_size(team), &child)))
        CHECK_OK(coh_team_sync(child));
    CHECK_OK(coh_team_destroy(child));
    CHECK_OK(coh_team_destroy(team));
}

/* Of {0,1}, {2,3}, {3,0,2} and all, those with rank 1 fail and the others go on. */
static void other_teams_go_on(test_rank *self)
{
    static const int lists[3][3] = {{0, 1}, {2, 3}, {3, 0, 2}};
    static const int counts[3] = {2, 2, 3};
    struct scene *scene = self->shared;
    coh_team *teams[3];
    if (strcmp(self->engine, "mlx:ring") == 0) {
        test_skip("MLX's group needs all its ranks: no team goes on after a loss");
        return;
    }
    if (!CHECK_OK(test_join(self)))
        return;
    for (int i = 0; i < 3; i++)
        if (!make_team(self, lists[i], counts[i], &teams[i]))
            return;
    coh_status met = coh_barrier(self->world); /* may be hit already: the victim runs ahead */
    if (self->rank == VICTIM_RANK) {
        fault_stamp(&scene->stamps[VICTIM_RANK]);
        fault_die(self);
        return;
    }
    CHECK(met == COH_OK || met == COH_PEER_LOST);
    if (teams[0])
        check_broken(self, teams[0]);
    if (teams[1])
        check_whole(teams[1]);
    check_whole(teams[2]);
    CHECK_REFUSED(coh_team_sync(coh_team_world(self->world)), COH_PEER_LOST, "rank 1");
    leave_together(self, 3);
}

/* Rank 2 is lost, rank 1 leaves because of it, and rank 0 meets rank 1 in a team of the two: that
 * rank 1 had a reason does not help a rank that waits for it. */
static void member_leaves_after_a_loss(test_rank *self)
{
    static const int pair[] = {0, 1};
    coh_team *team;
    if (!CHECK_OK(test_join(self)) || !make_team(self, pair, 2, &team))
        return;
    coh_status status = coh_barrier(self->world); /* may be hit already: the victim runs ahead */
    if (self->rank == OUTSIDER) {
        fault_die(self);
        return;
    }
    if (status == COH_OK)
        status = coh_barrier(self->world);
    CHECK_REFUSED(status, COH_PEER_LOST, "rank 2");
    if (self->rank == 0) {
        double began = test_now();
        CHECK_REFUSED(coh_team_barrier(team), COH_PEER_LOST, "rank 1|coh_team_barrier");
        CHECK(test_now() - began < 5);
    }
    (void)coh_finalize(self->world); /* it may report what was found; it must come back */
}

/* ---- members that disagree ---- */

/* A mismatch shows at this call, or, for a member that had done its part, at its next. */
static void expect_mismatch(coh_team *team, coh_status status, const char *words)
{
    if (status == COH_OK)
        status = coh_team_sync(team);
    CHECK_REFUSED(status, COH_MISMATCH, words);
}

/* Ranks 0 and 1 disagree in a team of theirs; the world and a team that shares rank 0 go on. */
static void mismatch_stays_in_its_team(test_rank *self)
{
    static const int pair[] = {1, 0}, others[] = {0, 2, 3};
    coh_team *broken, *whole;
    if (!CHECK_OK(test_join(self)) || !make_team(self, pair, 2, &broken)
        || !make_team(self, others, 3, &whole))
        return;
    if (broken)
        expect_mismatch(broken, self->rank == 0 ? coh_team_sync(broken) : coh_team_barrier(broken),
                        "team_sync|team_barrier");
    if (whole)
        check_whole(whole);
    for (int i = 0; i < 50; i++)
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
    if (make_team(self, others, 3, &whole) && whole)
        check_whole(whole);
    leave_together(self, 4);
}

static void destroy_against_sync(test_rank *self)
{
    static const int all[] = {2, 1, 0};
    coh_team *team;
    if (!CHECK_OK(test_join(self)) || !make_team(self, all, 3, &team))
        return;
    expect_mismatch(team, self->rank == 0 ? coh_team_destroy(team) : coh_team_sync(team),
                    "team_destroy|team_sync");
    CHECK_OK(coh_barrier(self->world));
    leave_together(self, 3);
}

static coh_status reduce_in(coh_team *team)
{
    int64_t value = 1, sum;
    return coh_all_reduce(team, COH_I64, COH_SUM, &value, &sum, 1);
}

/* Over hosts one waits for messages, and the other for flags: only a leader that sleeps tells. One that
 * destroys does not, wherever it stands among the hosts. */
static void destroy_against_all_reduce(test_rank *self)
{
    static const int all[] = {2, 1, 0};
    coh_team *team;
    if (!CHECK_OK(test_join(self)))
        return;
    for (int odd = 0; odd < 3 && !test_failed(); odd++)
        for (int turn = 0; turn < 2; turn++) {
            if (!make_team(self, all, 3, &team))
                return;
            bool destroys = (self->rank == odd) == (turn == 0);
            expect_mismatch(team, destroys ? coh_team_destroy(team) : reduce_in(team),
                            "team_destroy|all_reduce");
            CHECK_OK(coh_barrier(self->world));
        }
    leave_together(self, 3);
}

/* Unequal arguments are all members' to know of, with both. */
static void unequal_splits(test_rank *self)
{
    static const int lists[2][3] = {{0, 1, 2}, {0, 2, 1}};
    coh_team *parent, *team = NULL;
    if (!CHECK_OK(test_join(self)))
        return;
    for (int turn = 0; turn < 3; turn++) {
        bool odd = self->rank == 1;
        if (!make_team(self, lists[0], 3, &parent))
            return;
        coh_status status = turn == 0   ? coh_team_split_strided(parent, 0, 1, odd ? 2 : 3, &team)
                            : turn == 1 ? coh_team_from_list(parent, lists[odd], 3, &team)
                            : odd       ? coh_team_split_color(parent, 0, 0, &team)
                                        : coh_team_split_strided(parent, 0, 1, 3, &team);
        expect_mismatch(parent, status,
                        turn == 0   ? "rank 1|size 2|size 3"
                        : turn == 1 ? "rank 1|team_from_list"
                                    : "team_split_color");
        CHECK(team == NULL);
    }
    CHECK_OK(coh_barrier(self->world));
    leave_together(self, 3);
}

/* One that asks for what is refused, while the others ask for what is not. */
static void unequal_and_wrong(test_rank *self)
{
    coh_team *parent, *team = NULL;
    static const int all[] = {0, 1, 2};
    if (!CHECK_OK(test_join(self)) || !make_team(self, all, 3, &parent))
        return;
    expect_mismatch(parent, coh_team_split_strided(parent, 0, self->rank == 2 ? 9 : 1, 3, &team),
                    "rank 2");
    CHECK(team == NULL);
    CHECK_OK(coh_barrier(self->world));
    leave_together(self, 3);
}

/* A width of its own on one rank. */
static void unequal_widths(test_rank *self)
{
    coh_team *parent, *row = NULL, *column = NULL;
    static const int all[] = {0, 1, 2, 3};
    if (!CHECK_OK(test_join(self)) || !make_team(self, all, 4, &parent))
        return;
    expect_mismatch(parent, coh_team_split_2d(parent, self->rank == 3 ? 1 : 2, &row, &column),
                    "2d");
    CHECK(row == NULL && column == NULL);
    CHECK_OK(coh_barrier(self->world));
    leave_together(self, 4);
}

#define ALIKE(function, size) \
    CASE(function, "F18", ON_ALL, SIZE(size), .mode = TEST_UNJOINED, .limit_s = 20)

const test_case fault_groups[] = {
    CASE(other_teams_go_on, "F1 F26", ON_ALL, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(member_leaves_after_a_loss, "F1 F26 F34", ON_ALL, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(OUTSIDER), .limit_s = 20),
    ALIKE(mismatch_stays_in_its_team, 4),
    ALIKE(destroy_against_sync, 3),
    ALIKE(destroy_against_all_reduce, 3),
    ALIKE(unequal_splits, 3),
    ALIKE(unequal_and_wrong, 3),
    ALIKE(unequal_widths, 4),
};
FAULT_COUNT(groups);
