/* The choice of algorithms where costs cannot be compared, and what it goes by between ranks that
 * do not map each other. */
#include "unit.h"

#include "coll/tuning.h"

#include <math.h>

/* Whatever the constants, there is an algorithm. */
static void costs_that_cannot_be_compared(void **state)
{
    static const double costs[] = {INFINITY, NAN};
    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        coh_options options = COH_OPTIONS_INIT;
        coh_world *world;
        const char *name = NULL;
        uint64_t one = 1, sum = 0;
        options.engine = "threads";
        assert_int_equal(coh_init_threads(1, &options, &world), COH_OK);
        world->profile.value[COHI_ROW_call] = costs[i];
        coh_team *team = coh_team_world(world);
        coh_collective call = COH_COLLECTIVE_INIT;
        call.kind = COH_COLLECTIVE_ALL_REDUCE;
        call.team = team;
        call.dtype = COH_U64;
        call.count = 1;
        assert_int_equal(coh_collective_choice(&call, &name, NULL), COH_OK);
        assert_string_equal(name, "one-shot");
        assert_int_equal(coh_all_reduce(team, COH_U64, COH_SUM, &one, &sum, 1), COH_OK);
        assert_int_equal(sum, 1);
        assert_int_equal(coh_finalize(world), COH_OK);
    }
}

/* What a start has measured must not change the order in which messages are combined. */
static void messages_go_by_what_is_steady(void **state)
{
    cohi_profile profile = cohi_profile_describe(cohi_host()), described = profile;
    unsigned char bytes[COHI_TUNING_BYTES];
    cohi_tuning tuning;
    cohi_config config;
    (void)state;
    assert_int_equal(cohi_config_load(&config), COH_OK);
    profile.value[COHI_ROW_reduce] *= 50;
    profile.value[COHI_ROW_line] *= 50;
    profile.value[COHI_ROW_message] *= 2;
    assert_int_equal(cohi_tuning_load(&config, &profile, bytes), COH_OK);
    memcpy(&tuning, bytes, sizeof tuning);
    assert_true(tuning.model.reduce == described.value[COHI_ROW_reduce]);
    assert_true(tuning.model.line == described.value[COHI_ROW_line]);
    assert_true(tuning.model.message == profile.value[COHI_ROW_message]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_that_cannot_be_compared),
        cmocka_unit_test(messages_go_by_what_is_steady),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
