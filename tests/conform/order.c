/* Ordering: docs/semantics.md S1 to S6. */
#include "conform.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES = 4096 };

/* A letter box in symmetric memory: the flag says which round's data is there. */
struct box {
    uint64_t flag;
    uint64_t answer; /* the reader's, in the writer's box */
    unsigned char data[DATA_BYTES];
};

static const double PATIENCE_S = 20;

static bool send_round(coh_world *world, struct box *box, uint64_t round, int to)
{
    unsigned char data[DATA_BYTES];
    test_fill(data, sizeof data, round);
    return CHECK_OK(coh_put(world, box->data, data, sizeof data, to)) && CHECK_OK(coh_fence(world))
           && CHECK_OK(coh_put(world, &box->flag, &round, sizeof round, to))
           && CHECK_OK(coh_quiet(world));
}

static bool receive_round(coh_world *world, struct box *box, uint64_t round, int from)
{
    if (!CHECK(test_await_word(&box->flag, round, PATIENCE_S)))
        return false;
    return CHECK_EQ(test_differs(box->data, DATA_BYTES, round), DATA_BYTES)
           && CHECK_OK(coh_put(world, &box->answer, &round, sizeof round, from))
           && CHECK_OK(coh_quiet(world));
}

/* Each rank writes to its right neighbour and reads from its left, in lock step by answers. */
static void fence_orders(test_rank *self)
{
    struct box *box;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    for (uint64_t round = 1; round <= rounds; round++) {
        if (!send_round(self->world, box, round, right)
            || !receive_round(self->world, box, round, left)
            || !CHECK(test_await_word(&box->answer, round, PATIENCE_S)))
            return;
    }
    CHECK_OK(coh_free(self->world, box));
}

/* The same to every rank at once: each target's own order holds. */
static void fence_orders_each_target(test_rank *self)
{
    struct box *boxes;
    size_t size = (size_t)self->size;
    if (!CHECK_OK(coh_calloc(self->world, size, sizeof *boxes, (void **)&boxes)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 50);
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int to = 0; to < self->size; to++)
            if (!send_round(self->world, &boxes[self->rank], round, to))
                return;
        for (int from = 0; from < self->size; from++) {
            if (!CHECK(test_await_word(&boxes[from].flag, round, PATIENCE_S))
                || !CHECK_EQ(test_differs(boxes[from].data, DATA_BYTES, round), DATA_BYTES))
                return;
        }
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
    }
    CHECK_OK(coh_free(self->world, boxes));
}

/* ---- what only the simulator shows: what is not promised does happen ---- */

enum { ATTEMPTS = 64, SEEDS = 40 };

struct sightings {
    _Atomic uint64_t in_order;
    _Atomic uint64_t out_of_order;
    uint64_t *_Atomic first; /* the first target's words, as an address of this process */
};

static void note(struct sightings *seen, bool in_order)
{
    atomic_fetch_add(in_order ? &seen->in_order : &seen->out_of_order, 1);
}

/* What has come of the pairs up to `last`. */
static void look_at_pairs(struct sightings *seen, const uint64_t *words, int last)
{
    for (int i = 0; i <= last; i++)
        if (__atomic_load_n(&words[2 * i + 1], __ATOMIC_ACQUIRE) == 1)
            note(seen, __atomic_load_n(&words[2 * i], __ATOMIC_ACQUIRE) == 1);
}

/* Two words, no fence. The writer itself looks, at what rank 1 has by then: another thread might get
 * no core before all of it has come. */
static void write_unfenced(test_rank *self, uint64_t *words)
{
    struct sightings *seen = self->shared;
    const uint64_t *there = atomic_load(&seen->first);
    uint64_t one = 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        CHECK_OK(coh_put(self->world, &words[2 * i], &one, sizeof one, 1));
        CHECK_OK(coh_put(self->world, &words[2 * i + 1], &one, sizeof one, 1));
        look_at_pairs(seen, there, i);
    }
    CHECK_OK(coh_quiet(self->world));
}

static void unfenced_body(test_rank *self)
{
    struct sightings *seen = self->shared;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, 2 * ATTEMPTS, sizeof *words, (void **)&words)))
        return;
    if (self->rank == 1)
        atomic_store(&seen->first, words);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 0)
        write_unfenced(self, words);
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_finalize(self->world));
}

/* Runs `body` with seed after seed until both orders were seen. */
static void until_both_seen(test_rank *self, int ranks, void (*body)(test_rank *self))
{
    struct sightings *seen = self->shared;
    for (int i = 0; i < SEEDS && !test_failed(); i++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%llu", (unsigned long long)self->seed + (unsigned)i);
        setenv("COHORT_SIM", script, 1);
        test_crew(self, ranks, body);
        if (seen->in_order && seen->out_of_order)
            return;
    }
    test_fail("in %d seeds from %llu on, %llu in order and %llu out of order: both should occur",
              SEEDS, (unsigned long long)self->seed, (unsigned long long)seen->in_order,
              (unsigned long long)seen->out_of_order);
}

static void unfenced_either_order(test_rank *self)
{
    until_both_seen(self, 2, unfenced_body);
}

/* A fence between puts to two ranks: the second may have its word while the first waits. */
static void write_two_targets(test_rank *self, uint64_t *words)
{
    uint64_t one = 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, 1));
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, 2));
    }
    CHECK_OK(coh_quiet(self->world));
}

static void compare_two_targets(struct sightings *seen, const uint64_t *words)
{
    const uint64_t *first = atomic_load(&seen->first);
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!CHECK(test_await_word(&words[i], 1, PATIENCE_S)))
            return;
        note(seen, __atomic_load_n(&first[i], __ATOMIC_ACQUIRE) == 1);
    }
}

static void two_targets_body(test_rank *self)
{
    struct sightings *seen = self->shared;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, ATTEMPTS, sizeof *words, (void **)&words)))
        return;
    if (self->rank == 1)
        atomic_store(&seen->first, words);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 0)
        write_two_targets(self, words);
    else if (self->rank == 2)
        compare_two_targets(seen, words);
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_finalize(self->world));
}

static void fence_is_per_target(test_rank *self)
{
    until_both_seen(self, 3, two_targets_body);
}

/* After sync alone the word may not be there yet; noted as "in order" when it is. */
static void sync_body(test_rank *self)
{
    uint64_t *words, one = 1;
    if (!CHECK_OK(coh_calloc(self->world, ATTEMPTS, sizeof *words, (void **)&words)))
        return;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (self->rank == 0)
            CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, 1));
        CHECK_OK(coh_sync(self->world));
        if (self->rank == 1)
            note(self->shared, __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) == 1);
    }
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_finalize(self->world));
}

static void sync_completes_nothing(test_rank *self)
{
    until_both_seen(self, 2, sync_body);
}

/* ---- S4 to S6, on every engine ---- */

static void barrier_completes(test_rank *self)
{
    size_t size = (size_t)self->size;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, size, sizeof *words, (void **)&words)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int to = 0; to < self->size; to++)
            CHECK_OK(coh_put(self->world, &words[self->rank], &round, sizeof round, to));
        CHECK_OK(coh_barrier(self->world));
        for (size_t from = 0; from < size; from++)
            if (!CHECK_EQ(words[from], round))
                return;
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_free(self->world, words));
}

/* The source is overwritten right after each put; what arrives is what it held at the call. */
static void put_lets_go_of_its_source(test_rank *self)
{
    enum { PIECES = 32, PIECE = 1500 };
    unsigned char source[PIECE], *target;
    int right = (self->rank + 1) % self->size;
    if (!CHECK_OK(coh_malloc(self->world, PIECES * PIECE, (void **)&target)))
        return;
    for (size_t i = 0; i < PIECES; i++) {
        test_fill(source, PIECE, i);
        CHECK_OK(coh_put(self->world, target + i * PIECE, source, PIECE, right));
        memset(source, 0xee, PIECE);
    }
    CHECK_OK(coh_barrier(self->world));
    for (size_t i = 0; i < PIECES; i++)
        CHECK_EQ(test_differs(target + i * PIECE, PIECE, i), PIECE);
    CHECK_OK(coh_free(self->world, target));
}

static void nbi_completes_at_quiet(test_rank *self)
{
    enum { PIECES = 32, PIECE = 1500 };
    unsigned char *source = malloc(PIECES * PIECE), *copy = calloc(PIECES, PIECE), *target;
    int right = (self->rank + 1) % self->size;
    if (!CHECK_OK(coh_malloc(self->world, PIECES * PIECE, (void **)&target)))
        return;
    for (size_t i = 0; i < PIECES; i++) {
        test_fill(source + i * PIECE, PIECE, i);
        CHECK_OK(coh_put_nbi(self->world, target + i * PIECE, source + i * PIECE, PIECE, right));
    }
    CHECK_OK(coh_quiet(self->world));
    memset(source, 0xee, PIECES * PIECE);
    for (size_t i = 0; i < PIECES; i++)
        CHECK_OK(coh_get_nbi(self->world, copy + i * PIECE, target + i * PIECE, PIECE, right));
    CHECK_OK(coh_quiet(self->world));
    for (size_t i = 0; i < PIECES; i++)
        CHECK_EQ(test_differs(copy + i * PIECE, PIECE, i), PIECE);
    CHECK_OK(coh_free(self->world, target));
    free(source);
    free(copy);
}

/* put, then quiet: a get of another rank finds it, told of it outside Cohort. */
static void quiet_reaches_the_target(test_rank *self)
{
    _Atomic uint64_t *told = self->shared;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words)))
        return;
    int target = self->size - 1;
    uint64_t rounds = (uint64_t)test_scaled(self, 200);
    for (uint64_t round = 1; round <= rounds; round++) {
        CHECK_OK(coh_put(self->world, &words[self->rank], &round, sizeof round, target));
        CHECK_OK(coh_quiet(self->world));
        atomic_store(&told[self->rank], round);
        int next = (self->rank + 1) % self->size;
        uint64_t found = 0;
        if (!CHECK(test_await(&told[next], round, PATIENCE_S))
            || !CHECK_OK(coh_get(self->world, &found, &words[next], sizeof found, target))
            || !CHECK(found >= round))
            return;
    }
    CHECK_OK(coh_free(self->world, words));
}

/* Plain stores through coh_ptr are covered by quiet as puts are. */
static void quiet_covers_plain_stores(test_rank *self)
{
    struct box *box, *peers;
    if (test_looks_for_races()) {
        test_skip("the race check has no coh_ptr");
        return;
    }
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box))
        || !CHECK_OK(coh_ptr(self->world, box, right, (void **)&peers)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 200);
    for (uint64_t round = 1; round <= rounds; round++) {
        test_fill(peers->data, DATA_BYTES, round);
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_put(self->world, &box->flag, &round, sizeof round, right));
        CHECK_OK(coh_quiet(self->world));
        if (!receive_round(self->world, box, round, left)
            || !CHECK(test_await_word(&box->answer, round, PATIENCE_S)))
            return;
    }
    CHECK_OK(coh_free(self->world, box));
}

const test_case conform_order[] = {
    CASE(fence_orders, "S1", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(fence_orders_each_target, "S3", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(unfenced_either_order, "S2", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(fence_is_per_target, "S3", ON_SIM, SIZE(3), .mode = TEST_ALONE, .limit_s = 60),
    CASE(sync_completes_nothing, "S6", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(barrier_completes, "S6", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(put_lets_go_of_its_source, "S4", ON_MEMORY, ANY_SIZE),
    CASE(nbi_completes_at_quiet, "S4 S5", ON_MEMORY, ANY_SIZE),
    CASE(quiet_reaches_the_target, "S5", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(quiet_covers_plain_stores, "S5", ON_MAPPED, ANY_SIZE),
};
CONFORM_COUNT(order);
