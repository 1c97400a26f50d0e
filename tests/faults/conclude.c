/* The last calls of a team, with nothing after them but finalize: docs/faults.md F18. */
#include "faults.h"

#include <stdatomic.h>

/* The first two ranks, who disagree; the others have nothing to do with it. */
enum { MEMBERS = 2 };

static bool join_pair(test_rank *self, coh_team **team)
{
    return CHECK_OK(test_join(self))
           && CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, MEMBERS, team));
}

/* What a member's calls, and then finalize, came to. */
static coh_status finalize_after(test_rank *self, coh_status status)
{
    if (status == COH_OK)
        return coh_finalize(self->world);
    (void)coh_finalize(self->world);
    return status;
}

static coh_status reduce_to(coh_team *team, int root)
{
    float one = 1, sum = 0;
    return coh_reduce(team, COH_F32, COH_SUM, &one, &sum, 1, root);
}

/* Each takes the other for the root, and needs nothing of it. */
static void last_roots_differ(test_rank *self)
{
    coh_team *team = NULL;
    if (!join_pair(self, &team))
        return;
    if (team)
        CHECK_REFUSED(finalize_after(self, reduce_to(team, 1 - self->rank)), COH_MISMATCH,
                      "reduce|root 0|root 1");
    else
        CHECK_OK(coh_finalize(self->world));
}

static void started_roots_differ(test_rank *self)
{
    coh_team *team = NULL;
    coh_request *request = NULL;
    float one = 1, sum = 0;
    if (!join_pair(self, &team))
        return;
    if (team) {
        CHECK_OK(coh_reduce_start(team, COH_F32, COH_SUM, &one, &sum, 1, 1 - self->rank, &request));
        CHECK_REFUSED(finalize_after(self, coh_request_wait(&request, NULL)), COH_MISMATCH,
                      "reduce|root 0|root 1");
    } else {
        CHECK_OK(coh_finalize(self->world));
    }
}

/* Not the last call, but no call since has told. */
static void earlier_roots_differ(test_rank *self)
{
    coh_team *team = NULL;
    coh_status status = COH_OK;
    if (!join_pair(self, &team))
        return;
    if (team)
        status = reduce_to(team, 1 - self->rank);
    if (team && status == COH_OK)
        status = reduce_to(team, 0);
    status = finalize_after(self, status);
    if (team)
        CHECK_REFUSED(status, COH_MISMATCH, "reduce|root 0|root 1");
    else
        CHECK_OK(status);
}

/* The root has left its broadcast; the other one never makes it. */
static void last_call_left_out(test_rank *self)
{
    coh_team *team = NULL;
    float value = 1;
    if (!join_pair(self, &team))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_broadcast(team, COH_F32, &value, &value, 1, 0));
    if (team)
        CHECK_REFUSED(coh_finalize(self->world), COH_MISMATCH, "broadcast|finalize");
    else
        CHECK_OK(coh_finalize(self->world));
}

/* Calls in which nobody waits for all, on teams that are left open, and on some that are not. */
static void last_calls_agree(test_rank *self)
{
    enum { TEAMS = 20 };
    coh_team *teams[TEAMS];
    float value = 1;
    if (!CHECK_OK(test_join(self)))
        return;
    for (int i = 0; i < TEAMS; i++) {
        if (!CHECK_OK(coh_team_split_color(coh_team_world(self->world), self->rank % 2, i % 3,
                                           &teams[i])))
            return;
        for (int calls = 0; calls < i % 5; calls++) {
            CHECK_OK(coh_broadcast(teams[i], COH_F32, &value, &value, 1, 0));
            CHECK_OK(reduce_to(teams[i], calls % coh_team_size(teams[i])));
        }
        if (i % 4 == 0)
            CHECK_OK(coh_team_destroy(teams[i]));
    }
    CHECK_OK(coh_broadcast(coh_team_host(self->world), COH_F32, &value, &value, 1, 0));
    CHECK_OK(coh_finalize(self->world));
}

/* A member is lost before the others come to finalize: that is what they are told, in time. */
static void member_lost_after_disagreeing(test_rank *self)
{
    _Atomic uint64_t *stamps = self->shared;
    coh_team *team = NULL;
    if (!join_pair(self, &team))
        return;
    atomic_fetch_add(&stamps[3], 1); /* all are out of the split before one is struck */
    CHECK(test_await(&stamps[3], (uint64_t)self->size, 10));
    if (self->rank == 1) {
        (void)reduce_to(team, 0);
        fault_stamp(&stamps[1]);
        atomic_store(&stamps[2], 1);
        fault_die(self);
        return;
    }
    if (team)
        (void)reduce_to(team, 1);
    CHECK(test_await(&stamps[2], 1, 20));
    fault_check_lost(coh_finalize(self->world), 1, &stamps[1]);
}

#define CONCLUDE(function, engines) \
    CASE(function, "F18 S42", engines, SIZE(2) | SIZE(3) | SIZE(5) | SIZE(7), .mode = TEST_UNJOINED)

const test_case fault_conclude[] = {
    CONCLUDE(last_roots_differ, ON_ALL),
    CONCLUDE(started_roots_differ, ON_ALL),
    CONCLUDE(earlier_roots_differ, ON_ALL),
    CONCLUDE(last_call_left_out, ON_MAPPED),
    CONCLUDE(last_calls_agree, ON_ALL),
    CASE(member_lost_after_disagreeing, "F1 F18", ON_MAPPED, SIZE(2) | SIZE(3),
         .mode = TEST_UNJOINED, .victims = VICTIM(1)),
};
FAULT_COUNT(conclude);
