/* Ranks that die with a lock, or waiting for one: docs/faults.md F2. */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VICTIM_RANK = 1, LOCKS = 8 };

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t ready;
    _Atomic uint64_t asking; /* ranks that are about to ask, or have */
    _Atomic uint64_t finished;
};

/* All are out of the allocation before one is struck. */
static bool join_with_locks(test_rank *self, coh_lock **locks)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self))
        || !CHECK_OK(coh_calloc(self->world, LOCKS, sizeof **locks, (void **)locks)))
        return false;
    atomic_fetch_add(&scene->ready, 1);
    return CHECK(test_await(&scene->ready, (uint64_t)self->size, 10));
}

/* Neighbouring locks have different homes; which one is the run's is the seed's choice. */
static coh_lock *the_lock(const test_rank *self, coh_lock *locks)
{
    return &locks[self->seed % LOCKS];
}

/* Waits until rank `rank` is seen inside a call on a lock, and some more, so that it is in the
 * queue. */
static bool await_asking(test_rank *self, int rank)
{
    coh_peer_state state;
    char text[128] = "";
    double until = test_now() + 10;
    while (!strstr(text, "lock") && test_now() < until) {
        test_sleep(0.001);
        if (!CHECK_OK(coh_peer_query(self->world, rank, &state, text, sizeof text)))
            return false;
    }
    test_sleep(0.05);
    return CHECK(strstr(text, "lock") != NULL);
}

/* The dead lock stays dead for all; a fresh one of another home still works. */
static void check_dead(test_rank *self, coh_lock *locks)
{
    struct scene *scene = self->shared;
    coh_lock *dead = the_lock(self, locks);
    int taken = 77, working = 0;
    CHECK_REFUSED(coh_lock_set(self->world, dead), COH_PEER_LOST, "rank 1");
    CHECK_REFUSED(coh_lock_test(self->world, dead, &taken), COH_PEER_LOST, "rank 1");
    CHECK_EQ(taken, 77);
    for (int i = 0; i < LOCKS; i++) {
        if (&locks[i] == dead)
            continue;
        coh_status status = coh_lock_set(self->world, &locks[i]);
        if (status == COH_OK)
            status = coh_lock_clear(self->world, &locks[i]);
        working += status == COH_OK;
        if (status != COH_OK) /* its home is lost, or it cannot be told from such a lock */
            CHECK_REFUSED(status, COH_PEER_LOST, "rank 1");
    }
    CHECK(working > 0);
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)self->size - 1, 10)); /* nobody leaves before */
    (void)coh_finalize(self->world);
}

/* Rank 1 takes the lock; all others wait for it; it dies. */
static void holder_dies(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    coh_lock *lock = the_lock(self, locks);
    if (self->rank == VICTIM_RANK) {
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&scene->asking, 1);
        for (int rank = 0; rank < self->size; rank++)
            if (rank != VICTIM_RANK && !await_asking(self, rank))
                return;
        fault_stamp(&scene->stamps[VICTIM_RANK]);
        raise(SIGKILL);
    }
    CHECK(test_await(&scene->asking, 1, 10));
    coh_status status = coh_lock_set(self->world, lock);
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        check_dead(self, locks);
}

/* Nobody waits when it dies; ranks that come later learn of it. */
static void holder_dies_alone(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    if (self->rank == VICTIM_RANK) {
        CHECK_OK(coh_lock_set(self->world, the_lock(self, locks)));
        fault_stamp(&scene->stamps[VICTIM_RANK]);
        fault_die(self);
        return;
    }
    fault_check_lost(coh_barrier(self->world), VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    check_dead(self, locks);
}

/* A rank that asks by trying alone learns of it too. */
static void holder_dies_while_others_try(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    int taken = 0;
    if (!join_with_locks(self, &locks))
        return;
    if (self->rank == VICTIM_RANK) {
        CHECK_OK(coh_lock_set(self->world, the_lock(self, locks)));
        atomic_store(&scene->asking, 1);
        test_sleep(0.05);
        fault_stamp(&scene->stamps[VICTIM_RANK]);
        raise(SIGKILL);
    }
    CHECK(test_await(&scene->asking, 1, 10));
    coh_status status = COH_OK;
    for (double until = test_now() + 10; status == COH_OK && !taken && test_now() < until;)
        status = coh_lock_test(self->world, the_lock(self, locks), &taken);
    CHECK_EQ(taken, 0);
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        check_dead(self, locks);
}

/* ---- in the queue ---- */

/* Rank 0 holds the lock, rank 1 waits, rank 2 behind it; rank 1 is killed from outside. */
static void waiter_dies(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    coh_lock *lock = the_lock(self, locks);
    if (self->rank == 0) {
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&scene->asking, 1);
        if (!await_asking(self, VICTIM_RANK))
            return;
        atomic_store(&scene->asking, 2);
        if (!await_asking(self, 2))
            return;
        atomic_store(&scene->asking, 3); /* the director strikes */
        CHECK(test_await(&scene->finished, 1, 10));
        coh_status status = coh_lock_clear(self->world, lock);
        if (status != COH_OK)
            CHECK_REFUSED(status, COH_PEER_LOST, "rank 1");
    } else {
        CHECK(test_await(&scene->asking, (uint64_t)self->rank, 10));
        coh_status status = coh_lock_set(self->world, lock);
        fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
        atomic_fetch_add(&scene->finished, 1);
    }
    CHECK_REFUSED(coh_lock_set(self->world, lock), COH_PEER_LOST, "rank 1");
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, 3, 10));
    (void)coh_finalize(self->world);
}

static void strike_the_waiter(test_job *job)
{
    struct scene *scene = job->shared;
    if (!test_await(&scene->asking, 3, 20)) {
        test_fail("the queue did not form");
        return;
    }
    fault_stamp(&scene->stamps[VICTIM_RANK]);
    kill(job->pids[VICTIM_RANK], SIGKILL);
}

/* Rank 1 is the last in the queue, and dies; the ranks before it are served or told, and
 * nobody hangs. */
static void last_waiter_dies(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    coh_lock *lock = the_lock(self, locks);
    if (self->rank == 0) {
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&scene->asking, 1);
        if (!await_asking(self, 2))
            return;
        atomic_store(&scene->asking, 2);
        if (!await_asking(self, VICTIM_RANK))
            return;
        atomic_store(&scene->asking, 3);
        fault_check_lost(coh_barrier(self->world), VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    } else {
        CHECK(test_await(&scene->asking, self->rank == 2 ? 1 : 2, 10));
    }
    coh_status status = self->rank == 0 ? COH_OK : coh_lock_set(self->world, lock);
    if (status == COH_OK)
        status = coh_lock_clear(self->world, lock);
    if (status != COH_OK)
        CHECK_REFUSED(status, COH_PEER_LOST, "rank 1");
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, 2, 10));
    CHECK_REFUSED(coh_lock_set(self->world, lock), COH_PEER_LOST, "rank 1");
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, 4, 10));
    (void)coh_finalize(self->world);
}

/* ---- stalled ---- */

/* Rank 1 holds all locks, which have different homes. A rank that asks is told each time, and
 * nobody is left waiting behind one that was. */
static void check_all_refused(test_rank *self, coh_lock *locks, coh_status expected)
{
    struct scene *scene = self->shared;
    int taken = 77;
    CHECK(test_await(&scene->asking, 1, 10));
    for (int i = 0; i < LOCKS; i++) {
        CHECK_REFUSED(coh_lock_set(self->world, &locks[i]), expected, "rank 1");
        CHECK_REFUSED(coh_lock_set(self->world, &locks[i]), expected, "rank 1");
        CHECK_REFUSED(coh_lock_test(self->world, &locks[i], &taken), expected, "rank 1");
    }
    CHECK_EQ(taken, 77);
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)self->size - 1, 10));
}

static void take_all(test_rank *self, coh_lock *locks)
{
    struct scene *scene = self->shared;
    for (int i = 0; i < LOCKS; i++)
        CHECK_OK(coh_lock_set(self->world, &locks[i]));
    atomic_store(&scene->asking, 1);
}

static void holder_stops(test_rank *self)
{
    coh_lock *locks;
    if (!fault_is_told(self, VICTIM_RANK) || !join_with_locks(self, &locks))
        return;
    if (self->rank == VICTIM_RANK) {
        take_all(self, locks);
        raise(SIGSTOP);
        return;
    }
    check_all_refused(self, locks, COH_STALLED);
    (void)coh_finalize(self->world);
}

static void holder_is_busy_past_the_timeout(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    if (self->rank == VICTIM_RANK) {
        take_all(self, locks);
        CHECK(test_await(&scene->finished, 1, 10));
    } else {
        check_all_refused(self, locks, COH_TIMED_OUT);
    }
    (void)coh_finalize(self->world);
}

/* ---- another rank ---- */

/* Rank 1, which has nothing to do with the locks, is lost with a put of rank 0 under way to it.
 * Rank 2 waits for a lock of rank 0, and gets it. The first locks of a heap have their home on
 * rank 0. */
static void put_is_lost_under_a_lock(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    if (!join_with_locks(self, &locks))
        return;
    coh_lock *lock = &locks[self->size];
    if (self->rank == 0) {
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&scene->asking, 1);
        if (!await_asking(self, 2))
            return;
        uint64_t word = 42;
        coh_status status = COH_OK;
        atomic_store(&scene->asking, 2);
        for (double until = test_now() + 10; status == COH_OK && test_now() < until;)
            status = coh_put(self->world, &locks[0], &word, sizeof word, VICTIM_RANK);
        CHECK_REFUSED(status, COH_PEER_LOST, "rank 1");
        CHECK_REFUSED(coh_lock_clear(self->world, lock), COH_PEER_LOST, "rank 1");
    } else if (self->rank == VICTIM_RANK) {
        CHECK(test_await(&scene->asking, 2, 10));
        while (coh_quiet(self->world) == COH_OK) /* until the simulator kills it */
            ;
        return;
    } else {
        CHECK(test_await(&scene->asking, 1, 10));
        CHECK_OK(coh_lock_set(self->world, lock));
    }
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, 2, 10));
    (void)coh_finalize(self->world);
}

/* Rank 1 is lost, and rank 2 leaves because of that with a lock that rank 0 tries for: neither will
 * give it back. */
static void holder_leaves_after_a_loss(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_lock *locks;
    coh_status status = COH_OK;
    int taken = 0;
    if (!join_with_locks(self, &locks))
        return;
    coh_lock *lock = &locks[self->size];
    if (self->rank == 2) {
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&scene->asking, 1);
    }
    CHECK(test_await(&scene->asking, 1, 10));
    if (self->rank == VICTIM_RANK) {
        fault_die(self);
        return;
    }
    CHECK_REFUSED(coh_barrier(self->world), COH_PEER_LOST, "rank 1");
    for (double until = test_now() + 10; self->rank == 0 && test_now() < until && !status;)
        status = coh_lock_test(self->world, lock, &taken);
    if (self->rank == 0) {
        CHECK_REFUSED(status, COH_PEER_LOST, "rank 1|rank 2|coh_lock_test");
        CHECK_REFUSED(coh_lock_set(self->world, lock), COH_PEER_LOST, "rank 1|is dead");
    }
    (void)coh_finalize(self->world); /* it may report the loss; it must come back */
}

#define DEADLY(function, size, ...)                                                      \
    CASE(function, "F2", ON_PROCESSES, SIZE(size), .mode = TEST_UNJOINED, .limit_s = 30, \
         .victims = VICTIM(VICTIM_RANK), __VA_ARGS__)

const test_case fault_locked[] = {
    DEADLY(holder_dies, 4, .exit_code = 0),
    CASE(holder_dies_alone, "F2", ON_MEMORY, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    DEADLY(holder_dies_while_others_try, 4, .exit_code = 0),
    DEADLY(waiter_dies, 3, .director = strike_the_waiter),
    DEADLY(last_waiter_dies, 3, .director = strike_the_waiter),
    DEADLY(holder_stops, 4, .environment = "COHORT_STALL=1 COHORT_WARN=0.3"),
    CASE(holder_is_busy_past_the_timeout, "F9a", ON_MAPPED, SIZE(2), .mode = TEST_UNJOINED,
         .environment = "COHORT_TIMEOUT=0.7"),
    CASE(holder_leaves_after_a_loss, "F2 F26", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK), .limit_s = 30),
    CASE(put_is_lost_under_a_lock, "F2", ON_SIM, SIZE(3), .mode = TEST_UNJOINED, .limit_s = 30,
         .victims = VICTIM(VICTIM_RANK), .environment = "COHORT_SIM=kill=1@1000"),
};
FAULT_COUNT(locked);
