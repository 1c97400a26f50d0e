/* Ranks that are stuck, paused or only busy: docs/faults.md F5, F6, F9a and F27. */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STUCK = 1 };

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t rounds;
    _Atomic uint64_t paused; /* and resumed */
    _Atomic uint64_t over;
    _Atomic uint64_t warnings;
    char warning[8][512];         /* the first ones, of whichever rank */
    _Atomic uint64_t complete[8]; /* not 0: that one is written, and stays */
};

static void count_warnings(void *arg, coh_log_level level, const char *message)
{
    struct scene *scene = arg;
    if (level != COH_LOG_WARN)
        return;
    uint64_t before = atomic_fetch_add(&scene->warnings, 1);
    if (before >= sizeof scene->warning / sizeof *scene->warning)
        return;
    snprintf(scene->warning[before], sizeof *scene->warning, "%s", message);
    atomic_store(&scene->complete[before], 1);
}

/* Whether one of the warnings has all the words. */
static bool was_warned(struct scene *scene, const char *words)
{
    bool was = false;
    for (size_t i = 0; i < sizeof scene->warning / sizeof *scene->warning; i++)
        was = was || (atomic_load(&scene->complete[i]) && test_holds(scene->warning[i], words));
    return was;
}

static bool join_listening(test_rank *self)
{
    coh_log_to(count_warnings, self->shared, COH_LOG_WARN);
    return CHECK_OK(test_join(self));
}

/* The operation that the row's environment names after '@', if others can know of it: a rank
 * publishes what it may wait in, and a put to mapped memory is not. */
static void words_of(const test_rank *self, char *words, size_t room)
{
    char operation[32] = "";
    sscanf(strchr(self->row->environment, '@') + 1, "%30[a-z]", operation);
    snprintf(words, room, "rank 1|%s", strcmp(operation, "put") == 0 ? "" : operation);
}

/* Stopped by the hook in an operation. */
static void stopped(test_rank *self)
{
    struct scene *scene = self->shared;
    char words[64];
    words_of(self, words, sizeof words);
    if (!fault_is_told(self, STUCK) || !join_listening(self))
        return;
    coh_status status = fault_program(self, scene->stamps, 20);
    CHECK_REFUSED(status, COH_STALLED, words);
    double took = fault_since(&scene->stamps[STUCK]);
    if (took < 0.5 || took > 6)
        test_fail("STALLED came after %.2f s; the deadline is 1 s", took);
    if (CHECK(atomic_load(&scene->warnings) > 0))
        CHECK(was_warned(scene, "1"));
    coh_peer_state state;
    CHECK_OK(coh_peer_query(self->world, STUCK, &state, NULL, 0));
    CHECK_EQ(state, COH_PEER_STUCK);
    CHECK_STATUS(coh_barrier(self->world), COH_STALLED); /* it stays so */
    (void)coh_finalize(self->world);
}

/* Stopped where it calls nothing: still stuck, since a stopped process cannot come. */
static void stopped_outside(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!fault_is_told(self, STUCK) || !join_listening(self) || !CHECK_OK(coh_barrier(self->world)))
        return;
    fault_stamp(&scene->stamps[self->rank]);
    if (self->rank == STUCK)
        raise(SIGSTOP);
    CHECK_REFUSED(coh_barrier(self->world), COH_STALLED, "rank 1");
    (void)coh_finalize(self->world);
}

/* ---- the whole job ---- */

/* Rank 0 decides between two barriers that it is over, so that all leave in the same round. */
static void barriers_through_a_pause(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    while (!atomic_load(&scene->over)) {
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
        atomic_fetch_add(&scene->rounds, 1);
        if (self->rank == 0 && atomic_load(&scene->paused))
            atomic_store(&scene->over, 1);
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
    }
    CHECK_OK(coh_finalize(self->world));
}

static void pause_all(test_job *job)
{
    struct scene *scene = job->shared;
    if (!test_await(&scene->rounds, 20, 20)) {
        test_fail("the job did not get going");
        return;
    }
    for (int i = 0; i < job->processes; i++)
        kill(job->pids[i], SIGSTOP);
    test_sleep(2.5);
    for (int i = 0; i < job->processes; i++)
        kill(job->pids[i], SIGCONT);
    test_sleep(0.3);
    atomic_store(&scene->paused, 1);
}

/* ---- busy outside ---- */

static void busy_is_only_warned_of(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!join_listening(self) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == 0)
        test_sleep(2.5); /* past warning and stall deadlines */
    CHECK_OK(coh_barrier(self->world));
    if (self->rank != 0 && CHECK(atomic_load(&scene->warnings) > 0))
        CHECK(was_warned(scene, "0|outside Cohort"));
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

static void busy_past_the_timeout(test_rank *self)
{
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == 0) {
        test_sleep(4);
    } else {
        double began = test_fair_now();
        CHECK_REFUSED(coh_barrier(self->world), COH_TIMED_OUT, "barrier|0");
        CHECK(test_fair_now() - began < 3.5);
    }
    (void)coh_finalize(self->world);
}

/* They come one by one, none of them later than the timeout after the one before, but the last, who comes when
 * rank 0 has been told. Those who come do not give it more time. */
static void come_one_by_one(test_rank *self, coh_status (*meet)(coh_world *world), const char *name)
{
    _Atomic uint64_t *told = self->shared;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == 0) {
        double began = test_fair_now();
        CHECK_REFUSED(meet(self->world), COH_TIMED_OUT, name);
        CHECK(test_fair_now() - began
              < 3.6); /* 1.6 behind the third, who comes at 2.4, would be 4 */
        atomic_store(told, 1);
    } else {
        test_sleep(1.2 * self->rank);
        CHECK(self->rank < self->size - 1 || test_await(told, 1, 20));
        meet(self->world);
    }
    (void)coh_finalize(self->world);
}

static coh_status reduce_a_word(coh_world *world)
{
    int64_t word = 1;
    return coh_all_reduce(coh_team_world(world), COH_I64, COH_SUM, &word, &word, 1);
}

static void stragglers_to_a_barrier(test_rank *self)
{
    come_one_by_one(self, coh_barrier, "barrier");
}

static void stragglers_to_an_all_reduce(test_rank *self)
{
    come_one_by_one(self, reduce_a_word, "all_reduce");
}

/* ---- nobody is to blame ---- */

/* Rank 0 waits for rank 1, which waits for whoever sends to it: that is not being stuck. */
static void anybody_is_waited_for(test_rank *self)
{
    struct scene *scene = self->shared;
    enum { TAG = 7 };
    if (!join_listening(self) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_team *team = coh_team_world(self->world);
    int word = 42;
    if (self->rank == 2) {
        test_sleep(2.5); /* past warning and stall deadlines */
        CHECK_OK(coh_send(team, 1, TAG, &word, sizeof word));
    } else if (self->rank == 1) {
        CHECK_OK(coh_receive(team, COH_ANY_RANK, TAG, &word, sizeof word, NULL));
        CHECK_OK(coh_send(team, 0, TAG, &word, sizeof word));
    } else {
        CHECK_OK(coh_receive(team, 1, TAG, &word, sizeof word, NULL));
        CHECK_EQ(word, 42);
        if (CHECK(atomic_load(&scene->warnings) > 0))
            CHECK(was_warned(scene, "rank 1|receive|for anybody"));
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

/* Rank 1 waits for rank 0, which waits until rank 2 takes what it sends or answers: rank 2 is only
 * busy. */
static void busy_behind_several(test_rank *self, int from)
{
    enum { TAG = 7, BYTES = 8 << 20 }; /* more than is kept for a rank that does not receive */
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_team *team = coh_team_world(self->world);
    char *data = calloc(1, BYTES);
    int word = 42;
    if (self->rank == 2) {
        test_sleep(2.5); /* past the stall deadline */
        CHECK_OK(coh_receive(team, 0, TAG, data, BYTES, NULL));
        CHECK_OK(coh_send(team, 0, TAG, &word, sizeof word));
    } else if (self->rank == 0) {
        coh_request *requests[2] = {NULL, NULL};
        size_t index;
        CHECK_OK(coh_send_start(team, 2, TAG, data, BYTES, &requests[0]));
        CHECK_OK(coh_receive_start(team, from, TAG, &word, sizeof word, &requests[1]));
        for (int i = 0; i < 2; i++)
            CHECK_OK(coh_request_wait_any(requests, 2, &index, NULL));
    }
    CHECK_OK(coh_barrier(self->world));
    free(data);
    CHECK_OK(coh_finalize(self->world));
}

static void one_peer_of_several_requests(test_rank *self)
{
    busy_behind_several(self, 2);
}

static void anybody_of_several_requests(test_rank *self)
{
    busy_behind_several(self, COH_ANY_RANK);
}

/* ---- oneself ---- */

/* What is kept of a rank's messages to itself is bounded, and nobody else can receive them. */
static void sends_to_itself(test_rank *self)
{
    enum { MESSAGES = 4, BYTES = 1 << 20 };
    if (!CHECK_OK(test_join(self)))
        return;
    coh_team *team = coh_team_world(self->world);
    char *data = calloc(1, BYTES);
    coh_message got;
    int there;
    for (int i = 0; i < MESSAGES; i++)
        CHECK_OK(coh_send(team, self->rank, i, data, BYTES));
    double began = test_fair_now();
    CHECK_REFUSED(coh_send(team, self->rank, MESSAGES, data, BYTES), COH_STALLED,
                  "itself|unreceived|4194304");
    CHECK(test_fair_now() - began < 3);
    for (int i = 0; i < MESSAGES; i++)
        CHECK_OK(coh_receive(team, self->rank, i, data, BYTES, &got));
    CHECK_OK(coh_probe(team, self->rank, COH_ANY_TAG, &there, &got));
    CHECK(!there); /* the refused one was taken back */
    CHECK_OK(coh_send(team, self->rank, 0, data, BYTES));
    CHECK_OK(coh_receive(team, self->rank, 0, data, BYTES, &got));
    free(data);
    CHECK_OK(coh_barrier(self->world)); /* nobody was found guilty */
    CHECK_OK(coh_finalize(self->world));
}

static void steady_progress(test_rank *self)
{
    struct scene *scene = self->shared;
    if (CHECK_OK(test_join(self))
        && CHECK_OK(fault_program(self, scene->stamps, TEST_SANITIZED ? 5 : 50)))
        CHECK_OK(coh_finalize(self->world));
}

#define STOPPED_IN(operation)                                                                    \
    {                                                                                            \
        .name = "stopped_in_" operation, .rows = "F5", .body = stopped, .engines = ON_PROCESSES, \
        .sizes = SIZE(4), .mode = TEST_UNJOINED, .victims = VICTIM(STUCK),                       \
        .environment = "COHORT_FAULT=stop@" operation ":2,rank=1 COHORT_STALL=1 COHORT_WARN=0.3" \
    }

const test_case fault_stalled[] = {
    STOPPED_IN("barrier"),
    STOPPED_IN("put"),
    STOPPED_IN("malloc"),
    CASE(stopped_outside, "F5", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(STUCK), .environment = "COHORT_STALL=1 COHORT_WARN=0.3"),
    CASE(barriers_through_a_pause, "F6", ON_PROCESSES | ON_THREADS, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3", .director = pause_all),
    CASE(busy_is_only_warned_of, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3"),
    CASE(busy_past_the_timeout, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3 COHORT_TIMEOUT=1.8"),
    CASE(stragglers_to_a_barrier, "F9a", ON_PROCESSES, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_TIMEOUT=1.6"),
    CASE(stragglers_to_an_all_reduce, "F9a", ON_THREADS, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_TIMEOUT=1.6"),
    CASE(anybody_is_waited_for, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3"),
    CASE(one_peer_of_several_requests, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1"),
    CASE(anybody_of_several_requests, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1"),
    CASE(sends_to_itself, "F5", ON_MEMORY, SIZE(2), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3"),
    CASE(steady_progress, "F27", ON_MAPPED, SIZE(8), .mode = TEST_UNJOINED, .limit_s = 60),
};
FAULT_COUNT(stalled);
