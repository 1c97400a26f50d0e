/* The facts of a failure as fields, bounds by option, and allocations and pointers by type. */
#include "conform.h"

#include <string.h>

static coh_error last_facts(void)
{
    coh_error facts;
    memset(&facts, 0x5a, sizeof facts);
    facts.size = sizeof facts;
    CHECK_OK(coh_last_error_facts(&facts));
    return facts;
}

static bool is_about(const coh_error *facts, coh_status status, const char *operation, int rank,
                     int peer)
{
    return CHECK_EQ(facts->status, status) && CHECK(strcmp(facts->operation, operation) == 0)
           && CHECK_EQ(facts->rank, rank) && CHECK_EQ(facts->peer, peer);
}

static void facts_of_ranges(test_rank *self)
{
    char *memory, byte = 1;
    coh_heap_stats stats = {.size = sizeof stats};
    coh_view view, part;
    int peer = self->size - 1;
    CHECK_OK(coh_malloc(self->world, 4096, (void **)&memory));
    CHECK_OK(coh_heap_query(self->world, &stats));
    CHECK_OK(coh_view_of(self->world, memory, 100, peer, &view));

    CHECK_STATUS(coh_put(self->world, memory, &byte, (size_t)stats.committed + 1, peer),
                 COH_OUT_OF_BOUNDS);
    coh_error facts = last_facts();
    is_about(&facts, COH_OUT_OF_BOUNDS, "coh_put", self->rank, peer);
    CHECK(facts.offset == view.offset && facts.length == stats.committed + 1
          && facts.limit == stats.committed && facts.heap == view.heap);

    CHECK_STATUS(coh_get(self->world, &byte, memory, 1, self->size), COH_UNKNOWN_RANK);
    facts = last_facts();
    is_about(&facts, COH_UNKNOWN_RANK, "coh_get", self->rank, self->size);
    CHECK(facts.limit == (uint64_t)self->size && facts.offset == COH_NO_FACT && facts.heap == -1);

    CHECK_STATUS(coh_view_part(view, 90, 20, &part), COH_OUT_OF_BOUNDS);
    facts = last_facts();
    is_about(&facts, COH_OUT_OF_BOUNDS, "coh_view_part", -1, -1);
    CHECK(facts.offset == 90 && facts.length == 20 && facts.limit == 100);

    CHECK_STATUS(coh_put_view(self->world, view, memory, 99), COH_LENGTH_MISMATCH);
    facts = last_facts();
    CHECK(facts.length == 99 && facts.limit == 100);
    CHECK_OK(coh_free(self->world, memory));
}

static void facts_of_memory(test_rank *self)
{
    void *memory;
    CHECK_STATUS(coh_malloc(self->world, (size_t)1 << 46, &memory), COH_NO_MEMORY);
    coh_error facts = last_facts();
    is_about(&facts, COH_NO_MEMORY, test_uses_further_heap() ? "coh_heap_malloc" : "coh_malloc",
             self->rank, -1);
    CHECK(facts.length == UINT64_C(1) << 46 && facts.limit < facts.length);
}

/* Two members that differ: the peer is the other one. */
static void facts_of_a_mismatch(test_rank *self)
{
    coh_team *copy;
    int32_t one = 1, sum;
    CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &copy));
    CHECK_STATUS(coh_all_reduce(copy, COH_I32, self->rank ? COH_SUM : COH_MAX, &one, &sum, 1),
                 COH_MISMATCH);
    coh_error facts = last_facts();
    is_about(&facts, COH_MISMATCH, "coh_all_reduce", self->rank, !self->rank);
}

/* A started call's are told by its request, to whoever waits. */
static void facts_of_a_request(test_rank *self)
{
    coh_request *request;
    int32_t one = 1;
    CHECK_OK(
        coh_broadcast_start(coh_team_world(self->world), COH_I32, &one, &one, 1, 99, &request));
    CHECK_STATUS(coh_request_wait(&request, NULL), COH_UNKNOWN_RANK);
    coh_error facts = last_facts();
    is_about(&facts, COH_UNKNOWN_RANK, "coh_broadcast_start", self->rank, -1);
}

static void facts_by_size(test_rank *self)
{
    (void)self;
    coh_error facts = {.size = 8};
    CHECK_REFUSED(coh_last_error_facts(&facts), COH_INVALID_ARGUMENT, "size");
    CHECK_REFUSED(coh_last_error_facts(NULL), COH_INVALID_ARGUMENT, "NULL");
    struct {
        coh_error known;
        char later[64];
    } larger;
    memset(&larger, 0x5a, sizeof larger);
    larger.known.size = sizeof larger; /* of a program that was built with a later header */
    CHECK_OK(coh_last_error_facts(&larger.known));
    CHECK(larger.known.size == sizeof larger && larger.known.status == COH_INVALID_ARGUMENT
          && larger.later[0] == 0x5a);
}

/* ---- bounds of allocations, by option ---- */

static void bounds_by_option(test_rank *self)
{
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    options.driven = 1;
    for (int checked = 0; checked < 2; checked++) {
        char *first, *second, data[100] = {0};
        options.check_bounds = checked;
        if (!CHECK_OK(coh_init_threads(2, &options, worlds)))
            return;
        for (int rank = 0; rank < 2; rank++) {
            CHECK_OK(COH_MALLOC(worlds[rank], 64, &first));
            CHECK_OK(COH_MALLOC(worlds[rank], 64, &second));
        }
        CHECK_OK(coh_put(worlds[1], first, data, 64, 0));
        CHECK_STATUS(coh_put(worlds[1], first, data, 65, 0), checked ? COH_OUT_OF_BOUNDS : COH_OK);
        if (checked) {
            coh_error facts = last_facts();
            is_about(&facts, COH_OUT_OF_BOUNDS, "coh_put", 1, 0);
            CHECK(facts.length == 65 && facts.limit == facts.offset + 64);
        }
        for (int rank = 0; rank < 2; rank++)
            CHECK_OK(coh_finalize(worlds[rank]));
    }
    options.size = offsetof(coh_options, check_bounds); /* of a program that does not know it */
    options.check_bounds = 1;
    if (CHECK_OK(coh_init_threads(2, &options, worlds)))
        for (int rank = 0; rank < 2; rank++)
            CHECK_OK(coh_finalize(worlds[rank]));
    options.size--;
    CHECK_STATUS(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT);
}

/* ---- by type ---- */

static void allocations_by_type(test_rank *self)
{
    typedef struct item {
        double x;
        int tag;
    } item;
    item *items = NULL, *zeros = NULL, *none = (item *)&items;
    CHECK_OK(COH_MALLOC(self->world, 10, &items));
    CHECK_OK(COH_CALLOC(self->world, 10, &zeros));
    CHECK_EQ((char *)zeros - (char *)items, (10 * sizeof(item) + 63) / 64 * 64);
    for (int i = 0; i < 10; i++)
        CHECK(zeros[i].tag == 0);
    CHECK_OK(COH_MALLOC(self->world, 0, &none));
    CHECK(none == NULL);
    CHECK_REFUSED(COH_MALLOC(self->world, SIZE_MAX / 2, &none), COH_INVALID_ARGUMENT, "overflow");
    CHECK_REFUSED(COH_CALLOC(self->world, SIZE_MAX / 2, &none), COH_INVALID_ARGUMENT, "overflow");
    CHECK_REFUSED(coh_malloc_typed(self->world, 1, 1, NULL), COH_INVALID_ARGUMENT, "NULL");
    CHECK_OK(coh_free(self->world, zeros));
    CHECK_OK(coh_free(self->world, items));
}

static void pointers_of_arrays(test_rank *self)
{
    coh_array array, part;
    void *base, *pointer = NULL;
    CHECK_OK(coh_array_malloc(self->world, COH_F64, 20, &array, &base));
    CHECK_OK(coh_array_pointer(self->world, array, &pointer));
    CHECK(pointer == base);
    CHECK_OK(coh_array_part(array, 5, 10, &part));
    CHECK_OK(coh_array_pointer(self->world, part, &pointer));
    CHECK(pointer == (double *)base + 5);
    part.count = 0;
    CHECK_OK(coh_array_pointer(self->world, part, &pointer));
    CHECK(pointer == NULL);
    part = array;
    part.count = UINT64_C(1) << 50;
    CHECK_STATUS(coh_array_pointer(self->world, part, &pointer), COH_OUT_OF_BOUNDS);
    CHECK_REFUSED(coh_array_pointer(self->world, array, NULL), COH_INVALID_ARGUMENT, "pointer");
    part.dtype = (coh_dtype)99;
    CHECK_REFUSED(coh_array_pointer(self->world, part, &pointer), COH_INVALID_ARGUMENT, "99");
    CHECK_OK(coh_array_free(self->world, array));
}

const test_case conform_facts[] = {
    CASE(facts_of_ranges, "F16", ON_MEMORY, SIZE(1) | SIZE(3)),
    CASE(facts_of_memory, "F17", ON_MEMORY, SIZE(1) | SIZE(3)),
    CASE(facts_of_a_mismatch, "S42", ON_ALL, SIZE(2)),
    CASE(facts_of_a_request, "S42", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(facts_by_size, "F17", ON_ALL, SIZE(1)),
    CASE(bounds_by_option, "F16", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(allocations_by_type, "S19", ON_MEMORY, SIZE(1) | SIZE(3)),
    CASE(pointers_of_arrays, "S19", ON_MEMORY, SIZE(1) | SIZE(3)),
};
CONFORM_COUNT(facts);
