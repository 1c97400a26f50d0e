/* Tuning files: what is taken, what is refused, and the choice where costs cannot be compared. */
#include "unit.h"

#include "coll/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static coh_status load(const char *text, cohi_model *model)
{
    char path[] = "/tmp/cohort-tuning-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    *model = cohi_model_default();
    coh_status status = cohi_model_load(path, model);
    unlink(path);
    return status;
}

static void good_files(void **state)
{
    cohi_model model, built_in = cohi_model_default();
    (void)state;
    assert_int_equal(load("", &model), COH_OK);
    assert_memory_equal(&model, &built_in, sizeof model);
    assert_int_equal(load("# a comment\n\nline 250.5\ncache 1e12\ntake 1e-9\n", &model), COH_OK);
    assert_true(model.line == 250.5 && model.cache == 1e12 && model.take == 1e-9);
    assert_true(model.copy == built_in.copy);
}

/* A cost of infinity, or none, is not less than any other. */
static void bad_values(void **state)
{
    static const char *const bad[] = {"line inf",  "line nan", "line 1e999",   "line 1.1e12",
                                      "line -inf", "line 0",   "line -1",      "line",
                                      "line much", "lines 1",  "call infinity"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        cohi_model model;
        snprintf(text, sizeof text, "copy 0.5\n%s\n", bad[i]);
        if (load(text, &model) != COH_INVALID_ARGUMENT)
            fail_msg("'%s' is taken", bad[i]);
        assert_says("line 2 of the tuning file");
        assert_says("above 0 and at most 1e+12");
    }
}

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
        ((cohi_tuning *)(void *)world->tuning)->model.call = costs[i];
        coh_team *team = coh_team_world(world);
        assert_int_equal(coh_collective_choice(team, "all_reduce", 8, &name, NULL), COH_OK);
        assert_string_equal(name, "one-shot");
        assert_int_equal(coh_all_reduce(team, COH_U64, COH_SUM, &one, &sum, 1), COH_OK);
        assert_int_equal(sum, 1);
        assert_int_equal(coh_finalize(world), COH_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(costs_that_cannot_be_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
