#include "unit.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

struct heard {
    int count;
    coh_log_level level;
    char message[2048];
};

static void listen_to(void *arg, coh_log_level level, const char *message)
{
    struct heard *heard = arg;
    heard->count++;
    heard->level = level;
    snprintf(heard->message, sizeof heard->message, "%s", message);
}

static void a_hook_hears_up_to_its_level(void **state)
{
    struct heard heard = {0};
    (void)state;
    coh_log_to(listen_to, &heard, COH_LOG_WARN);
    assert_true(cohi_log_wants(COH_LOG_ERROR) && cohi_log_wants(COH_LOG_WARN));
    assert_false(cohi_log_wants(COH_LOG_INFO));
    cohi_log(COH_LOG_INFO, "quiet");
    assert_int_equal(heard.count, 0);
    cohi_log(COH_LOG_WARN, "rank %d", 3);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.level, COH_LOG_WARN);
    assert_string_equal(heard.message, "rank 3");
}

static void logging_keeps_errno_and_the_last_error(void **state)
{
    struct heard heard = {0};
    (void)state;
    coh_log_to(listen_to, &heard, COH_LOG_DEBUG);
    cohi_fail(COH_SYSTEM, "kept");
    errno = ERANGE;
    cohi_log(COH_LOG_DEBUG, "something");
    assert_int_equal(errno, ERANGE);
    assert_string_equal(coh_last_error(), "kept");
}

static void no_hook_no_messages(void **state)
{
    (void)state;
    coh_log_to(NULL, NULL, COH_LOG_DEBUG);
    assert_false(cohi_log_wants(COH_LOG_ERROR));
    cohi_log(COH_LOG_ERROR, "to nobody");
}

/* COHORT_LOG must not take the messages away from a hook that the program set. */
static void the_programs_choice_wins(void **state)
{
    struct heard heard = {0};
    (void)state;
    coh_log_to(listen_to, &heard, COH_LOG_ERROR);
    cohi_log_default(COH_LOG_DEBUG);
    assert_false(cohi_log_wants(COH_LOG_DEBUG));
    cohi_log(COH_LOG_ERROR, "still here");
    assert_int_equal(heard.count, 1);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

static void long_messages_are_cut(void **state)
{
    struct heard heard = {0};
    char words[4000];
    (void)state;
    memset(words, 'm', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    coh_log_to(listen_to, &heard, COH_LOG_ERROR);
    cohi_log(COH_LOG_ERROR, "%s", words);
    assert_true(strlen(heard.message) >= 500 && strlen(heard.message) < sizeof words);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

/* In a world of one the hook is told once about it at COH_LOG_INFO. */
static void a_world_introduces_itself(void **state)
{
    struct heard heard = {0};
    coh_world *world;
    (void)state;
    coh_log_to(listen_to, &heard, COH_LOG_INFO);
    assert_int_equal(coh_init(NULL, &world), COH_OK);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.level, COH_LOG_INFO);
    assert_int_equal(coh_finalize(world), COH_OK);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_hears_up_to_its_level),
        cmocka_unit_test(logging_keeps_errno_and_the_last_error),
        cmocka_unit_test(no_hook_no_messages),
        cmocka_unit_test(the_programs_choice_wins),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(a_world_introduces_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
