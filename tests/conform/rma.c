/* Put and get: docs/semantics.md S27, S28 and S29. */
#include "conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 128, GUARD_BYTE = 0xa5 };

static const size_t lengths[] = {0,  1,  2,  3,  4,  7,   8,    9,    15,   16,   17,
                                 31, 33, 63, 64, 65, 255, 4095, 4096, 4097, 70001};

enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 70001 };

/* Symmetric room for one sender's data, misaligned at will, with guard bytes all around. */
enum { ROOM = GUARD + 16 + LONGEST + GUARD };

static bool guards_hold(const unsigned char *room, size_t from, size_t bytes)
{
    for (size_t i = 0; i < ROOM; i++)
        if ((i < from || i >= from + bytes) && !CHECK_EQ(room[i], GUARD_BYTE))
            return false;
    return true;
}

/* One length at one misalignment from every rank to its neighbour at `distance` (0: itself). */
static bool put_once(test_rank *self, unsigned char *room, unsigned char *source, size_t bytes,
                     size_t shift, int distance)
{
    coh_world *world = self->world;
    int to = (self->rank + distance) % self->size;
    int from = (self->rank + self->size - distance) % self->size;
    size_t start = GUARD + shift;
    memset(room, GUARD_BYTE, ROOM);
    if (!CHECK_OK(coh_barrier(world)))
        return false;
    test_fill(source + shift % 3, bytes, (uint64_t)self->rank + bytes);
    if (!CHECK_OK(coh_put(world, room + start, source + shift % 3, bytes, to))
        || !CHECK_OK(coh_barrier(world)))
        return false;
    return CHECK_EQ(test_differs(room + start, bytes, (uint64_t)from + bytes), bytes)
           && guards_hold(room, start, bytes);
}

/* Gets the neighbour's room back, next to guards of its own. */
static bool get_once(test_rank *self, unsigned char *room, unsigned char *back, size_t bytes,
                     size_t shift, int distance)
{
    int to = (self->rank + distance) % self->size;
    size_t start = GUARD + shift, at = GUARD + (shift + 5) % 16;
    memset(back, GUARD_BYTE, ROOM);
    return CHECK_OK(coh_get(self->world, back + at, room + start, bytes, to))
           && CHECK_EQ(test_differs(back + at, bytes, (uint64_t)self->rank + bytes), bytes)
           && guards_hold(back, at, bytes) && CHECK_OK(coh_barrier(self->world));
}

static void lengths_and_guards(test_rank *self)
{
    static const size_t shifts[] = {0, 1, 7, 13};
    unsigned char *room, *source = malloc(LONGEST + 3), *back = malloc(ROOM);
    if (!CHECK_OK(coh_malloc(self->world, ROOM, (void **)&room)))
        return;
    bool good = true;
    for (size_t i = 0; good && i < LENGTHS; i++)
        for (size_t s = 0; good && s < sizeof shifts / sizeof *shifts; s++)
            for (int distance = 0; good && distance < 2 && distance < self->size; distance++)
                good = put_once(self, room, source, lengths[i], shifts[s], distance)
                       && get_once(self, room, back, lengths[i], shifts[s], distance);
    if (good)
        CHECK_OK(coh_free(self->world, room));
    free(source);
    free(back);
}

/* From the heap to the heap: source and target both symmetric. */
static void heap_to_heap(test_rank *self)
{
    enum { BYTES = 10007 };
    unsigned char *one, *two;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    CHECK_OK(coh_malloc(self->world, BYTES, (void **)&one));
    if (!CHECK_OK(coh_malloc(self->world, BYTES, (void **)&two)))
        return;
    test_fill(one, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_put(self->world, two, one, BYTES, right));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(test_differs(two, BYTES, (uint64_t)left), BYTES);
    CHECK_OK(coh_barrier(self->world));
    memset(two, 0, BYTES);
    CHECK_OK(coh_get(self->world, two, one, BYTES, left));
    CHECK_EQ(test_differs(two, BYTES, (uint64_t)left), BYTES);
    CHECK_OK(coh_free(self->world, one));
    CHECK_OK(coh_free(self->world, two));
}

/* All to all at once, blocking and not, many times over. */
static void everybody_at_once(test_rank *self)
{
    enum { BYTES = 777 };
    unsigned char *boxes, source[BYTES];
    size_t size = (size_t)self->size;
    if (!CHECK_OK(coh_malloc(self->world, size * BYTES, (void **)&boxes)))
        return;
    int rounds = test_scaled(self, 100);
    for (int round = 0; round < rounds; round++) {
        test_fill(source, BYTES, (uint64_t)(self->rank + round));
        for (int to = 0; to < self->size; to++) {
            unsigned char *box = boxes + (size_t)self->rank * BYTES;
            coh_status status = (round + to) % 2 ? coh_put(self->world, box, source, BYTES, to)
                                                 : coh_put_nbi(self->world, box, source, BYTES, to);
            CHECK_OK(status);
        }
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
        for (size_t from = 0; from < size; from++)
            if (!CHECK_EQ(test_differs(boxes + from * BYTES, BYTES, from + (size_t)round), BYTES))
                return;
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_free(self->world, boxes));
}

/* To oneself, overlapping as for memmove, in both directions and by both calls. */
static bool overlap_once(test_rank *self, unsigned char *memory, size_t from, size_t to,
                         size_t bytes, bool by_get)
{
    static unsigned char model[8192];
    test_fill(memory, sizeof model, 9);
    test_fill(model, sizeof model, 9);
    memmove(model + to, model + from, bytes);
    coh_status status = by_get
                            ? coh_get(self->world, memory + to, memory + from, bytes, self->rank)
                            : coh_put(self->world, memory + to, memory + from, bytes, self->rank);
    return CHECK_OK(status) && CHECK_OK(coh_quiet(self->world))
           && CHECK(memcmp(memory, model, sizeof model) == 0);
}

static void overlap_with_oneself(test_rank *self)
{
    static const size_t gaps[] = {0, 1, 8, 63, 64, 1000};
    unsigned char *memory;
    if (!CHECK_OK(coh_malloc(self->world, 8192, (void **)&memory)))
        return;
    if (self->rank == 0) { /* the model is this process's, so one rank at a time */
        for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
            overlap_once(self, memory, 100, 100 + gaps[i], 5000, false);
            overlap_once(self, memory, 100 + gaps[i], 100, 5000, false);
            overlap_once(self, memory, 100, 100 + gaps[i], 5000, true);
            overlap_once(self, memory, 100 + gaps[i], 100, 5000, true);
        }
    }
    CHECK_OK(coh_free(self->world, memory));
}

/* Aligned small puts are single stores: a reader never sees half of one. */
static void small_puts_are_whole(test_rank *self)
{
    uint64_t *word;
    int rounds = test_scaled(self, 20000);
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    if (self->rank == 0) {
        for (int i = 0; i < rounds; i++) {
            uint64_t value = i % 2 ? UINT64_MAX : 0;
            if (!CHECK_OK(coh_put(self->world, word, &value, sizeof value, 1)))
                return;
        }
        uint64_t end = 1;
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put(self->world, word, &end, sizeof end, 1));
        CHECK_OK(coh_quiet(self->world));
    } else if (self->rank == 1) {
        double until = test_now() + 20;
        for (uint64_t seen = 0; seen != 1 && test_now() < until;) {
            seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
            if (!CHECK(seen == 0 || seen == 1 || seen == UINT64_MAX))
                return;
        }
    }
    CHECK_OK(coh_free(self->world, word));
}

/* ---- over 2 GiB ---- */

static uint64_t memory_available(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

/* Marks at the ends, around every 4 GiB-related corner, and in the middle. */
static size_t mark_at(size_t index, size_t bytes)
{
    static const uint64_t places[] = {0, 0x7fffffff, 0x80000000, 0x80000001, 0x40000000};
    return index < 5 ? (size_t)places[index] : bytes - 1;
}

static void put_large(test_rank *self, unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < 6; i++)
        memory[mark_at(i, bytes)] = (unsigned char)(i + 10);
    CHECK_OK(coh_put(self->world, memory, memory, bytes, 1));
    CHECK_OK(coh_quiet(self->world));
    for (size_t i = 0; i < 6; i++)
        memory[mark_at(i, bytes)] = 0;
    CHECK_OK(coh_get(self->world, memory, memory, bytes, 1));
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(memory[mark_at(i, bytes)], i + 10);
}

static void over_two_gib(test_rank *self)
{
    const uint64_t needed = UINT64_C(8) << 30;
    size_t bytes = ((size_t)2 << 30) + 4097;
    unsigned char *memory;
    _Atomic uint64_t *decision = self->shared;
    if (self->rank == 0)
        *decision = memory_available() > needed && !TEST_SANITIZED ? 2 : 1;
    CHECK_OK(coh_barrier(self->world));
    if (*decision == 1) {
        test_skip("needs 8 GiB of free memory and no sanitizer; there are %llu MiB",
                  (unsigned long long)memory_available() >> 20);
        return;
    }
    if (!CHECK_OK(coh_malloc(self->world, bytes, (void **)&memory)))
        return;
    if (self->rank == 0)
        put_large(self, memory, bytes);
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 1)
        for (size_t i = 0; i < 6; i++)
            CHECK_EQ(memory[mark_at(i, bytes)], i + 10);
    CHECK_OK(coh_free(self->world, memory));
}

const test_case conform_rma[] = {
    CASE(lengths_and_guards, "S27 S28", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(heap_to_heap, "S27", ON_MEMORY, ANY_SIZE),
    CASE(everybody_at_once, "S27", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(overlap_with_oneself, "S29", ON_MEMORY, ANY_SIZE),
    CASE(small_puts_are_whole, "S27", ON_MEMORY, FROM_TWO),
    CASE(over_two_gib, "S27", ON_PROCESSES, SIZE(2), .limit_s = 240),
};
CONFORM_COUNT(rma);
