#include "unit.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static void every_status_has_a_name_and_a_text(void **state)
{
    static const struct {
        coh_status status;
        int value;
        const char *name;
    } rows[] = {
#define ROW(constant, value, text) {constant, value, #constant},
        COH_STATUS_TABLE(ROW)
#undef ROW
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rows[i].status, rows[i].value);
        assert_string_equal(coh_status_name(rows[i].status), rows[i].name + strlen("COH_"));
        assert_true(strlen(coh_status_text(rows[i].status)) > 3);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(rows[i].value, rows[j].value);
    }
}

static void a_value_outside_the_table_is_unknown(void **state)
{
    (void)state;
    assert_string_equal(coh_status_name((coh_status)9999), "UNKNOWN");
    assert_string_equal(coh_status_name((coh_status)-1), "UNKNOWN");
    assert_non_null(coh_status_text((coh_status)9999));
}

static void fail_sets_the_sentence_and_keeps_errno(void **state)
{
    (void)state;
    errno = EDOM;
    assert_int_equal(cohi_fail(COH_BAD_ALIGNMENT, "align %d of %s", 3, "x"), COH_BAD_ALIGNMENT);
    assert_int_equal(errno, EDOM);
    assert_string_equal(coh_last_error(), "align 3 of x");
}

/* An error message may quote the one before it. */
static void a_sentence_may_hold_the_last_one(void **state)
{
    (void)state;
    cohi_fail(COH_SYSTEM, "inner");
    cohi_fail(COH_TRANSPORT, "outer (%s)", coh_last_error());
    assert_string_equal(coh_last_error(), "outer (inner)");
}

static void long_sentences_are_cut(void **state)
{
    char words[3000];
    (void)state;
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    cohi_fail(COH_SYSTEM, "%s", words);
    assert_int_equal(strlen(coh_last_error()), COHI_ERROR_TEXT_BYTES - 1);
}

static void *other_thread(void *arg)
{
    char *seen = arg;
    snprintf(seen, 64, "[%s]", coh_last_error());
    cohi_fail(COH_SYSTEM, "theirs");
    return NULL;
}

static void each_thread_has_its_own(void **state)
{
    char seen[64];
    pthread_t thread;
    (void)state;
    cohi_fail(COH_SYSTEM, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, seen), 0);
    pthread_join(thread, NULL);
    assert_string_equal(seen, "[]");
    assert_string_equal(coh_last_error(), "mine");
}

static void system_errors_become_statuses(void **state)
{
    static const struct {
        int error;
        coh_status status;
    } rows[] = {
        {ENOMEM, COH_NO_MEMORY}, {ENOSPC, COH_NO_MEMORY}, {EMFILE, COH_LIMIT},
        {ENFILE, COH_LIMIT},     {EIO, COH_SYSTEM},       {ENOSYS, COH_NOT_AVAILABLE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(cohi_fail_os(rows[i].error, "open of %d", 7), rows[i].status);
        assert_says("open of 7");
        assert_says(strerrordesc_np(rows[i].error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test(a_value_outside_the_table_is_unknown),
        cmocka_unit_test(fail_sets_the_sentence_and_keeps_errno),
        cmocka_unit_test(a_sentence_may_hold_the_last_one),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(system_errors_become_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
