/* Ranks that make different collectives, or the same with different arguments: docs/faults.md F18,
 * docs/semantics.md S42. Each disagreement has a team of its own, so that the world shows that
 * others go on. */
#include "faults.h"

#include "collectives/calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 12, LINE = 256 };

static const unsigned char UNTOUCHED = 0x77;

/* One member's call in a disagreement; buffers with room for everything. */
struct corner {
    test_rank *self;
    coh_team *team;
    bool odd; /* this member differs */
    float source[LINE], target[LINE];
};

static bool enter(test_rank *self, struct corner *corner)
{
    *corner = (struct corner){.self = self, .odd = self->rank == self->size - 1};
    for (int i = 0; i < LINE; i++)
        corner->source[i] = (float)(self->rank + 1);
    memset(corner->target, UNTOUCHED, sizeof corner->target);
    return CHECK_OK(
        coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &corner->team));
}

static bool untouched(const void *memory, size_t bytes)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != UNTOUCHED)
            return false;
    return true;
}

/* At this call, or, for a member that had done its part, at its next on the team. */
static void expect_mismatch(struct corner *corner, coh_status status, const char *words,
                            const char *what)
{
    double began = test_now();
    if (status == COH_OK)
        status = coh_team_sync(corner->team);
    if (status != COH_MISMATCH || !test_holds(coh_last_error(), words))
        test_fail("%s: %s and \"%s\", which should hold %s", what, coh_status_name(status),
                  coh_last_error(), words);
    CHECK(test_now() - began < 10);
}

/* Whatever became of the team, all others are well. */
static bool leave(struct corner *corner)
{
    int64_t one = 1, sum = 0;
    (void)coh_team_destroy(corner->team); /* it may report the mismatch; it must come back */
    return CHECK_OK(
               coh_all_reduce(coh_team_world(corner->self->world), COH_I64, COH_SUM, &one, &sum, 1))
           && CHECK_EQ(sum, corner->self->size);
}

/* ---- other arguments ---- */

static coh_status make(struct corner *corner, const test_call *call)
{
    call_rig rig = {.source = (unsigned char *)corner->source,
                    .target = (unsigned char *)corner->target,
                    .stride = {1, 1}};
    for (int i = 0; i < CALL_MEMBERS; i++)
        rig.counts[0][i] = rig.counts[1][i] = call->count;
    coh_status status = call_make(&rig, corner->team, call);
    if (status == COH_OK && call->started)
        status = coh_request_wait(&rig.request, NULL);
    return status;
}

/* What was written came from members that made the same call: nothing that was reduced, and nothing
 * of the odd one's. */
static void check_written(const struct corner *corner, call_kind kind, int root)
{
    int n = corner->self->size;
    const float *target = corner->target;
    if (call_table[kind].reduces && kind != CALL_SCAN && kind != CALL_SCAN_EXCLUSIVE)
        CHECK(untouched(target, sizeof corner->target));
    if (kind == CALL_ALL_GATHER && !corner->odd)
        CHECK(untouched(target + (n - 1) * COUNT, COUNT * sizeof *target));
    if (kind == CALL_GATHER && corner->self->rank == root)
        CHECK(untouched(target + (n - 1) * COUNT, COUNT * sizeof *target));
    if ((kind == CALL_BROADCAST || kind == CALL_SCATTER) && corner->odd
        && corner->self->rank != root) /* which may have had its own */
        CHECK(untouched(target, sizeof corner->target));
}

typedef bool differ_function(test_call *call);

static bool other_count(test_call *call)
{
    call->count = COUNT - 1;
    return true;
}

static bool other_type(test_call *call)
{
    call->dtype = COH_I32;
    return true;
}

static bool other_operation(test_call *call)
{
    call->op = COH_MAX;
    return call_table[call->kind].reduces;
}

static bool other_root(test_call *call)
{
    call->root = 1;
    return call_table[call->kind].rooted;
}

static void differ(test_rank *self, differ_function *change, const char *words, const char *what)
{
    for (int i = 0; i < 2 * CALL_KIND_COUNT && !test_failed(); i++) {
        static struct corner corners[TEST_RANKS_MAX];
        struct corner *corner = &corners[self->rank];
        test_call usual = {.kind = (call_kind)(i % CALL_KIND_COUNT), .dtype = COH_F32};
        usual.count = COUNT;
        usual.seed = 2;
        usual.started = i >= CALL_KIND_COUNT;
        test_call other = usual;
        char title[64];
        snprintf(title, sizeof title, "%s of %s%s", what, call_table[usual.kind].name,
                 usual.started ? "_start" : "");
        if (!change(&other))
            continue;
        if (!enter(self, corner))
            return;
        coh_status status = make(corner, corner->odd ? &other : &usual);
        bool listed = usual.kind == CALL_REDUCE_SCATTER_V || usual.kind == CALL_ALL_GATHER_V
                      || usual.kind == CALL_GATHER_V || usual.kind == CALL_SCATTER_V;
        bool lists_differ = listed && change == other_count; /* too long for a sentence */
        bool pairs_differ = usual.kind == CALL_ALL_TO_ALL_V && change == other_count;
        const char *told = lists_differ ? "counts" : pairs_differ ? "all_to_all" : words;
        expect_mismatch(corner, status, told, title);
        check_written(corner, usual.kind, corner->odd ? other.root : usual.root);
        if (!leave(corner))
            test_fail("that was after %s", title);
    }
}

static void unequal_counts(test_rank *self)
{
    if (CHECK_OK(test_join(self))) {
        differ(self, other_count, "12|11", "another count");
        CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
    }
}

static void unequal_types(test_rank *self)
{
    if (CHECK_OK(test_join(self))) {
        differ(self, other_type, "f32|i32", "another type");
        CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
    }
}

static void unequal_operations(test_rank *self)
{
    if (CHECK_OK(test_join(self))) {
        differ(self, other_operation, "sum|max", "another operation");
        CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
    }
}

static void unequal_roots(test_rank *self)
{
    if (CHECK_OK(test_join(self))) {
        differ(self, other_root, "root|0|1", "another root");
        CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
    }
}

/* Each takes itself for the root and leaves at once: found out in the next call, in which all wait
 * for all, before anything is done there. */
static void all_are_roots(test_rank *self)
{
    struct corner corner;
    if (!CHECK_OK(test_join(self)) || !enter(self, &corner))
        return;
    coh_status status =
        coh_broadcast(corner.team, COH_F32, corner.source, corner.source, COUNT, self->rank);
    if (status == COH_OK)
        status = coh_all_reduce(corner.team, COH_F32, COH_SUM, corner.source, corner.target, COUNT);
    CHECK_REFUSED(status, COH_MISMATCH, "broadcast|root");
    CHECK(untouched(corner.target, sizeof corner.target));
    CHECK(!leave(&corner) || coh_finalize(self->world) == COH_OK);
}

/* Member 0 sends 3 to each, of which the last expects 2. */
static void unequal_expectations(test_rank *self)
{
    struct corner corner;
    size_t three[CALL_MEMBERS], fewer[CALL_MEMBERS];
    if (!CHECK_OK(test_join(self)) || !enter(self, &corner))
        return;
    for (int i = 0; i < CALL_MEMBERS; i++)
        three[i] = fewer[i] = 3;
    fewer[0] = 2;
    coh_parts sends = {three, NULL}, expects = {corner.odd ? fewer : three, NULL};
    coh_status status =
        coh_all_to_all_v(corner.team, COH_F32, corner.source, &sends, corner.target, &expects);
    /* The member that finds out has both counts; the others hear between whom it was. */
    expect_mismatch(&corner, status, corner.odd ? "2|3" : "all_to_all", "another expectation");
    if (corner.odd)
        CHECK(untouched(corner.target, 3 * sizeof *corner.target));
    leave(&corner);
    CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
}

/* ---- other calls ---- */

typedef coh_status turn_function(struct corner *corner);

static coh_status turn_barrier(struct corner *corner)
{
    return coh_team_barrier(corner->team);
}

static coh_status turn_sync(struct corner *corner)
{
    return coh_team_sync(corner->team);
}

static coh_status turn_all_reduce(struct corner *corner)
{
    return coh_all_reduce(corner->team, COH_F32, COH_SUM, corner->source, corner->target, COUNT);
}

static coh_status turn_large_all_reduce(struct corner *corner)
{
    static float areas[TEST_RANKS_MAX][2][50000];
    int rank = corner->self->rank;
    return coh_all_reduce(corner->team, COH_F32, COH_SUM, areas[rank][0], areas[rank][1], 50000);
}

static coh_status turn_broadcast(struct corner *corner)
{
    return coh_broadcast(corner->team, COH_F32, corner->source, corner->target, COUNT, 0);
}

static coh_status turn_all_gather(struct corner *corner)
{
    return coh_all_gather(corner->team, COH_F32, corner->source, corner->target, COUNT);
}

static coh_status turn_gather(struct corner *corner)
{
    return coh_gather(corner->team, COH_F32, corner->source, corner->target, COUNT, 0);
}

static coh_status turn_scan(struct corner *corner)
{
    return coh_scan(corner->team, COH_F32, COH_SUM, corner->source, corner->target, COUNT);
}

static coh_status turn_scan_exclusive(struct corner *corner)
{
    return coh_scan_exclusive(corner->team, COH_F32, COH_SUM, corner->source, corner->target,
                              COUNT);
}

static coh_status turn_all_to_all(struct corner *corner)
{
    return coh_all_to_all(corner->team, COH_F32, corner->source, corner->target, COUNT);
}

static coh_status turn_split(struct corner *corner)
{
    coh_team *child = NULL;
    return coh_team_split_strided(corner->team, 0, 1, 1, &child);
}

static coh_status turn_destroy(struct corner *corner)
{
    return coh_team_destroy(corner->team);
}

static const struct quarrel {
    turn_function *usual, *odd;
    const char *words;
} quarrels[] = {
    {turn_all_reduce, turn_barrier, "all_reduce|barrier"},
    {turn_barrier, turn_all_reduce, "all_reduce|barrier"},
    {turn_sync, turn_broadcast, "sync|broadcast"},
    {turn_broadcast, turn_all_gather, "broadcast|all_gather"},
    {turn_all_gather, turn_broadcast, "broadcast|all_gather"},
    {turn_gather, turn_all_gather, "gather"},
    {turn_scan, turn_scan_exclusive, "scan|scan_exclusive"},
    {turn_all_to_all, turn_all_gather, "all_to_all|all_gather"},
    {turn_large_all_reduce, turn_all_reduce, "50000|12"},
    {turn_large_all_reduce, turn_barrier, "all_reduce|barrier"},
    {turn_all_reduce, turn_split, "all_reduce|team_split"},
    {turn_broadcast, turn_destroy, "broadcast|team_destroy"},
};

enum { QUARRELS = sizeof quarrels / sizeof *quarrels };

static void other_calls(test_rank *self)
{
    static struct corner corners[TEST_RANKS_MAX];
    struct corner *corner = &corners[self->rank];
    if (!CHECK_OK(test_join(self)))
        return;
    for (int i = 0; i < QUARRELS && !test_failed(); i++) {
        if (!enter(self, corner))
            return;
        coh_status status = (corner->odd ? quarrels[i].odd : quarrels[i].usual)(corner);
        expect_mismatch(corner, status, quarrels[i].words, quarrels[i].words);
        if (!leave(corner))
            test_fail("that was after %s", quarrels[i].words);
    }
    CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
}

/* The odd one is a call ahead: it has left one out. */
static void one_left_out(test_rank *self)
{
    struct corner corner;
    if (!CHECK_OK(test_join(self)) || !enter(self, &corner))
        return;
    for (int i = 0; i < 5; i++)
        CHECK_OK(turn_all_reduce(&corner));
    coh_status status = corner.odd ? COH_OK : turn_all_reduce(&corner);
    if (status == COH_OK)
        status = turn_broadcast(&corner);
    expect_mismatch(&corner, status, "all_reduce|broadcast", "one left out");
    leave(&corner);
    CHECK(test_failed() || coh_finalize(self->world) == COH_OK);
}

/* On the team of all ranks, against an allocation. */
static void malloc_against_all_reduce(test_rank *self)
{
    float one = 1, sum;
    void *memory = NULL;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_team *world = coh_team_world(self->world);
    coh_status status = self->rank == 0 ? coh_malloc(self->world, 3000, &memory)
                                        : coh_all_reduce(world, COH_F32, COH_SUM, &one, &sum, 1);
    if (status == COH_OK)
        status = coh_barrier(self->world);
    CHECK_REFUSED(status, COH_MISMATCH, "malloc|all_reduce");
    CHECK(memory == NULL);
    (void)coh_finalize(self->world);
}

/* One calls on another team of the same ranks: nobody may hang, or take one for the other. */
static void other_teams_call(test_rank *self)
{
    struct corner corner;
    coh_team *other = NULL;
    if (!CHECK_OK(test_join(self)) || !enter(self, &corner)
        || !CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &other)))
        return;
    coh_team *mine = corner.team;
    if (corner.odd)
        corner.team = other;
    coh_status status = turn_all_reduce(&corner);
    CHECK(status == COH_STALLED || status == COH_MISMATCH || status == COH_PEER_LOST);
    CHECK(untouched(corner.target, sizeof corner.target));
    corner.team = mine;
    (void)coh_finalize(self->world);
}

/* ---- two threads of one rank ---- */

struct pair {
    test_rank *self;
    _Atomic uint64_t *busy, *fine; /* threads that were told so */
};

static void *enter_all_reduce(void *arg)
{
    struct pair *pair = arg;
    int64_t one = 1, sum = 0;
    test_this_is_rank(pair->self->rank);
    coh_status status =
        coh_all_reduce(coh_team_world(pair->self->world), COH_I64, COH_SUM, &one, &sum, 1);
    if (status == COH_BUSY) {
        CHECK_SAYS("all_reduce");
        CHECK_EQ(sum, 0);
        atomic_fetch_add(pair->busy, 1);
    } else if (CHECK_OK(status) && CHECK_EQ(sum, pair->self->size)) {
        atomic_fetch_add(pair->fine, 1);
    }
    return NULL;
}

/* One waits, the other is refused at once; the others hear nothing of it. */
static void two_threads_in_all_reduce(test_rank *self)
{
    _Atomic uint64_t *counts = self->shared;
    int64_t one = 1, sum = 0;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world))) /* binds a crew */
        return;
    if (self->rank == 0) {
        pthread_t threads[2];
        struct pair pair = {self, &counts[0], &counts[1]};
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, enter_all_reduce, &pair) == 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        CHECK_EQ(atomic_load(&counts[0]), 1);
        CHECK_EQ(atomic_load(&counts[1]), 1);
    } else {
        CHECK(test_await(&counts[0], 1, 20)); /* so the other one is inside */
        CHECK_OK(coh_all_reduce(coh_team_world(self->world), COH_I64, COH_SUM, &one, &sum, 1));
        CHECK_EQ(sum, self->size);
    }
    CHECK_OK(coh_finalize(self->world));
}

#define DISAGREE(function, engines)                                           \
    CASE(function, "F18 S42", engines, SIZE(2) | SIZE(3) | SIZE(5) | SIZE(7), \
         .mode = TEST_UNJOINED, .limit_s = 60)

const test_case fault_disagree[] = {
    DISAGREE(unequal_counts, ON_ALL),
    DISAGREE(unequal_types, ON_ALL),
    DISAGREE(unequal_operations, ON_ALL),
    DISAGREE(unequal_roots, ON_ALL),
    DISAGREE(all_are_roots, ON_ALL),
    DISAGREE(unequal_expectations, ON_ALL),
    DISAGREE(other_calls, ON_ALL),
    DISAGREE(one_left_out, ON_ALL),
    DISAGREE(malloc_against_all_reduce, ON_MEMORY),
    CASE(two_threads_in_all_reduce, "F17", ON_ALL, SIZE(2) | SIZE(3), .mode = TEST_UNJOINED),
    CASE(other_teams_call, "F18", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_STALL=0.5 COHORT_WARN=0.2"),
};
FAULT_COUNT(disagree);
