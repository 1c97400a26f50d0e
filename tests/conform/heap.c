/* The symmetric heap: docs/semantics.md S20, S21, S22, S24 and S26. */
#include "conform.h"

#include <stdatomic.h>
#include <string.h>

static const uint64_t MIB = 1024 * 1024;

static coh_heap_stats stats_of(coh_world *world)
{
    coh_heap_stats stats = {.size = sizeof stats};
    CHECK_OK(coh_heap_query(world, &stats));
    return stats;
}

static uint64_t offset_of(test_rank *self, const void *memory)
{
    coh_view view = {0};
    CHECK_OK(coh_view_of(self->world, memory, 1, self->rank, &view));
    return view.offset;
}

/* Every rank publishes a number; all must be the same. */
static bool agree(test_rank *self, uint64_t number)
{
    _Atomic uint64_t *numbers = self->shared;
    atomic_store(&numbers[self->rank], number);
    if (!CHECK_OK(coh_barrier(self->world)))
        return false;
    for (int rank = 0; rank < self->size; rank++)
        if (!CHECK_EQ(atomic_load(&numbers[rank]), number))
            return false;
    return CHECK_OK(coh_barrier(self->world));
}

/* ---- S20 ---- */

struct arrivals {
    _Atomic uint64_t before; /* ranks that are about to make the call */
};

/* The last rank comes late; when anybody is out, everybody must have been in. */
static void enter_late(test_rank *self, struct arrivals *arrivals)
{
    if (self->rank == self->size - 1)
        test_sleep(0.05);
    atomic_fetch_add(&arrivals->before, 1);
}

static void malloc_ends_with_a_barrier(test_rank *self)
{
    struct arrivals *arrivals = self->shared;
    void *memory;
    enter_late(self, arrivals);
    CHECK_OK(coh_malloc(self->world, 100, &memory));
    CHECK(atomic_load(&arrivals->before) >= (uint64_t)self->size);
    CHECK_OK(coh_barrier(self->world));
    enter_late(self, arrivals);
    CHECK_OK(coh_free(self->world, memory));
    CHECK(atomic_load(&arrivals->before) >= 2 * (uint64_t)self->size);
    CHECK_OK(coh_barrier(self->world));
    enter_late(self, arrivals);
    CHECK_OK(coh_calloc(self->world, 10, 10, &memory));
    CHECK(atomic_load(&arrivals->before) >= 3 * (uint64_t)self->size);
    CHECK_OK(coh_free(self->world, memory));
}

/* Only rank 0 asks; it must not wait for the others, and nothing is allocated. */
static void zero_bytes_meet_nobody(test_rank *self)
{
    char mark;
    void *memory = &mark;
    if (self->rank == 0) {
        CHECK_OK(coh_malloc(self->world, 0, &memory));
        CHECK(memory == NULL);
        memory = &mark;
        CHECK_OK(coh_calloc(self->world, 0, 8, &memory));
        CHECK(memory == NULL);
        memory = &mark;
        CHECK_OK(coh_calloc(self->world, 8, 0, &memory));
        CHECK(memory == NULL);
        memory = &mark;
        CHECK_OK(coh_align(self->world, 4096, 0, &memory));
        CHECK(memory == NULL);
        CHECK_OK(coh_free(self->world, NULL));
    }
    CHECK_EQ(stats_of(self->world).count, 0);
    CHECK_OK(coh_barrier(self->world));
}

/* ---- S21 ---- */

static bool same_stats(const coh_heap_stats *one, const coh_heap_stats *two)
{
    return CHECK_EQ(one->used, two->used) && CHECK_EQ(one->count, two->count)
           && CHECK_EQ(one->largest, two->largest) && CHECK_EQ(one->reserved, two->reserved);
}

static void too_much_fails_everywhere(test_rank *self)
{
    void *kept, *memory = NULL;
    CHECK_OK(coh_malloc(self->world, 1000, &kept));
    coh_heap_stats before = stats_of(self->world), after;
    CHECK(before.reserved >= 8 * MIB && before.reserved <= 64 * MIB);
    CHECK_REFUSED(coh_malloc(self->world, 100 * MIB, &memory), COH_NO_MEMORY, "malloc|104857600");
    CHECK(memory == NULL);
    CHECK_STATUS(coh_calloc(self->world, 100, MIB, &memory), COH_NO_MEMORY);
    CHECK_STATUS(coh_align(self->world, 4096, 100 * MIB, &memory), COH_NO_MEMORY);
    CHECK_STATUS(coh_realloc(self->world, kept, 100 * MIB, &memory), COH_NO_MEMORY);
    CHECK_STATUS(coh_malloc(self->world, SIZE_MAX, &memory), COH_NO_MEMORY);
    CHECK_STATUS(coh_malloc(self->world, SIZE_MAX - 64, &memory), COH_NO_MEMORY);
    CHECK(memory == NULL);
    after = stats_of(self->world);
    same_stats(&before, &after);
    CHECK_OK(coh_malloc(self->world, before.largest, &memory));
    CHECK_STATUS(coh_malloc(self->world, before.reserved, &memory), COH_NO_MEMORY);
    CHECK_OK(coh_free(self->world, memory));
    CHECK_OK(coh_free(self->world, kept));
}

/* The last rank's memory runs out (COHORT_FAULT): all fail, and the heap is as before
 * everywhere. */
static void one_without_memory_fails_all(test_rank *self)
{
    void *memory = NULL, *kept;
    CHECK_OK(coh_malloc(self->world, 100, &kept));
    coh_heap_stats before = stats_of(self->world), after;
    CHECK_REFUSED(coh_malloc(self->world, 8 * MIB, &memory), COH_NO_MEMORY, "rank 1|8388608");
    CHECK(memory == NULL);
    after = stats_of(self->world);
    same_stats(&before, &after);
    if (!CHECK_OK(coh_malloc(self->world, 8 * MIB, &memory)))
        return;
    memset(memory, 1, 8 * MIB);
    CHECK_OK(coh_free(self->world, memory));
    CHECK_OK(coh_free(self->world, kept));
}

/* ---- S22 ---- */

static void realloc_keeps_contents(test_rank *self)
{
    static const size_t sizes[] = {100, 101, 5000, 4999, 300000, 64, 1, 70000};
    size_t had = 77;
    void *memory = NULL;
    CHECK_OK(coh_realloc(self->world, NULL, had, &memory)); /* NULL allocates */
    if (!CHECK(memory != NULL))
        return;
    test_fill(memory, had, (uint64_t)self->rank);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t kept = had < sizes[i] ? had : sizes[i];
        if (!CHECK_OK(coh_realloc(self->world, memory, sizes[i], &memory)))
            return;
        CHECK_EQ(test_differs(memory, kept, (uint64_t)self->rank), kept);
        test_fill(memory, sizes[i], (uint64_t)self->rank);
        had = sizes[i];
        CHECK_EQ(stats_of(self->world).count, 1);
    }
    CHECK_OK(coh_realloc(self->world, memory, 0, &memory)); /* zero bytes free */
    CHECK(memory == NULL);
    CHECK_EQ(stats_of(self->world).count, 0);
}

/* A realloc that must move, since the neighbour is taken; both keep their bytes. */
static void realloc_moves(test_rank *self)
{
    unsigned char *one, *two, *moved;
    CHECK_OK(coh_malloc(self->world, 4096, (void **)&one));
    CHECK_OK(coh_malloc(self->world, 4096, (void **)&two));
    test_fill(one, 4096, 1);
    test_fill(two, 4096, 2);
    if (!CHECK_OK(coh_realloc(self->world, one, 64 * 1024, (void **)&moved)))
        return;
    CHECK_EQ(test_differs(moved, 4096, 1), 4096);
    memset(moved, 0xff, 64 * 1024);
    CHECK_EQ(test_differs(two, 4096, 2), 4096);
    agree(self, offset_of(self, moved));
    CHECK_OK(coh_free(self->world, moved));
    CHECK_OK(coh_free(self->world, two));
}

static bool is_zero(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != 0)
            return false;
    return true;
}

static void calloc_clears(test_rank *self)
{
    unsigned char *memory;
    for (int i = 0; i < 5; i++) {
        if (!CHECK_OK(coh_calloc(self->world, 111, 97, (void **)&memory)))
            return;
        CHECK(is_zero(memory, (size_t)111 * 97));
        memset(memory, 0xab, (size_t)111 * 97);
        CHECK_OK(coh_free(self->world, memory)); /* the next one gets used memory */
    }
    memory = NULL;
    CHECK_REFUSED(coh_calloc(self->world, SIZE_MAX / 2, 3, (void **)&memory), COH_INVALID_ARGUMENT,
                  "calloc|9223372036854775807|3");
    CHECK(memory == NULL);
}

static void alignments(test_rank *self)
{
    void *memory[24];
    int count = 0;
    for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 2) {
        if (!CHECK_OK(coh_align(self->world, alignment, 100, &memory[count])))
            return;
        CHECK_EQ((uintptr_t)memory[count] % alignment, 0);
        memset(memory[count++], 0x11, 100);
    }
    CHECK_EQ(stats_of(self->world).count, count);
    while (count > 0)
        CHECK_OK(coh_free(self->world, memory[--count]));
    CHECK_OK(coh_malloc(self->world, 1, &memory[0]));
    CHECK_EQ((uintptr_t)memory[0] % 64, 0);
    CHECK_OK(coh_free(self->world, memory[0]));
}

/* ---- S24 and the statistics ---- */

static void offsets_agree(test_rank *self)
{
    void *memory[10];
    for (size_t i = 0; i < 10; i++) {
        if (!CHECK_OK(coh_malloc(self->world, 1 + i * i * 50, &memory[i]))
            || !agree(self, offset_of(self, memory[i])))
            return;
    }
    coh_heap_stats stats = stats_of(self->world);
    agree(self, stats.reserved);
    agree(self, stats.committed);
    agree(self, stats.used);
    agree(self, stats.largest);
    for (size_t i = 0; i < 10; i++)
        CHECK_OK(coh_free(self->world, memory[i]));
}

static void statistics_count(test_rank *self)
{
    void *memory;
    coh_heap_stats empty = stats_of(self->world), one;
    CHECK_EQ(empty.used, 0);
    CHECK_EQ(empty.count, 0);
    CHECK(empty.largest > 0 && empty.largest <= empty.reserved);
    CHECK_OK(coh_malloc(self->world, 1000, &memory));
    one = stats_of(self->world);
    CHECK_EQ(one.used, 1024); /* rounded up to 64 */
    CHECK_EQ(one.count, 1);
    CHECK(one.committed >= 1024 && one.committed <= one.reserved);
    CHECK(one.largest < empty.largest || one.largest <= empty.reserved - 1024);
    CHECK_OK(coh_free(self->world, memory));
    one = stats_of(self->world);
    CHECK_EQ(one.used, 0);
    CHECK_EQ(one.count, 0);
    CHECK_EQ(one.largest, empty.largest);
}

/* ---- S26 ---- */

enum { LIVE = 64 };

static bool replace_one(test_rank *self, void **live, uint64_t *random, uint64_t *print)
{
    size_t index = test_random(random) % LIVE;
    size_t bytes = 1 + test_random(random) % (test_random(random) % 8 == 0 ? 65536 : 512);
    if (live[index] && !CHECK_OK(coh_free(self->world, live[index])))
        return false;
    if (!CHECK_OK(coh_malloc(self->world, bytes, &live[index])))
        return false;
    *print = *print * 31 + offset_of(self, live[index]);
    return true;
}

static void pairs_of(test_rank *self, int pairs)
{
    void *live[LIVE] = {NULL};
    uint64_t random = self->seed, print = 0; /* the same on all ranks */
    coh_heap_stats before = stats_of(self->world), after;
    for (int i = 0; i < pairs; i++)
        if (!replace_one(self, live, &random, &print))
            return;
    agree(self, print);
    CHECK(stats_of(self->world).committed <= 4 * LIVE * 65536 + 8 * MIB);
    for (size_t i = 0; i < LIVE; i++)
        CHECK_OK(coh_free(self->world, live[i]));
    after = stats_of(self->world);
    same_stats(&before, &after);
}

static void random_pairs(test_rank *self)
{
    pairs_of(self, test_scaled(self, 3000));
}

static void a_million_pairs(test_rank *self)
{
    pairs_of(self, TEST_SANITIZED ? 20000 : 1000000);
}

const test_case conform_heap[] = {
    CASE(malloc_ends_with_a_barrier, "S20", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(zero_bytes_meet_nobody, "S20", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(too_much_fails_everywhere, "S21", ON_MEMORY | ON_CARD, ANY_SIZE, .heap = 16 * 1024 * 1024),
    CASE(one_without_memory_fails_all, "S21", ON_MEMORY, FROM_TWO,
         .environment = "COHORT_FAULT=fail@commit:2,rank=1"),
    CASE(realloc_keeps_contents, "S22", ON_MEMORY, ANY_SIZE),
    CASE(realloc_moves, "S22", ON_MEMORY, ANY_SIZE),
    CASE(calloc_clears, "S22", ON_MEMORY, ANY_SIZE),
    CASE(alignments, "S22", ON_MEMORY, ANY_SIZE),
    CASE(offsets_agree, "S24", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(statistics_count, "S26", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(random_pairs, "S26", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(a_million_pairs, "S26", ON_THREADS, SIZE(2), .limit_s = 240),
};
CONFORM_COUNT(heap);
