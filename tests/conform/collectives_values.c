/* Values at the edge of their type: docs/semantics.md S40. */
#include "conform.h"

#include "collectives/oracle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const coh_dtype floats[] = {COH_F16, COH_BF16, COH_F32, COH_F64, COH_F8E4M3, COH_F8E5M2};

enum { FLOATS = sizeof floats / sizeof *floats, COUNT = 211, WIDEST = 8 };

/* The element that a member brings. Whatever the order, the same comes of it (but for the bits of a
 * NaN). */
typedef void draw_function(coh_dtype dtype, int member, size_t at, void *element);

static uint64_t dice_of(int member, size_t at)
{
    uint64_t state = (uint64_t)member * 1000003 + at;
    return test_random(&state);
}

/* Seldom NaN and infinite, so that most results are neither. */
static void draw_special(coh_dtype dtype, int member, size_t at, void *element)
{
    static const double values[] = {1, -1, 0, 1, -1, 2, 1, -1, 0, 1, -1, 2, 1, 1, -1, 1};
    uint64_t dice = dice_of(member, at);
    double value = values[dice % 16];
    if (dice >> 8 & 1 && at % 3 == 0)
        value = dice >> 9 & 1 ? INFINITY : -INFINITY;
    if ((dice >> 16) % 11 == 0 && at % 5 == 0)
        value = NAN;
    oracle_encode(dtype, value, element);
}

/* Zeros of both signs, the smallest and the largest there are. */
static void draw_ordered(coh_dtype dtype, int member, size_t at, void *element)
{
    static const double values[] = {0, -0.0, 1e-45, -1e-45, 6e-8, -6e-8, 1, -1, 4e38, -4e38};
    uint64_t dice = dice_of(member, at);
    double value = values[dice % (at % 2 ? 2 : 10)];
    if ((dice >> 16) % 9 == 0 && at % 7 == 0)
        value = NAN;
    oracle_encode(dtype, value, element);
}

/* The smallest number of the type, a few times. */
static void draw_subnormal(coh_dtype dtype, int member, size_t at, void *element)
{
    uint64_t bits = 1 + dice_of(member, at) % 3, sign = dice_of(member, at) >> 20 & 1;
    bits |= sign << (8 * coh_dtype_size(dtype) - 1);
    memcpy(element, &bits, coh_dtype_size(dtype));
}

static bool same(coh_dtype dtype, const void *left, const void *right)
{
    return memcmp(left, right, coh_dtype_size(dtype)) == 0
           || (oracle_is_nan(dtype, left) && oracle_is_nan(dtype, right));
}

/* What members `0` to `members - 1` bring to element `at`, reduced, is what was found. */
static bool check_element(coh_dtype dtype, coh_reduce_op op, draw_function *draw, int members,
                          size_t at, const unsigned char *found)
{
    unsigned char brought[TEST_RANKS_MAX * WIDEST], expected[WIDEST] = {0};
    size_t bytes = coh_dtype_size(dtype);
    for (int member = 0; member < members; member++)
        draw(dtype, member, at, brought + (size_t)member * bytes);
    oracle_reduce(dtype, op, brought, members, expected);
    if (same(dtype, found, expected))
        return true;
    test_fail("%s of %s, element %zu: %g, expected %g, of %g, %g, ...", coh_reduce_op_name(op),
              coh_dtype_name(dtype), at, oracle_decode(dtype, found),
              oracle_decode(dtype, expected), oracle_decode(dtype, brought),
              members > 1 ? oracle_decode(dtype, brought + bytes) : 0);
    return false;
}

static bool check_all(coh_dtype dtype, coh_reduce_op op, draw_function *draw, int members,
                      size_t first, const unsigned char *found)
{
    bool good = true;
    for (size_t i = 0; good && i < COUNT; i++)
        good =
            check_element(dtype, op, draw, members, first + i, found + i * coh_dtype_size(dtype));
    return good;
}

static void reduce_values(test_rank *self, coh_dtype dtype, coh_reduce_op op, draw_function *draw)
{
    coh_team *team = coh_team_world(self->world);
    size_t bytes = coh_dtype_size(dtype), blocks = (size_t)self->size;
    unsigned char *source = malloc(blocks * COUNT * WIDEST), target[COUNT * WIDEST];
    for (size_t i = 0; i < blocks * COUNT; i++)
        draw(dtype, self->rank, i, source + i * bytes);
    if (CHECK_OK(coh_all_reduce(team, dtype, op, source, target, COUNT)))
        check_all(dtype, op, draw, self->size, 0, target);
    if (CHECK_OK(coh_reduce_scatter(team, dtype, op, source, target, COUNT)))
        check_all(dtype, op, draw, self->size, (size_t)self->rank * COUNT, target);
    if (op != COH_MEAN && CHECK_OK(coh_scan(team, dtype, op, source, target, COUNT)))
        check_all(dtype, op, draw, self->rank + 1, 0, target);
    free(source);
}

static void nan_and_infinity(test_rank *self)
{
    for (int i = 0; i < FLOATS && !test_failed(); i++) {
        reduce_values(self, floats[i], COH_SUM, draw_special);
        reduce_values(self, floats[i], COH_MEAN, draw_special);
        reduce_values(self, floats[i], COH_PRODUCT, draw_special);
    }
}

/* NaN wins, and -0 is less than +0. */
static void least_and_greatest(test_rank *self)
{
    for (int i = 0; i < FLOATS && !test_failed(); i++) {
        reduce_values(self, floats[i], COH_MIN, draw_ordered);
        reduce_values(self, floats[i], COH_MAX, draw_ordered);
    }
}

static void subnormals(test_rank *self)
{
    for (int i = 0; i < FLOATS && !test_failed(); i++) {
        reduce_values(self, floats[i], COH_SUM, draw_subnormal);
        reduce_values(self, floats[i], COH_MIN, draw_subnormal);
    }
}

/* ---- one rounding ---- */

/* `large` has a neighbour two away: one more is lost in the type, two ones are not. */
static void sum_of_three(test_rank *self, coh_dtype dtype, double large, int holder)
{
    unsigned char source[WIDEST] = {0}, target[WIDEST] = {0}, expected[WIDEST] = {0};
    coh_team *team = coh_team_world(self->world);
    oracle_encode(dtype, self->rank == holder ? large : self->rank < 3 ? 1 : 0, source);
    oracle_encode(dtype, large + 2, expected);
    if (!CHECK_OK(coh_all_reduce(team, dtype, COH_SUM, source, target, 1)))
        return;
    if (!same(dtype, target, expected))
        test_fail("%s: %g + 1 + 1 is %g: rounded more than once", coh_dtype_name(dtype), large,
                  oracle_decode(dtype, target));
}

static void rounded_once(test_rank *self)
{
    for (int holder = 0; holder < 3; holder++) {
        sum_of_three(self, COH_F16, 2048, holder);
        sum_of_three(self, COH_BF16, 256, holder);
        sum_of_three(self, COH_F8E4M3, 16, holder);
        sum_of_three(self, COH_F8E5M2, 8, holder);
    }
}

/* Member 0 brings `one`, member 1 `two`, others nothing. */
static void sum_of_two(test_rank *self, coh_dtype dtype, double one, double two, double expected)
{
    unsigned char source[WIDEST] = {0}, target[WIDEST] = {0};
    coh_team *team = coh_team_world(self->world);
    oracle_encode(dtype, self->rank == 0 ? one : self->rank == 1 ? two : 0, source);
    if (CHECK_OK(coh_all_reduce(team, dtype, COH_SUM, source, target, 1))
        && oracle_decode(dtype, target) != expected)
        test_fail("%s: %g + %g is %g, expected %g", coh_dtype_name(dtype), one, two,
                  oracle_decode(dtype, target), expected);
}

static void overflow_is_infinite(test_rank *self)
{
    double most = ldexp(255, 120); /* of bf16 */
    sum_of_two(self, COH_F16, 65504, 65504, INFINITY);
    sum_of_two(self, COH_F16, -65504, -65504, -INFINITY);
    sum_of_two(self, COH_F16, 65504, 16, INFINITY); /* half way: to even, which is beyond */
    sum_of_two(self, COH_F16, 65504, 15, 65504);
    sum_of_two(self, COH_BF16, most, most, INFINITY);
    sum_of_two(self, COH_BF16, most, ldexp(1, 119), INFINITY);
    sum_of_two(self, COH_BF16, most, ldexp(255, 111), most);
    sum_of_two(self, COH_F8E5M2, 57344, 57344, INFINITY);
    sum_of_two(self, COH_F32, (double)FLT_MAX, (double)FLT_MAX, INFINITY);
    sum_of_two(self, COH_F64, DBL_MAX, DBL_MAX, INFINITY);
}

/* Every f16 and bf16 once on member 0, and once, in another order, on member 1. */
static void every_value(test_rank *self)
{
    enum { VALUES = 65536 };
    static const coh_dtype halves[] = {COH_F16, COH_BF16};
    coh_team *team = coh_team_world(self->world);
    uint16_t *source = calloc(VALUES, 2), *target = calloc(VALUES, 2), pair[2], expected;
    for (unsigned i = 0; i < VALUES; i++)
        source[i] = (uint16_t)(self->rank == 0 ? i : self->rank == 1 ? i * 40503 + 77 : 0);
    for (int type = 0; type < 2; type++) {
        if (!CHECK_OK(coh_all_reduce(team, halves[type], COH_SUM, source, target, VALUES)))
            break;
        for (unsigned i = 0; i < VALUES && !test_failed(); i++) {
            pair[0] = (uint16_t)i;
            pair[1] = (uint16_t)(i * 40503 + 77);
            oracle_reduce(halves[type], COH_SUM, pair, 2, &expected);
            if (self->size > 2 && oracle_decode(halves[type], &expected) == 0)
                expected &= 0x7fff; /* others' +0 */
            if (!same(halves[type], &target[i], &expected))
                test_fail("%s: %#x + %#x is %#x, expected %#x", coh_dtype_name(halves[type]),
                          pair[0], pair[1], target[i], expected);
        }
    }
    free(source);
    free(target);
}

/* ---- integers ---- */

static void integers_wrap(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int n = self->size;
    int8_t small = 100, sum8 = 0, mean8 = 0;
    uint32_t word = UINT32_MAX, sum32 = 0;
    int64_t large = INT64_MIN + 1, product = 0;
    CHECK_OK(coh_all_reduce(team, COH_I8, COH_SUM, &small, &sum8, 1));
    CHECK_EQ((uint8_t)sum8, (uint8_t)(100 * n));
    CHECK_OK(coh_all_reduce(team, COH_I8, COH_MEAN, &small, &mean8, 1));
    CHECK_EQ((uint8_t)mean8, (uint8_t)((int8_t)(uint8_t)(100 * n) / n));
    CHECK_OK(coh_all_reduce(team, COH_U32, COH_SUM, &word, &sum32, 1));
    CHECK_EQ(sum32, (uint32_t)-n);
    CHECK_OK(coh_all_reduce(team, COH_I64, COH_PRODUCT, &large, &product, 1));
    uint64_t expected = 1;
    for (int i = 0; i < n; i++)
        expected *= (uint64_t)large;
    CHECK_EQ((uint64_t)product, expected);
}

static void means(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int n = self->size, sum = n * (n - 1) / 2;
    int32_t mine = self->rank, down = -self->rank, mean = 77;
    float single = (float)self->rank, found = 0;
    CHECK_OK(coh_all_reduce(team, COH_I32, COH_MEAN, &mine, &mean, 1));
    CHECK_EQ(mean, sum / n);
    CHECK_OK(coh_all_reduce(team, COH_I32, COH_MEAN, &down, &mean, 1));
    CHECK_EQ((uint32_t)mean, (uint32_t)(-sum / n)); /* towards zero */
    CHECK_OK(coh_all_reduce(team, COH_F32, COH_MEAN, &single, &found, 1));
    CHECK(fabsf(found - (float)sum / (float)n) <= 0);
}

const test_case conform_coll_values[] = {
    CASE(nan_and_infinity, "S40", ON_ALL, ANY_SIZE),
    CASE(least_and_greatest, "S40", ON_ALL, ANY_SIZE),
    CASE(subnormals, "S40", ON_ALL, ANY_SIZE),
    CASE(rounded_once, "S40", ON_ALL, FROM_THREE),
    CASE(overflow_is_infinite, "S40", ON_ALL, FROM_TWO),
    CASE(every_value, "S40", ON_MAPPED | ON_TCP, SIZE(2) | SIZE(3)),
    CASE(integers_wrap, "S40", ON_ALL, ANY_SIZE),
    CASE(means, "S40", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(coll_values);
