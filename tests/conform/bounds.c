/* What lies outside is refused before anything moves: docs/semantics.md S23 and S25. */
#include "conform.h"

#include <stdio.h>
#include <string.h>

/* The heap of this rank as the public interface shows it. */
struct heap {
    unsigned char *memory; /* an allocation of BYTES */
    unsigned char *base;
    int number;
    uint64_t offset; /* of the allocation */
    uint64_t committed;
};

enum { BYTES = 1000 };

static bool look_at_heap(test_rank *self, struct heap *heap)
{
    coh_view view;
    coh_heap_stats stats = {.size = sizeof stats};
    if (!CHECK_OK(coh_malloc(self->world, BYTES, (void **)&heap->memory))
        || !CHECK_OK(coh_view_of(self->world, heap->memory, BYTES, self->rank, &view))
        || !CHECK_OK(coh_heap_query(self->world, &stats)))
        return false;
    heap->number = view.heap;
    heap->offset = view.offset;
    heap->base = heap->memory - view.offset;
    heap->committed = stats.committed;
    return true;
}

static bool outside(coh_status status)
{
    return status == COH_OUT_OF_BOUNDS || status == COH_NOT_SYMMETRIC;
}

static void interior_pointers(test_rank *self)
{
    struct heap heap;
    unsigned char value = 0x42, found = 0;
    int right = (self->rank + 1) % self->size;
    if (!look_at_heap(self, &heap))
        return;
    for (size_t at = 0; at < BYTES; at += 111) {
        CHECK_OK(coh_put(self->world, heap.memory + at, &value, 1, right));
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_get(self->world, &found, heap.memory + at, 1, right));
        CHECK_EQ(found, value);
    }
    unsigned char *last = heap.base + heap.committed - 1;
    CHECK_OK(coh_get(self->world, &found, last, 1, right));
    CHECK_OK(coh_free(self->world, heap.memory));
}

static void past_the_end(test_rank *self)
{
    struct heap heap;
    unsigned char byte = 1;
    coh_view view;
    int rank = self->rank;
    if (!look_at_heap(self, &heap))
        return;
    unsigned char *end = heap.base + heap.committed;
    CHECK(outside(coh_put(self->world, end, &byte, 1, rank)));
    CHECK(outside(coh_get(self->world, &byte, end, 1, rank)));
    CHECK(outside(coh_put(self->world, heap.base - 1, &byte, 1, rank)));
    CHECK(outside(coh_view_of(self->world, end, 1, rank, &view)));
    char words[128], pair[] = "ab";
    snprintf(words, sizeof words, "rank %d|2|%llu", rank, (unsigned long long)heap.committed);
    CHECK_REFUSED(coh_put(self->world, end - 1, pair, 2, rank), COH_OUT_OF_BOUNDS, words);
    CHECK_SAYS("put");
    CHECK_REFUSED(coh_get(self->world, pair, end - 1, 2, rank), COH_OUT_OF_BOUNDS, words);
    CHECK_SAYS("get");
    CHECK_OK(coh_free(self->world, heap.memory));
}

/* Lengths whose end wraps around, of every size. */
static void lengths_that_wrap(test_rank *self)
{
    struct heap heap;
    coh_view view, part;
    unsigned char byte = 0, *nothing = &byte;
    int rank = self->rank;
    if (!look_at_heap(self, &heap))
        return;
    memset(heap.memory, 0x33, BYTES);
    unsigned char *inside = heap.memory + 64; /* at an offset that is not 0 */
    const size_t huge[] = {SIZE_MAX,
                           SIZE_MAX - 1,
                           SIZE_MAX - heap.offset - 64,
                           SIZE_MAX - heap.offset - 64 + 1,
                           SIZE_MAX - (uintptr_t)inside,
                           SIZE_MAX - (uintptr_t)inside + 1,
                           (size_t)1 << 63,
                           (size_t)1 << 47,
                           (size_t)heap.committed + 1};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        CHECK_STATUS(coh_put(self->world, inside, nothing, huge[i], rank), COH_OUT_OF_BOUNDS);
        CHECK_STATUS(coh_get(self->world, nothing, inside, huge[i], rank), COH_OUT_OF_BOUNDS);
        CHECK_STATUS(coh_put_nbi(self->world, inside, nothing, huge[i], rank), COH_OUT_OF_BOUNDS);
        CHECK_STATUS(coh_get_nbi(self->world, nothing, inside, huge[i], rank), COH_OUT_OF_BOUNDS);
        CHECK_STATUS(coh_view_of(self->world, inside, huge[i], rank, &view), COH_OUT_OF_BOUNDS);
    }
    CHECK_OK(coh_view_of(self->world, heap.memory, BYTES, rank, &view));
    CHECK_STATUS(coh_view_part(view, UINT64_MAX, 2, &part), COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_view_part(view, 2, UINT64_MAX - 1, &part), COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_view_part(view, UINT64_MAX, UINT64_MAX, &part), COH_OUT_OF_BOUNDS);
    for (size_t i = 0; i < BYTES; i++)
        if (!CHECK_EQ(heap.memory[i], 0x33))
            break;
    CHECK_OK(coh_free(self->world, heap.memory));
}

/* Views that were made up: offsets at and around every edge. */
static void views_that_wrap(test_rank *self)
{
    struct heap heap;
    char byte = 0;
    if (!look_at_heap(self, &heap))
        return;
    const uint64_t offsets[] = {heap.committed, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        coh_view view = {self->rank, offsets[i], 1, heap.number};
        CHECK_STATUS(coh_put_view(self->world, view, &byte, 1), COH_OUT_OF_BOUNDS);
        CHECK_STATUS(coh_get_view(self->world, &byte, 1, view), COH_OUT_OF_BOUNDS);
    }
    coh_view wraps = {self->rank, UINT64_MAX - 100, 200, heap.number};
    char words[128];
    snprintf(words, sizeof words, "rank %d|18446744073709551515|200|%llu", self->rank,
             (unsigned long long)heap.committed);
    char room[200];
    CHECK_REFUSED(coh_get_view(self->world, room, 200, wraps), COH_OUT_OF_BOUNDS, words);
    CHECK_OK(coh_free(self->world, heap.memory));
}

/* A product that overflows is as much a bad argument as a range outside. */
static bool rejected(coh_status status)
{
    return status == COH_OUT_OF_BOUNDS || status == COH_INVALID_ARGUMENT;
}

static void arrays_that_wrap(test_rank *self)
{
    coh_array array = {COH_F64, 0, 10, 0}, part, forged = {COH_F64, 0, (UINT64_MAX / 8) + 2, 0};
    double value = 0;
    void *pointer = NULL;
    CHECK_STATUS(coh_array_malloc(self->world, COH_F64, SIZE_MAX / 4, &array, &pointer),
                 COH_INVALID_ARGUMENT);
    CHECK_SAYS("4611686018427387903");
    CHECK(pointer == NULL);
    CHECK_EQ(array.count, 10);
    CHECK_STATUS(coh_array_part(array, UINT64_MAX, 2, &part), COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_array_part(array, 5, 6, &part), COH_OUT_OF_BOUNDS);
    CHECK_SAYS("5|6|10");
    size_t count = (size_t)forged.count;
    CHECK(rejected(coh_put_array(self->world, forged, self->rank, COH_F64, &value, count)));
    CHECK(rejected(coh_get_array(self->world, COH_F64, &value, count, forged, self->rank)));
}

/* Memory that is not symmetric at all: the stack, malloc's, NULL, another kind of pointer. */
static void not_symmetric(test_rank *self)
{
    struct heap heap;
    int on_stack = 1, value = 2;
    void *direct;
    coh_view view;
    char words[64];
    if (!look_at_heap(self, &heap))
        return;
    snprintf(words, sizeof words, "%p", (void *)&on_stack);
    CHECK_REFUSED(coh_put(self->world, &on_stack, &value, sizeof value, 0), COH_NOT_SYMMETRIC,
                  words);
    CHECK_REFUSED(coh_get(self->world, &value, &on_stack, sizeof value, 0), COH_NOT_SYMMETRIC,
                  words);
    CHECK_REFUSED(coh_ptr(self->world, &on_stack, 0, &direct), COH_NOT_SYMMETRIC, words);
    CHECK_REFUSED(coh_view_of(self->world, &on_stack, 4, 0, &view), COH_NOT_SYMMETRIC, words);
    CHECK_STATUS(coh_put(self->world, NULL, &value, sizeof value, 0), COH_NOT_SYMMETRIC);
    CHECK_EQ(on_stack, 1);
    CHECK_EQ(value, 2);
    CHECK_OK(coh_free(self->world, heap.memory));
}

/* Ranks that are not there, by every call that takes one. */
static void unknown_ranks(test_rank *self)
{
    struct heap heap;
    const int bad[] = {-1, self->size, 1000000, -2147483647 - 1, 2147483647};
    char byte = 0, text[16];
    coh_view view;
    coh_peer_state state;
    void *direct;
    if (!look_at_heap(self, &heap))
        return;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rank = bad[i];
        coh_view forged = {rank, heap.offset, 1, heap.number};
        char words[64];
        snprintf(words, sizeof words, "%d|%d", rank, self->size);
        CHECK_REFUSED(coh_put(self->world, heap.memory, &byte, 1, rank), COH_UNKNOWN_RANK, words);
        CHECK_REFUSED(coh_get(self->world, &byte, heap.memory, 1, rank), COH_UNKNOWN_RANK, words);
        CHECK_REFUSED(coh_put_nbi(self->world, heap.memory, &byte, 1, rank), COH_UNKNOWN_RANK,
                      words);
        CHECK_REFUSED(coh_get_nbi(self->world, &byte, heap.memory, 1, rank), COH_UNKNOWN_RANK,
                      words);
        CHECK_REFUSED(coh_ptr(self->world, heap.memory, rank, &direct), COH_UNKNOWN_RANK, words);
        CHECK_REFUSED(coh_view_of(self->world, heap.memory, 1, rank, &view), COH_UNKNOWN_RANK,
                      words);
        CHECK_REFUSED(coh_put_view(self->world, forged, &byte, 1), COH_UNKNOWN_RANK, words);
        CHECK_REFUSED(coh_get_view(self->world, &byte, 1, forged), COH_UNKNOWN_RANK, words);
        CHECK_REFUSED(coh_peer_query(self->world, rank, &state, text, sizeof text),
                      COH_UNKNOWN_RANK, words);
        coh_array array = {COH_I8, heap.offset, 1, heap.number};
        CHECK_REFUSED(coh_put_array(self->world, array, rank, COH_I8, &byte, 1), COH_UNKNOWN_RANK,
                      words);
        CHECK_REFUSED(coh_get_array(self->world, COH_I8, &byte, 1, array, rank), COH_UNKNOWN_RANK,
                      words);
    }
    CHECK_OK(coh_free(self->world, heap.memory));
}

/* In checked mode the bound is the allocation; without, the heap. docs/faults.md F16. */
static void checked_mode(test_rank *self)
{
    struct heap heap;
    unsigned char bytes[BYTES + 200] = {0};
    if (!look_at_heap(self, &heap))
        return;
    CHECK_OK(coh_put(self->world, heap.memory, bytes, BYTES, self->rank));
    CHECK_OK(coh_put(self->world, heap.memory + 500, bytes, BYTES - 500, self->rank));
    CHECK_REFUSED(coh_put(self->world, heap.memory, bytes, BYTES + 100, self->rank),
                  COH_OUT_OF_BOUNDS, "put|1100|1000");
    CHECK_REFUSED(coh_get(self->world, bytes, heap.memory + 900, 150, self->rank),
                  COH_OUT_OF_BOUNDS, "get|150|1000");
    void *other;
    CHECK_OK(coh_malloc(self->world, 64, &other));
    CHECK_OK(coh_free(self->world, heap.memory));
    CHECK_STATUS(coh_put(self->world, heap.memory, bytes, 8, self->rank), COH_OUT_OF_BOUNDS);
    CHECK_OK(coh_free(self->world, other));
}

static void unchecked_mode(test_rank *self)
{
    struct heap heap;
    void *behind;
    unsigned char bytes[64] = {0};
    if (!look_at_heap(self, &heap))
        return;
    CHECK_OK(coh_malloc(self->world, 4096, &behind));
    CHECK_OK(coh_put(self->world, heap.memory + BYTES, bytes, sizeof bytes, self->rank));
    CHECK_OK(coh_free(self->world, behind));
    CHECK_OK(coh_free(self->world, heap.memory));
}

const test_case conform_bounds[] = {
    CASE(interior_pointers, "S25", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(past_the_end, "S25", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(lengths_that_wrap, "S23", ON_MEMORY, ANY_SIZE),
    CASE(views_that_wrap, "S23", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(arrays_that_wrap, "S23", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(not_symmetric, "F17", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(unknown_ranks, "F17", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(checked_mode, "F16", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(3),
         .environment = "COHORT_CHECK=1"),
    CASE(unchecked_mode, "F16", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(3)),
};
CONFORM_COUNT(bounds);
