/* Reductions by a function of the program: any element, the order of the members, every kind. */
#include "conform.h"

#include "worlds.h"

#include "coll/call/algorithm.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

/* x -> a * x + b over integers modulo 2^64: composing two of them is associative, and not
 * commutative, so that any other order than that of the members shows. 24 bytes, which no cache
 * line is a multiple of; `check` is spoilt where parts of elements are mixed. */
typedef struct affine {
    uint64_t a, b, check;
} affine;

static affine make_affine(uint64_t a, uint64_t b)
{
    return (affine){a, b, a ^ b};
}

/* First `one`, then `two`. */
static affine after(affine one, affine two)
{
    return make_affine(two.a * one.a, two.a * one.b + two.b);
}

struct tally {
    uint64_t calls, wrong;
};

static void compose(void *into, const void *from, size_t count, void *user)
{
    struct tally *tally = user;
    affine *left = into;
    const affine *right = from;
    tally->calls++;
    tally->wrong += (uintptr_t)into % alignof(max_align_t) != 0
                    || (uintptr_t)from % alignof(max_align_t) != 0 || count == 0;
    for (size_t i = 0; i < count; i++) {
        tally->wrong +=
            left[i].check != (left[i].a ^ left[i].b) || right[i].check != (right[i].a ^ right[i].b);
        left[i] = after(left[i], right[i]);
    }
}

static affine draw(int member, size_t i)
{
    uint64_t state = (uint64_t)member * 1000003 + i * 7919 + 1, a = test_random(&state);
    return make_affine(a | 1, test_random(&state));
}

/* Of the first `members`. */
static affine expected(int members, size_t i)
{
    affine all = draw(0, i);
    for (int member = 1; member < members; member++)
        all = after(all, draw(member, i));
    return all;
}

static bool same(const affine *got, size_t count, size_t first, int members, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        affine want = expected(members, first + i);
        if (memcmp(&got[i], &want, sizeof want) == 0)
            continue;
        test_fail("%s: element %zu of %zu is not as the members' order makes it", what, i, count);
        return false;
    }
    return true;
}

enum { MOST = 3001 };

typedef struct area {
    affine source[MOST * 7], target[MOST], guard;
} area;

static bool finish(coh_status status, coh_request **request)
{
    return CHECK_OK(status) && (!*request || CHECK_OK(coh_request_wait(request, NULL)));
}

/* All four kinds with `count` elements; odd counts in place or started. */
static bool every_kind(test_rank *self, area *mine, size_t count)
{
    coh_team *team = coh_team_world(self->world);
    struct tally tally = {0, 0};
    coh_reduction how = COH_REDUCTION_INIT;
    how.function = compose;
    how.element = sizeof(affine);
    how.user = &tally;
    int n = self->size, root = n / 2;
    bool started = count % 3 == 1, in_place = count % 2 == 1;
    const affine *source = in_place ? mine->target : mine->source;
    coh_request *request = NULL, **place = started ? &request : NULL;

    memset(&mine->guard, 0x5a, sizeof mine->guard);
    for (size_t i = 0; i < count; i++)
        mine->source[i] = mine->target[i] = draw(self->rank, i);
    coh_status status =
        started ? coh_all_reduce_with_start(team, &how, source, mine->target, count, place)
                : coh_all_reduce_with(team, &how, source, mine->target, count);
    if (!finish(status, &request) || !same(mine->target, count, 0, n, "all_reduce"))
        return false;

    memcpy(mine->target, mine->source, count * sizeof(affine));
    status = started ? coh_scan_with_start(team, &how, source, mine->target, count, place)
                     : coh_scan_with(team, &how, source, mine->target, count);
    if (!finish(status, &request) || !same(mine->target, count, 0, self->rank + 1, "scan"))
        return false;

    memcpy(mine->target, mine->source, count * sizeof(affine));
    status = started ? coh_reduce_with_start(team, &how, source, mine->target, count, root, place)
                     : coh_reduce_with(team, &how, source, mine->target, count, root);
    if (!finish(status, &request))
        return false;
    if (self->rank == root
            ? !same(mine->target, count, 0, n, "reduce")
            : !CHECK(memcmp(mine->target, mine->source, count * sizeof(affine)) == 0))
        return false;

    for (size_t i = 0; i < count * (size_t)n; i++)
        mine->source[i] = draw(self->rank, i);
    affine *block = mine->source + (size_t)self->rank * count;
    affine *target = in_place ? block : mine->target;
    status = started ? coh_reduce_scatter_with_start(team, &how, mine->source, target, count, place)
                     : coh_reduce_scatter_with(team, &how, mine->source, target, count);
    return finish(status, &request)
           && same(target, count, (size_t)self->rank * count, n, "reduce_scatter")
           && CHECK_EQ(tally.wrong, 0) && CHECK(n == 1 || count == 0 || tally.calls > 0);
}

static void functions_in_order(test_rank *self)
{
    static const size_t counts[] = {0, 1, 2, 3, 41, 44, 700, MOST};
    static area private_areas[TEST_RANKS_MAX];
    bool slow = strncmp(self->engine, "sim", 3) == 0;
    area *mine = &private_areas[self->rank], *shared = NULL;
    if (test_has_memory(self->engine) && !CHECK_OK(COH_MALLOC(self->world, 1, &shared)))
        return;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !(slow && counts[i] > 1000); i++)
        if (!every_kind(self, mine, counts[i]) || (shared && !every_kind(self, shared, counts[i])))
            return;
    if (shared)
        CHECK_OK(coh_free(self->world, shared));
}

/* ---- elements of any size ---- */

static void add_bytes(void *into, const void *from, size_t count, void *user)
{
    const size_t *element = user;
    unsigned char *sum = into;
    const unsigned char *more = from;
    for (size_t i = 0; i < count * *element; i++)
        sum[i] = (unsigned char)(sum[i] + more[i]);
}

static void elements_of_any_size(test_rank *self)
{
    static const size_t sizes[] = {1, 3, 65, 100, COH_OWN_ELEMENT_MAX};
    static unsigned char sources[TEST_RANKS_MAX][COH_OWN_ELEMENT_MAX * 300];
    static unsigned char targets[TEST_RANKS_MAX][COH_OWN_ELEMENT_MAX * 300];
    coh_team *team = coh_team_world(self->world);
    unsigned char *source = sources[self->rank], *target = targets[self->rank];
    coh_reduction how = COH_REDUCTION_INIT;
    how.function = add_bytes;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t element = sizes[s], count = 40 * (size_t)self->size, bytes = count * element;
        unsigned char times = (unsigned char)(self->size * (self->size + 1) / 2);
        how.element = element;
        how.user = &element;
        for (size_t i = 0; i < bytes; i++)
            source[i] = (unsigned char)(i * (size_t)(self->rank + 1));
        if (!CHECK_OK(coh_all_reduce_with(team, &how, source, target, count)))
            return;
        for (size_t i = 0; i < bytes; i++)
            if (!CHECK_EQ(target[i], (unsigned char)(i * times)))
                return;
        if (!CHECK_OK(coh_reduce_scatter_with(team, &how, source, target, 40)))
            return;
        for (size_t i = 0; i < 40 * element; i++)
            if (!CHECK_EQ(target[i],
                          (unsigned char)((i + (size_t)self->rank * 40 * element) * times)))
                return;
    }
}

/* ---- what cannot be ---- */

static void function_arguments(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    size_t one = 1;
    float source[8] = {1}, target[8] = {7};
    coh_reduction how = COH_REDUCTION_INIT;
    CHECK_REFUSED(coh_all_reduce_with(team, NULL, source, target, 1), COH_INVALID_ARGUMENT,
                  "coh_all_reduce_with|NULL");
    how.size--;
    CHECK_REFUSED(coh_scan_with(team, &how, source, target, 1), COH_INVALID_ARGUMENT, "size");
    how.size++;
    how.function = add_bytes;
    how.user = &one;
    CHECK_REFUSED(coh_all_reduce_with(team, &how, source, target, 1), COH_INVALID_ARGUMENT,
                  "0 bytes");
    how.element = COH_OWN_ELEMENT_MAX + 1;
    CHECK_REFUSED(coh_reduce_with(team, &how, source, target, 1, 0), COH_INVALID_ARGUMENT, "513");
    how.element = one;
    how.scale = 2;
    CHECK_REFUSED(coh_reduce_scatter_with(team, &how, source, target, 1), COH_INVALID_ARGUMENT,
                  "scale");
    CHECK(target[0] > 6);
    how.scale = 1;
    CHECK_OK(coh_all_reduce_with(team, &how, source, target, sizeof source));
}

/* One member's element is of another size, or it has no function. */
static void functions_that_differ(test_rank *self)
{
    coh_team *copy;
    size_t one = 1;
    float source[8] = {1}, target[8];
    coh_reduction how = COH_REDUCTION_INIT;
    bool odd = self->rank == self->size - 1;
    for (int way = 0; way < 2; way++) {
        coh_team *team = coh_team_world(self->world);
        CHECK_OK(coh_team_split_strided(team, 0, 1, self->size, &copy));
        how.function = odd && way ? NULL : add_bytes;
        how.element = odd ? 2 : 1;
        how.user = &one;
        CHECK_REFUSED(coh_all_reduce_with(copy, &how, source, target, 4), COH_MISMATCH,
                      way ? "function|sum" : "1 bytes|2 bytes");
    }
}

/* ---- a row that combines in another order ---- */

static void refused_by_ring(test_rank *self)
{
    size_t one = 1;
    float source[8] = {1}, target[8];
    coh_reduction how = COH_REDUCTION_INIT;
    how.function = add_bytes;
    how.element = 1;
    how.user = &one;
    CHECK_REFUSED(coh_all_reduce_with(coh_team_world(self->world), &how, source, target, 4),
                  COH_UNSUPPORTED, "ring|order");
}

static void forced_out_of_order(test_rank *self)
{
    worlds_run(self, "COHORT_ALL_REDUCE=ring", refused_by_ring);
}

static void in_every_way(test_rank *self)
{
    static area areas[TEST_RANKS_MAX];
    every_kind(self, &areas[self->rank], 41);
}

/* Every row that keeps the order, by name. */
static void forced_in_order(test_rank *self)
{
    static const char *const kinds[] = {[COH_COLLECTIVE_ALL_REDUCE] = "ALL_REDUCE",
                                        [COH_COLLECTIVE_REDUCE] = "REDUCE",
                                        [COH_COLLECTIVE_REDUCE_SCATTER] = "REDUCE_SCATTER",
                                        [COH_COLLECTIVE_SCAN] = "SCAN"};
    const cohi_algorithm *row;
    bool mapped = strncmp(self->engine, "sim", 3) != 0 && (test_hosts < 2 || self->size == 1);
    for (unsigned i = 0; (row = cohi_algorithm_at(i)) && !test_failed(); i++) {
        char knobs[96];
        bool reduces = row->kind < sizeof kinds / sizeof *kinds && kinds[row->kind];
        bool levels = test_hosts > 1 && test_hosts < self->size && test_has_memory(self->engine);
        bool by_place = strcmp(row->name, "two-shot") == 0 || strcmp(row->name, "direct") == 0;
        if (!reduces || !(row->traits & COHI_RANK_ORDER) || (!mapped && row->traits & COHI_MAPPED)
            || (!levels && row->traits & COHI_BY_LEVELS)
            || (by_place && test_has_processes(self->engine))) /* private memory has no place */
            continue;
        snprintf(knobs, sizeof knobs, "COHORT_%s=%s", kinds[row->kind], row->name);
        worlds_run(self, knobs, in_every_way);
        if (test_failed())
            test_fail("that was with %s", knobs);
    }
}

const test_case conform_coll_functions[] = {
    CASE(functions_in_order, "S39", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(elements_of_any_size, "S37", ON_ALL, ANY_SIZE),
    CASE(function_arguments, "F17", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(functions_that_differ, "S42", ON_ALL, SIZE(2) | SIZE(3)),
    IN_WORLDS(forced_out_of_order, "S39", SIZE(3)),
    IN_WORLDS(forced_in_order, "S39", SIZE(3), .limit_s = 60),
};
CONFORM_COUNT(coll_functions);
