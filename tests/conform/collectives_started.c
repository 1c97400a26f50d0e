/* Started collectives go on by themselves: docs/semantics.md S11 and S14. */
#include "conform.h"

#include "base/atomics.h"

#include "collectives/calls.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const double PATIENCE_S = 15;

struct scene {
    _Atomic uint64_t started;
    _Atomic uint64_t done;
};

/* Waits until a byte image is in place, looking at the memory alone: on purpose a race, which the
 * thread sanitizer is spared. */
#ifdef COHI_TSAN
static bool await_image(const call_rig *rig, double seconds)
{
    (void)rig, (void)seconds;
    return true;
}
#else
static bool await_image(const call_rig *rig, double seconds)
{
    int side = rig->used[1] ? 1 : 0;
    double until = test_now() + seconds;
    const volatile unsigned char *have = rig->area[side];
    for (size_t at = 0; at < rig->used[side];) {
        if (have[at] == rig->image[side][at])
            at++;
        else if (test_now() > until)
            return false;
        else
            test_sleep(0.0005);
    }
    atomic_thread_fence(memory_order_acquire);
    return true;
}
#endif

/* Rank 0 starts and never calls again until all others are done: it holds nobody up, and finds its
 * own result in its memory, before it asks. */
static void step_aside(test_rank *self, call_rig *rig, const test_call *call, uint64_t round)
{
    struct scene *scene = self->shared;
    coh_team *team = coh_team_world(self->world);
    char text[256];
    uint64_t others = round * (uint64_t)(self->size - 1);
    call_prepare(rig, team, call);
    if (!CHECK_OK(call_make(rig, team, call)))
        return;
    if (self->rank == 0) {
        if (!test_await(&scene->done, others, PATIENCE_S) || !await_image(rig, PATIENCE_S))
            test_fail("while rank 0 was outside Cohort, nothing came of %s", call_text(call, text));
    }
    if (CHECK_OK(coh_request_wait(&rig->request, NULL)))
        call_check(rig, call);
    if (self->rank != 0)
        atomic_fetch_add(&scene->done, 1);
}

static void goes_on_alone(test_rank *self)
{
    call_rig rig;
    size_t most = strncmp(self->engine, "sim", 3) == 0 ? 800 : 40000;
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F32, .count = most};
    uint64_t round = 0;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (int i = 0; i < 2 * CALL_KIND_COUNT && !test_failed(); i++) {
        test_call call = {.kind = (call_kind)(i % CALL_KIND_COUNT),
                          .dtype = COH_F32,
                          .op = COH_SUM,
                          .count = i < CALL_KIND_COUNT ? 50 : most,
                          .root = i % self->size,
                          .parts = PARTS_RAGGED,
                          .place = (call_place)(i % 2),
                          .started = true,
                          .seed = self->seed + (uint64_t)i};
        step_aside(self, &rig, &call, ++round);
    }
    if (!test_failed())
        call_rig_close(&rig);
}

/* Rank 0 comes late with the last part; the others, in a blocking call, wait for no more. */
static void a_late_starter(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    float mine = (float)(self->rank + 1), sum = 0;
    coh_request *request = NULL;
    if (self->rank == 0) {
        test_sleep(0.05);
        CHECK_OK(coh_all_reduce_start(team, COH_F32, COH_SUM, &mine, &sum, 1, &request));
        test_sleep(0.05);
        CHECK_OK(coh_request_wait(&request, NULL));
    } else {
        CHECK_OK(coh_all_reduce(team, COH_F32, COH_SUM, &mine, &sum, 1));
    }
    CHECK_EQ((uint64_t)sum, self->size * (self->size + 1) / 2);
}

/* The start itself does not wait for anybody. */
static void starts_return_at_once(test_rank *self)
{
    struct scene *scene = self->shared;
    enum { COUNT = 3000 };
    static float sources[TEST_RANKS_MAX][COUNT], targets[TEST_RANKS_MAX][COUNT];
    float *source = sources[self->rank], *target = targets[self->rank];
    coh_request *request;
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < COUNT; i++)
        source[i] = (float)i;
    if (self->rank == 0) /* nobody else has called anything */
        CHECK_OK(coh_all_reduce_start(team, COH_F32, COH_MAX, source, target, COUNT, &request));
    atomic_fetch_add(&scene->started, self->rank == 0);
    CHECK(test_await(&scene->started, 1, PATIENCE_S));
    if (self->rank != 0)
        CHECK_OK(coh_all_reduce_start(team, COH_F32, COH_MAX, source, target, COUNT, &request));
    if (CHECK_OK(coh_request_wait(&request, NULL)))
        CHECK_EQ((uint64_t)target[COUNT - 1], COUNT - 1);
}

/* By test alone, which never waits. */
static void tested_until_done(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    for (int round = 0; round < test_scaled(self, 50); round++) {
        int64_t mine = self->rank, sum = -1;
        coh_request *request;
        int done = 0;
        if (!CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &mine, &sum, 1, &request)))
            return;
        for (double until = test_now() + PATIENCE_S; !done && test_now() < until;)
            if (!CHECK_OK(coh_request_test(&request, &done, NULL)))
                return;
        if (!CHECK(done) || !CHECK(request == NULL)
            || !CHECK_EQ(sum, self->size * (self->size - 1) / 2))
            return;
    }
}

/* A thread that computes while its request is under way loses nothing by it. */
static void computes_meanwhile(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    enum { COUNT = 2000 };
    static double areas[TEST_RANKS_MAX][2][COUNT];
    double *source = areas[self->rank][0], *target = areas[self->rank][1], work = 1;
    for (int round = 0; round < test_scaled(self, 30); round++) {
        coh_request *request;
        for (int i = 0; i < COUNT; i++)
            source[i] = self->rank + i + round;
        if (!CHECK_OK(
                coh_all_reduce_start(team, COH_F64, COH_SUM, source, target, COUNT, &request)))
            return;
        for (int i = 0; i < 20000; i++)
            work = work * 1.0000001 + 1e-9;
        if (!CHECK(work > 0) || !CHECK_OK(coh_request_wait(&request, NULL)))
            return;
        for (int i = 0; i < COUNT; i++) {
            double n = self->size, expected = n * (i + round) + n * (n - 1) / 2;
            if (!CHECK(target[i] >= expected && target[i] <= expected))
                return;
        }
    }
}

/* ---- beside a call that waits ---- */

struct starter {
    coh_world *world;
    coh_team *team;
    atomic_bool met; /* the barrier is over: there was no time to come beside it */
    int64_t mine, sum;
    coh_status status;
    char sentence[512];
};

/* Until the other thread of this rank is in the barrier. */
static void await_barrier(struct starter *self)
{
    coh_peer_state state;
    char text[128] = "";
    while (!atomic_load(&self->met) && !strstr(text, "barrier")) {
        test_sleep(0.001);
        (void)coh_peer_query(self->world, coh_rank(self->world), &state, text, sizeof text);
    }
}

static void *start_beside(void *arg)
{
    struct starter *self = arg;
    coh_request *request = NULL;
    await_barrier(self);
    self->status =
        coh_all_reduce_start(self->team, COH_I64, COH_SUM, &self->mine, &self->sum, 1, &request);
    if (self->status == COH_OK)
        self->status = coh_request_wait(&request, NULL);
    snprintf(self->sentence, sizeof self->sentence, "%s", coh_last_error());
    return NULL;
}

/* One thread waits in a barrier, which the last rank comes to late, while another starts a
 * collective of the same team: it is the next. */
static void started_while_another_waits(test_rank *self)
{
    struct starter starter = {
        .world = self->world, .team = coh_team_world(self->world), .mine = self->rank};
    pthread_t thread;
    bool last = self->rank == self->size - 1;
    if (!CHECK_OK(coh_team_sync(starter.team))) /* the rank is this thread's from here on */
        return;
    if (last)
        test_sleep(0.2);
    else if (!CHECK_EQ(pthread_create(&thread, NULL, start_beside, &starter), 0))
        return;
    CHECK_OK(coh_team_barrier(starter.team));
    atomic_store(&starter.met, true);
    if (last)
        start_beside(&starter);
    else
        pthread_join(thread, NULL);
    if (starter.status != COH_OK)
        test_fail("it ended with %s: %s", coh_status_name(starter.status), starter.sentence);
    CHECK_EQ(starter.sum, self->size * (self->size - 1) / 2);
}

const test_case conform_coll_started[] = {
    CASE(started_while_another_waits, "S14", ON_ALL, FROM_TWO),
    CASE(goes_on_alone, "S11", ON_ALL, FROM_TWO, .limit_s = 90),
    CASE(a_late_starter, "S14", ON_ALL, FROM_TWO),
    CASE(starts_return_at_once, "S14", ON_ALL, ANY_SIZE),
    CASE(tested_until_done, "S14", ON_ALL, ANY_SIZE),
    CASE(computes_meanwhile, "S11", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(coll_started);
