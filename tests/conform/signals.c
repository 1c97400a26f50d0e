/* Puts that tell of their arrival: docs/semantics.md S7 to S10. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES = 5000, CHUNKS = 12, CHUNK = 700 };

struct box {
    uint64_t signal;
    uint64_t answer;
    unsigned char data[DATA_BYTES];
};

typedef coh_status put_signal_function(coh_world *world, void *target, const void *source,
                                       size_t bytes, uint64_t *signal, uint64_t value,
                                       coh_signal_op op, int rank);

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

static bool await(coh_world *world, const uint64_t *word, uint64_t value, int from)
{
    return CHECK_OK(coh_wait_until(world, COH_U64, word, COH_EQ, &value, from));
}

/* ---- the data is there when the signal is ---- */

static bool one_round(test_rank *self, struct box *box, put_signal_function *put_signal,
                      coh_signal_op op, uint64_t round)
{
    static const size_t lengths[] = {1, 8, 15, 64, 65, 1000, 4096, 4097, DATA_BYTES};
    size_t bytes = lengths[round % (sizeof lengths / sizeof *lengths)];
    unsigned char *data = malloc(DATA_BYTES);
    coh_world *world = self->world;
    test_fill(data, bytes, round);
    uint64_t value = op == COH_SIGNAL_SET ? round : 1;
    bool good =
        CHECK_OK(put_signal(world, box->data, data, bytes, &box->signal, value, op, right_of(self)))
        && await(world, &box->signal, round, left_of(self))
        && CHECK_EQ(test_differs(box->data, bytes, round), bytes)
        && CHECK_OK(coh_signal(world, &box->answer, value, op, left_of(self)))
        && await(world, &box->answer, round, right_of(self));
    CHECK_OK(coh_quiet(world)); /* before the source goes away */
    free(data);
    return good;
}

static void rounds_by(test_rank *self, put_signal_function *put_signal, coh_signal_op op)
{
    struct box *box;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box)))
        return;
    for (uint64_t round = 1; round <= rounds; round++)
        if (!one_round(self, box, put_signal, op, round))
            return;
    CHECK_OK(coh_free(self->world, box));
}

static void signal_follows_data(test_rank *self)
{
    rounds_by(self, coh_put_signal, COH_SIGNAL_SET);
    rounds_by(self, coh_put_signal, COH_SIGNAL_ADD);
}

static void signal_follows_data_nbi(test_rank *self)
{
    rounds_by(self, coh_put_signal_nbi, COH_SIGNAL_SET);
    rounds_by(self, coh_put_signal_nbi, COH_SIGNAL_ADD);
}

static void empty_puts_signal(test_rank *self)
{
    coh_world *world = self->world;
    struct box *box;
    unsigned char byte = 9;
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *box, (void **)&box)))
        return;
    int right = right_of(self), left = left_of(self);
    CHECK_OK(coh_put_signal(world, box->data, &byte, 0, &box->signal, 7, COH_SIGNAL_SET, right));
    CHECK(await(world, &box->signal, 7, left));
    CHECK_OK(coh_barrier(world));
    CHECK_OK(
        coh_put_signal_nbi(world, box->data, &byte, 0, &box->signal, 5, COH_SIGNAL_ADD, right));
    CHECK(await(world, &box->signal, 12, left));
    CHECK_EQ(box->data[0], 0);
    CHECK_OK(coh_free(world, box));
}

/* The source may be reused on return; what comes is what it held. */
static void source_is_let_go(test_rank *self)
{
    coh_world *world = self->world;
    unsigned char source[CHUNK], *data;
    uint64_t *signals;
    if (!CHECK_OK(coh_calloc(world, CHUNKS, CHUNK, (void **)&data))
        || !CHECK_OK(coh_calloc(world, CHUNKS, sizeof *signals, (void **)&signals)))
        return;
    for (size_t i = 0; i < CHUNKS; i++) {
        test_fill(source, CHUNK, i);
        CHECK_OK(coh_put_signal(world, data + i * CHUNK, source, CHUNK, &signals[i], 1,
                                COH_SIGNAL_SET, right_of(self)));
        memset(source, 0xee, CHUNK);
    }
    for (size_t i = CHUNKS; i-- > 0;) {
        CHECK(await(world, &signals[i], 1, left_of(self)));
        CHECK_EQ(test_differs(data + i * CHUNK, CHUNK, i), CHUNK);
    }
    CHECK_OK(coh_free(world, signals));
    CHECK_OK(coh_free(world, data));
}

/* ---- many chunks ---- */

static bool put_chunks(test_rank *self, unsigned char *data, const unsigned char *source,
                       uint64_t *signals, size_t apart)
{
    for (size_t i = 0; i < CHUNKS; i++)
        if (!CHECK_OK(coh_put_signal_nbi(self->world, data + i * CHUNK, source + i * CHUNK, CHUNK,
                                         &signals[i * apart], 1, COH_SIGNAL_ADD, right_of(self))))
            return false;
    return true;
}

/* A signal for each chunk tells which is there, in whatever order they come. */
static void take_chunks(test_rank *self, const unsigned char *data, const uint64_t *signals)
{
    int skip[CHUNKS] = {0};
    uint64_t one = 1;
    coh_watch watch = COH_WATCH_INIT;
    watch.words = signals;
    watch.count = CHUNKS;
    watch.skip = skip;
    watch.compare = COH_GE;
    watch.values = &one;
    watch.from = left_of(self);
    for (int taken = 0; taken < CHUNKS; taken++) {
        size_t index = CHUNKS;
        if (!CHECK_OK(coh_wait_any(self->world, &watch, &index)) || !CHECK(index < CHUNKS)
            || !CHECK(!skip[index]))
            return;
        CHECK_EQ(test_differs(data + index * CHUNK, CHUNK, index), CHUNK);
        skip[index] = 1;
    }
}

static void chunks(test_rank *self, size_t apart,
                   void (*take)(test_rank *self, const unsigned char *data,
                                const uint64_t *signals))
{
    unsigned char *data, *source = malloc(CHUNKS * CHUNK);
    uint64_t *signals;
    if (!CHECK_OK(coh_calloc(self->world, CHUNKS, CHUNK, (void **)&data))
        || !CHECK_OK(coh_calloc(self->world, CHUNKS, sizeof *signals, (void **)&signals)))
        return;
    for (size_t i = 0; i < CHUNKS; i++)
        test_fill(source + i * CHUNK, CHUNK, i);
    if (put_chunks(self, data, source, signals, apart))
        take(self, data, signals);
    CHECK_OK(coh_barrier(self->world));
    free(source);
    CHECK_OK(coh_free(self->world, signals));
    CHECK_OK(coh_free(self->world, data));
}

static void a_signal_for_each_chunk(test_rank *self)
{
    chunks(self, 1, take_chunks);
}

/* Counted on one signal, all are there when all are counted. */
static void take_all(test_rank *self, const unsigned char *data, const uint64_t *signals)
{
    CHECK(await(self->world, signals, CHUNKS, left_of(self)));
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK_EQ(test_differs(data + i * CHUNK, CHUNK, i), CHUNK);
}

static void one_signal_for_all_chunks(test_rank *self)
{
    chunks(self, 0, take_all);
}

/* ---- on the simulator: a signal says nothing of other puts ---- */

enum { ATTEMPTS = 64 };

static uint64_t peek(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

struct attempt {
    uint64_t first, second, signal;
};

/* A put, then another with a signal: is the first there when the signal is? */
static void plain_then_signal(test_rank *self, struct attempt *attempts)
{
    uint64_t one = 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        struct attempt *at = &attempts[i];
        if (self->rank == 0) {
            CHECK_OK(coh_put(self->world, &at->first, &one, sizeof one, 1));
            CHECK_OK(coh_put_signal(self->world, &at->second, &one, sizeof one, &at->signal, 1,
                                    COH_SIGNAL_SET, 1));
        } else if (await(self->world, &at->signal, 1, 0)) {
            CHECK_EQ(peek(&at->second), 1);
            conform_note(self->shared, peek(&at->first) == 1);
        }
    }
}

/* Two puts that count on one signal, of which one is waited for: it may be the second's. */
static void two_on_one_signal(test_rank *self, struct attempt *attempts)
{
    uint64_t one = 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        struct attempt *at = &attempts[i];
        if (self->rank == 0) {
            CHECK_OK(coh_put_signal(self->world, &at->first, &one, sizeof one, &at->signal, 1,
                                    COH_SIGNAL_ADD, 1));
            CHECK_OK(coh_put_signal(self->world, &at->second, &one, sizeof one, &at->signal, 1,
                                    COH_SIGNAL_ADD, 1));
            continue;
        }
        if (!CHECK_OK(coh_wait_until(self->world, COH_U64, &at->signal, COH_GE, &one, 0)))
            return;
        bool first = peek(&at->first), second = peek(&at->second);
        CHECK(first || second);
        conform_note(self->shared, first);
    }
}

static void in_a_world(test_rank *self, void (*body)(test_rank *self, struct attempt *attempts))
{
    struct attempt *attempts;
    if (!CHECK_OK(coh_calloc(self->world, ATTEMPTS, sizeof *attempts, (void **)&attempts)))
        return;
    body(self, attempts);
    CHECK_OK(coh_free(self->world, attempts));
    CHECK_OK(coh_finalize(self->world));
}

static void plain_then_signal_world(test_rank *self)
{
    in_a_world(self, plain_then_signal);
}

static void two_on_one_signal_world(test_rank *self)
{
    in_a_world(self, two_on_one_signal);
}

static void signal_implies_its_own_data_only(test_rank *self)
{
    conform_until_both_seen(self, 2, plain_then_signal_world);
}

static void shared_signal_fires_early(test_rank *self)
{
    conform_until_both_seen(self, 2, two_on_one_signal_world);
}

/* With a fence before it, the signal implies the earlier put too. */
static void fence_before_signal(test_rank *self)
{
    coh_world *world = self->world;
    struct attempt *at;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *at, (void **)&at)))
        return;
    for (uint64_t i = 1; i <= rounds; i++) {
        CHECK_OK(coh_put(world, &at->first, &i, sizeof i, right_of(self)));
        CHECK_OK(coh_fence(world));
        CHECK_OK(coh_put_signal(world, &at->second, &i, sizeof i, &at->signal, i, COH_SIGNAL_SET,
                                right_of(self)));
        if (!await(world, &at->signal, i, left_of(self)) || !CHECK_EQ(peek(&at->first), i)
            || !CHECK_EQ(peek(&at->second), i) || !CHECK_OK(coh_barrier(world)))
            return;
    }
    CHECK_OK(coh_free(world, at));
}

/* ---- words ---- */

static void signals_set_add_and_wrap(test_rank *self)
{
    coh_world *world = self->world;
    uint64_t *signal, value = 1;
    if (!CHECK_OK(coh_calloc(world, 2, sizeof *signal, (void **)&signal)))
        return;
    CHECK_OK(coh_signal_fetch(world, signal, &value));
    CHECK_EQ(value, 0);
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_signal(world, signal, UINT64_MAX, COH_SIGNAL_SET, right_of(self)));
    CHECK(await(world, signal, UINT64_MAX, left_of(self)));
    CHECK_OK(coh_signal_fetch(world, signal, &value));
    CHECK_EQ(value, UINT64_MAX);
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_signal(world, signal, 6, COH_SIGNAL_ADD, right_of(self)));
    CHECK(await(world, signal, 5, left_of(self))); /* a sum wraps */
    CHECK_OK(coh_barrier(world));
    for (int rank = 0; rank < self->size; rank++)
        CHECK_OK(coh_signal(world, signal, 1, COH_SIGNAL_ADD, rank));
    CHECK_OK(coh_barrier(world)); /* quiet covers signals */
    CHECK_OK(coh_signal_fetch(world, signal, &value));
    CHECK_EQ(value, 5 + self->size);
    CHECK_EQ(signal[1], 0);
    CHECK_OK(coh_free(world, signal));
}

static void bad_signals_refused(test_rank *self)
{
    coh_world *world = self->world;
    struct box *box;
    uint64_t mine = 0, value = 33;
    unsigned char byte = 7;
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *box, (void **)&box)))
        return;
    uint64_t *askew = (uint64_t *)((char *)&box->signal + 4);
    static put_signal_function *const puts[] = {coh_put_signal, coh_put_signal_nbi};
    for (int i = 0; i < 2; i++) {
        CHECK_REFUSED(puts[i](world, box->data, &byte, 1, askew, 1, COH_SIGNAL_SET, 0),
                      COH_BAD_ALIGNMENT, "signal");
        CHECK_REFUSED(puts[i](world, box->data, &byte, 1, &mine, 1, COH_SIGNAL_SET, 0),
                      COH_NOT_SYMMETRIC, "signal");
        CHECK_STATUS(puts[i](world, box->data, &byte, 1, NULL, 1, COH_SIGNAL_SET, 0),
                     COH_NOT_SYMMETRIC);
        CHECK_STATUS(puts[i](world, &mine, &byte, 1, &box->signal, 1, COH_SIGNAL_SET, 0),
                     COH_NOT_SYMMETRIC);
        CHECK_REFUSED(puts[i](world, box->data, &byte, 1, &box->signal, 1, (coh_signal_op)2, 0),
                      COH_INVALID_ARGUMENT, "2");
        CHECK_STATUS(puts[i](world, box->data, &byte, 1, &box->signal, 1, COH_SIGNAL_SET, -1),
                     COH_UNKNOWN_RANK);
        CHECK_STATUS(puts[i](world, box->data, &byte, SIZE_MAX, &box->signal, 1, COH_SIGNAL_SET, 0),
                     COH_OUT_OF_BOUNDS);
    }
    CHECK_STATUS(coh_signal(world, askew, 1, COH_SIGNAL_SET, 0), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_signal(world, &mine, 1, COH_SIGNAL_SET, 0), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_signal(world, &box->signal, 1, (coh_signal_op)-1, 0), COH_INVALID_ARGUMENT);
    CHECK_REFUSED(coh_signal(world, &box->signal, 1, COH_SIGNAL_SET, self->size), COH_UNKNOWN_RANK,
                  "coh_signal");
    CHECK_STATUS(coh_signal_fetch(world, askew, &value), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_signal_fetch(world, &mine, &value), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_signal_fetch(world, &box->signal, NULL), COH_INVALID_ARGUMENT);
    CHECK_EQ(value, 33);
    CHECK_OK(coh_barrier(world)); /* what was refused changed nothing */
    test_is_zero(self, box, sizeof *box);
    CHECK_OK(coh_free(world, box));
}

/* ---- strided ---- */

/* A column of a table; the rest of the table stays as it is. */
static bool column_round(test_rank *self, uint64_t (*table)[8], uint64_t *signal, uint64_t round)
{
    enum { ROWS = 50 };
    uint64_t column[ROWS][3];
    for (int i = 0; i < ROWS; i++)
        column[i][0] = round * 100 + (uint64_t)i;
    bool good = CHECK_OK(coh_put_strided_signal(self->world, &table[0][2], sizeof *table, column,
                                                sizeof *column, sizeof **table, ROWS, signal, round,
                                                COH_SIGNAL_SET, right_of(self)));
    memset(column, 0xee, sizeof column); /* it may be reused */
    good = good && await(self->world, signal, round, left_of(self));
    for (int i = 0; i < ROWS && good; i++)
        good = CHECK_EQ(table[i][2], round * 100 + (uint64_t)i) && CHECK_EQ(table[i][1], 0)
               && CHECK_EQ(table[i][3], 0);
    return good && CHECK_OK(coh_barrier(self->world)); /* before the next round writes */
}

static void signal_follows_blocks(test_rank *self)
{
    uint64_t(*table)[8], *signal;
    if (!CHECK_OK(COH_CALLOC(self->world, 50, &table))
        || !CHECK_OK(COH_CALLOC(self->world, 1, &signal)))
        return;
    for (uint64_t round = 1; round <= (uint64_t)test_scaled(self, 40); round++)
        if (!column_round(self, table, signal, round))
            return;
    /* No blocks still signal; what is refused puts nothing. */
    CHECK_OK(coh_put_strided_signal(self->world, NULL, 0, NULL, 0, 0, 0, signal, 7000,
                                    COH_SIGNAL_SET, right_of(self)));
    await(self->world, signal, 7000, left_of(self));
    CHECK_OK(coh_barrier(self->world));
    uint64_t word = 99, *crooked = (uint64_t *)(void *)((char *)signal + 4);
    CHECK_REFUSED(coh_put_strided_signal(self->world, &table[0][1], 64, &word, 8, 8, 1, crooked, 1,
                                         COH_SIGNAL_SET, right_of(self)),
                  COH_BAD_ALIGNMENT, "coh_put_strided_signal");
    CHECK_REFUSED(coh_put_strided_signal(self->world, &table[0][1], 64, &word, 8, 8, 1, signal, 1,
                                         (coh_signal_op)9, right_of(self)),
                  COH_INVALID_ARGUMENT, "9");
    CHECK_REFUSED(coh_put_strided_signal(self->world, &table[0][1], 64, &word, 8, 8, 1, signal, 1,
                                         COH_SIGNAL_ADD, self->size),
                  COH_UNKNOWN_RANK, "coh_put_strided_signal");
    CHECK_REFUSED(coh_put_strided_signal(self->world, &table[0][1], 4, &word, 8, 8, 2, signal, 1,
                                         COH_SIGNAL_ADD, right_of(self)),
                  COH_INVALID_ARGUMENT, "stride");
    CHECK_OK(coh_barrier(self->world));
    CHECK(table[0][1] == 0 && *signal == 7000);
    CHECK_OK(coh_free(self->world, signal));
    CHECK_OK(coh_free(self->world, table));
}

const test_case conform_signals[] = {
    CASE(signal_follows_blocks, "S8 S27", ON_MEMORY, ANY_SIZE),
    CASE(signal_follows_data, "S7 S8", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(signal_follows_data_nbi, "S7 S8", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(empty_puts_signal, "S10", ON_MEMORY, ANY_SIZE),
    CASE(source_is_let_go, "S4 S8", ON_MEMORY, ANY_SIZE),
    CASE(a_signal_for_each_chunk, "S9", ON_MEMORY, ANY_SIZE),
    CASE(one_signal_for_all_chunks, "S9", ON_MEMORY, ANY_SIZE),
    CASE(signal_implies_its_own_data_only, "S8", ON_SIM, SIZE(2), .mode = TEST_ALONE,
         .limit_s = 60),
    CASE(shared_signal_fires_early, "S9", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(fence_before_signal, "S1 S8", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(signals_set_add_and_wrap, "S5 S31", ON_MEMORY, ANY_SIZE),
    CASE(bad_signals_refused, "S32", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
};
CONFORM_COUNT(signals);
