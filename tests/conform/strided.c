/* Blocks at regular distances: docs/semantics.md S23, S27 and S28. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

enum { AREA = 6000, EDGE = 64 };

/* One transfer: blocks, their distances, how far the first is off the area's start. */
struct shape {
    size_t block, count, target_stride, source_stride, target_at, source_at;
};

static size_t span(size_t block, size_t count, size_t stride)
{
    return count ? (count - 1) * stride + block : 0;
}

static void copy_by_hand(unsigned char *target, const unsigned char *source,
                         const struct shape *shape)
{
    for (size_t i = 0; i < shape->count; i++)
        memcpy(target + shape->target_at + i * shape->target_stride,
               source + shape->source_at + i * shape->source_stride, shape->block);
}

static bool fits(const struct shape *shape)
{
    return shape->target_at + span(shape->block, shape->count, shape->target_stride) <= AREA
           && shape->source_at + span(shape->block, shape->count, shape->source_stride) <= AREA;
}

/* Fixed shapes first, then whatever the seed gives. */
static struct shape choose(uint64_t *random, int index)
{
    static const struct shape fixed[] = {
        {8, 1, 0, 0, 0, 0},      {8, 1, 3, 5, 0, 0},          {1, 50, 1, 1, 0, 0},
        {8, 100, 8, 16, 0, 0},   {8, 100, 16, 8, 8, 8},       {4, 77, 12, 20, 4, 8},
        {16, 30, 48, 16, 16, 1}, {100, 20, 100, 200, 3, 7},   {17, 40, 19, 23, 5, 11},
        {0, 10, 7, 9, 0, 0},     {1000, 0, 1000, 1000, 0, 0}, {2000, 2, 2500, 2001, 0, 0},
        {2, 500, 2, 9, 2, 1},    {3, 1, 3, 3, 5997, 5997},    {8, 125, 40, 8, 0, 0},
    };
    enum { FIXED = sizeof fixed / sizeof *fixed };
    if (index < FIXED)
        return fixed[index];
    for (;;) {
        struct shape shape = {
            .block = 1 + test_random(random) % 40,
            .count = test_random(random) % 60,
            .target_at = test_random(random) % 50,
            .source_at = test_random(random) % 50,
        };
        shape.target_stride = shape.block + test_random(random) % 40;
        shape.source_stride = shape.block + test_random(random) % 40;
        if (fits(&shape))
            return shape;
    }
}

/* The area in symmetric memory has an edge on both sides; nothing outside a block may change. */
struct area {
    unsigned char before[EDGE];
    unsigned char bytes[AREA];
    unsigned char after[EDGE];
};

static void paint(struct area *area, unsigned char color)
{
    memset(area, color, sizeof *area);
}

static bool same(const struct area *area, const struct area *wanted, const struct shape *shape)
{
    if (memcmp(area, wanted, sizeof *area) == 0)
        return true;
    test_fail("bytes differ: %zu blocks of %zu, strides %zu and %zu, from %zu to %zu", shape->count,
              shape->block, shape->target_stride, shape->source_stride, shape->source_at,
              shape->target_at);
    return false;
}

static bool put_once(test_rank *self, struct area *area, struct area *work,
                     const unsigned char *source, const struct shape *shape)
{
    coh_world *world = self->world;
    int right = (self->rank + 1) % self->size;
    paint(area, 0x11);
    paint(work, 0x11);
    copy_by_hand(work->bytes, source, shape);
    return CHECK_OK(coh_barrier(world))
           && CHECK_OK(coh_put_strided(world, area->bytes + shape->target_at, shape->target_stride,
                                       source + shape->source_at, shape->source_stride,
                                       shape->block, shape->count, right))
           && CHECK_OK(coh_barrier(world)) && same(area, work, shape);
}

static bool get_once(test_rank *self, struct area *area, struct area *work, struct area *local,
                     const struct shape *shape)
{
    coh_world *world = self->world;
    int left = (self->rank + self->size - 1) % self->size;
    paint(work, 0x22);
    paint(local, 0x22);
    test_fill(area->bytes, AREA, 5);
    copy_by_hand(work->bytes, area->bytes, shape); /* all ranks have the same bytes */
    return CHECK_OK(coh_barrier(world))
           && CHECK_OK(coh_get_strided(world, local->bytes + shape->target_at, shape->target_stride,
                                       area->bytes + shape->source_at, shape->source_stride,
                                       shape->block, shape->count, left))
           && same(local, work, shape) && CHECK_OK(coh_barrier(world));
}

static void blocks_go_where_they_should(test_rank *self)
{
    struct area *area, *work = malloc(sizeof *work), *local = malloc(sizeof *local);
    unsigned char *source = malloc(AREA);
    uint64_t random = self->seed + 3; /* the same on all ranks */
    int shapes = 15 + test_scaled(self, 200);
    test_fill(source, AREA, 8); /* the same on all ranks, so that the oracle can be */
    if (!CHECK_OK(coh_malloc(self->world, sizeof *area, (void **)&area)))
        return;
    for (int i = 0; i < shapes; i++) {
        struct shape shape = choose(&random, i);
        if (!put_once(self, area, work, source, &shape)
            || !get_once(self, area, work, local, &shape))
            return;
    }
    CHECK_OK(coh_free(self->world, area));
    free(source);
    free(local);
    free(work);
}

/* The source of a put may be reused on return. */
static void strided_put_lets_go(test_rank *self)
{
    unsigned char source[900], *target;
    int right = (self->rank + 1) % self->size;
    if (!CHECK_OK(coh_calloc(self->world, 10, 900, (void **)&target)))
        return;
    for (size_t i = 0; i < 10; i++) {
        test_fill(source, sizeof source, i);
        CHECK_OK(coh_put_strided(self->world, target + i * 900, 9, source, 9, 9, 100, right));
        memset(source, 0xee, sizeof source);
    }
    CHECK_OK(coh_barrier(self->world));
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(test_differs(target + i * 900, 900, i), 900);
    CHECK_OK(coh_free(self->world, target));
}

/* ---- refused ---- */

static void bad_strides_refused(test_rank *self)
{
    coh_world *world = self->world;
    unsigned char *target, mine[64] = {0};
    if (!CHECK_OK(coh_calloc(world, 1, 64, (void **)&target)))
        return;
    CHECK_REFUSED(coh_put_strided(world, target, 7, mine, 8, 8, 2, 0), COH_INVALID_ARGUMENT,
                  "coh_put_strided|7|8");
    CHECK_REFUSED(coh_put_strided(world, target, 8, mine, 3, 8, 2, 0), COH_INVALID_ARGUMENT, "3|8");
    CHECK_REFUSED(coh_get_strided(world, mine, 7, target, 8, 8, 2, 0), COH_INVALID_ARGUMENT,
                  "coh_get_strided|7|8");
    CHECK_STATUS(coh_get_strided(world, mine, 8, target, 0, 8, 2, 0), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_put_strided(world, target, 8, mine, 8, 8, 2, self->size), COH_UNKNOWN_RANK);
    CHECK_STATUS(coh_put_strided(world, mine, 8, mine + 32, 8, 8, 2, 0), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_get_strided(world, mine, 8, mine + 32, 8, 8, 2, 0), COH_NOT_SYMMETRIC);
    CHECK_OK(coh_barrier(world));
    test_is_zero(self, target, 64);
    CHECK_OK(coh_free(world, target));
}

/* (count - 1) * stride + block leaves the heap, or wraps, by each factor. */
static void spans_are_checked(test_rank *self)
{
    static const struct {
        size_t stride, block, count;
    } rows[] = {
        {SIZE_MAX, 1, 2},
        {SIZE_MAX / 2 + 1, 8, 3}, /* 2 * stride is 0 */
        {SIZE_MAX / 4 + 1, 8, 5},
        {8, 8, SIZE_MAX},
        {8, 8, SIZE_MAX / 8 + 2},
        {SIZE_MAX, SIZE_MAX, 1},
        {SIZE_MAX - 7, 8, 2}, /* the last block ends at 0 */
        {(size_t)1 << 33, 1, (size_t)1 << 31},
        {(size_t)1 << 46, 8, 2},
    };
    coh_world *world = self->world;
    unsigned char *target, mine[64] = {0};
    if (!CHECK_OK(coh_calloc(world, 1, 64, (void **)&target)))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t stride = rows[i].stride, block = rows[i].block, count = rows[i].count;
        coh_status put = coh_put_strided(world, target, stride, mine, stride, block, count, 0);
        coh_status get = coh_get_strided(world, mine, stride, target, stride, block, count, 0);
        CHECK(put == COH_OUT_OF_BOUNDS || put == COH_INVALID_ARGUMENT);
        if (!CHECK(get == COH_OUT_OF_BOUNDS || get == COH_INVALID_ARGUMENT))
            test_fail("that was row %zu", i);
    }
    CHECK_OK(coh_barrier(world));
    test_is_zero(self, target, 64);
    CHECK_OK(coh_free(world, target));
}

/* With COHORT_CHECK=1 the allocation bounds the span; what leaves it is refused before any block
 * has moved, whether the last block lands in another allocation or in none. */
static void checked_spans_stay_in_the_allocation(test_rank *self)
{
    coh_world *world = self->world;
    unsigned char *target, *behind, mine[4096];
    if (!CHECK_OK(coh_calloc(world, 1, 1024, (void **)&target))
        || !CHECK_OK(coh_calloc(world, 1, 1024, (void **)&behind)))
        return;
    memset(mine, 9, sizeof mine);
    CHECK_REFUSED(coh_put_strided(world, target, 128, mine, 8, 8, 9, 0), COH_OUT_OF_BOUNDS, "1024");
    CHECK_STATUS(coh_get_strided(world, mine, 8, target + 128, 128, 8, 8, 0), COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_put_strided(world, behind, 128, mine, 8, 8, 9, 0), COH_OUT_OF_BOUNDS);
    CHECK_OK(coh_barrier(world));
    if (!test_is_zero(self, target, 1024) || !test_is_zero(self, behind, 1024))
        return;
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_put_strided(world, target, 128, mine, 8, 8, 8, 0));
    CHECK_OK(coh_get_strided(world, mine, 8, behind + 128, 128, 8, 7, 0));
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_free(world, behind));
    CHECK_OK(coh_free(world, target));
}

const test_case conform_strided[] = {
    CASE(blocks_go_where_they_should, "S27 S28", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(strided_put_lets_go, "S4", ON_MEMORY, ANY_SIZE),
    CASE(bad_strides_refused, "S23", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(spans_are_checked, "S23", ON_MEMORY | ON_CARD, SIZE(2)),
    CASE(checked_spans_stay_in_the_allocation, "S23", ON_MEMORY | ON_CARD, SIZE(2),
         .environment = "COHORT_CHECK=1"),
};
CONFORM_COUNT(strided);
