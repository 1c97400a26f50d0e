#include "unit.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/unknown.h"

#include <stdlib.h>

struct good {
    const char *text;
    uint64_t value;
};

static void sizes(void **state)
{
    static const struct good good[] = {
        {"1", 1},
        {"4096", 4096},
        {"64K", 65536},
        {"64k", 65536},
        {"1KiB", 1024},
        {"2M", 2097152},
        {"0.5G", 1 << 29},
        {"2G", UINT64_C(1) << 31},
        {"1.5K", 1536},
        {"1T", UINT64_C(1) << 40},
        {"128T", UINT64_C(1) << 47},
        {"auto", 0},
        {"12B", 12},
    };
    static const char *const bad[] = {
        "",      "-1",  "+5",  "0",    "K",     "1X",   "1 K",  "0x10",
        "1e2K3", "inf", "nan", "129T", "1.2.3", " 64K", "64K ", "99999999999999999999"};
    uint64_t value;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        value = 77;
        assert_int_equal(cohi_parse_size("--heap", good[i].text, &value), COH_OK);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (cohi_parse_size("--heap", bad[i], &value) != COH_INVALID_ARGUMENT)
            fail_msg("'%s' was taken for a size", bad[i]);
        assert_says("--heap");
        assert_says(bad[i]);
    }
}

static void seconds(void **state)
{
    static const struct good good[] = {
        {"30", 30 * COHI_NS_PER_S},    {"0.5", COHI_NS_PER_S / 2},
        {"500ms", COHI_NS_PER_S / 2},  {"2m", 120 * COHI_NS_PER_S},
        {"1h", 3600 * COHI_NS_PER_S},  {"20us", 20 * COHI_NS_PER_US},
        {"3s", 3 * COHI_NS_PER_S},     {"off", 0},
        {"2min", 120 * COHI_NS_PER_S},
    };
    static const char *const bad[] = {"", "-1", "0", "soon", "1x", "0x3", "inf", "1 s", "1e30"};
    uint64_t value;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(cohi_parse_seconds("--timeout", good[i].text, &value), COH_OK);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (cohi_parse_seconds("--timeout", bad[i], &value) != COH_INVALID_ARGUMENT)
            fail_msg("'%s' was taken for a time", bad[i]);
        assert_says("--timeout");
    }
}

static void counts(void **state)
{
    static const char *const bad[] = {"",   "0",  "11",  "-1",  "+3",
                                      "3x", " 3", "3.0", "0x3", "18446744073709551617"};
    uint64_t value;
    (void)state;
    assert_int_equal(cohi_parse_count("-n", "1", 1, 10, &value), COH_OK);
    assert_true(value == 1);
    assert_int_equal(cohi_parse_count("-n", "10", 1, 10, &value), COH_OK);
    assert_int_equal(cohi_parse_count("-n", "18446744073709551615", 0, UINT64_MAX, &value), COH_OK);
    assert_true(value == UINT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (cohi_parse_count("-n", bad[i], 1, 10, &value) != COH_INVALID_ARGUMENT)
            fail_msg("'%s' was taken for a count from 1 to 10", bad[i]);
        assert_says("-n");
        assert_says("1 to 10");
    }
}

static void clear_knobs(void)
{
    const cohi_knob *knob;
    for (size_t i = 0; (knob = cohi_knob_at(i)); i++)
        unsetenv(knob->variable);
}

static void defaults_and_their_rows(void **state)
{
    cohi_config config;
    const cohi_knob *knob;
    size_t rows = 0;
    (void)state;
    clear_knobs();
    assert_int_equal(cohi_config_load(&config), COH_OK);
    assert_string_equal(config.engine, "any");
    assert_true(config.heap == 0 && config.huge_pages == 1 && config.check == 0);
    assert_true(config.log == COH_LOG_OFF && config.timeout == 0);
    assert_true(config.stall == 30 * COHI_NS_PER_S && config.warn == 5 * COHI_NS_PER_S);
    for (; (knob = cohi_knob_at(rows)); rows++) {
        assert_int_equal(strncmp(knob->variable, "COHORT_", 7), 0);
        assert_true(strlen(knob->help) > 10);
        assert_non_null(knob->default_text);
    }
    assert_true(rows >= 10);
    assert_null(cohi_knob_at(rows + 100));
}

static void the_environment_is_read(void **state)
{
    cohi_config config;
    (void)state;
    clear_knobs();
    setenv("COHORT_HEAP", "3M", 1);
    setenv("COHORT_CHECK", "Yes", 1);
    setenv("COHORT_LOG", "debug", 1);
    setenv("COHORT_STALL", "250ms", 1);
    setenv("COHORT_WARN", "", 1); /* empty is unset */
    setenv("COHORT_ENGINE", "sim", 1);
    assert_int_equal(cohi_config_load(&config), COH_OK);
    assert_true(config.heap == 3 * 1024 * 1024 && config.check == 1);
    assert_true(config.log == COH_LOG_DEBUG && config.stall == 250 * COHI_NS_PER_MS);
    assert_true(config.warn == 5 * COHI_NS_PER_S);
    assert_string_equal(config.engine, "sim");
}

static void flags_and_levels(void **state)
{
    static const struct good flags[] = {{"0", 0},   {"1", 1},  {"no", 0},    {"yes", 1},
                                        {"off", 0}, {"on", 1}, {"false", 0}, {"TRUE", 1}};
    static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
    cohi_config config;
    (void)state;
    clear_knobs();
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        setenv("COHORT_CHECK", flags[i].text, 1);
        assert_int_equal(cohi_config_load(&config), COH_OK);
        assert_true(config.check == flags[i].value);
    }
    setenv("COHORT_CHECK", "Order", 1);
    setenv("COHORT_DETERMINISTIC", "order", 1); /* of this one flag alone */
    assert_int_equal(cohi_config_load(&config), COH_INVALID_ARGUMENT);
    unsetenv("COHORT_DETERMINISTIC");
    assert_int_equal(cohi_config_load(&config), COH_OK);
    assert_true(config.check == COHI_CHECK_ORDER);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        setenv("COHORT_LOG", levels[i], 1);
        assert_int_equal(cohi_config_load(&config), COH_OK);
        assert_true(config.log == i);
    }
}

static void a_bad_value_names_variable_and_value(void **state)
{
    static const char *const rows[][2] = {
        {"COHORT_HEAP", "big"}, {"COHORT_CHECK", "2"},         {"COHORT_LOG", "loud"},
        {"COHORT_STALL", "-1"}, {"COHORT_INIT_TIMEOUT", "1y"},
    };
    cohi_config config;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clear_knobs();
        setenv(rows[i][0], rows[i][1], 1);
        assert_int_equal(cohi_config_load(&config), COH_INVALID_ARGUMENT);
        assert_says(rows[i][0]);
        assert_says(rows[i][1]);
    }
    clear_knobs();
}

static void unknown_variables_are_named_with_the_nearest(void **state)
{
    static const char *const rows[][2] = {
        {"COHORT_HEEP", "COHORT_HEEP is set, but nothing reads it; did you mean COHORT_HEAP"},
        {"COHORT_TIME_OUT", "did you mean COHORT_TIMEOUT"},
        {"COHORT_LOGS", "did you mean COHORT_LOG"},
        {"COHORT_PARLIAMENT", "cohort info lists"},
    };
    char sentence[256];
    size_t at = 0;
    (void)state;
    clear_knobs();
    setenv("COHORT_HEAP", "2M", 1);
    setenv("COHORT_TEST_ANYTHING", "1", 1);
    setenv("COHORTS", "1", 1);
    assert_false(cohi_unknown_next(&at, sentence, sizeof sentence));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv(rows[i][0], "1", 1);
        at = 0;
        assert_true(cohi_unknown_next(&at, sentence, sizeof sentence));
        if (!strstr(sentence, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], sentence);
        assert_false(cohi_unknown_next(&at, sentence, sizeof sentence));
        unsetenv(rows[i][0]);
    }
    clear_knobs();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(seconds),
        cmocka_unit_test(counts),
        cmocka_unit_test(defaults_and_their_rows),
        cmocka_unit_test(the_environment_is_read),
        cmocka_unit_test(flags_and_levels),
        cmocka_unit_test(a_bad_value_names_variable_and_value),
        cmocka_unit_test(unknown_variables_are_named_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
