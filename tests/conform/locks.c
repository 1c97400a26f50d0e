/* Locks: one holder at a time, in the order of asking. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const double PATIENCE_S = 20;

enum { LOCKS = 12 };

/* A lock and what it protects, on the last rank: two words that are written one after the other. */
struct guarded {
    coh_lock lock;
    uint64_t count;
    uint64_t twice;
};

/* Adds one to both, by gets and puts that nothing but the lock keeps apart. */
static bool add_one(test_rank *self, struct guarded *it)
{
    uint64_t pair[2];
    int home = self->size - 1;
    if (!CHECK_OK(coh_get(self->world, pair, &it->count, sizeof pair, home))
        || !CHECK_EQ(pair[1], 2 * pair[0]))
        return false;
    pair[0]++;
    pair[1] += 2;
    return CHECK_OK(coh_put(self->world, &it->twice, &pair[1], sizeof pair[1], home))
           && CHECK_OK(coh_put(self->world, &it->count, &pair[0], sizeof pair[0], home));
}

static bool add_one_locked(test_rank *self, struct guarded *it)
{
    return CHECK_OK(coh_lock_set(self->world, &it->lock)) && add_one(self, it)
           && CHECK_OK(coh_lock_clear(self->world, &it->lock));
}

static void check_counts(test_rank *self, const struct guarded *guarded, uint64_t wanted)
{
    uint64_t sum = 0;
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < LOCKS && self->rank == self->size - 1; i++) {
        CHECK_EQ(guarded[i].twice, 2 * guarded[i].count);
        sum += guarded[i].count;
    }
    CHECK(self->rank < self->size - 1 || sum == wanted);
}

static void one_holder_at_a_time(test_rank *self)
{
    struct guarded *it;
    int rounds = test_scaled(self, 300);
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *it, (void **)&it)))
        return;
    for (int i = 0; i < rounds; i++)
        if (!add_one_locked(self, &it[5]))
            return;
    check_counts(self, it, (uint64_t)(rounds * self->size));
    CHECK_OK(coh_free(self->world, it));
}

/* Neighbouring locks, each with a home of its own, in an order that differs from rank to rank. */
static void many_locks(test_rank *self)
{
    struct guarded *guarded;
    uint64_t random = self->seed + (uint64_t)self->rank;
    int rounds = test_scaled(self, 300);
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *guarded, (void **)&guarded)))
        return;
    for (int i = 0; i < rounds; i++)
        if (!add_one_locked(self, &guarded[test_random(&random) % LOCKS]))
            return;
    check_counts(self, guarded, (uint64_t)(rounds * self->size));
    CHECK_OK(coh_free(self->world, guarded));
}

/* Two at once, the lower one first. */
static void locks_nest(test_rank *self)
{
    struct guarded *guarded;
    uint64_t random = self->seed + (uint64_t)self->rank;
    int rounds = test_scaled(self, 100);
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *guarded, (void **)&guarded)))
        return;
    for (int i = 0; i < rounds; i++) {
        struct guarded *low = &guarded[test_random(&random) % (LOCKS - 1)];
        if (!CHECK_OK(coh_lock_set(self->world, &low->lock)) || !add_one_locked(self, low + 1)
            || !add_one(self, low) || !CHECK_OK(coh_lock_clear(self->world, &low->lock)))
            return;
    }
    check_counts(self, guarded, (uint64_t)(2 * rounds * self->size));
    CHECK_OK(coh_free(self->world, guarded));
}

/* Taken by trying alone: the same holds. */
static void tried_locks_exclude(test_rank *self)
{
    struct guarded *it;
    int rounds = test_scaled(self, 100), taken;
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *it, (void **)&it)))
        return;
    for (int i = 0; i < rounds; i += taken) {
        taken = -1;
        if (!CHECK_OK(coh_lock_test(self->world, &it[1].lock, &taken))
            || !CHECK(taken == 0 || taken == 1))
            return;
        if (taken
            && (!add_one(self, &it[1]) || !CHECK_OK(coh_lock_clear(self->world, &it[1].lock))))
            return;
    }
    check_counts(self, it, (uint64_t)(rounds * self->size));
    CHECK_OK(coh_free(self->world, it));
}

static void take_one(test_rank *self, coh_lock *lock, int expected)
{
    int taken = -1;
    CHECK_OK(coh_lock_test(self->world, lock, &taken));
    CHECK_EQ(taken, expected);
}

/* While rank 0 holds it, nobody else gets it by trying; once it is cleared, the last rank does. */
static void testing_tells(test_rank *self)
{
    coh_lock *locks;
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *locks, (void **)&locks)))
        return;
    for (int i = 0; i < LOCKS; i++) {
        if (self->rank == 0)
            take_one(self, &locks[i], 1);
        CHECK_OK(coh_barrier(self->world));
        if (self->rank > 0)
            take_one(self, &locks[i], 0);
        CHECK_OK(coh_barrier(self->world));
        if (self->rank == 0)
            CHECK_OK(coh_lock_clear(self->world, &locks[i]));
        CHECK_OK(coh_barrier(self->world));
        if (self->rank == self->size - 1) {
            take_one(self, &locks[i], 1);
            CHECK_OK(coh_lock_clear(self->world, &locks[i]));
        }
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
    }
    CHECK_OK(coh_free(self->world, locks));
}

/* ---- in the order of asking ---- */

struct queue {
    _Atomic uint64_t asking; /* ranks that are about to ask, or have */
    _Atomic uint64_t served;
    _Atomic uint64_t order[TEST_RANKS_MAX];
};

static bool waits_for_lock(test_rank *self, int rank)
{
    coh_peer_state state;
    char text[128] = "";
    double until = test_now() + PATIENCE_S;
    while (test_now() < until) {
        if (!CHECK_OK(coh_peer_query(self->world, rank, &state, text, sizeof text)))
            return false;
        if (strstr(text, "lock"))
            return true;
        test_sleep(0.001);
    }
    test_fail("rank %d was not seen waiting for the lock; it is '%s'", rank, text);
    return false;
}

/* Rank 0 holds the lock; rank r asks when rank r - 1 is seen to wait for it. */
static void served_in_order(test_rank *self)
{
    struct queue *queue = self->shared;
    coh_lock *lock;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *lock, (void **)&lock)))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_lock_set(self->world, lock));
    CHECK_OK(coh_barrier(self->world));
    uint64_t before = (uint64_t)(self->rank ? self->rank - 1 : self->size - 1);
    CHECK(test_await(&queue->asking, before, PATIENCE_S));
    if (self->rank != 1) {
        if (!waits_for_lock(self, (int)before))
            return;
        test_sleep(0.1); /* from calling to being in the queue */
    }
    if (self->rank > 0) {
        atomic_fetch_add(&queue->asking, 1);
        CHECK_OK(coh_lock_set(self->world, lock));
        atomic_store(&queue->order[atomic_fetch_add(&queue->served, 1)], (uint64_t)self->rank);
    }
    CHECK_OK(coh_lock_clear(self->world, lock));
    CHECK_OK(coh_barrier(self->world));
    for (uint64_t i = 0; i + 1 < (uint64_t)self->size; i++)
        CHECK_EQ(atomic_load(&queue->order[i]), i + 1);
    CHECK_OK(coh_free(self->world, lock));
}

/* ---- misuse ---- */

static void misplaced_locks_refused(test_rank *self, coh_lock *locks)
{
    coh_lock *askew = (coh_lock *)((char *)locks + 4), mine = 0;
    int taken = 44;
    CHECK_REFUSED(coh_lock_clear(self->world, locks), COH_INVALID_ARGUMENT, "coh_lock_clear|hold");
    CHECK_STATUS(coh_lock_set(self->world, askew), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_lock_test(self->world, askew, &taken), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_lock_clear(self->world, askew), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_lock_set(self->world, &mine), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_lock_test(self->world, &mine, &taken), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_lock_clear(self->world, NULL), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_lock_test(self->world, locks, NULL), COH_INVALID_ARGUMENT);
    CHECK_EQ(taken, 44);
}

static void bad_locks_refused(test_rank *self)
{
    coh_lock *locks;
    int taken = 44;
    if (!CHECK_OK(coh_calloc(self->world, 2, sizeof *locks, (void **)&locks)))
        return;
    misplaced_locks_refused(self, locks);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 0) {
        CHECK_OK(coh_lock_set(self->world, locks));
        CHECK_REFUSED(coh_lock_set(self->world, locks), COH_INVALID_ARGUMENT, "coh_lock_set|hold");
        CHECK_REFUSED(coh_lock_test(self->world, locks, &taken), COH_INVALID_ARGUMENT, "hold");
        CHECK_OK(coh_lock_clear(self->world, locks));
        CHECK_STATUS(coh_lock_clear(self->world, locks), COH_INVALID_ARGUMENT);
    }
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == self->size - 1) { /* as good as new after all that */
        take_one(self, locks, 1);
        CHECK_OK(coh_lock_clear(self->world, locks));
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, locks));
}

/* Clearing by one who does not hold it, while another does. */
static void only_the_holder_clears(test_rank *self)
{
    coh_lock *lock;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *lock, (void **)&lock)))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_lock_set(self->world, lock));
    CHECK_OK(coh_barrier(self->world));
    if (self->rank > 0)
        CHECK_STATUS(coh_lock_clear(self->world, lock), COH_INVALID_ARGUMENT);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 0)
        CHECK_OK(coh_lock_clear(self->world, lock));
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_lock_set(self->world, lock));
    CHECK_OK(coh_lock_clear(self->world, lock));
    CHECK_OK(coh_free(self->world, lock));
}

/* ---- two threads of a rank ask at the same time: one is served, or told no; nobody hangs ---- */

struct asker {
    test_rank *self;
    struct guarded *it;
    int rounds;
};

/* The rank holds it, or is asking: an error to the caller alone, who tries again. */
static bool refused(coh_status status)
{
    return status == COH_INVALID_ARGUMENT || status == COH_BUSY;
}

static void *ask_again_and_again(void *arg)
{
    struct asker *asker = arg;
    test_this_is_rank(asker->self->rank);
    for (int i = 0; i < asker->rounds && !test_failed();) {
        coh_status status = coh_lock_set(asker->self->world, &asker->it->lock);
        if (refused(status)) {
            test_sleep(0.0001);
            continue;
        }
        if (!CHECK_OK(status) || !add_one(asker->self, asker->it)
            || !CHECK_OK(coh_lock_clear(asker->self->world, &asker->it->lock)))
            return NULL;
        i++;
    }
    return NULL;
}

static void threads_of_a_rank_ask(test_rank *self)
{
    pthread_t thread;
    struct asker asker = {.self = self, .rounds = test_scaled(self, 100)};
    if (!CHECK_OK(coh_calloc(self->world, LOCKS, sizeof *asker.it, (void **)&asker.it))
        || !CHECK(pthread_create(&thread, NULL, ask_again_and_again, &asker) == 0))
        return;
    ask_again_and_again(&asker);
    pthread_join(thread, NULL);
    check_counts(self, asker.it, (uint64_t)(2 * asker.rounds * self->size));
    CHECK_OK(coh_free(self->world, asker.it));
}

const test_case conform_locks[] = {
    CASE(one_holder_at_a_time, "F2", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(many_locks, "F2", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(locks_nest, "F2", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(tried_locks_exclude, "F2", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(testing_tells, "F2", ON_MEMORY, FROM_TWO),
    CASE(served_in_order, "F2", ON_MAPPED | ON_TCP, FROM_TWO),
    CASE(bad_locks_refused, "F17", ON_MEMORY, ANY_SIZE),
    CASE(only_the_holder_clears, "F17", ON_MEMORY, ANY_SIZE),
    CASE(threads_of_a_rank_ask, "S14", ON_MEMORY, ANY_SIZE, .limit_s = 30),
};
CONFORM_COUNT(locks);
