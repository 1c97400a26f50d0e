/* Several requests at once, in one team and in several, and what may come between a start and its
 * end: docs/semantics.md S18, S41 and S46. */
#include "conform.h"

#include "collectives/calls.h"

#include <dirent.h>
#include <string.h>

enum { REQUESTS = 6, COUNT = 400 };

static test_call nth_call(const test_rank *self, int number)
{
    return (test_call){.kind = (call_kind)(number * 5 % CALL_KIND_COUNT),
                       .dtype = number % 2 ? COH_F32 : COH_I64,
                       .op = COH_SUM,
                       .count = number % 3 ? 17 : COUNT,
                       .root = number % self->size,
                       .parts = PARTS_RAGGED,
                       .place = (call_place)(number % PLACE_COUNT),
                       .in_place = number % 4 == 0,
                       .started = true,
                       .seed = self->seed + (uint64_t)number};
}

static bool open_rigs(test_rank *self, call_rig *rigs, int count)
{
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_I64, .count = COUNT};
    bool good = true;
    for (int i = 0; good && i < count; i++)
        good = call_rig_open(&rigs[i], self->world, call_bytes(&largest, self->size));
    return good;
}

static void close_rigs(call_rig *rigs, int count)
{
    for (int i = 0; i < count && !test_failed(); i++)
        call_rig_close(&rigs[i]);
}

static bool start(call_rig *rig, coh_team *team, const test_call *call)
{
    call_prepare(rig, team, call);
    return CHECK_OK(call_make(rig, team, call)) && CHECK(rig->request != NULL);
}

static bool finish(call_rig *rig, const test_call *call)
{
    return CHECK_OK(coh_request_wait(&rig->request, NULL)) && CHECK(rig->request == NULL)
           && call_check(rig, call);
}

/* Waited for in the order of starting, against it, and in an order of each rank's own. */
static void many_in_one_team(test_rank *self)
{
    call_rig rigs[REQUESTS];
    coh_team *team = coh_team_world(self->world);
    if (!open_rigs(self, rigs, REQUESTS))
        return;
    for (int round = 0; round < test_scaled(self, 40); round++) {
        for (int i = 0; i < REQUESTS; i++) {
            test_call call = nth_call(self, round * REQUESTS + i);
            if (!start(&rigs[i], team, &call))
                return;
        }
        for (int i = 0; i < REQUESTS; i++) {
            int turn = round % 3 == 0   ? i
                       : round % 3 == 1 ? REQUESTS - 1 - i
                                        : (i + self->rank) % REQUESTS;
            test_call call = nth_call(self, round * REQUESTS + turn);
            if (!finish(&rigs[turn], &call))
                return;
        }
    }
    close_rigs(rigs, REQUESTS);
}

/* Blocking calls come after what was started before them, in the order of the team. */
static void blocking_after_started(test_rank *self)
{
    call_rig rigs[2];
    coh_team *team = coh_team_world(self->world);
    if (!open_rigs(self, rigs, 2))
        return;
    for (int round = 0; round < test_scaled(self, 60) && !test_failed(); round++) {
        test_call first = nth_call(self, 2 * round), second = nth_call(self, 2 * round + 1);
        second.started = false;
        if (!start(&rigs[0], team, &first) || !call_perform(&rigs[1], team, &second))
            return;
        if (round % 3 == 0 && !CHECK_OK(coh_team_sync(team)))
            return;
        if (round % 5 == 0 && !CHECK_OK(coh_barrier(self->world)))
            return;
        if (!finish(&rigs[0], &first))
            return;
    }
    close_rigs(rigs, 2);
}

/* Two teams of the same ranks, which some start in one order and some in the other. */
static void teams_in_any_order(test_rank *self)
{
    call_rig rigs[2];
    coh_team *teams[2] = {coh_team_world(self->world), NULL};
    if (!open_rigs(self, rigs, 2)
        || !CHECK_OK(coh_team_split_strided(teams[0], self->size - 1, -1, self->size, &teams[1])))
        return;
    for (int round = 0; round < test_scaled(self, 60); round++) {
        int first = (self->rank + round) % 2;
        test_call calls[2] = {nth_call(self, 2 * round), nth_call(self, 2 * round + 1)};
        if (!start(&rigs[first], teams[first], &calls[first])
            || !start(&rigs[1 - first], teams[1 - first], &calls[1 - first]))
            return;
        int awaited = round % 4 < 2 ? first : 1 - first;
        if (!finish(&rigs[awaited], &calls[awaited])
            || !finish(&rigs[1 - awaited], &calls[1 - awaited]))
            return;
    }
    CHECK_OK(coh_team_destroy(teams[1]));
    close_rigs(rigs, 2);
}

/* A collective, a send and a receive, whichever comes first. */
static void any_of_a_mixture(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    for (int round = 0; round < test_scaled(self, 60); round++) {
        int64_t mine = self->rank, sum = -1, out = round, in = -1;
        coh_request *requests[4] = {NULL};
        bool seen[3] = {false};
        if (!CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &mine, &sum, 1, &requests[0]))
            || !CHECK_OK(coh_receive_start(team, left, 3, &in, sizeof in, &requests[1]))
            || !CHECK_OK(coh_send_start(team, right, 3, &out, sizeof out, &requests[2])))
            return;
        for (int i = 0; i < 3; i++) {
            size_t index = 9;
            if (!CHECK_OK(coh_request_wait_any(requests, 4, &index, NULL)) || !CHECK(index < 3)
                || !CHECK(!seen[index]) || !CHECK(requests[index] == NULL))
                return;
            seen[index] = true;
        }
        size_t index = 9;
        CHECK_OK(coh_request_wait_any(requests, 4, &index, NULL));
        CHECK_EQ(index, 4);
        if (!CHECK_EQ(sum, self->size * (self->size - 1) / 2) || !CHECK_EQ(in, round))
            return;
    }
}

/* A second wait has nothing to wait for. */
static void waited_twice(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int64_t mine = 1, sum = 0;
    coh_request *request = NULL;
    int done = 0;
    CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &mine, &sum, 1, &request));
    CHECK_OK(coh_request_wait(&request, NULL));
    CHECK(request == NULL);
    CHECK_OK(coh_request_wait(&request, NULL)); /* a NULL request is done */
    CHECK_OK(coh_request_test(&request, &done, NULL));
    CHECK(done);
    CHECK_STATUS(coh_request_wait(NULL, NULL), COH_INVALID_ARGUMENT);
    CHECK_OK(coh_barrier(self->world));
}

/* ---- the end of a team, and of the world ---- */

static void destroyed_while_pending(test_rank *self)
{
    enum { LONG = 5000 };
    static int64_t areas[TEST_RANKS_MAX][2][LONG];
    int64_t *source = areas[self->rank][0], *target = areas[self->rank][1];
    int n = self->size;
    for (int round = 0; round < test_scaled(self, 20); round++) {
        coh_team *team;
        coh_request *request;
        size_t count = round % 2 ? LONG : 3;
        for (size_t i = 0; i < count; i++)
            source[i] = self->rank + (int64_t)i;
        if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, n, &team))
            || !CHECK_OK(
                coh_all_reduce_start(team, COH_I64, COH_SUM, source, target, count, &request))
            || !CHECK_OK(coh_team_destroy(team)) || !CHECK_OK(coh_request_wait(&request, NULL)))
            return;
        for (size_t i = 0; i < count; i++)
            if (!CHECK_EQ(target[i], n * (n - 1) / 2 + n * (int64_t)i))
                return;
    }
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

/* The thread that carried out a team's started calls ends with the team. */
static void destroyed_teams_leave_no_threads(test_rank *self)
{
    enum { ROUNDS = 12 };
    int before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        coh_team *team;
        coh_request *request;
        int64_t mine = self->rank, sum = -1;
        if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &team))
            || !CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &mine, &sum, 1, &request))
            || !CHECK_OK(coh_request_wait(&request, NULL)) || !CHECK_OK(coh_team_destroy(team))
            || !CHECK_OK(coh_barrier(self->world)))
            return;
        before = round == 0 ? count_threads() : before;
    }
    /* Members of one process may be a barrier behind each other. */
    CHECK(count_threads() <= before + self->size);
}

static void finalized_while_pending(test_rank *self)
{
    enum { LONG = 5000 };
    static int64_t areas[TEST_RANKS_MAX][3][LONG];
    int64_t *source = areas[self->rank][0], *sum = areas[self->rank][1];
    int64_t *most = areas[self->rank][2];
    coh_team *team = coh_team_world(self->world);
    coh_request *requests[2];
    int n = self->size;
    for (int i = 0; i < LONG; i++)
        source[i] = self->rank + i;
    if (!CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, source, sum, LONG, &requests[0]))
        || !CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_MAX, source, most, 7, &requests[1]))
        || !CHECK_OK(coh_finalize(self->world)))
        return;
    self->world = NULL;
    for (int i = 0; i < LONG; i++)
        if (!CHECK_EQ(sum[i], n * (n - 1) / 2 + n * i))
            return;
    for (int i = 0; i < 7; i++)
        CHECK_EQ(most[i], n - 1 + i);
}

/* Allocations and splits between a start and its end keep the order, too. */
static void heap_calls_between(test_rank *self)
{
    call_rig rig;
    coh_team *team = coh_team_world(self->world);
    if (!open_rigs(self, &rig, 1))
        return;
    for (int round = 0; round < test_scaled(self, 40); round++) {
        test_call call = nth_call(self, round);
        coh_team *half = NULL;
        void *memory = NULL;
        if (!start(&rig, team, &call) || !CHECK_OK(coh_malloc(self->world, 3000, &memory))
            || !CHECK_OK(coh_team_split_strided(team, 0, 1, (self->size + 1) / 2, &half))
            || !CHECK_OK(coh_free(self->world, memory)) || !finish(&rig, &call)
            || !CHECK_OK(coh_team_destroy(half)))
            return;
    }
    close_rigs(&rig, 1);
}

const test_case conform_coll_outstanding[] = {
    CASE(many_in_one_team, "S41", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(blocking_after_started, "S41", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(teams_in_any_order, "S18", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(any_of_a_mixture, "S45", ON_ALL, ANY_SIZE),
    CASE(waited_twice, "F17", ON_ALL, ANY_SIZE),
    CASE(destroyed_teams_leave_no_threads, "S14", ON_ALL, ANY_SIZE),
    CASE(destroyed_while_pending, "S35", ON_ALL, ANY_SIZE),
    CASE(finalized_while_pending, "S46", ON_ALL, ANY_SIZE),
    CASE(heap_calls_between, "S20", ON_MEMORY, ANY_SIZE, .limit_s = 60),
};
CONFORM_COUNT(coll_outstanding);
