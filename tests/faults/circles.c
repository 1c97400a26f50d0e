/* Waits that can never end, and waits that only look like it: docs/faults.md F5, F9a and F44. */
#include "core/health/watch.h"
#include "faults.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { TAG = 1, STOPPED = 1, LOST = 1 };

/* As the rows' environment says. */
static const double STALL_S = 1;

static bool join(test_rank *self)
{
    return CHECK_OK(test_join(self)) && CHECK_OK(coh_barrier(self->world));
}

/* Where each rank is a process with one thread there is no doubt, and no reason to wait for
 * COHORT_STALL. */
static void check_in_time(const test_rank *self, double began)
{
    bool certain = strcmp(self->engine, "shm") == 0;
    double took = test_fair_now() - began,
           most = (certain ? 1 : STALL_S + 1) * (TEST_SANITIZED ? 3 : 1);
    if (took > most + 0.5)
        test_fail("STALLED came after %.2f s; the deadline is %.1f s", took, most);
}

/* ---- circles ---- */

static void receive_in_a_circle(test_rank *self)
{
    int word;
    if (!join(self))
        return;
    double began = test_fair_now();
    coh_team *team = coh_team_world(self->world);
    CHECK_REFUSED(coh_receive(team, (self->rank + 1) % 3, TAG, &word, sizeof word, NULL),
                  COH_STALLED, "rank 0 receives from 1 (tag 1), 1 from 2, 2 from 0");
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

/* The thread that carried out a started collective is idle, and no way on. */
static void receive_after_a_started_collective(test_rank *self)
{
    coh_request *request;
    int word = 1, sum;
    if (!join(self))
        return;
    coh_team *team = coh_team_world(self->world);
    CHECK_OK(coh_all_reduce_start(team, COH_I32, COH_SUM, &word, &sum, 1, &request));
    CHECK_OK(coh_request_wait(&request, NULL));
    double began = test_fair_now();
    CHECK_REFUSED(coh_receive(team, (self->rank + 1) % 3, TAG, &word, sizeof word, NULL),
                  COH_STALLED, "rank 0 receives from 1 (tag 1), 1 from 2, 2 from 0");
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

static void receive_from_anybody(test_rank *self)
{
    int word;
    if (!join(self))
        return;
    double began = test_fair_now();
    coh_team *team = coh_team_world(self->world);
    CHECK_REFUSED(coh_receive(team, COH_ANY_RANK, TAG, &word, sizeof word, NULL), COH_STALLED,
                  "rank 0 receives from any of 0, 1 and 2 (tag 1)|2 from any of");
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

static void wait_for_any_writer(test_rank *self)
{
    uint64_t *word, one = 1;
    if (!join(self) || !CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    double began = test_fair_now();
    CHECK_REFUSED(coh_wait_until(self->world, COH_U64, word, COH_EQ, &one, COH_ANY_RANK),
                  COH_STALLED, "rank 0 waits for a word from any of");
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

/* One waits for any of several messages, the others for one of it; a barrier against that. */
static void several_requests_against_a_barrier(test_rank *self)
{
    coh_request *requests[2] = {NULL, NULL};
    int words[2];
    size_t index;
    if (!join(self))
        return;
    double began = test_fair_now();
    coh_team *team = coh_team_world(self->world);
    if (self->rank == 0) {
        for (int i = 0; i < 2; i++)
            CHECK_OK(coh_receive_start(team, i + 1, TAG, &words[i], sizeof words[i], &requests[i]));
        CHECK_REFUSED(coh_request_wait_any(requests, 2, &index, NULL), COH_STALLED,
                      "any of 1 and 2|1 receives from 0|2 waits in barrier");
    } else if (self->rank == 1) {
        CHECK_REFUSED(coh_receive(team, 0, TAG, words, sizeof *words, NULL), COH_STALLED, "rank 0");
    } else {
        CHECK_REFUSED(coh_barrier(self->world), COH_STALLED, "rank 0|receives from any of 1 and 2");
    }
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

static void anybody_against_a_barrier(test_rank *self)
{
    int word;
    if (!join(self))
        return;
    double began = test_fair_now();
    coh_team *team = coh_team_world(self->world);
    coh_status status = self->rank == 0
                            ? coh_receive(team, COH_ANY_RANK, TAG, &word, sizeof word, NULL)
                            : coh_barrier(self->world);
    CHECK_REFUSED(status, COH_STALLED, "receives from any|waits in barrier #2 for 0");
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

/* Each holds one of two locks and asks for the other's. */
static void two_locks(test_rank *self)
{
    coh_lock *locks;
    if (!join(self) || !CHECK_OK(coh_calloc(self->world, 2, sizeof *locks, (void **)&locks)))
        return;
    CHECK_OK(coh_lock_set(self->world, &locks[self->rank]));
    CHECK_OK(coh_barrier(self->world));
    double began = test_fair_now();
    CHECK_STATUS(coh_lock_set(self->world, &locks[1 - self->rank]), COH_STALLED);
    check_in_time(self, began);
    (void)coh_finalize(self->world);
}

/* ---- oneself ---- */

/* The call fails; the rank is not to blame for anything that others wait for. */
static void wait_for_oneself(test_rank *self)
{
    uint64_t *word, one = 1;
    int got;
    if (!join(self) || !CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    double began = test_fair_now();
    if (self->rank == 0) {
        coh_team *team = coh_team_world(self->world);
        CHECK_REFUSED(coh_wait_until(self->world, COH_U64, word, COH_EQ, &one, 0), COH_STALLED,
                      "rank 0 waits for a word from 0");
        check_in_time(self, began);
        began = test_fair_now();
        CHECK_REFUSED(coh_receive(team, 0, TAG, &got, sizeof got, NULL), COH_STALLED,
                      "rank 0 receives from 0 (tag 1)");
        check_in_time(self, began);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

/* ---- stopped ---- */

static void anybody_is_stopped(test_rank *self)
{
    int word;
    if (!join(self))
        return;
    if (self->rank == STOPPED)
        raise(SIGSTOP);
    coh_team *team = coh_team_world(self->world);
    CHECK_REFUSED(coh_receive(team, COH_ANY_RANK, TAG, &word, sizeof word, NULL), COH_STALLED,
                  "rank 1|stopped");
    (void)coh_finalize(self->world);
}

/* ---- told later than others ---- */

static void release_watcher(int signal)
{
    (void)signal;
    cohi_watch_release();
}

/* As on a busy machine: this rank goes on waiting for one that is lost, as the others know. */
static void hold_watcher(int seconds)
{
    struct itimerval after = {.it_value = {.tv_sec = seconds}};
    cohi_watch_hold();
    signal(SIGALRM, release_watcher);
    CHECK(setitimer(ITIMER_REAL, &after, NULL) == 0);
}

/* Rank 0 knows of the loss and waits for rank 2, whose wait for the lost one will end. */
static void told_later_than_others(test_rank *self)
{
    int word = 0;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_team *team = coh_team_world(self->world);
    if (self->rank == 2)
        hold_watcher(2);
    CHECK_OK(coh_barrier(self->world));
    fault_let_others_out();
    if (self->rank == LOST)
        fault_die(self);
    CHECK_REFUSED(coh_receive(team, LOST, TAG, &word, sizeof word, NULL), COH_PEER_LOST, "rank 1");
    if (self->rank == 2)
        CHECK_OK(coh_send(team, 0, TAG, &word, sizeof word));
    else
        CHECK_OK(coh_receive(team, 2, TAG, &word, sizeof word, NULL));
    (void)coh_finalize(self->world);
}

/* ---- a helper waits, and the rank is well ---- */

struct helper {
    test_rank *self;
    uint64_t *words;
    coh_lock *lock;
    int doing;
};

enum { RECEIVES, RECEIVES_ANY, WAITS, WAITS_ANY, LOCKS, HELPERS };

static void *help(void *arg)
{
    const struct helper *helper = arg;
    coh_world *world = helper->self->world;
    uint64_t word, one = 1;
    switch (helper->doing) {
    case RECEIVES:
    case RECEIVES_ANY:
        CHECK_OK(coh_receive(coh_team_world(world), helper->doing == RECEIVES ? 0 : COH_ANY_RANK,
                             TAG, &word, sizeof word, NULL));
        break;
    case WAITS:
    case WAITS_ANY:
        CHECK_OK(coh_wait_until(world, COH_U64, helper->words, COH_EQ, &one,
                                helper->doing == WAITS ? 0 : COH_ANY_RANK));
        break;
    default:
        CHECK_OK(coh_lock_set(world, helper->lock));
        CHECK_OK(coh_lock_clear(world, helper->lock));
    }
    return NULL;
}

static void compute(double seconds)
{
    volatile uint64_t work = 0;
    for (double until = test_now() + seconds; test_now() < until;)
        work++;
}

/* Rank 0 brings what the helper waits for. */
static void bring(const struct helper *helper)
{
    uint64_t one = 1;
    coh_world *world = helper->self->world;
    if (helper->doing == LOCKS)
        CHECK_OK(coh_lock_clear(world, helper->lock));
    else if (helper->doing == RECEIVES || helper->doing == RECEIVES_ANY)
        CHECK_OK(coh_send(coh_team_world(world), 1, TAG, &one, sizeof one));
    else
        CHECK_OK(coh_put(world, helper->words, &one, sizeof one, 1));
}

/* Rank 1's helper waits for rank 0, which waits in a barrier until rank 1's main thread has
 * computed past the stall deadline. */
static void helper_waits_while_main_computes(test_rank *self)
{
    struct helper helper = {.self = self};
    if (!CHECK_OK(test_join(self))
        || !CHECK_OK(coh_calloc(self->world, 1, sizeof *helper.words, (void **)&helper.words))
        || !CHECK_OK(coh_calloc(self->world, 1, sizeof *helper.lock, (void **)&helper.lock)))
        return;
    for (helper.doing = 0; helper.doing < HELPERS; helper.doing++) {
        pthread_t thread;
        if (self->rank == 0 && helper.doing == LOCKS)
            CHECK_OK(coh_lock_set(self->world, helper.lock));
        CHECK_OK(coh_barrier(self->world));
        if (self->rank == 1) {
            *helper.words = 0;
            if (!CHECK(pthread_create(&thread, NULL, help, &helper) == 0))
                return;
            compute(1.7 * STALL_S);
        }
        CHECK_OK(coh_barrier(self->world));
        if (self->rank == 0)
            bring(&helper);
        else
            pthread_join(thread, NULL);
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_finalize(self->world));
}

static void started_while_main_computes(test_rank *self)
{
    coh_request *request;
    int64_t word = 1, sum = 0;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_team *team;
    if (!CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &team)))
        return;
    if (self->rank == 1) {
        CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &word, &sum, 1, &request));
        compute(2.5 * STALL_S);
    }
    CHECK_OK(coh_barrier(self->world));
    if (self->rank != 1)
        CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &word, &sum, 1, &request));
    CHECK_OK(coh_request_wait(&request, NULL));
    CHECK_EQ(sum, self->size);
    CHECK_OK(coh_finalize(self->world));
}

/* A thread that wakes by itself is a way on. */
static void *sleep_and_send(void *arg)
{
    const test_rank *self = arg;
    uint64_t word = 1;
    test_sleep(2.2 * STALL_S);
    CHECK_OK(coh_send(coh_team_world(self->world), 0, TAG, &word, sizeof word));
    return NULL;
}

static void helper_sleeps_and_sends(test_rank *self)
{
    pthread_t thread;
    uint64_t word;
    if (TEST_TSAN) {
        test_skip("a sleep is taken for that of the thread sanitizer's own thread");
        return;
    }
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == 1 && !CHECK(pthread_create(&thread, NULL, sleep_and_send, self) == 0))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_receive(coh_team_world(self->world), 1, TAG, &word, sizeof word, NULL));
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 1)
        pthread_join(thread, NULL);
    CHECK_OK(coh_finalize(self->world));
}

/* ---- a wait that gets no core to look again ---- */

static void compute_once(void *arg, coh_log_level level, const char *message)
{
    atomic_int *begun = arg;
    (void)level;
    (void)message;
    if (atomic_fetch_add(begun, 1) == 0)
        compute(2.5 * STALL_S);
}

/* Rank 1's wait stands still in the middle, where it warns, and is runnable all the time. What it
 * waits for is there before rank 0 waits for it. */
static void slow_inside_a_wait(test_rank *self)
{
    atomic_int *begun = self->shared;
    uint64_t word = 1;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_team *team = coh_team_world(self->world);
    if (self->rank == 1) {
        coh_log_to(compute_once, begun, COH_LOG_WARN);
        CHECK_OK(coh_receive(team, 0, TAG, &word, sizeof word, NULL));
    } else {
        for (double until = test_now() + 20; atomic_load(begun) == 0 && test_now() < until;)
            test_sleep(0.01);
        CHECK_OK(coh_send(team, 1, TAG, &word, sizeof word));
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

/* ---- an idle pool is no way on ---- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_more = PTHREAD_COND_INITIALIZER;
static bool pool_over;

static void *idle(void *arg)
{
    pthread_mutex_lock(&pool_lock);
    while (!pool_over)
        pthread_cond_wait(&pool_more, &pool_lock);
    pthread_mutex_unlock(&pool_lock);
    return arg;
}

static void stuck_beside_an_idle_pool(test_rank *self)
{
    enum { POOL = 4 };
    pthread_t pool[POOL];
    int word;
    if (!join(self))
        return;
    for (int i = 0; i < POOL; i++)
        if (!CHECK(pthread_create(&pool[i], NULL, idle, NULL) == 0))
            return;
    double began = test_now(), fair = test_fair_now();
    CHECK_REFUSED(
        coh_receive(coh_team_world(self->world), 1 - self->rank, TAG, &word, sizeof word, NULL),
        COH_STALLED, "rank 0 receives from 1 (tag 1), 1 from 0");
    double took = test_now() - began, fairly = test_fair_now() - fair;
    if (took < 0.8 * STALL_S || fairly > (STALL_S + 1.5) * (TEST_SANITIZED ? 3 : 1))
        test_fail("STALLED came after %.2f s; COHORT_STALL is %.1f s", took, STALL_S);
    pthread_mutex_lock(&pool_lock);
    pool_over = true;
    pthread_cond_broadcast(&pool_more);
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < POOL; i++)
        pthread_join(pool[i], NULL);
    (void)coh_finalize(self->world);
}

#define STALL "COHORT_STALL=1 COHORT_WARN=0.3"

/* On processes of one host with the default of COHORT_STALL: nothing is in doubt. */
#define CIRCLE(body, size)                                                                    \
    CASE(body, "F5 F44", ON_SHM, SIZE(size), .mode = TEST_UNJOINED),                          \
        CASE(body, "F5 F44", ON_THREADS | ON_SIM | ON_TCP, SIZE(size), .mode = TEST_UNJOINED, \
             .environment = STALL)

const test_case fault_circles[] = {
    CIRCLE(receive_in_a_circle, 3),
    CIRCLE(receive_after_a_started_collective, 3),
    CIRCLE(receive_from_anybody, 3),
    CIRCLE(wait_for_any_writer, 3),
    CIRCLE(several_requests_against_a_barrier, 3),
    CIRCLE(anybody_against_a_barrier, 2),
    CIRCLE(two_locks, 2),
    CIRCLE(wait_for_oneself, 2),
    CIRCLE(wait_for_oneself, 1),
    CASE(anybody_is_stopped, "F5", ON_SHM, SIZE(2), .mode = TEST_UNJOINED,
         .victims = VICTIM(STOPPED), .environment = STALL),
    CASE(told_later_than_others, "F1 F9a", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(LOST)),
    CASE(helper_waits_while_main_computes, "F9a", ON_MEMORY, SIZE(2), .mode = TEST_UNJOINED,
         .environment = STALL, .limit_s = 40),
    CASE(started_while_main_computes, "F9a", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = STALL),
    CASE(helper_sleeps_and_sends, "F9a", ON_MEMORY, SIZE(2), .mode = TEST_UNJOINED,
         .environment = STALL),
    CASE(slow_inside_a_wait, "F9a", ON_MAPPED, SIZE(2), .mode = TEST_UNJOINED,
         .environment = STALL),
    CASE(stuck_beside_an_idle_pool, "F5", ON_PROCESSES, SIZE(2), .mode = TEST_UNJOINED,
         .environment = STALL),
};
FAULT_COUNT(circles);
