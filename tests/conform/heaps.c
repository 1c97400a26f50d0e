/* Heaps beside the world's own: docs/semantics.md S53, S54 and S55. */
#include "conform.h"

#include <cohort-cuda.h>
#include <stdio.h>
#include <string.h>

enum { HEAPS_MOST = 63 }; /* of a world, its own among them */

#define MIB ((uint64_t)1 << 20)

static coh_heap *make(test_rank *self, uint64_t bytes)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    options.bytes = bytes;
    CHECK_OK(coh_heap_create(self->world, &options, &heap));
    return heap;
}

static coh_heap_stats usage_of(coh_heap *heap)
{
    coh_heap_stats stats = {.size = sizeof stats};
    CHECK_OK(coh_heap_usage(heap, &stats));
    return stats;
}

/* How many heaps the harness has made (--heap). */
static int made_before(test_rank *self)
{
    coh_heap *heap = make(self, MIB);
    int number = coh_heap_number(heap);
    CHECK_OK(coh_heap_destroy(heap));
    return number - 1;
}

/* ---- S53: making and destroying ---- */

static void a_heap_of_its_own(test_rank *self)
{
    coh_heap *own = coh_heap_default(self->world), *heap = make(self, 16 * MIB);
    coh_heap_stats before = usage_of(own);
    void *memory = NULL, *zeroed = NULL, *aligned = NULL;
    if (!CHECK(own && heap && own != heap))
        return;
    CHECK_EQ(coh_heap_number(own), 0);
    CHECK(coh_heap_number(heap) > 0);
    CHECK_OK(coh_heap_malloc(heap, 1000, &memory));
    CHECK_OK(coh_heap_calloc(heap, 100, 10, &zeroed));
    CHECK_OK(coh_heap_align(heap, 4096, 10, &aligned));
    CHECK((uintptr_t)aligned % 4096 == 0);
    for (int i = 0; i < 1000; i++)
        if (!CHECK_EQ(((char *)zeroed)[i], 0))
            break;
    coh_heap_stats stats = usage_of(heap);
    CHECK_EQ(stats.count, 3);
    CHECK_EQ(stats.reserved, 16 * MIB);
    CHECK(stats.used >= 2010 && stats.committed <= stats.reserved);
    CHECK_EQ(usage_of(own).count, before.count);
    CHECK_OK(coh_free(self->world, zeroed));
    CHECK_OK(coh_free(self->world, memory));
    CHECK_EQ(usage_of(heap).count, 1);
    CHECK_REFUSED(coh_heap_malloc(heap, 100 * MIB, &memory), COH_NO_MEMORY, "heap|16777216");
    CHECK_OK(coh_heap_destroy(heap)); /* with what is in it */
}

static void sizes_by_default(test_rank *self)
{
    coh_heap *heap;
    if (!CHECK_OK(coh_heap_create(self->world, NULL, &heap)))
        return;
    CHECK(usage_of(heap).reserved <= usage_of(coh_heap_default(self->world)).reserved);
    CHECK_EQ(usage_of(heap).committed, 0);
    CHECK_OK(coh_heap_destroy(heap));
}

static void unequal_options(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL, *other;
    void *memory;
    options.bytes = self->rank == 0 ? 4 * MIB : 8 * MIB;
    CHECK_REFUSED(coh_heap_create(self->world, &options, &heap), COH_MISMATCH,
                  "heap_create|4194304|8388608");
    CHECK(heap == NULL);
    heap = make(self, 4 * MIB);
    other = make(self, 4 * MIB);
    CHECK_REFUSED(coh_heap_malloc(self->rank == 0 ? heap : other, 64, &memory), COH_MISMATCH,
                  "malloc|of heap");
    CHECK_EQ(usage_of(heap).count, 0);
    CHECK_EQ(usage_of(other).count, 0);
    CHECK_OK(coh_heap_destroy(heap));
    CHECK_OK(coh_heap_destroy(other));
}

/* COHORT_FAULT: the last rank's memory runs out. */
static void memory_runs_out_on_one(test_rank *self)
{
    coh_heap *heap = make(self, 64 * MIB);
    void *memory = NULL;
    CHECK_REFUSED(coh_heap_malloc(heap, 8 * MIB, &memory), COH_NO_MEMORY, "rank 1|8388608");
    CHECK(memory == NULL);
    CHECK_EQ(usage_of(heap).count, 0);
    CHECK_OK(coh_heap_malloc(heap, 8 * MIB, &memory));
    memset(memory, 1, 8 * MIB);
    CHECK_OK(coh_free(self->world, memory));
    CHECK_OK(coh_heap_destroy(heap));
}

static void numbers_are_used_again(test_rank *self)
{
    coh_heap *first = make(self, 4 * MIB), *second = make(self, 4 * MIB);
    int number = coh_heap_number(first);
    int right = (self->rank + 1) % self->size;
    CHECK_EQ(coh_heap_number(second), number + 1);
    for (int turn = 0; turn < 5; turn++) {
        uint64_t *word, value = (uint64_t)(10 * turn + self->rank), found;
        CHECK_OK(coh_heap_calloc(first, 1000, sizeof *word, (void **)&word));
        CHECK_EQ(word[999], 0); /* nothing of the one before */
        CHECK_OK(coh_barrier(self->world));
        CHECK_OK(coh_put(self->world, &word[999], &value, sizeof value, right));
        CHECK_OK(coh_barrier(self->world));
        CHECK_OK(coh_get(self->world, &found, &word[999], sizeof found, right));
        CHECK_EQ(found, value);
        CHECK_OK(coh_heap_destroy(first));
        CHECK_EQ(coh_heap_number(first), -1);
        CHECK_STATUS(coh_put(self->world, &word[999], &value, sizeof value, right),
                     COH_NOT_SYMMETRIC);
        first = make(self, 4 * MIB);
        CHECK_EQ(coh_heap_number(first), number);
    }
    CHECK_OK(coh_heap_destroy(second));
    CHECK_OK(coh_heap_destroy(first));
}

static void as_many_as_there_can_be(test_rank *self)
{
    coh_heap *heaps[HEAPS_MOST] = {NULL}, *more = NULL;
    uint64_t *words[HEAPS_MOST], value = (uint64_t)self->rank + 1;
    int right = (self->rank + 1) % self->size, count = HEAPS_MOST - 1 - made_before(self);
    for (int i = 0; i < count; i++) {
        heaps[i] = make(self, 2 * MIB);
        if (!heaps[i] || !CHECK_OK(coh_heap_calloc(heaps[i], 1, 8, (void **)&words[i])))
            return;
        CHECK_OK(coh_put(self->world, words[i], &value, sizeof value, right));
    }
    CHECK_REFUSED(coh_heap_create(self->world, NULL, &more), COH_LIMIT, "63");
    CHECK(more == NULL);
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < count; i++)
        if (!CHECK_EQ(*words[i],
                      (uint64_t)(self->rank + self->size - 1) % (uint64_t)self->size + 1))
            break;
    CHECK_OK(coh_heap_destroy(heaps[count / 2]));
    heaps[count / 2] = make(self, 2 * MIB);
    CHECK(heaps[count / 2] != NULL); /* the others are left for finalize */
}

/* ---- S54: pointers of any heap, everywhere ---- */

static void collectives_between_heaps(test_rank *self)
{
    enum { COUNTS = 3 };
    static const size_t counts[COUNTS] = {3, 3000, 300000};
    coh_heap *one = make(self, 64 * MIB), *two = make(self, 64 * MIB);
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < COUNTS; i++) {
        size_t count = counts[i], all = count * (size_t)self->size;
        int64_t *source, *target, *blocks;
        if (!CHECK_OK(coh_heap_malloc(one, count * sizeof *source, (void **)&source))
            || !CHECK_OK(coh_heap_malloc(two, count * sizeof *target, (void **)&target))
            || !CHECK_OK(coh_malloc(self->world, all * sizeof *blocks, (void **)&blocks)))
            return;
        for (size_t at = 0; at < count; at++)
            source[at] = (int64_t)at + self->rank;
        CHECK_OK(coh_all_reduce(team, COH_I64, COH_SUM, source, target, count));
        int64_t ranks = self->size, sum = ranks * (ranks - 1) / 2;
        for (size_t at = 0; at < count; at += 1 + count / 100)
            if (!CHECK_EQ(target[at], ranks * (int64_t)at + sum))
                break;
        CHECK_OK(coh_all_gather(team, COH_I64, source, blocks, count));
        CHECK_EQ(blocks[all - 1], (int64_t)count - 1 + self->size - 1);
        CHECK_OK(coh_broadcast(team, COH_I64, target, source, count, 0));
        CHECK_EQ(source[count - 1], ranks * (int64_t)(count - 1) + sum);
        CHECK_OK(coh_free(self->world, target)); /* each in the heap that it is in */
        CHECK_OK(coh_free(self->world, blocks));
        CHECK_OK(coh_free(self->world, source));
    }
    CHECK_OK(coh_heap_destroy(two));
    CHECK_OK(coh_heap_destroy(one));
}

/* Two-shot works in place: it says so where memory of a further heap were taken for private. */
static void further_heaps_are_not_private(test_rank *self)
{
    enum { COUNT = 100000 };
    coh_heap *heap = make(self, 64 * MIB);
    float *data, *sum;
    CHECK_OK(coh_heap_calloc(heap, COUNT, sizeof *data, (void **)&data));
    CHECK_OK(coh_malloc(self->world, COUNT * sizeof *sum, (void **)&sum));
    data[COUNT - 1] = 1;
    CHECK_OK(coh_all_reduce(coh_team_world(self->world), COH_F32, COH_SUM, data, sum, COUNT));
    CHECK(sum[COUNT - 1] == (float)self->size);
    CHECK_OK(coh_free(self->world, sum));
    CHECK_OK(coh_heap_destroy(heap));
}

static void data_and_signal_in_different_heaps(test_rank *self)
{
    enum { BYTES = 3000, TURNS = 20 };
    coh_heap *heap = make(self, 4 * MIB);
    unsigned char *data, source[BYTES];
    uint64_t *signal;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    CHECK_OK(coh_heap_malloc(heap, TURNS * BYTES, (void **)&data));
    CHECK_OK(coh_calloc(self->world, TURNS, sizeof *signal, (void **)&signal));
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        uint64_t one = 1;
        test_fill(source, BYTES, turn + (uint64_t)self->rank);
        CHECK_OK(coh_put_signal(self->world, data + turn * BYTES, source, BYTES, &signal[turn], 1,
                                COH_SIGNAL_ADD, right));
        if (!CHECK_OK(coh_wait_until(self->world, COH_U64, &signal[turn], COH_EQ, &one, left)))
            return;
        CHECK_EQ(test_differs(data + turn * BYTES, BYTES, turn + (uint64_t)left), BYTES);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, signal));
    CHECK_OK(coh_heap_destroy(heap));
}

static void blocks_grow_where_they_are(test_rank *self)
{
    coh_heap *heap = make(self, 16 * MIB);
    unsigned char *memory, *behind;
    CHECK_OK(coh_heap_malloc(heap, 1000, (void **)&memory));
    CHECK_OK(coh_heap_malloc(heap, 1000, (void **)&behind));
    test_fill(memory, 1000, 7);
    CHECK_OK(coh_realloc(self->world, memory, 500000, (void **)&memory));
    CHECK_EQ(test_differs(memory, 1000, 7), 1000);
    CHECK_EQ(usage_of(heap).count, 2);
    CHECK_OK(coh_realloc(self->world, memory, 0, (void **)&memory));
    CHECK_OK(coh_free(self->world, behind));
    CHECK_REFUSED(coh_free(self->world, behind), COH_INVALID_ARGUMENT, "of heap|freed");
    CHECK_EQ(usage_of(heap).count, 0);
    CHECK_OK(coh_heap_destroy(heap));
}

/* ---- views and arrays ---- */

static void views_name_a_heap(test_rank *self)
{
    coh_heap *heap = make(self, 4 * MIB);
    int number = coh_heap_number(heap), right = (self->rank + 1) % self->size;
    int32_t *memory, *own, value = self->rank + 5, found = 0;
    coh_view view, part;
    coh_array array;
    void *pointer;
    CHECK_OK(coh_heap_calloc(heap, 100, sizeof *memory, (void **)&memory));
    CHECK_OK((coh_malloc)(self->world, 400, (void **)&own));
    CHECK_OK(coh_view_of(self->world, memory, 400, right, &view));
    CHECK_EQ(view.heap, number);
    CHECK_OK(coh_view_part(view, 4, 4, &part));
    CHECK_EQ(part.heap, number);
    CHECK_OK(coh_put_view(self->world, part, &value, sizeof value));
    CHECK_OK(coh_quiet(self->world));
    CHECK_OK(coh_get_view(self->world, &found, sizeof found, part));
    CHECK_EQ(found, value);
    CHECK_OK(coh_view_of(self->world, own, 400, right, &view));
    CHECK_EQ(view.heap, 0);

    CHECK_OK(coh_heap_array_malloc(heap, COH_I32, 10, &array, &pointer));
    CHECK_EQ(array.heap, number);
    CHECK_OK(coh_array_part(array, 3, 1, &array));
    CHECK_OK(coh_put_array(self->world, array, right, COH_I32, &value, 1));
    CHECK_OK(coh_quiet(self->world));
    CHECK_OK(coh_get_array(self->world, COH_I32, &found, 1, array, right));
    CHECK_EQ(found, value);
    CHECK_OK(coh_array_pointer(self->world, array, (void **)&own));
    CHECK(own == (int32_t *)pointer + 3);

    /* Offsets that would reach into the next heap's, if heap and offset were one number. */
    view = (coh_view){right, (uint64_t)1 << 48, 4, 0};
    CHECK_STATUS(coh_put_view(self->world, view, &value, 4), COH_OUT_OF_BOUNDS);
    const int wrong[] = {-1, HEAPS_MOST, 1000, HEAPS_MOST - 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        part.heap = array.heap = wrong[i];
        CHECK_REFUSED(coh_put_view(self->world, part, &value, 4), COH_INVALID_ARGUMENT, "no heap");
        CHECK_STATUS(coh_array_pointer(self->world, array, &pointer), COH_INVALID_ARGUMENT);
    }
    CHECK_OK(coh_heap_destroy(heap));
    part.heap = number;
    CHECK_REFUSED(coh_get_view(self->world, &found, 4, part), COH_INVALID_ARGUMENT, "destroyed");
}

/* The bound is that heap's, and the sentence names it. */
static void bounds_of_a_further_heap(test_rank *self)
{
    coh_heap *heap = make(self, 4 * MIB);
    unsigned char *memory, byte = 1;
    char words[64];
    coh_error facts = {.size = sizeof facts};
    CHECK_OK(coh_heap_malloc(heap, 1000, (void **)&memory));
    uint64_t committed = usage_of(heap).committed;
    snprintf(words, sizeof words, "of heap %d|%llu", coh_heap_number(heap),
             (unsigned long long)committed);
    CHECK_REFUSED(coh_put(self->world, memory + committed, &byte, 1, 0), COH_OUT_OF_BOUNDS, words);
    CHECK_OK(coh_last_error_facts(&facts));
    CHECK(facts.heap == coh_heap_number(heap) && facts.limit == committed);
    CHECK_STATUS(coh_get(self->world, &byte, memory + 4 * MIB, 1, 0), COH_NOT_SYMMETRIC);
    CHECK_OK(coh_heap_destroy(heap));
}

/* COHORT_CHECK: an allocation's bound, in that heap. */
static void checked_in_a_further_heap(test_rank *self)
{
    coh_heap *heap = make(self, 4 * MIB);
    unsigned char *memory, byte = 1;
    CHECK_OK(coh_heap_malloc(heap, 1000, (void **)&memory));
    CHECK_OK(coh_put(self->world, memory + 999, &byte, 1, self->rank));
    CHECK_REFUSED(coh_put(self->world, memory + 999, &byte, 2, self->rank), COH_OUT_OF_BOUNDS,
                  "of heap|past the end|1000");
    CHECK_REFUSED(coh_get(self->world, &byte, memory + 5000, 1, 0), COH_OUT_OF_BOUNDS,
                  "of heap|no live allocation");
    CHECK_OK(coh_heap_destroy(heap));
}

/* COHORT_CHECK=order: a race is named with its heap, and what was put is gone with it. */
static void races_in_a_further_heap(test_rank *self)
{
    enum { BYTES = 100 };
    coh_heap *heap = make(self, 4 * MIB);
    coh_context *context;
    unsigned char *memory, data[BYTES] = {1};
    CHECK_OK(coh_heap_calloc(heap, 2, BYTES, (void **)&memory));
    CHECK_OK(coh_context_create(self->world, &context));
    if (self->rank == 0) {
        CHECK_OK(coh_put(self->world, memory, data, BYTES, 1));
        CHECK_REFUSED(coh_get(self->world, data, memory, BYTES, 1), COH_RACE, "of heap");
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(memory[0], self->rank == 1);
    if (self->rank == 0) /* never completed: destroying the heap must see to it */
        CHECK_OK(coh_context_put(context, memory + BYTES, data, BYTES, 1));
    CHECK_OK(coh_heap_destroy(heap));
    heap = make(self, 4 * MIB);
    CHECK_OK(coh_heap_calloc(heap, 2, BYTES, (void **)&memory));
    CHECK_OK(coh_context_quiet(context));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(memory[BYTES], 0);
    CHECK_OK(coh_heap_destroy(heap));
    CHECK_STATUS(coh_finalize(self->world), COH_RACE);
    self->world = NULL;
}

/* ---- S55: what is refused ---- */

/* Where there is no card, and one that is not there where there are. All ranks fail, and can go on. */
static void refuse_cards(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    int cards = 0, device = 0;
    coh_status available = coh_cuda_count(&cards);
    CHECK(available == COH_OK || available == COH_NOT_AVAILABLE);
    options.kind = COH_HEAP_CUDA;
    options.device = -7;
    CHECK_REFUSED(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT, "-7");
    options.device = cards;
    coh_status status = coh_heap_create(self->world, &options, &heap);
    if (status == COH_UNSUPPORTED) /* the race check, which sees nothing of a card */
        CHECK(strstr(coh_last_error(), "COHORT_CHECK=order") != NULL);
    else
        CHECK_EQ(status, available == COH_OK ? COH_INVALID_ARGUMENT : COH_NOT_AVAILABLE);
    CHECK(strstr(coh_last_error(), "cuda") != NULL);
    CHECK(heap == NULL);
    CHECK_OK(coh_cuda_device(self->world, &device, NULL));
    CHECK_EQ(device, -1);
    CHECK_STATUS(coh_cuda_device(self->world, NULL, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_count(NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_query(0, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_query(0, &(coh_cuda_card){.size = 1}), COH_INVALID_ARGUMENT);
}

static void refusals(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    coh_heap_stats stats = {.size = 3};
    void *memory;
    CHECK_REFUSED(coh_heap_create(NULL, NULL, &heap), COH_INVALID_ARGUMENT, "world|NULL");
    CHECK_REFUSED(coh_heap_create(self->world, NULL, NULL), COH_INVALID_ARGUMENT, "heap|NULL");
    options.size = 5;
    CHECK_REFUSED(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT, "size|5");
    options = (coh_heap_options)COH_HEAP_OPTIONS_INIT;
    options.bytes = ((uint64_t)1 << 47) + 1;
    CHECK_REFUSED(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT, "bytes");
    options.bytes = 0;
    refuse_cards(self);
    options.kind = (coh_heap_kind)7;
    CHECK_REFUSED(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT, "7");
    CHECK(heap == NULL);
    CHECK_REFUSED(coh_heap_destroy(coh_heap_default(self->world)), COH_INVALID_ARGUMENT, "heap 0");
    CHECK_OK(coh_heap_destroy(NULL));
    CHECK_REFUSED(coh_heap_malloc(NULL, 1, &memory), COH_INVALID_ARGUMENT, "heap|NULL");
    heap = make(self, 4 * MIB);
    CHECK_REFUSED(coh_heap_malloc(heap, 1, NULL), COH_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(coh_heap_calloc(heap, SIZE_MAX, 2, &memory), COH_INVALID_ARGUMENT, "overflow");
    CHECK_STATUS(coh_heap_align(heap, 3, 1, &memory), COH_BAD_ALIGNMENT);
    CHECK_REFUSED(coh_heap_usage(heap, &stats), COH_INVALID_ARGUMENT, "size|3");
    CHECK_STATUS(coh_heap_usage(heap, NULL), COH_INVALID_ARGUMENT);
    CHECK_REFUSED(coh_heap_array_malloc(heap, COH_I8, 1, NULL, NULL), COH_INVALID_ARGUMENT,
                  "array");
    CHECK_OK(coh_heap_malloc(heap, 0, &memory));
    CHECK(memory == NULL);
    CHECK_OK(coh_heap_align(heap, 65536, 65536, &memory)); /* whole pages */
    bool registers = test_has_processes(self->engine);
    CHECK_STATUS(coh_register(self->world, memory, 65536),
                 registers ? COH_INVALID_ARGUMENT : COH_UNSUPPORTED);
    CHECK_OK(coh_heap_destroy(heap));
    CHECK_REFUSED(coh_heap_malloc(heap, 1, &memory), COH_INVALID_ARGUMENT, "destroyed");
    CHECK_REFUSED(coh_heap_destroy(heap), COH_INVALID_ARGUMENT, "destroyed");
    CHECK_EQ(coh_heap_number(heap), -1);
    CHECK_EQ(coh_heap_number(NULL), -1);
}

/* Left to finalize, and asked for afterwards. */
static void handles_after_finalize(test_rank *self)
{
    coh_heap *own = coh_heap_default(self->world), *heap = make(self, 4 * MIB);
    void *memory;
    coh_world *world = self->world;
    CHECK_OK(coh_heap_malloc(heap, 1000, &memory));
    CHECK_OK(coh_finalize(world));
    self->world = NULL;
    CHECK_STATUS(coh_heap_malloc(heap, 1, &memory), COH_FINALIZED);
    CHECK_STATUS(coh_heap_malloc(own, 1, &memory), COH_FINALIZED);
    CHECK_STATUS(coh_heap_destroy(heap), COH_FINALIZED);
    CHECK_EQ(coh_heap_number(heap), -1);
    CHECK(coh_heap_default(world) == NULL);
}

static void no_memory_no_heap(test_rank *self)
{
    coh_heap *heap = NULL;
    CHECK_REFUSED(coh_heap_create(self->world, NULL, &heap), COH_UNSUPPORTED, self->engine);
    CHECK(heap == NULL && coh_heap_default(self->world) == NULL);
    CHECK_OK(coh_barrier(self->world));
}

static void driven_ranks_have_one(test_rank *self)
{
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    coh_heap *heap = NULL;
    void *memory;
    options.engine = self->engine;
    options.driven = 1;
    if (!CHECK_OK(coh_init_threads(2, &options, worlds)))
        return;
    CHECK_REFUSED(coh_heap_create(worlds[0], NULL, &heap), COH_UNSUPPORTED, "drives");
    for (int rank = 0; rank < 2; rank++)
        CHECK_OK(coh_heap_malloc(coh_heap_default(worlds[rank]), 100, &memory));
    for (int rank = 0; rank < 2; rank++)
        CHECK_OK(coh_finalize(worlds[rank]));
}

const test_case conform_heaps[] = {
    CASE(a_heap_of_its_own, "S53", ON_MEMORY, ANY_SIZE),
    CASE(sizes_by_default, "S53", ON_MEMORY, ANY_SIZE),
    CASE(unequal_options, "S53", ON_MEMORY, SIZE(2)),
    CASE(memory_runs_out_on_one, "S53", ON_MEMORY, FROM_TWO,
         .environment = "COHORT_FAULT=fail@commit,rank=1"),
    CASE(numbers_are_used_again, "S53", ON_MEMORY, ANY_SIZE),
    CASE(as_many_as_there_can_be, "S53", ON_MEMORY, ANY_SIZE),
    CASE(collectives_between_heaps, "S54", ON_MEMORY, ANY_SIZE),
    CASE(further_heaps_are_not_private, "S54", ON_MAPPED, FROM_TWO,
         .environment = "COHORT_ALL_REDUCE=two-shot"),
    CASE(data_and_signal_in_different_heaps, "S54", ON_MEMORY, ANY_SIZE),
    CASE(blocks_grow_where_they_are, "S54", ON_MEMORY, ANY_SIZE),
    CASE(views_name_a_heap, "S54", ON_MEMORY, ANY_SIZE),
    CASE(bounds_of_a_further_heap, "S54", ON_MEMORY, ANY_SIZE),
    CASE(checked_in_a_further_heap, "S54", ON_MEMORY, ANY_SIZE, .environment = "COHORT_CHECK=1"),
    CASE(races_in_a_further_heap, "S54", ON_MAPPED, FROM_TWO, .environment = "COHORT_CHECK=order"),
    CASE(refusals, "S55", ON_MEMORY, ANY_SIZE),
    CASE(handles_after_finalize, "S55", ON_MEMORY, ANY_SIZE),
    CASE(no_memory_no_heap, "S55", ON_CHANNEL | ON_MLX, ANY_SIZE),
    CASE(driven_ranks_have_one, "S55", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(heaps);
