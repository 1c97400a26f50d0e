/* Every collective over lengths, places, roots and forms:
 * docs/semantics.md S36, S37, S38 and S41. */
#include "conform.h"

#include "collectives/calls.h"

#include <string.h>

enum { WAYS = 10 };

/* Lengths in bytes for which something may be different: nothing, one element, a cache line and
 * its neighbours, a page, the edges of chunks. Elements are f32. */
static size_t counts_of(const test_rank *self, size_t counts[16])
{
    size_t n = (size_t)self->size, filled = 0;
    const size_t all[] = {0, 1, n - 1, n, n + 1, 2 * n + 1, 15, 16, 17, 1024, 4097, 20001};
    size_t most = strncmp(self->engine, "sim", 3) == 0 ? 1100 : 20001;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] <= most && (TEST_SANITIZED == 0 || i % 2 == 0))
            counts[filled++] = all[i];
    return filled;
}

/* The ways go through all places, roots, forms and cuts, though not through all of their
 * products. */
static test_call way_of(const test_rank *self, call_kind kind, size_t count, int way)
{
    int roots[] = {0, self->size - 1, self->size / 2};
    return (test_call){
        .kind = kind,
        .dtype = COH_F32,
        .op = COH_SUM,
        .count = count,
        .root = roots[way % 3],
        .parts = (call_parts)(way % PARTS_COUNT),
        .place = (call_place)(way % PLACE_COUNT),
        .in_place = way / 2 % 2,
        .started = way % 4 == 1,
        .described = way % 3 == 2,
        .shifted = way / 3 % 2,
        .seed = self->seed + (uint64_t)way * 7 + count,
    };
}

static void sizes(test_rank *self)
{
    size_t counts[16], lengths = counts_of(self, counts);
    call_kind kind = call_kind_in(self->row->name);
    test_call largest = {.kind = kind, .dtype = COH_F32, .count = counts[lengths - 1]};
    coh_team *team = coh_team_world(self->world);
    call_rig rig;
    if (!CHECK(kind != CALL_KIND_COUNT)
        || !call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (size_t i = 0; i < lengths; i++)
        for (int way = 0; way < (counts[i] > 2000 ? WAYS / 2 : WAYS); way++) {
            test_call call = way_of(self, kind, counts[i], way + (int)i % 2 * (WAYS / 2));
            if (!call_perform(&rig, team, &call))
                return;
        }
    call_rig_close(&rig);
}

/* Four calls of the length and cut of `call`, of heap and of private memory; set_way sets
 * the rest. */
static void perform_long(test_rank *self, test_call call, void (*set_way)(test_call *call, int way))
{
    coh_team *team = coh_team_world(self->world);
    call_rig rig;
    call.dtype = COH_F32;
    call.op = COH_SUM;
    call.seed = self->seed;
    if (!call_rig_open(&rig, self->world, call_bytes(&call, self->size)))
        return;
    for (int way = 0; way < 4; way++) {
        call.place = way % 2 ? PLACE_PRIVATE : PLACE_HEAP;
        call.root = way % self->size;
        call.seed++;
        set_way(&call, way);
        if (!call_perform(&rig, team, &call))
            return;
    }
    call_rig_close(&rig);
}

static void set_form(test_call *call, int way)
{
    call->in_place = way / 2 == 1;
    call->started = way == 2;
    call->shifted = way == 3;
}

static void set_alignment(test_call *call, int way)
{
    call->shifted = way >= 2;
}

/* More than is ever kept for one call: a mebibyte and a bit. */
static void large(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    const call_traits *traits = &call_table[kind];
    bool whole = traits->reduces || traits->rooted;
    size_t count = ((1 << 18) + 1) / (whole ? 1 : (size_t)self->size);
    perform_long(self, (test_call){.kind = kind, .count = count, .parts = PARTS_RAGGED}, set_form);
}

/*
 * So much that it is stored past the caches, in lengths that are no whole lines: a last part of one
 * element, and blocks of a few elements beside long ones.
 */
static void past_caches(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    bool whole = call_table[kind].reduces || kind == CALL_BROADCAST;
    size_t count = whole ? (1 << 20) + 1 : (3 << 17) + 3;
    perform_long(self, (test_call){.kind = kind, .count = count, .parts = PARTS_SLIVERS},
                 set_alignment);
}

/*
 * Private memory of one call after another passes through the same two buffers: short ones, ones of
 * several parts, and ones so long that two members exchange the parts whole.
 */
static void staged_one_after_another(test_rank *self)
{
    static const call_kind kinds[] = {CALL_ALL_REDUCE, CALL_BROADCAST, CALL_ALL_REDUCE, CALL_REDUCE,
                                      CALL_ALL_REDUCE};
    static const size_t counts[] = {(13 << 18) + 1, 280001, 20000, (5 << 18) + 3};
    enum { KINDS = sizeof kinds / sizeof *kinds, COUNTS = sizeof counts / sizeof *counts };
    coh_team *team = coh_team_world(self->world);
    test_call call = {.dtype = COH_F32, .op = COH_SUM, .place = PLACE_PRIVATE, .count = counts[0]};
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&call, self->size)))
        return;
    for (int turn = 0; turn < KINDS * COUNTS / 2; turn++) {
        call.kind = kinds[turn % KINDS];
        call.count = counts[turn % COUNTS];
        call.in_place = call.kind != CALL_BROADCAST && turn % 3 == 0;
        call.root = turn % self->size;
        call.seed = self->seed + (uint64_t)turn;
        if (!call_perform(&rig, team, &call))
            return;
    }
    call_rig_close(&rig);
}

/* A barrier that was started is one: a rank that sees it done finds all others arrived. */
static void barriers_by_request(test_rank *self)
{
    _Atomic uint64_t *arrived = self->shared;
    coh_team *team = coh_team_world(self->world);
    for (uint64_t round = 1; round <= (uint64_t)test_scaled(self, 200); round++) {
        coh_request *request = NULL;
        atomic_store(&arrived[self->rank], round);
        if (!CHECK_OK(coh_barrier_start(team, &request))
            || !CHECK_OK(coh_request_wait(&request, NULL)) || !CHECK(request == NULL))
            return;
        for (int rank = 0; rank < self->size; rank++)
            CHECK(atomic_load(&arrived[rank]) >= round);
    }
}

/* As coh_barrier it completes what was issued before. */
static void barrier_start_completes(test_rank *self)
{
    uint64_t *words, right = (uint64_t)((self->rank + 1) % self->size);
    if (!CHECK_OK(coh_calloc(self->world, 2, sizeof *words, (void **)&words)))
        return;
    for (uint64_t round = 1; round <= (uint64_t)test_scaled(self, 100); round++) {
        coh_request *request;
        uint64_t *word = &words[round % 2];
        CHECK_OK(coh_put_nbi(self->world, word, &round, sizeof round, (int)right));
        if (!CHECK_OK(coh_barrier_start(coh_team_world(self->world), &request))
            || !CHECK_OK(coh_request_wait(&request, NULL)) || !CHECK_EQ(*word, round))
            return;
    }
    CHECK_OK(coh_free(self->world, words));
}

#define SIZES(constant, kind, reduces, rooted, in_place) \
    {.name = "sizes_of_" #kind,                          \
     .rows = "S36 S37 S38",                              \
     .body = sizes,                                      \
     .engines = ON_ALL | ON_CARD,                        \
     .sizes = ANY_SIZE,                                  \
     .limit_s = 60},
#define LARGE(constant, kind, reduces, rooted, in_place) \
    {.name = "large_" #kind,                             \
     .rows = "S36",                                      \
     .body = large,                                      \
     .engines = ON_MAPPED,                               \
     .sizes = SIZE(1) | SIZE(2) | SIZE(3) | SIZE(5),     \
     .limit_s = 60},
/* The thread sanitizer does not see such stores, and takes a minute and a half for the rest. */
#define PAST_CACHES(constant, kind, reduces, rooted, in_place) \
    {.name = "past_caches_" #kind,                             \
     .rows = "S36",                                            \
     .body = past_caches,                                      \
     .engines = ON_MAPPED,                                     \
     .sizes = TEST_TSAN ? 0 : SIZE(2) | SIZE(3),               \
     .limit_s = 60},

const test_case conform_coll_sizes[] = {
    CALL_KINDS(SIZES) CALL_KINDS(LARGE) CALL_KINDS(PAST_CACHES)
        CASE(barriers_by_request, "S15", ON_ALL, ANY_SIZE),
    {.name = "staged_one_after_another",
     .rows = "S36",
     .body = staged_one_after_another,
     .engines = ON_PROCESSES,
     .sizes = SIZE(2),
     .limit_s = 60},
    CASE(barrier_start_completes, "S5", ON_MEMORY, ANY_SIZE),
};
CONFORM_COUNT(coll_sizes);
