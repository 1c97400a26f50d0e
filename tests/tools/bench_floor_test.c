/* The floors of `cohort bench --check`: figures in, failures out. */
#include "../unit/unit.h"

#include "bench/floor.h"

#include <math.h>

enum { LONG = 64 << 10, SHORT = LONG - 1 };

static unsigned judge(uint64_t bytes, double fraction, double ratio, double ratio_low)
{
    cohi_floor_row row = {bytes, fraction, ratio, ratio_low};
    return cohi_floor_judge(&row);
}

static void fractions_of_the_limit(void **state)
{
    (void)state;
    assert_int_equal(judge(LONG, 0.5, 0, 0), 0);
    assert_int_equal(judge(LONG, 0.499, 0, 0), COHI_FLOOR_BELOW_LIMIT);
    assert_int_equal(judge(SHORT, 0.3, 0, 0), 0);
    assert_int_equal(judge(SHORT, 0.299, 0, 0), COHI_FLOOR_BELOW_LIMIT);
    assert_int_equal(judge(8, 0.3, 0, 0), 0);
    assert_int_equal(judge(UINT64_C(1) << 40, 0.499, 0, 0), COHI_FLOOR_BELOW_LIMIT);
}

static void what_has_no_size_is_short(void **state)
{
    (void)state;
    assert_int_equal(judge(0, 0.3, 0, 0), 0);
    assert_int_equal(judge(0, 0.299, 0, 0), COHI_FLOOR_BELOW_LIMIT);
    assert_true(cohi_floor_of(0) == 0.3 && cohi_floor_of(SHORT) == 0.3);
    assert_true(cohi_floor_of(LONG) == 0.5);
}

/* What was not measured does not hold. */
static void no_number(void **state)
{
    (void)state;
    assert_int_equal(judge(LONG, NAN, 0, 0), COHI_FLOOR_BELOW_LIMIT);
    assert_int_equal(judge(8, 0, 0, 0), COHI_FLOOR_BELOW_LIMIT);
}

static void peers(void **state)
{
    (void)state;
    assert_int_equal(judge(LONG, 1, 0.2, 0.1), 0);
    assert_int_equal(judge(LONG, 1, 1.0, 1.0), 0);
    assert_int_equal(judge(LONG, 1, 1.01, 1.01), COHI_FLOOR_SLOWER);
    assert_int_equal(judge(8, 1, 1.01, 1.005), COHI_FLOOR_SLOWER);
}

/* The lower quartile may excuse a median above 1, but no more than by a tenth. */
static void turns_that_differ(void **state)
{
    (void)state;
    assert_int_equal(judge(LONG, 1, 1.08, 0.99), 0);
    assert_int_equal(judge(LONG, 1, 1.08, 1.001), COHI_FLOOR_SLOWER);
    assert_int_equal(judge(LONG, 1, 1.11, 0.5), COHI_FLOOR_SLOWER);
    assert_int_equal(judge(LONG, 1, 1.09, 0.5), 0);
    assert_int_equal(judge(LONG, 1, 1.01, 1.2), COHI_FLOOR_SLOWER); /* no quartile of 1.01 */
}

static void both(void **state)
{
    (void)state;
    assert_int_equal(judge(LONG, 0.3, 1.3, 1.3), COHI_FLOOR_BELOW_LIMIT | COHI_FLOOR_SLOWER);
    assert_int_equal(judge(SHORT, 0.3, 1.3, 1.3), COHI_FLOOR_SLOWER);
}

static void failures_of_rows(void **state)
{
    static const cohi_floor_row rows[] = {
        {8, 0.9, 0.5, 0.4},    {8, 0.1, 0, 0}, {LONG, 0.6, 1.2, 1.15},
        {LONG, 0.4, 1.2, 1.1}, {0, 0.3, 0, 0}, {LONG, 0.5, 1, 0.9},
    };
    cohi_floor_failure failures[6];
    (void)state;
    assert_int_equal(cohi_floor_failures(rows, 6, failures), 3);
    assert_int_equal(failures[0].row, 1);
    assert_int_equal(failures[0].why, COHI_FLOOR_BELOW_LIMIT);
    assert_int_equal(failures[1].row, 2);
    assert_int_equal(failures[1].why, COHI_FLOOR_SLOWER);
    assert_int_equal(failures[2].row, 3);
    assert_int_equal(failures[2].why, COHI_FLOOR_BELOW_LIMIT | COHI_FLOOR_SLOWER);
    assert_int_equal(cohi_floor_failures(rows, 1, failures), 0);
    assert_int_equal(cohi_floor_failures(rows, 0, failures), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions_of_the_limit),
        cmocka_unit_test(what_has_no_size_is_short),
        cmocka_unit_test(no_number),
        cmocka_unit_test(peers),
        cmocka_unit_test(turns_that_differ),
        cmocka_unit_test(both),
        cmocka_unit_test(failures_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
