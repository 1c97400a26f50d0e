/* Ranks that are lost or stuck in each collective, and long ones that are neither:
 * docs/faults.md F1 and F5. */
#include "faults.h"

#include "collectives/calls.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { VICTIM_RANK = 1, SMALL = 5, LARGE = 70001 };

static const double PATIENCE_S = 20;

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t rounds; /* of rank 0 */
    _Atomic uint64_t finished;
};

/* A rank whose peer was lost leaves without closing its rig, which is to be no leak. */
call_rig fault_rigs[TEST_RANKS_MAX];

static bool open_rig(test_rank *self, call_rig *rig, size_t count)
{
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F32, .count = count};
    bool opened = call_rig_open(rig, self->world, call_bytes(&largest, self->size));
    fault_rigs[self->rank] = *rig;
    return opened;
}

static test_call call_of(const test_rank *self, call_kind kind, size_t count, uint64_t round)
{
    return (test_call){.kind = kind,
                       .dtype = COH_F32,
                       .op = COH_SUM,
                       .count = count,
                       .root = (int)(round % (uint64_t)self->size),
                       .parts = PARTS_RAGGED,
                       .place = (call_place)(round % PLACE_COUNT),
                       .seed = self->seed + round};
}

/* One call; what it brings is checked where it says that it is there. */
static coh_status perform(test_rank *self, call_rig *rig, const test_call *call,
                          _Atomic uint64_t *stamp)
{
    coh_team *team = coh_team_world(self->world);
    call_prepare(rig, team, call);
    fault_stamp(stamp);
    coh_status status = call_make(rig, team, call);
    if (status == COH_OK && call->started)
        status = coh_request_wait(&rig->request, NULL);
    fault_stamp(stamp);
    if (status == COH_OK)
        call_check(rig, call);
    return status;
}

/* By private memory alone: an allocation that fails is another program's to test. */
coh_status fault_collectives_program(test_rank *self, _Atomic uint64_t *stamps, int rounds)
{
    enum { COUNT = 8, LINE = 3 * COUNT * TEST_RANKS_MAX };
    float source[LINE] = {0}, target[LINE];
    size_t counts[TEST_RANKS_MAX];
    for (int i = 0; i < TEST_RANKS_MAX; i++)
        counts[i] = COUNT;
    call_rig rig = {.source = (unsigned char *)source, .target = (unsigned char *)target};
    coh_status status = COH_OK;
    memcpy(rig.counts[0], counts, sizeof rig.counts[0]);
    memcpy(rig.counts[1], counts, sizeof rig.counts[1]);
    rig.stride[0] = rig.stride[1] = 2;
    for (int i = 0; i < rounds * CALL_KIND_COUNT && status == COH_OK; i++) {
        test_call call = {
            .kind = (call_kind)(i % CALL_KIND_COUNT), .dtype = COH_F32, .count = COUNT};
        call.root = i % self->size;
        call.started = i % 3 == 2;
        fault_stamp(&stamps[self->rank]);
        status = call_make(&rig, coh_team_world(self->world), &call);
        if (status == COH_OK && call.started)
            status = coh_request_wait(&rig.request, NULL);
    }
    return status;
}

/* ---- lost ---- */

/* The row's name says which collective, how large, and whether started. */
static bool is_long(const test_rank *self)
{
    return strstr(self->row->name, "large") != NULL;
}

static coh_status repeat_until_struck(test_rank *self, call_rig *rig, call_kind kind)
{
    struct scene *scene = self->shared;
    size_t count = is_long(self) ? LARGE : SMALL;
    coh_status status = COH_OK;
    double until = test_now() + PATIENCE_S;
    for (uint64_t round = 0; status == COH_OK && test_now() < until; round++) {
        test_call call = call_of(self, kind, count, round);
        call.started = strstr(self->row->name, "started") != NULL;
        status = perform(self, rig, &call, &scene->stamps[self->rank]);
        if (self->rank == 0)
            atomic_store(&scene->rounds, round);
    }
    return status;
}

/* All that are left know before anybody leaves. */
static void leave(test_rank *self, coh_status sticky)
{
    struct scene *scene = self->shared;
    float one = 1, sum;
    CHECK_STATUS(coh_all_reduce(coh_team_world(self->world), COH_F32, COH_SUM, &one, &sum, 1),
                 sticky);
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)self->size - 1, PATIENCE_S));
    (void)coh_finalize(self->world); /* it may report the loss; it must come back */
}

/* A team without the lost rank goes on. */
static void others_go_on(coh_team *team)
{
    int64_t one = 1, sum = 0;
    for (int i = 0; i < 20; i++)
        if (!CHECK_OK(coh_all_reduce(team, COH_I64, COH_SUM, &one, &sum, 1))
            || !CHECK_EQ(sum, coh_team_size(team)))
            return;
}

static void lost_in(test_rank *self)
{
    struct scene *scene = self->shared;
    call_rig rig;
    coh_team *survivors = NULL;
    call_kind kind = call_kind_in(self->row->name);
    if (!CHECK_OK(test_join(self)) || !CHECK(kind != CALL_KIND_COUNT)
        || !open_rig(self, &rig, is_long(self) ? LARGE : SMALL)
        || !CHECK_OK(coh_team_split_color(coh_team_world(self->world), self->rank != VICTIM_RANK, 0,
                                          &survivors)))
        return;
    coh_status status = repeat_until_struck(self, &rig, kind);
    if (!fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        return;
    others_go_on(survivors);
    leave(self, COH_PEER_LOST);
}

/* Killed from outside, at any moment. */
static void kill_at_some_time(test_job *job)
{
    struct scene *scene = job->shared;
    uint64_t dice = job->seed;
    if (!test_await(&scene->rounds, 3, PATIENCE_S))
        test_fail("the job did not get going");
    test_sleep((double)(test_random(&dice) % 20000) * 1e-6);
    fault_stamp(&scene->stamps[TEST_RANKS_MAX - 1]);
    kill(job->pids[VICTIM_RANK], SIGKILL);
}

static void killed_any_time(test_rank *self)
{
    struct scene *scene = self->shared;
    call_rig rig;
    coh_status status = COH_OK;
    if (!CHECK_OK(test_join(self)) || !open_rig(self, &rig, LARGE))
        return;
    double until = test_now() + PATIENCE_S;
    for (uint64_t round = 0; status == COH_OK && test_now() < until; round++) {
        test_call call = call_of(self, (call_kind)(round * 5 % CALL_KIND_COUNT),
                                 round % 2 ? LARGE : SMALL, round);
        call.started = round % 3 == 0;
        status = perform(self, &rig, &call, &scene->stamps[self->rank]);
        if (self->rank == 0)
            atomic_store(&scene->rounds, round);
    }
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[TEST_RANKS_MAX - 1]))
        leave(self, COH_PEER_LOST);
}

/* A thread that ends, or a process that exits, with a request of its own under way. */
static void leaves_a_request(test_rank *self)
{
    struct scene *scene = self->shared;
    static float areas[TEST_RANKS_MAX][2][LARGE];
    coh_team *team;
    coh_request *request;
    if (!CHECK_OK(test_join(self)))
        return;
    team = coh_team_world(self->world);
    if (self->rank == VICTIM_RANK) {
        CHECK_OK(coh_barrier(self->world));
        fault_stamp(&scene->stamps[self->rank]);
        return; /* it never joins the call that the others start */
    }
    coh_status status = coh_barrier(self->world); /* what it told last may be lost with it */
    if (status == COH_OK) {
        CHECK_OK(coh_all_reduce_start(team, COH_F32, COH_SUM, areas[self->rank][0],
                                      areas[self->rank][1], LARGE, &request));
        status = coh_request_wait(&request, NULL);
    }
    fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    leave(self, COH_PEER_LOST);
}

/* ---- stuck ---- */

static void stopped_in(test_rank *self)
{
    struct scene *scene = self->shared;
    call_rig rig;
    call_kind kind = call_kind_in(self->row->name);
    if (!fault_is_told(self, VICTIM_RANK) || !CHECK_OK(test_join(self))
        || !CHECK(kind != CALL_KIND_COUNT) || !open_rig(self, &rig, is_long(self) ? LARGE : SMALL))
        return;
    CHECK_REFUSED(repeat_until_struck(self, &rig, kind), COH_STALLED, "rank 1");
    double took = fault_since(&scene->stamps[VICTIM_RANK]);
    if (took < 0.5 || took > 6)
        test_fail("STALLED came after %.2f s; the deadline is 1 s", took);
    leave(self, COH_STALLED);
}

/* ---- long, with everybody at work ---- */

static const double STALL_S = 1; /* as the row's environment says */

static coh_status reduce_long(coh_team *team, const void *source, void *target, size_t count,
                              bool by_request)
{
    coh_request *request;
    if (!by_request)
        return coh_all_reduce(team, COH_F8E4M3, COH_PRODUCT, source, target, count);
    coh_status status =
        coh_all_reduce_start(team, COH_F8E4M3, COH_PRODUCT, source, target, count, &request);
    return status == COH_OK ? coh_request_wait(&request, NULL) : status;
}

/* Longer and longer, by the slowest kernels, until one takes well over the deadline, or the
 * machine is too fast for that. */
static void long_is_not_stuck(test_rank *self)
{
    enum { MOST = 1 << 28 };
    void *source = calloc(MOST, 1), *target = calloc(MOST, 1);
    if (!CHECK_OK(test_join(self)) || !CHECK(source && target))
        return;
    coh_team *team = coh_team_world(self->world);
    unsigned char enough = 0;
    for (size_t count = 1 << 22; !enough && count <= MOST; count *= 2)
        for (int way = 0; way < 2; way++) {
            double began = test_now();
            if (!CHECK_OK(reduce_long(team, source, target, count, way == 1)))
                return;
            enough = test_now() - began > 1.5 * STALL_S;
            if (!CHECK_OK(coh_broadcast(team, COH_U8, &enough, &enough, 1, 0)))
                return;
        }
    free(source);
    free(target);
    CHECK_OK(coh_finalize(self->world));
}

/* A rank that is busy outside keeps the others waiting, and is not judged. */
static void busy_before_all_reduce(test_rank *self)
{
    coh_request *request;
    int64_t one = 1, sum = 0;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_team *team = coh_team_world(self->world);
    if (self->rank == 0)
        test_sleep(1.5);
    CHECK_OK(coh_all_reduce(team, COH_I64, COH_SUM, &one, &sum, 1));
    if (self->rank == 0)
        test_sleep(1.5);
    CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &one, &sum, 1, &request));
    CHECK_OK(coh_request_wait(&request, NULL));
    CHECK_EQ(sum, self->size);
    CHECK_OK(coh_finalize(self->world));
}

/* Names end with the collective. */
#define STRUCK(title, function, action, operation, nth, more)                                     \
    {                                                                                             \
        .name = title, .rows = "F1", .body = function, .engines = ON_PROCESSES, .sizes = SIZE(4), \
        .mode = TEST_UNJOINED, .victims = VICTIM(VICTIM_RANK), .limit_s = 60,                     \
        .environment = "COHORT_FAULT=" action "@" operation ":" nth ",rank=1" more                \
    }
#define KILLED_IN(operation)                                                         \
    STRUCK("killed_in_" operation, lost_in, "kill", operation, "3", ""),             \
        STRUCK("killed_in_large_" operation, lost_in, "kill", operation, "4", ""),   \
        STRUCK("killed_in_started_" operation, lost_in, "kill", operation, "5", ""), \
        STRUCK("killed_in_started_large_" operation, lost_in, "kill", operation, "2", "")
#define STOPPED_IN(operation)                                           \
    STRUCK("stopped_in_" operation, stopped_in, "stop", operation, "3", \
           " COHORT_STALL=1 COHORT_WARN=0.3")

const test_case fault_collectives[] = {
    KILLED_IN("all_reduce"),
    KILLED_IN("reduce"),
    KILLED_IN("reduce_scatter"),
    KILLED_IN("all_gather"),
    KILLED_IN("gather"),
    KILLED_IN("scatter"),
    KILLED_IN("broadcast"),
    KILLED_IN("all_to_all"),
    KILLED_IN("scan"),
    KILLED_IN("scan_exclusive"),
    CASE(killed_any_time, "F1", ON_PROCESSES, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK), .limit_s = 60, .director = kill_at_some_time),
    CASE(leaves_a_request, "F1 F7 F26", ON_ALL, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    STOPPED_IN("all_reduce"),
    STOPPED_IN("broadcast"),
    STOPPED_IN("all_to_all"),
    STOPPED_IN("scan"),
    CASE(long_is_not_stuck, "F9a", ON_MAPPED, SIZE(3), .mode = TEST_UNJOINED, .limit_s = 180,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.5 COHORT_KERNELS=portable"),
    CASE(busy_before_all_reduce, "F9a", ON_ALL, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=0.5 COHORT_WARN=0.2"),
};
FAULT_COUNT(collectives);
