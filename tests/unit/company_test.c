/* What a waiting rank does, by what else wants its core. Times are made up: nothing here waits. */
#include "unit.h"

#include "base/os.h"
#include "core/world/company.h"

#include <sched.h>

enum { YIELDS = 200 };

static const uint64_t START_NS = COHI_NS_PER_S;

#define LOOK_NS (500 * COHI_NS_PER_US)

static cohi_company with_own_core(void)
{
    return (cohi_company){.own_core = true, .spins = 2000, .yields = YIELDS, .look_ns = LOOK_NS};
}

static cohi_company with_shared_core(void)
{
    return (cohi_company){.yields = YIELDS};
}

static cohi_rung rung_at(cohi_company *company, bool together, uint64_t now_ns)
{
    cohi_scene scene = {.together = together, .now_ns = now_ns};
    return cohi_company_rung(company, &scene);
}

static void yield_takes(cohi_company *company, uint64_t end_ns, uint64_t took_ns)
{
    cohi_company_yielded(company, end_ns - took_ns, end_ns);
}

static void long_yields(cohi_company *company, uint64_t end_ns, unsigned count)
{
    for (uint64_t i = count; i > 0; i--)
        yield_takes(company, end_ns - (i - 1) * COHI_LONG_YIELD_NS, COHI_LONG_YIELD_NS);
}

/* The last of the yields that tell so ends at START_NS. */
static void meet_strangers(cohi_company *company)
{
    long_yields(company, START_NS, COHI_LONG_YIELDS);
}

static void a_rank_with_a_core_looks_then_sleeps(void **state)
{
    (void)state;
    cohi_company company = with_own_core();
    cohi_scene scene = {.now_ns = START_NS, .looked_ns = LOOK_NS - 1};
    assert_int_equal(cohi_company_rung(&company, &scene), COHI_RUNG_LOOK);
    scene.looked_ns = LOOK_NS;
    assert_int_equal(cohi_company_rung(&company, &scene), COHI_RUNG_SLEEP);
    assert_true(cohi_company_needs_time(&company));
}

static void strangers_do_not_change_that(void **state)
{
    (void)state;
    cohi_company company = with_own_core();
    meet_strangers(&company);
    assert_int_equal(rung_at(&company, false, START_NS), COHI_RUNG_LOOK);
}

static void two_on_one_core_sleep_once_then_yield(void **state)
{
    (void)state;
    cohi_company company = with_own_core();
    assert_int_equal(rung_at(&company, true, START_NS), COHI_RUNG_SLEEP);
    cohi_company_placed(&company, START_NS);
    assert_int_equal(rung_at(&company, true, START_NS), COHI_RUNG_YIELD);
    assert_int_equal(rung_at(&company, true, START_NS + COHI_PLACED_NS - 1), COHI_RUNG_YIELD);
    assert_int_equal(rung_at(&company, true, START_NS + COHI_PLACED_NS), COHI_RUNG_SLEEP);
}

static void two_on_one_core_sleep_beside_strangers(void **state)
{
    (void)state;
    cohi_company company = with_own_core();
    cohi_company_placed(&company, START_NS);
    meet_strangers(&company);
    assert_int_equal(rung_at(&company, true, START_NS + 1), COHI_RUNG_SLEEP);
}

static void ranks_that_share_cores_yield(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    cohi_scene scene = {.yields = YIELDS - 1};
    assert_false(cohi_company_needs_time(&company));
    assert_int_equal(cohi_company_rung(&company, &scene), COHI_RUNG_YIELD);
    scene.yields = YIELDS;
    assert_int_equal(cohi_company_rung(&company, &scene), COHI_RUNG_SLEEP);
}

static void short_yields(cohi_company *company, uint64_t from_ns, int count)
{
    for (int i = 0; i < count; i++)
        yield_takes(company, from_ns + (uint64_t)i * COHI_NS_PER_US, COHI_NS_PER_US);
}

static void long_yields_far_apart_are_borne(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t now_ns = START_NS + i * 10 * COHI_LONG_YIELD_NS;
        yield_takes(&company, now_ns, 5 * COHI_LONG_YIELD_NS);
        assert_int_equal(rung_at(&company, false, now_ns), COHI_RUNG_YIELD);
        short_yields(&company, now_ns, COHI_NEAR_YIELDS);
    }
}

static void short_yields_tell_of_no_strangers(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    for (uint64_t i = 1; i <= 100; i++)
        yield_takes(&company, START_NS + i * COHI_LONG_YIELD_NS, COHI_LONG_YIELD_NS - 1);
    assert_false(cohi_company_needs_time(&company));
}

static void several_long_yields_are_strangers(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    uint64_t before_ns = START_NS - COHI_LONG_YIELD_NS;
    long_yields(&company, before_ns, COHI_LONG_YIELDS - 1);
    assert_int_equal(rung_at(&company, false, before_ns), COHI_RUNG_YIELD);
    yield_takes(&company, START_NS, COHI_LONG_YIELD_NS);
    assert_true(cohi_company_needs_time(&company));
    assert_int_equal(rung_at(&company, false, START_NS), COHI_RUNG_SLEEP);
    assert_int_equal(rung_at(&company, false, START_NS + COHI_AVOID_NS - 1), COHI_RUNG_SLEEP);
}

static void it_tries_again_and_one_more_is_enough(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    meet_strangers(&company);
    uint64_t later_ns = START_NS + COHI_AVOID_NS;
    assert_int_equal(rung_at(&company, false, later_ns), COHI_RUNG_YIELD);
    later_ns += COHI_LONG_YIELD_NS;
    yield_takes(&company, later_ns, COHI_LONG_YIELD_NS);
    assert_int_equal(rung_at(&company, false, later_ns), COHI_RUNG_SLEEP);
}

static void strangers_that_left_are_forgotten(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    uint64_t later_ns = START_NS + COHI_AVOID_NS;
    meet_strangers(&company);
    short_yields(&company, later_ns, COHI_NEAR_YIELDS - 1);
    assert_true(cohi_company_needs_time(&company));
    short_yields(&company, later_ns, 1);
    assert_false(cohi_company_needs_time(&company));
    yield_takes(&company, later_ns + COHI_LONG_YIELD_NS, COHI_LONG_YIELD_NS);
    assert_false(cohi_company_needs_time(&company));
}

static int timed_of(cohi_company *company, int yields)
{
    int timed = 0;
    for (int i = 0; i < yields; i++)
        timed += cohi_company_times(company);
    return timed;
}

static void all_yields_are_timed_after_a_long_one(void **state)
{
    (void)state;
    cohi_company company = with_shared_core();
    int timed = timed_of(&company, 80);
    assert_true(timed > 0 && timed < 40);
    yield_takes(&company, START_NS, COHI_LONG_YIELD_NS);
    assert_int_equal(timed_of(&company, 80), 80);
}

/* Else the kernel could move the thread between two looks. */
static void stay_on_this_core(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cohi_os_core_now(), &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void ranks_see_who_is_on_their_core(void **state)
{
    (void)state;
    cohi_slot mine = {.pid = 0}, theirs = {.pid = 0};
    stay_on_this_core();
    assert_false(cohi_company_together(&mine, &theirs));
    assert_int_equal(atomic_load(&mine.core), cohi_os_core_now() + 1);
    cohi_company_show(&theirs);
    assert_true(cohi_company_together(&mine, &theirs));
    assert_false(cohi_company_together(&mine, &mine));
    assert_false(cohi_company_together(&mine, NULL));
    atomic_store(&theirs.core, atomic_load(&mine.core) + 1);
    assert_false(cohi_company_together(&mine, &theirs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_with_a_core_looks_then_sleeps),
        cmocka_unit_test(strangers_do_not_change_that),
        cmocka_unit_test(two_on_one_core_sleep_once_then_yield),
        cmocka_unit_test(two_on_one_core_sleep_beside_strangers),
        cmocka_unit_test(ranks_that_share_cores_yield),
        cmocka_unit_test(long_yields_far_apart_are_borne),
        cmocka_unit_test(short_yields_tell_of_no_strangers),
        cmocka_unit_test(several_long_yields_are_strangers),
        cmocka_unit_test(it_tries_again_and_one_more_is_enough),
        cmocka_unit_test(strangers_that_left_are_forgotten),
        cmocka_unit_test(all_yields_are_timed_after_a_long_one),
        cmocka_unit_test(ranks_see_who_is_on_their_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
