/* The harness itself: every kind of trouble that it is there to notice, planted. */
#include "page.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

static void all_is_well(test_rank *self)
{
    CHECK_OK(coh_barrier(self->world));
}

static void finds_something(test_rank *self)
{
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 1)
        CHECK_EQ(1, 2);
}

static void expects_another_status(test_rank *self)
{
    CHECK_REFUSED(coh_put(self->world, NULL, NULL, 1, 77), COH_OK, "");
}

static void never_ends(test_rank *self)
{
    if (self->rank == 1)
        test_sleep(100);
    CHECK_OK(coh_barrier(self->world));
}

static void crashes(test_rank *self)
{
    if (self->rank == 0)
        abort();
}

static void exits_early(test_rank *self)
{
    if (self->rank == 0)
        _exit(0);
}

static void leaves_a_process(test_rank *self)
{
    if (self->rank == 0 && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        test_sleep(60);
        _exit(0);
    }
}

static void leaves_a_name(test_rank *self)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/cohort-harness-%d", (int)getppid());
    int fd = self->rank == 0 ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
}

static void skips(test_rank *self)
{
    (void)self;
    test_skip("because of %d", 7);
}

static void dies_as_planned(test_rank *self)
{
    if (self->rank == 1)
        raise(SIGKILL);
}

/* Runs a row on 2 ranks of an engine; whether a finding holds all the words. */
static bool finds(const test_case *row, const char *engine, const char *words)
{
    static test_job job;
    job = (test_job){.row = row, .engine = engine, .ranks = 2, .seed = 1};
    test_run(&job);
    const test_page *page = test_page_get();
    for (int i = 0; i < page->failures && i < TEST_MESSAGES; i++)
        if (test_holds(page->messages[i], words))
            return true;
    return false;
}

static void a_good_run_has_no_findings(void **state)
{
    const test_case row = CASE(all_is_well, "", ON_ALL, SIZE(2));
    (void)state;
    assert_false(finds(&row, "shm", "") || test_failed());
    assert_false(finds(&row, "threads", "") || test_failed());
}

static void a_failed_check_names_rank_and_line(void **state)
{
    const test_case row = CASE(finds_something, "", ON_ALL, SIZE(2));
    const test_case other = CASE(expects_another_status, "", ON_ALL, SIZE(2));
    (void)state;
    assert_true(finds(&row, "shm", "rank 1|harness_test.c|1 == 2"));
    assert_true(finds(&row, "threads", "rank 1|harness_test.c|1 == 2"));
    assert_true(finds(&other, "threads", "UNKNOWN_RANK, expected OK|77"));
}

/* Its stacks go to standard error; that they name the function in which a rank sat is looked
 * up there. */
static bool stacks_name(const test_case *row, const char *function)
{
    char text[65536];
    int kept = dup(STDERR_FILENO);
    FILE *caught = tmpfile();
    if (!caught || dup2(fileno(caught), STDERR_FILENO) < 0)
        return false;
    bool found = finds(row, "shm", "time limit of");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(caught);
    text[fread(text, 1, sizeof text - 1, caught)] = '\0';
    fclose(caught);
    return found && strstr(text, function);
}

static void a_hung_run_is_ended_with_stacks(void **state)
{
    const test_case row = CASE(never_ends, "", ON_ALL, SIZE(2), .limit_s = 3);
    (void)state;
    assert_true(stacks_name(&row, "coh_barrier"));
}

static void ends_of_processes_are_judged(void **state)
{
    const test_case crash = CASE(crashes, "", ON_ALL, SIZE(2));
    const test_case early = CASE(exits_early, "", ON_ALL, SIZE(2), .mode = TEST_UNJOINED);
    const test_case code = CASE(all_is_well, "", ON_ALL, SIZE(2), .exit_code = 3);
    const test_case planned =
        CASE(dies_as_planned, "", ON_ALL, SIZE(2), .mode = TEST_UNJOINED, .victims = VICTIM(1));
    (void)state;
    assert_true(finds(&crash, "shm", "rank 0|killed by signal 6"));
    assert_true(finds(&early, "shm", "rank 0|did not come to its end"));
    assert_true(finds(&code, "shm", "exited with status 0, expected 3"));
    assert_false(finds(&planned, "shm", "") || test_failed());
}

static void what_is_left_behind_is_found(void **state)
{
    const test_case process = CASE(leaves_a_process, "", ON_ALL, SIZE(2), .mode = TEST_UNJOINED);
    const test_case name = CASE(leaves_a_name, "", ON_ALL, SIZE(2), .mode = TEST_UNJOINED);
    char path[64];
    (void)state;
    assert_true(finds(&process, "shm", "left behind: process|still running"));
    assert_true(finds(&name, "shm", "left behind: /dev/shm/cohort-harness"));
    snprintf(path, sizeof path, "/dev/shm/cohort-harness-%d", (int)getpid());
    assert_int_equal(unlink(path), 0);
}

static void a_skip_is_not_a_success(void **state)
{
    const test_case row = CASE(skips, "", ON_ALL, SIZE(2), .mode = TEST_UNJOINED);
    (void)state;
    assert_false(finds(&row, "shm", ""));
    assert_int_equal(test_page_get()->skipped, 1);
    assert_string_equal(test_page_get()->skip_reason, "because of 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_run_has_no_findings),
        cmocka_unit_test(a_failed_check_names_rank_and_line),
        cmocka_unit_test(a_hung_run_is_ended_with_stacks),
        cmocka_unit_test(ends_of_processes_are_judged),
        cmocka_unit_test(what_is_left_behind_is_found),
        cmocka_unit_test(a_skip_is_not_a_success),
    };
    test_stacks_open();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
