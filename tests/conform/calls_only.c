/*
 * The promises about memory for bodies that reach it by calls alone, so that they hold on a heap of a card too
 * (--heap cuda): docs/semantics.md S1 to S9, S12, S22 to S28, S31 and S54.
 */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

static const size_t MIB = 1024 * 1024;

enum { GUARD = 64, GUARD_BYTE = 0x5a, LONGEST = 100003, AREA = LONGEST + 16 + 2 * GUARD };

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

/* Whether the area has the pattern at `from`, and guards everywhere else. */
static bool has_pattern(const unsigned char *area, size_t from, size_t bytes, uint64_t seed)
{
    bool good = CHECK_EQ(test_differs(area + from, bytes, seed), bytes);
    for (size_t i = 0; good && i < AREA; i++)
        if (i < from || i >= from + bytes)
            good = CHECK_EQ(area[i], GUARD_BYTE);
    return good;
}

/* ---- put and get ---- */

/* One length at one misalignment: from memory of this process, then on from symmetric to symmetric. */
static bool move_once(test_rank *self, unsigned char *first, unsigned char *second,
                      unsigned char *mine, size_t bytes, size_t shift)
{
    coh_world *world = self->world;
    size_t at = GUARD + shift, other = GUARD + (shift + 5) % 16;
    uint64_t seed = bytes + shift;
    memset(mine, GUARD_BYTE, AREA);
    if (!test_store(self, first, mine, AREA) || !test_store(self, second, mine, AREA)
        || !CHECK_OK(coh_barrier(world)))
        return false;
    test_fill(mine + at, bytes, seed + (uint64_t)self->rank);
    bool good = CHECK_OK(coh_put(world, first + at, mine + at, bytes, right_of(self)))
                && CHECK_OK(coh_barrier(world)) && test_load(self, mine, first, AREA)
                && has_pattern(mine, at, bytes, seed + (uint64_t)left_of(self));
    /* What came goes back to where it came from. */
    good = good && CHECK_OK(coh_put(world, second + other, first + at, bytes, left_of(self)))
           && CHECK_OK(coh_barrier(world)) && test_load(self, mine, second, AREA)
           && has_pattern(mine, other, bytes, seed + (uint64_t)self->rank);
    memset(mine, GUARD_BYTE, AREA);
    return good && CHECK_OK(coh_get(world, mine + 1, first + at, bytes, right_of(self)))
           && has_pattern(mine, 1, bytes, seed + (uint64_t)self->rank)
           && CHECK_OK(coh_barrier(world));
}

static void lengths_by_calls(test_rank *self)
{
    static const size_t lengths[] = {0, 1, 4, 7, 8, 16, 33, 64, 255, 4096, 4097, LONGEST};
    static const size_t shifts[] = {0, 3, 8};
    unsigned char *areas, *mine = malloc(AREA);
    if (!CHECK_OK(coh_malloc(self->world, 2 * (AREA + 64), (void **)&areas)))
        return;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t shift = 0; shift < sizeof shifts / sizeof *shifts; shift++)
            if (!move_once(self, areas, areas + AREA + 64, mine, lengths[i], shifts[shift]))
                return;
    CHECK_OK(coh_free(self->world, areas));
    free(mine);
}

static void gets_into_symmetric_memory(test_rank *self)
{
    enum { BYTES = 70001 };
    unsigned char *memory, *mine = malloc(BYTES);
    CHECK_OK(coh_malloc(self->world, 2 * BYTES, (void **)&memory));
    test_fill(mine, BYTES, (uint64_t)self->rank);
    if (!test_store(self, memory, mine, BYTES) || !CHECK_OK(coh_barrier(self->world)))
        return;
    CHECK_OK(coh_get(self->world, memory + BYTES, memory, BYTES, right_of(self)));
    test_load(self, mine, memory + BYTES, BYTES);
    CHECK_EQ(test_differs(mine, BYTES, (uint64_t)right_of(self)), BYTES);
    CHECK_OK(coh_get_nbi(self->world, mine, memory, BYTES, left_of(self)));
    CHECK_OK(coh_quiet(self->world));
    CHECK_EQ(test_differs(mine, BYTES, (uint64_t)left_of(self)), BYTES);
    CHECK_OK(coh_free(self->world, memory));
    free(mine);
}

/* ---- blocks at distances ---- */

static void blocks_by_calls(test_rank *self)
{
    enum { BYTES = 40000 };
    static const size_t shapes[][4] = {/* block, count, target's and source's distance */
                                       {8, 500, 64, 8},      {1, 300, 3, 1},
                                       {100, 100, 100, 300}, {4096, 8, 4200, 4096},
                                       {17, 60, 19, 23},     {3, 1, 3, 3}};
    unsigned char *memory, *source = malloc(BYTES), *wanted = malloc(BYTES), *found = malloc(BYTES);
    CHECK_OK(coh_malloc(self->world, BYTES, (void **)&memory));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !test_failed(); i++) {
        size_t block = shapes[i][0], count = shapes[i][1], to = shapes[i][2], from = shapes[i][3];
        memset(wanted, GUARD_BYTE, BYTES);
        test_store(self, memory, wanted, BYTES);
        CHECK_OK(coh_barrier(self->world));
        test_fill(source, BYTES, i + (uint64_t)self->rank);
        CHECK_OK(coh_put_strided(self->world, memory + 5, to, source + 3, from, block, count,
                                 right_of(self)));
        CHECK_OK(coh_barrier(self->world));
        test_fill(source, BYTES, i + (uint64_t)left_of(self));
        for (size_t k = 0; k < count; k++)
            memcpy(wanted + 5 + k * to, source + 3 + k * from, block);
        test_load(self, found, memory, BYTES);
        CHECK(memcmp(found, wanted, BYTES) == 0);
        memset(found, 0, BYTES);
        CHECK_OK(coh_get_strided(self->world, found, from, memory + 5, to, block, count,
                                 right_of(self)));
        test_fill(source, BYTES, i + (uint64_t)self->rank);
        for (size_t k = 0; k < count; k++)
            CHECK(memcmp(found + k * from, source + 3 + k * from, block) == 0);
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_free(self->world, memory));
    free(source);
    free(wanted);
    free(found);
}

/* ---- order, signals, waits ---- */

static void signals_by_calls(test_rank *self)
{
    enum { BYTES = 3000, ROUNDS = 60 };
    struct {
        uint64_t signal, answer;
        unsigned char data[BYTES];
    } * box;
    unsigned char source[BYTES], found[BYTES];
    uint64_t seen = 0;
    CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box));
    for (uint64_t round = 1; round <= ROUNDS && !test_failed(); round++) {
        size_t bytes = (size_t)(round * 977 % BYTES);
        coh_signal_op op = round % 2 ? COH_SIGNAL_ADD : COH_SIGNAL_SET;
        uint64_t value = op == COH_SIGNAL_ADD ? 1 : round;
        test_fill(source, bytes, round + (uint64_t)self->rank);
        CHECK_OK(coh_put_signal(self->world, box->data, source, bytes, &box->signal, value, op,
                                right_of(self)));
        memset(source, 0, bytes); /* it was let go of */
        CHECK_OK(coh_wait_until(self->world, COH_U64, &box->signal, COH_GE, &round, left_of(self)));
        test_load(self, found, box->data, bytes);
        CHECK_EQ(test_differs(found, bytes, round + (uint64_t)left_of(self)), bytes);
        CHECK_OK(coh_signal(self->world, &box->answer, value, op, left_of(self)));
        CHECK_OK(
            coh_wait_until(self->world, COH_U64, &box->answer, COH_EQ, &round, right_of(self)));
    }
    CHECK_OK(coh_signal_fetch(self->world, &box->signal, &seen));
    CHECK_EQ(seen, ROUNDS);
    CHECK_OK(coh_free(self->world, box));
}

/* The data is seen before the flag that a fence keeps behind it. */
static void fence_by_calls(test_rank *self)
{
    enum { BYTES = 20000, ROUNDS = 40 };
    struct {
        uint64_t flag, taken;
        unsigned char data[BYTES];
    } * box;
    unsigned char *source = malloc(BYTES), *found = malloc(BYTES);
    CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box));
    for (uint64_t round = 1; round <= ROUNDS && !test_failed(); round++) {
        test_fill(source, BYTES, round);
        CHECK_OK(coh_put_nbi(self->world, box->data, source, BYTES, right_of(self)));
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put(self->world, &box->flag, &round, sizeof round, right_of(self)));
        CHECK_OK(coh_wait_until(self->world, COH_U64, &box->flag, COH_EQ, &round, left_of(self)));
        test_load(self, found, box->data, BYTES);
        CHECK_EQ(test_differs(found, BYTES, round), BYTES);
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_put(self->world, &box->taken, &round, sizeof round, left_of(self)));
        CHECK_OK(coh_wait_until(self->world, COH_U64, &box->taken, COH_EQ, &round, right_of(self)));
    }
    CHECK_OK(coh_free(self->world, box));
    free(source);
    free(found);
}

static void waits_by_calls(test_rank *self)
{
    enum { WORDS = 6 };
    static const coh_dtype types[] = {COH_I32, COH_U32, COH_I64, COH_U64};
    uint64_t *words, zero[WORDS] = {0}, five = 5, four = 4;
    size_t index = 99, found = 0, indices[WORDS];
    int all = -1;
    CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words));
    for (size_t type = 0; type < 4 && !test_failed(); type++) {
        coh_watch watch = COH_WATCH_INIT;
        size_t bytes = coh_dtype_size(types[type]);
        unsigned char *at = (unsigned char *)words;
        watch.dtype = types[type];
        watch.words = words;
        watch.count = WORDS;
        watch.compare = COH_GE;
        watch.values = &five;
        CHECK_OK(coh_test_any(self->world, &watch, &index));
        CHECK_EQ(index, WORDS);
        CHECK_OK(coh_barrier(self->world));
        CHECK_OK(coh_put(self->world, at + 2 * bytes, &five, bytes, right_of(self)));
        CHECK_OK(coh_wait_any(self->world, &watch, &index));
        CHECK_EQ(index, 2);
        CHECK_OK(coh_barrier(self->world)); /* the others are written from here on */
        for (size_t i = 0; i < WORDS; i++)
            CHECK_OK(coh_put(self->world, at + i * bytes, &five, bytes, right_of(self)));
        CHECK_OK(coh_wait_all(self->world, &watch));
        CHECK_OK(coh_test_all(self->world, &watch, &all));
        CHECK_EQ(all, 1);
        CHECK_OK(coh_wait_some(self->world, &watch, indices, &found));
        CHECK_EQ(found, WORDS);
        watch.compare = COH_LE;
        watch.values = &four;
        watch.timeout_ns = 20 * 1000 * 1000;
        CHECK_STATUS(coh_wait_all(self->world, &watch), COH_TIMED_OUT);
        CHECK_OK(coh_barrier(self->world));
        test_store(self, words, zero, sizeof zero);
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_free(self->world, words));
}

/* ---- atomics ---- */

static void sums_by_all(test_rank *self)
{
    uint64_t *words, one = 1, found[2], before = 0;
    uint64_t times = (uint64_t)test_scaled(self, 200);
    CHECK_OK(coh_calloc(self->world, 2, sizeof *words, (void **)&words));
    for (uint64_t i = 0; i < times && !test_failed(); i++) {
        CHECK_OK(coh_atomic(self->world, COH_ATOMIC_ADD, COH_U64, &words[0], &one, 0));
        CHECK_OK(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U64, &words[1], &one, &before,
                                  self->size - 1));
        CHECK(before >= i);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_get(self->world, &found[0], &words[0], 8, 0));
    CHECK_OK(coh_get(self->world, &found[1], &words[1], 8, self->size - 1));
    CHECK_EQ(found[0], times * (uint64_t)self->size);
    CHECK_EQ(found[1], times * (uint64_t)self->size);
    CHECK_OK(coh_free(self->world, words));
}

/* ---- allocations ---- */

static void contents_by_calls(test_rank *self)
{
    static const size_t sizes[] = {100, 5000, 300000, 4999, 64, 70000};
    unsigned char *mine = malloc(300000), *memory = NULL, *behind;
    size_t had = 77;
    CHECK_OK(coh_malloc(self->world, had, (void **)&memory));
    CHECK_OK(coh_malloc(self->world, 1000, (void **)&behind)); /* in the way */
    test_fill(mine, had, 9);
    test_store(self, memory, mine, had);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !test_failed(); i++) {
        size_t kept = had < sizes[i] ? had : sizes[i];
        CHECK_OK(coh_realloc(self->world, memory, sizes[i], (void **)&memory));
        test_load(self, mine, memory, kept);
        CHECK_EQ(test_differs(mine, kept, 9), kept);
        test_fill(mine, sizes[i], 9);
        test_store(self, memory, mine, sizes[i]);
        had = sizes[i];
    }
    CHECK_OK(coh_free(self->world, memory));
    for (int i = 0; i < 3; i++) { /* memory that was used before */
        CHECK_OK(coh_calloc(self->world, 111, 97, (void **)&memory));
        test_load(self, mine, memory, (size_t)111 * 97);
        for (size_t at = 0; at < (size_t)111 * 97; at++)
            if (!CHECK_EQ(mine[at], 0))
                break;
        test_fill(mine, (size_t)111 * 97, 3);
        test_store(self, memory, mine, (size_t)111 * 97);
        CHECK_OK(coh_free(self->world, memory));
    }
    for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 8) {
        CHECK_OK(coh_align(self->world, alignment, 100, (void **)&memory));
        CHECK_EQ((uintptr_t)memory % alignment, 0);
        CHECK_OK(coh_free(self->world, memory));
    }
    CHECK_OK(coh_free(self->world, behind));
    free(mine);
}

/* Memory that the heap takes later is everybody's too. */
static void growth_by_calls(test_rank *self)
{
    enum { PARTS = 6 };
    unsigned char *parts[PARTS];
    uint64_t mark, found;
    size_t bytes = test_uses_card() ? 48 * MIB : 3 * MIB;
    for (int i = 0; i < PARTS; i++)
        if (!CHECK_OK(coh_malloc(self->world, bytes, (void **)&parts[i])))
            return;
    for (int i = 0; i < PARTS; i++) {
        mark = (uint64_t)(self->rank * PARTS + i + 1);
        CHECK_OK(coh_put(self->world, parts[i], &mark, 8, right_of(self)));
        CHECK_OK(coh_put(self->world, parts[i] + bytes - 8, &mark, 8, right_of(self)));
    }
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < PARTS; i++) {
        mark = (uint64_t)(left_of(self) * PARTS + i + 1);
        test_load(self, &found, parts[i], 8);
        CHECK_EQ(found, mark);
        CHECK_OK(coh_get(self->world, &found, parts[i] + bytes - 8, 8, right_of(self)));
        CHECK_EQ(found, self->rank * PARTS + i + 1);
    }
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < PARTS; i++)
        CHECK_OK(coh_free(self->world, parts[i]));
}

/* ---- views and arrays ---- */

static void views_by_calls(test_rank *self)
{
    enum { BYTES = 3000 };
    unsigned char *memory, mine[BYTES];
    float *floats, values[50], *pointer;
    coh_view view, part;
    coh_array array;
    CHECK_OK(coh_malloc(self->world, BYTES, (void **)&memory));
    CHECK_OK(coh_view_of(self->world, memory, BYTES, right_of(self), &view));
    test_fill(mine, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_put_view(self->world, view, mine, BYTES));
    CHECK_OK(coh_barrier(self->world));
    test_load(self, mine, memory, BYTES);
    CHECK_EQ(test_differs(mine, BYTES, (uint64_t)left_of(self)), BYTES);
    CHECK_OK(coh_view_part(view, 1000, 100, &part));
    CHECK_OK(coh_get_view(self->world, mine + 1000, 100, part));
    test_load(self, mine, memory, 1000);
    CHECK_OK(coh_array_malloc(self->world, COH_F32, 50, &array, (void **)&floats));
    for (int i = 0; i < 50; i++)
        values[i] = (float)(100 * self->rank + i);
    CHECK_OK(coh_put_array(self->world, array, right_of(self), COH_F32, values, 50));
    CHECK_OK(coh_barrier(self->world));
    test_load(self, values, floats, sizeof values);
    for (int i = 0; i < 50; i++)
        CHECK(values[i] == (float)(100 * left_of(self) + i));
    CHECK_OK(coh_array_pointer(self->world, array, (void **)&pointer));
    CHECK(pointer == floats);
    CHECK_OK(coh_array_free(self->world, array));
    CHECK_OK(coh_free(self->world, memory));
}

/* ---- the world's own heap beside it ---- */

static void between_heaps_by_calls(test_rank *self)
{
    enum { BYTES = 9000 };
    unsigned char *here, *there, *mine = malloc(BYTES);
    uint64_t *signals, *others, one = 1;
    CHECK_OK((coh_malloc)(self->world, BYTES, (void **)&here));
    CHECK_OK((coh_calloc)(self->world, 2, sizeof *signals, (void **)&signals));
    CHECK_OK(coh_malloc(self->world, 2 * BYTES, (void **)&there));
    CHECK_OK(coh_calloc(self->world, 2, sizeof *others, (void **)&others));
    test_fill(here, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_barrier(self->world));
    /* From the world's own to the other, the signal in each of them. */
    CHECK_OK(coh_put_signal(self->world, there, here, BYTES, &others[0], 1, COH_SIGNAL_SET,
                            right_of(self)));
    CHECK_OK(coh_wait_until(self->world, COH_U64, &others[0], COH_EQ, &one, left_of(self)));
    CHECK_OK(coh_put_signal(self->world, there + BYTES, here, BYTES, &signals[0], 1, COH_SIGNAL_SET,
                            right_of(self)));
    CHECK_OK(coh_wait_until(self->world, COH_U64, &signals[0], COH_EQ, &one, left_of(self)));
    for (int i = 0; i < 2; i++) {
        test_load(self, mine, there + i * BYTES, BYTES);
        CHECK_EQ(test_differs(mine, BYTES, (uint64_t)left_of(self)), BYTES);
    }
    CHECK_OK(coh_barrier(self->world));
    /* And back. */
    CHECK_OK(coh_put_signal(self->world, here, there, BYTES, &others[1], 1, COH_SIGNAL_ADD,
                            left_of(self)));
    CHECK_OK(coh_wait_until(self->world, COH_U64, &others[1], COH_EQ, &one, right_of(self)));
    CHECK_EQ(test_differs(here, BYTES, (uint64_t)self->rank), BYTES);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_get(self->world, here, there, BYTES, right_of(self)));
    CHECK_EQ(test_differs(here, BYTES, (uint64_t)self->rank), BYTES);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, others));
    CHECK_OK(coh_free(self->world, there));
    CHECK_OK(coh_free(self->world, signals));
    CHECK_OK(coh_free(self->world, here));
    free(mine);
}

static void contexts_by_calls(test_rank *self)
{
    enum { BYTES = 5000 };
    unsigned char *memory, mine[BYTES];
    uint64_t *word, one = 1, before = 7;
    coh_context *context;
    CHECK_OK(coh_malloc(self->world, BYTES, (void **)&memory));
    CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word));
    CHECK_OK(coh_context_create(self->world, &context));
    test_fill(mine, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_context_put(context, memory, mine, BYTES, right_of(self)));
    CHECK_OK(coh_context_fence(context));
    CHECK_OK(
        coh_context_put_signal(context, memory, mine, 0, word, 1, COH_SIGNAL_SET, right_of(self)));
    CHECK_OK(coh_wait_until(self->world, COH_U64, word, COH_EQ, &one, left_of(self)));
    CHECK_OK(coh_context_quiet(context));
    CHECK_OK(coh_context_get(context, mine, memory, BYTES, self->rank));
    CHECK_EQ(test_differs(mine, BYTES, (uint64_t)left_of(self)), BYTES);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_context_atomic_fetch(context, COH_ATOMIC_ADD, COH_U64, word, &one, &before,
                                      right_of(self)));
    CHECK_EQ(before, 1);
    CHECK_OK(coh_context_destroy(context));
    CHECK_OK(coh_free(self->world, word));
    CHECK_OK(coh_free(self->world, memory));
}

#define FEW (SIZE(1) | SIZE(2) | SIZE(4))

const test_case conform_calls_only[] = {
    CASE(lengths_by_calls, "S27 S28", ON_MEMORY | ON_CARD, FEW, .limit_s = 60),
    CASE(gets_into_symmetric_memory, "S27 S4", ON_MEMORY | ON_CARD, FEW),
    CASE(blocks_by_calls, "S27 S28", ON_MEMORY | ON_CARD, FEW),
    CASE(signals_by_calls, "S7 S8", ON_MEMORY | ON_CARD, FEW, .limit_s = 60),
    CASE(fence_by_calls, "S1 S4", ON_MEMORY | ON_CARD, FEW, .limit_s = 60),
    CASE(waits_by_calls, "S12", ON_MEMORY | ON_CARD, FEW),
    CASE(sums_by_all, "S31", ON_MEMORY | ON_CARD, FEW, .limit_s = 60),
    CASE(contents_by_calls, "S22", ON_MEMORY | ON_CARD, FEW),
    CASE(growth_by_calls, "S26 S53", ON_MEMORY | ON_CARD, FEW),
    CASE(views_by_calls, "S25", ON_MEMORY | ON_CARD, FEW),
    CASE(between_heaps_by_calls, "S54", ON_MEMORY | ON_CARD, FEW),
    CASE(contexts_by_calls, "S1 S5", ON_MEMORY | ON_CARD, FEW),
};
CONFORM_COUNT(calls_only);
