/* The race check, COHORT_CHECK=order: what is not ordered is late or named, and nothing else is. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS = 64 };

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

static bool await(test_rank *self, const uint64_t *word, uint64_t value)
{
    return CHECK_OK(coh_wait_until(self->world, COH_U64, word, COH_GE, &value, COH_ANY_RANK));
}

static bool zeroed(test_rank *self, size_t bytes, void *out)
{
    return CHECK_OK(coh_calloc(self->world, 1, bytes, (void **)out));
}

/* After a race was named finalize says so on all ranks. */
static void finalize_with_race(test_rank *self)
{
    CHECK_REFUSED(coh_finalize(self->world), COH_RACE, "finalize|race|coh_");
    self->world = NULL;
}

/* ---- late ---- */

static void puts_wait_for_order(test_rank *self)
{
    uint64_t *words, one = 1;
    if (!zeroed(self, 3 * sizeof *words, &words))
        return;
    for (int i = 0; i < 3; i++)
        CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, right_of(self)));
    CHECK_EQ(words[0], 0);
    CHECK_OK(coh_sync(self->world)); /* completes nothing */
    CHECK_EQ(words[1], 0);
    CHECK_OK(coh_barrier(self->world));
    CHECK(words[0] == 1 && words[1] == 1 && words[2] == 1);
    CHECK_OK(coh_free(self->world, words));
}

struct mail {
    uint64_t early[CELLS], data[CELLS], signal, flag;
};

/* A signal brings its own data, and what is fenced off before it, and nothing else. */
static void a_signal_brings_what_it_orders(test_rank *self)
{
    struct mail *mail;
    uint64_t ones[CELLS];
    for (int i = 0; i < CELLS; i++)
        ones[i] = 1;
    if (!zeroed(self, 2 * sizeof *mail, &mail))
        return;
    for (int fenced = 0; fenced < 2; fenced++, mail++) {
        CHECK_OK(coh_put(self->world, mail->early, ones, sizeof ones, right_of(self)));
        if (fenced)
            CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put_signal(self->world, mail->data, ones, sizeof ones, &mail->signal, 1,
                                COH_SIGNAL_ADD, right_of(self)));
        if (!await(self, &mail->signal, 1))
            return;
        CHECK_EQ(mail->data[CELLS - 1], 1);
        CHECK_EQ(mail->early[0], fenced);
    }
    CHECK_OK(coh_free(self->world, mail - 2));
}

/* A flag that is put, not signalled, and never completed is not late for who waits for it: 1000
 * rounds of the least delay would take longer than the case may. */
static void awaited_flags_are_not_late(test_rank *self)
{
    struct flags {
        uint64_t flag, answer;
    } * flags;
    if (!zeroed(self, sizeof *flags, &flags))
        return;
    for (uint64_t i = 1; i <= 1000; i++) {
        CHECK_OK(coh_put(self->world, &flags->flag, &i, sizeof i, right_of(self)));
        if (!await(self, &flags->flag, i))
            return;
        CHECK_OK(coh_put(self->world, &flags->answer, &i, sizeof i, left_of(self)));
        if (!await(self, &flags->answer, i))
            return;
    }
    CHECK_OK(coh_free(self->world, flags));
}

/* Who polls by get, or by fetch, a word that is never completed sees it in the end. */
static void polling_ends(test_rank *self)
{
    uint64_t *words, one = 1, seen = 0;
    if (!zeroed(self, 2 * sizeof *words, &words))
        return;
    for (int i = 0; i < 2; i++)
        CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, right_of(self)));
    double until = test_now() + 20;
    while (seen == 0 && test_now() < until)
        CHECK_OK(coh_get(self->world, &seen, &words[0], sizeof seen, right_of(self)));
    CHECK_EQ(seen, 1);
    for (seen = 0; seen == 0 && test_now() < until;)
        CHECK_OK(coh_atomic_fetch(self->world, COH_ATOMIC_FETCH, COH_U64, &words[1], NULL, &seen,
                                  self->rank));
    CHECK_EQ(seen, 1);
    CHECK_OK(coh_free(self->world, words));
}

/* A third rank that is told of a put which is complete gets it, and so does its target. */
static void complete_for_all(test_rank *self)
{
    uint64_t *cells, mine[CELLS], got[CELLS];
    coh_team *all = coh_team_world(self->world);
    int last = self->size - 1;
    char word = 0;
    if (!zeroed(self, sizeof mine, &cells))
        return;
    for (int i = 0; i < CELLS; i++)
        mine[i] = (uint64_t)i + 1;
    if (self->rank == 0) {
        CHECK_OK(coh_put(self->world, cells, mine, sizeof mine, 1));
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_send(all, last, 1, &word, 1));
    } else if (self->rank == last) {
        CHECK_OK(coh_receive(all, 0, 1, &word, 1, NULL));
        CHECK_OK(coh_get(self->world, got, cells, sizeof got, 1));
        CHECK_EQ(memcmp(got, mine, sizeof mine), 0);
        CHECK_OK(coh_send(all, 1, 1, &word, 1));
    }
    if (self->rank == 1) {
        CHECK_OK(coh_receive(all, last, 1, &word, 1, NULL));
        CHECK_EQ(memcmp(cells, mine, sizeof mine), 0);
    }
    CHECK_OK(coh_free(self->world, cells));
}

/* More puts than a log has room for, and longer ones. */
static void a_full_log(test_rank *self)
{
    enum { WORDS = 5000, LONG = 3 << 20, PIECES = 6 };
    uint64_t *words;
    unsigned char *bytes, *source = malloc(LONG);
    if (!zeroed(self, WORDS * sizeof *words, &words) || !zeroed(self, PIECES * LONG, &bytes))
        return;
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t value = i + 1;
        CHECK_OK(coh_put(self->world, &words[i], &value, sizeof value, right_of(self)));
    }
    for (size_t i = 0; i < PIECES; i++) {
        test_fill(source, LONG, i);
        CHECK_OK(coh_put(self->world, bytes + i * LONG, source, LONG, right_of(self)));
    }
    CHECK_OK(coh_barrier(self->world));
    for (uint64_t i = 0; i < WORDS; i++)
        if (!CHECK_EQ(words[i], i + 1))
            break;
    for (size_t i = 0; i < PIECES; i++)
        CHECK_EQ(test_differs(bytes + i * LONG, LONG, i), LONG);
    CHECK_OK(coh_free(self->world, bytes));
    CHECK_OK(coh_free(self->world, words));
    free(source);
}

/* Without a fence the last put may come first; with one it may not. */
static void order_of_two_puts(test_rank *self)
{
    uint64_t *cells, first[CELLS], second[CELLS];
    if (!zeroed(self, sizeof first, &cells))
        return;
    for (int i = 0; i < CELLS; i++) {
        first[i] = 1;
        second[i] = 2;
    }
    for (int fenced = 0; fenced < 2; fenced++) {
        CHECK_OK(coh_put(self->world, cells, first, sizeof first, right_of(self)));
        if (fenced)
            CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put(self->world, cells, second, sizeof second, right_of(self)));
        CHECK_OK(coh_barrier(self->world));
        CHECK_EQ(cells[0], fenced ? 2 : 1);
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_free(self->world, cells));
}

static void non_blocking_gets_come_at_quiet(test_rank *self)
{
    uint64_t *cells, got[CELLS] = {0};
    if (!zeroed(self, sizeof got, &cells))
        return;
    cells[3] = (uint64_t)self->rank + 7;
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_get_nbi(self->world, got, cells, sizeof got, right_of(self)));
    CHECK(got[3] != (uint64_t)right_of(self) + 7);
    CHECK_OK(coh_quiet(self->world));
    CHECK_EQ(got[3], (uint64_t)right_of(self) + 7);
    CHECK_OK(coh_free(self->world, cells));
}

/* ---- refused ---- */

static void no_pointers_to_peers(test_rank *self)
{
    void *memory, *direct = NULL;
    if (!zeroed(self, 64, &memory))
        return;
    CHECK_REFUSED(coh_ptr(self->world, memory, right_of(self), &direct), COH_UNSUPPORTED,
                  "COHORT_CHECK=order|put and get");
    CHECK_OK(coh_ptr(self->world, memory, self->rank, &direct));
    CHECK(direct == memory);
    CHECK_OK(coh_free(self->world, memory));
}

static void not_on_the_simulator(test_rank *self)
{
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    CHECK_REFUSED(coh_init_threads(2, &options, worlds), COH_UNSUPPORTED, "order|shm, threads|sim");
}

/* ---- named ---- */

static void a_get_is_named(test_rank *self)
{
    uint64_t *cells, mine[CELLS] = {0};
    if (!zeroed(self, sizeof mine, &cells))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_put(self->world, cells, mine, sizeof mine, 1));
    CHECK_OK(coh_sync(self->world));
    if (self->rank > 0)
        CHECK_REFUSED(coh_get(self->world, mine, cells + 8, 64, 1), COH_RACE,
                      "coh_get|reads 64 bytes|of rank 1|coh_put of rank 0|512 bytes|orders");
    CHECK_OK(coh_sync(self->world)); /* nobody completes before all have looked */
    finalize_with_race(self);
}

/* The put is complete inside a barrier that the other rank has not come to. */
static void a_put_before_the_barrier_is_named(test_rank *self)
{
    uint64_t *cells, mine[CELLS] = {0};
    if (!zeroed(self, sizeof mine, &cells))
        return;
    if (self->rank == 0) {
        CHECK_OK(coh_put(self->world, cells, mine, sizeof mine, 1));
        CHECK_OK(coh_barrier(self->world));
    } else {
        if (self->rank == self->size - 1)
            test_sleep(0.05); /* most likely rank 0 is inside by now */
        if (self->rank == self->size - 1)
            CHECK_REFUSED(coh_put(self->world, cells, mine, sizeof mine, 1), COH_RACE,
                          "coh_put|writes 512 bytes|coh_put of rank 0");
        CHECK_OK(coh_barrier(self->world));
    }
    finalize_with_race(self);
}

/* All members learn of it where a collective needs them all. */
static void a_collective_is_named(test_rank *self)
{
    double *cells, *sums, mine[CELLS] = {0};
    if (!zeroed(self, sizeof mine, &cells) || !zeroed(self, sizeof mine, &sums))
        return;
    if (self->rank == 0)
        CHECK_OK(coh_put(self->world, cells, mine, sizeof mine, 1));
    CHECK_OK(coh_sync(self->world));
    CHECK_STATUS(coh_all_reduce(coh_team_world(self->world), COH_F64, COH_SUM, cells, sums, CELLS),
                 COH_RACE);
    if (self->rank == 1)
        CHECK_SAYS("coh_all_reduce|reads 512 bytes|coh_put of rank 0");
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_all_reduce(coh_team_world(self->world), COH_F64, COH_SUM, cells, sums, CELLS));
    finalize_with_race(self);
}

static void a_changed_source_is_named(test_rank *self)
{
    uint64_t *cells, mine[CELLS] = {0};
    if (!zeroed(self, sizeof mine, &cells))
        return;
    CHECK_OK(coh_put_nbi(self->world, cells, mine, sizeof mine, right_of(self)));
    mine[5] = 1;
    CHECK_REFUSED(coh_quiet(self->world), COH_RACE, "coh_quiet|source of coh_put_nbi|512 bytes");
    CHECK_OK(coh_quiet(self->world)); /* it is over */
    CHECK_OK(coh_barrier(self->world));
    finalize_with_race(self);
}

/* ---- what is right, and close to what is not ---- */

/* A flag that anybody may set; a counter that all count on; a signal that several add to. */
static void words_of_many(test_rank *self)
{
    struct words {
        uint64_t flag, counter, signal;
    } * words;
    uint64_t one = 1, size = (uint64_t)self->size;
    if (!zeroed(self, sizeof *words, &words))
        return;
    CHECK_OK(coh_put(self->world, &words->flag, &one, sizeof one, 0));
    CHECK_OK(coh_atomic(self->world, COH_ATOMIC_ADD, COH_U64, &words->counter, &one, 0));
    CHECK_OK(coh_signal(self->world, &words->signal, 1, COH_SIGNAL_ADD, 0));
    if (self->rank == 0) {
        CHECK(await(self, &words->flag, 1));
        CHECK(await(self, &words->counter, size));
        CHECK(await(self, &words->signal, size));
    }
    CHECK_OK(coh_free(self->world, words));
}

/* Data and flag behind a fence: once the flag was seen, anything may be done with the data. */
static void ordered_by_a_flag(test_rank *self)
{
    struct mail *mail;
    uint64_t mine[CELLS], sums[CELLS], one = 1;
    if (!zeroed(self, sizeof *mail, &mail))
        return;
    for (int i = 0; i < CELLS; i++)
        mine[i] = (uint64_t)self->rank + 1;
    CHECK_OK(coh_put(self->world, mail->data, mine, sizeof mine, right_of(self)));
    CHECK_OK(coh_fence(self->world));
    CHECK_OK(coh_put(self->world, &mail->flag, &one, sizeof one, right_of(self)));
    if (!await(self, &mail->flag, 1))
        return;
    CHECK_OK(coh_get(self->world, sums, mail->data, sizeof sums, self->rank));
    CHECK_EQ(sums[0], (uint64_t)left_of(self) + 1);
    CHECK_OK(
        coh_all_reduce(coh_team_world(self->world), COH_U64, COH_SUM, mail->data, sums, CELLS));
    CHECK_EQ(sums[CELLS - 1], (uint64_t)(self->size * (self->size + 1) / 2));
    CHECK_OK(coh_free(self->world, mail));
}

static void locks_order(test_rank *self)
{
    struct guarded {
        coh_lock lock;
        uint64_t cells[CELLS];
    } * guarded;
    uint64_t mine[CELLS];
    if (!zeroed(self, sizeof *guarded, &guarded))
        return;
    for (int i = 0; i < 20; i++) {
        if (!CHECK_OK(coh_lock_set(self->world, &guarded->lock)))
            return;
        CHECK_OK(coh_get(self->world, mine, guarded->cells, sizeof mine, 0));
        for (int j = 0; j < CELLS; j++)
            mine[j]++;
        CHECK_OK(coh_put(self->world, guarded->cells, mine, sizeof mine, 0));
        CHECK_OK(coh_lock_clear(self->world, &guarded->lock));
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK(self->rank > 0 || guarded->cells[CELLS - 1] == 20 * (uint64_t)self->size);
    CHECK_OK(coh_free(self->world, guarded));
}

#define UNORDERED(function, on_engines, on_sizes, ...) \
    CASE(function, "S2", on_engines, on_sizes, .environment = "COHORT_CHECK=order", __VA_ARGS__)

const test_case conform_unordered[] = {
    UNORDERED(puts_wait_for_order, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(a_signal_brings_what_it_orders, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(awaited_flags_are_not_late, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(polling_ends, ON_MAPPED, ANY_SIZE, .limit_s = 30),
    UNORDERED(complete_for_all, ON_MAPPED, FROM_THREE, .limit_s = 20),
    UNORDERED(a_full_log, ON_MAPPED, ANY_SIZE, .limit_s = 30),
    UNORDERED(order_of_two_puts, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(non_blocking_gets_come_at_quiet, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(no_pointers_to_peers, ON_MAPPED, FROM_TWO, .limit_s = 20),
    UNORDERED(not_on_the_simulator, ON_SIM, SIZE(2), .mode = TEST_ALONE),
    UNORDERED(a_get_is_named, ON_MAPPED, FROM_TWO, .limit_s = 20),
    UNORDERED(a_put_before_the_barrier_is_named, ON_MAPPED, FROM_TWO, .limit_s = 20),
    UNORDERED(a_collective_is_named, ON_MAPPED, FROM_TWO, .limit_s = 20),
    UNORDERED(a_changed_source_is_named, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(words_of_many, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(ordered_by_a_flag, ON_MAPPED, ANY_SIZE, .limit_s = 20),
    UNORDERED(locks_order, ON_MAPPED, ANY_SIZE, .limit_s = 20),
};
CONFORM_COUNT(unordered);
