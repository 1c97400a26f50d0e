/* Atomics of all ranks and threads on one word: docs/semantics.md S30 and S31. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { LANES = 3, MARKS = TEST_SCRATCH_BYTES };

/* One thread of a rank, and the number that tells it from all others of the job. */
struct lane {
    test_rank *self;
    void *words;
    int index; /* of the job's lanes */
    int turns;
};

static void each_lane(test_rank *self, void *words, int turns, void *(*drive)(void *))
{
    pthread_t threads[LANES];
    struct lane lanes[LANES];
    bool started[LANES] = {false};
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){self, words, self->rank * LANES + i, turns};
        started[i] = i > 0 && CHECK(pthread_create(&threads[i], NULL, drive, &lanes[i]) == 0);
    }
    drive(&lanes[0]);
    for (int i = 0; i < LANES; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}

/* Marks a number as seen; false when it was, or is none that can be. */
static bool mark_once(test_rank *self, uint64_t number, uint64_t most)
{
    _Atomic unsigned char *marks = self->shared;
    if (number < most && atomic_fetch_add(&marks[number], 1) == 0)
        return true;
    test_fail("the number %llu of %llu came twice or is none", (unsigned long long)number,
              (unsigned long long)most);
    return false;
}

static int turns_of(const test_rank *self)
{
    int turns = test_scaled(self, 1000), most = MARKS / (LANES * self->size) - 1;
    return turns < most ? turns : most;
}

/* ---- fetch-add gives a permutation ---- */

static void *draw_numbers(void *arg)
{
    struct lane *lane = arg;
    test_rank *self = lane->self;
    uint64_t most = (uint64_t)(lane->turns * LANES * self->size), last = 0, one = 1, got = 0;
    test_this_is_rank(self->rank);
    for (int i = 0; i < lane->turns; i++) {
        if (!CHECK_OK(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U64, lane->words, &one,
                                       &got, self->size - 1))
            || !CHECK(i == 0 || got > last) || !mark_once(self, got, most))
            return NULL;
        last = got;
    }
    return NULL;
}

static void fetch_add_permutes(test_rank *self)
{
    uint64_t *word, total = 0;
    int turns = turns_of(self);
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    each_lane(self, word, turns, draw_numbers);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_get(self->world, &total, word, sizeof total, self->size - 1));
    CHECK_EQ(total, turns * LANES * self->size);
    CHECK_OK(coh_free(self->world, word));
}

/* The same with 32 bits, several on their way at once, complete at quiet. */
static void fetch_add_nbi_permutes(test_rank *self)
{
    enum { BATCH = 8 };
    uint32_t *word, got[BATCH], one = 1;
    int batches = turns_of(self) / BATCH + 1;
    uint64_t most = (uint64_t)(batches * BATCH * self->size);
    if (!CHECK_OK(coh_calloc(self->world, 2, sizeof *word, (void **)&word)))
        return;
    for (int batch = 0; batch < batches && !test_failed(); batch++) {
        for (int i = 0; i < BATCH; i++)
            CHECK_OK(
                coh_atomic_fetch_nbi(self->world, COH_ATOMIC_ADD, COH_U32, word, &one, &got[i], 0));
        CHECK_OK(coh_quiet(self->world));
        for (int i = 0; i < BATCH; i++)
            mark_once(self, got[i], most);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK(self->rank > 0 || word[0] == most);
    CHECK_EQ(word[1], 0);
    CHECK_OK(coh_free(self->world, word));
}

/* ---- swaps form one chain ---- */

/* Each value that is swapped in comes out exactly once, or stays; so does the first, 0. */
static void *swap_in(void *arg)
{
    struct lane *lane = arg;
    test_rank *self = lane->self;
    uint64_t most = (uint64_t)(lane->turns * LANES * self->size) + 1, out = 0;
    test_this_is_rank(self->rank);
    for (int i = 0; i < lane->turns; i++) {
        uint64_t in = (uint64_t)(lane->index * lane->turns + i) + 1;
        if (!CHECK_OK(
                coh_atomic_fetch(self->world, COH_ATOMIC_SET, COH_I64, lane->words, &in, &out, 0))
            || !mark_once(self, out, most))
            return NULL;
    }
    return NULL;
}

static void swaps_form_a_chain(test_rank *self)
{
    uint64_t *word;
    int turns = turns_of(self);
    uint64_t most = (uint64_t)(turns * LANES * self->size) + 1;
    const _Atomic unsigned char *marks = self->shared;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    each_lane(self, word, turns, swap_in);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 0 && mark_once(self, *word, most))
        for (uint64_t i = 0; i < most; i++)
            CHECK_EQ(atomic_load(&marks[i]), 1);
    CHECK_OK(coh_free(self->world, word));
}

/* ---- compare-and-swap has one winner ---- */

static void one_winner(test_rank *self)
{
    _Atomic uint64_t *wins = self->shared;
    uint64_t rounds = (uint64_t)test_scaled(self, 1000), none = 0, mine = (uint64_t)self->rank + 1;
    uint64_t *words, found = 0, last = 0;
    if (!CHECK_OK(coh_calloc(self->world, rounds, sizeof *words, (void **)&words)))
        return;
    for (uint64_t i = 0; i < rounds; i++) {
        int home = (int)(i % (unsigned)self->size);
        if (!CHECK_OK(coh_atomic_compare_swap(self->world, COH_U64, &words[i], &none, &mine, &found,
                                              home))
            || !CHECK_OK(coh_atomic_fetch(self->world, COH_ATOMIC_FETCH, COH_U64, &words[i], NULL,
                                          &last, home))
            || !CHECK_EQ(last, found ? found : mine))
            return;
        atomic_fetch_add(&wins[i], found == 0);
    }
    CHECK_OK(coh_barrier(self->world));
    for (uint64_t i = 0; i < rounds; i++)
        CHECK_EQ(atomic_load(&wins[i]), 1);
    CHECK_OK(coh_free(self->world, words));
}

static void *count_by_swaps(void *arg)
{
    struct lane *lane = arg;
    test_rank *self = lane->self;
    test_this_is_rank(self->rank);
    uint32_t seen = 0, found = 0;
    for (int i = 0; i < lane->turns;) {
        uint32_t next = seen + 1;
        if (!CHECK_OK(coh_atomic_compare_swap(self->world, COH_I32, lane->words, &seen, &next,
                                              &found, 0)))
            return NULL;
        i += found == seen;
        seen = found == seen ? next : found;
    }
    return NULL;
}

static void compare_swap_counts(test_rank *self)
{
    uint32_t *word;
    int turns = turns_of(self) / 4 + 1;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    each_lane(self, word, turns, count_by_swaps);
    CHECK_OK(coh_barrier(self->world));
    CHECK(self->rank > 0 || *word == (uint32_t)(turns * LANES * self->size));
    CHECK_OK(coh_free(self->world, word));
}

/* ---- operations without a result, of all on one word, complete at quiet ---- */

static void *change_bits(void *arg)
{
    struct lane *lane = arg;
    test_rank *self = lane->self;
    uint64_t *words = lane->words, bit = UINT64_C(1) << lane->index, not_bit = ~bit, odd = 3;
    test_this_is_rank(self->rank);
    for (int i = 0; i < lane->turns; i++) {
        CHECK_OK(coh_atomic(self->world, COH_ATOMIC_XOR, COH_U64, &words[0], &bit, 0));
        CHECK_OK(coh_atomic(self->world, COH_ATOMIC_OR, COH_U64, &words[1], &bit, 0));
        CHECK_OK(coh_atomic(self->world, COH_ATOMIC_AND, COH_U64, &words[2], &not_bit, 0));
        CHECK_OK(coh_atomic(self->world, COH_ATOMIC_ADD, COH_U64, &words[3], &odd, 0));
    }
    CHECK_OK(coh_quiet(self->world));
    return NULL;
}

static void posted_operations_all_count(test_rank *self)
{
    uint64_t *words, lanes = (UINT64_C(1) << (LANES * self->size)) - 1;
    int turns = test_scaled(self, 500) | 1;
    if (!CHECK_OK(coh_calloc(self->world, 4, sizeof *words, (void **)&words)))
        return;
    words[2] = UINT64_MAX;
    CHECK_OK(coh_barrier(self->world));
    each_lane(self, words, turns, change_bits);
    CHECK_OK(coh_sync(self->world)); /* each thread's quiet has completed what it issued */
    if (self->rank == 0) {
        CHECK_EQ(words[0], lanes);
        CHECK_EQ(words[1], lanes);
        CHECK_EQ(words[2], ~lanes);
        CHECK_EQ(words[3], 3 * turns * LANES * self->size);
    }
    CHECK_OK(coh_free(self->world, words));
}

/* ---- beside a wait on the same word ---- */

/* Each rank waits for every value that its left neighbour counts up to, and lets it go on. */
static void atomic_beside_wait(test_rank *self)
{
    struct pair {
        uint64_t count, answer;
    } * pair;
    coh_world *world = self->world;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    uint64_t one = 1, rounds = (uint64_t)test_scaled(self, 500);
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *pair, (void **)&pair)))
        return;
    for (uint64_t i = 1; i <= rounds; i++) {
        if (!CHECK_OK(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, &pair->count, &one, right))
            || !CHECK_OK(coh_wait_until(world, COH_U64, &pair->count, COH_EQ, &i, left))
            || !CHECK_OK(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, &pair->answer, &one, left))
            || !CHECK_OK(coh_wait_until(world, COH_U64, &pair->answer, COH_EQ, &i, right)))
            return;
    }
    CHECK_OK(coh_free(world, pair));
}

/* All count one word up while its owner waits for every tenth value, never losing one. */
static void many_add_while_one_waits(test_rank *self)
{
    coh_world *world = self->world;
    uint32_t *word, one = 1;
    uint32_t rounds = (uint32_t)test_scaled(self, 400), all = rounds * (uint32_t)self->size;
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *word, (void **)&word)))
        return;
    for (uint32_t i = 0; i < rounds; i++)
        CHECK_OK(coh_atomic(world, COH_ATOMIC_ADD, COH_U32, word, &one, 0));
    for (uint32_t i = 0; i <= all && self->rank == 0; i += 10)
        if (!CHECK_OK(coh_wait_until(world, COH_U32, word, COH_GE, &i, COH_ANY_RANK)))
            return;
    CHECK_OK(coh_barrier(world));
    CHECK(self->rank > 0 || *word == all);
    CHECK_OK(coh_free(world, word));
}

const test_case conform_races[] = {
    CASE(fetch_add_permutes, "S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(fetch_add_nbi_permutes, "S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(swaps_form_a_chain, "S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(one_winner, "S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(compare_swap_counts, "S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(posted_operations_all_count, "S5 S30", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(atomic_beside_wait, "S31", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(many_add_while_one_waits, "S31", ON_MEMORY, ANY_SIZE, .limit_s = 60),
};
CONFORM_COUNT(races);
