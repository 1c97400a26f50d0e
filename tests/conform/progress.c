/* Progress: docs/semantics.md S11, S13 and S14; docs/faults.md F27. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>

static const double PATIENCE_S = 20;

struct tally {
    _Atomic uint64_t done;    /* ranks that have finished their part */
    _Atomic uint64_t entered; /* ranks whose second thread is about to block */
};

static bool touch_target(test_rank *self, unsigned char *memory, size_t bytes)
{
    unsigned char sent[3000], found[3000];
    for (uint64_t i = 0; i < 20; i++) {
        test_fill(sent, sizeof sent, i + (uint64_t)self->rank);
        unsigned char *at = memory + (size_t)self->rank * bytes;
        if (!CHECK_OK(coh_put(self->world, at, sent, sizeof sent, 0))
            || !CHECK_OK(coh_quiet(self->world))
            || !CHECK_OK(coh_get(self->world, found, at, sizeof found, 0))
            || !CHECK_EQ(test_differs(found, sizeof found, i + (uint64_t)self->rank), sizeof found))
            return false;
    }
    return true;
}

/* Rank 0 computes and calls nothing until all others have put to it and got from it. */
static void target_calls_nothing(test_rank *self)
{
    enum { BYTES = 4096 };
    struct tally *tally = self->shared;
    unsigned char *memory;
    if (!CHECK_OK(coh_malloc(self->world, BYTES * (size_t)self->size, (void **)&memory)))
        return;
    if (self->rank > 0) {
        touch_target(self, memory, BYTES);
        atomic_fetch_add(&tally->done, 1);
    } else {
        CHECK(test_await(&tally->done, (uint64_t)self->size - 1, PATIENCE_S));
    }
    CHECK_OK(coh_free(self->world, memory));
}

/* Many more ranks than cores: barriers go on, and nobody is left behind. */
static void barriers_when_oversubscribed(test_rank *self)
{
    int rounds = test_scaled(self, 1000);
    for (int i = 0; i < rounds; i++)
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
}

static void *block_in_barrier(void *arg)
{
    test_rank *self = arg;
    struct tally *tally = self->shared;
    test_this_is_rank(self->rank);
    atomic_fetch_add(&tally->entered, 1);
    CHECK_OK(coh_barrier(self->world));
    return NULL;
}

/* Puts, gets and allocation queries of one thread while another one waits in a barrier that
 * rank 0 does not enter before they are done. */
static void work_beside_barrier(test_rank *self, uint64_t *words)
{
    uint64_t value = 7, found = 0;
    coh_heap_stats stats = {.size = sizeof stats};
    for (int i = 0; i < 100; i++) {
        CHECK_OK(coh_put(self->world, &words[self->rank], &value, sizeof value, 0));
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_get(self->world, &found, &words[self->rank], sizeof found, 0));
        CHECK_OK(coh_heap_query(self->world, &stats));
    }
    CHECK_EQ(found, value);
}

static void threads_do_not_block_each_other(test_rank *self)
{
    struct tally *tally = self->shared;
    pthread_t helper;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words)))
        return;
    uint64_t others = (uint64_t)self->size - 1;
    if (self->rank == 0) {
        CHECK(test_await(&tally->done, others, PATIENCE_S));
        CHECK_OK(coh_barrier(self->world));
    } else if (CHECK(pthread_create(&helper, NULL, block_in_barrier, self) == 0)) {
        CHECK(test_await(&tally->entered, others, PATIENCE_S));
        test_sleep(0.01); /* the helpers are inside by now, most likely */
        work_beside_barrier(self, words);
        atomic_fetch_add(&tally->done, 1);
        pthread_join(helper, NULL);
    }
    if (!test_failed())
        CHECK_OK(coh_free(self->world, words));
}

/* Two threads put and get at the same time, each in its own part. */
struct lane {
    test_rank *self;
    uint64_t *words;
    int index;
};

static void *drive_lane(void *arg)
{
    struct lane *lane = arg;
    coh_world *world = lane->self->world;
    int right = (lane->self->rank + 1) % lane->self->size;
    test_this_is_rank(lane->self->rank);
    uint64_t rounds = (uint64_t)test_scaled(lane->self, 2000), found = 0;
    for (uint64_t i = 1; i <= rounds; i++) {
        uint64_t *word = &lane->words[lane->index];
        if (!CHECK_OK(coh_put(world, word, &i, sizeof i, right)) || !CHECK_OK(coh_quiet(world))
            || !CHECK_OK(coh_get(world, &found, word, sizeof found, right)) || !CHECK_EQ(found, i))
            return NULL;
    }
    return NULL;
}

static void many_threads_of_one_rank(test_rank *self)
{
    enum { LANES = 3 };
    pthread_t threads[LANES];
    struct lane lanes[LANES];
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, LANES, sizeof *words, (void **)&words)))
        return;
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){self, words, i};
        CHECK(pthread_create(&threads[i], NULL, drive_lane, &lanes[i]) == 0);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(coh_free(self->world, words));
}

const test_case conform_progress[] = {
    CASE(target_calls_nothing, "S11", ON_MEMORY, FROM_TWO),
    CASE(barriers_when_oversubscribed, "S13 F27", ON_ALL, SIZE(4), .per_core = 4, .limit_s = 40),
    CASE(threads_do_not_block_each_other, "S14", ON_MEMORY, FROM_TWO),
    CASE(many_threads_of_one_rank, "S14", ON_MEMORY, ANY_SIZE, .limit_s = 60),
};
CONFORM_COUNT(progress);
