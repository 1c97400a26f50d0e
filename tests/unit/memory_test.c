#include "unit.h"

#include "base/os.h"
#include "memory/host_region.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 1 << 20 };

/* In a process of its own, since the limit stays and what goes wrong ends the process. */
static int run_in_child(int (*body)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int make_regions_about_the_limit(void)
{
    cohi_host_region region;
    struct rlimit limit = {LIMIT, LIMIT};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    if (cohi_host_region_shared(LIMIT, 0, &region) != COH_OK)
        return 2;
    if (cohi_host_region_shared(LIMIT + 4096, 0, &region) != COH_LIMIT)
        return 3;
    return strstr(coh_last_error(), "1048576") && strstr(coh_last_error(), "RLIMIT_FSIZE") ? 0 : 4;
}

static void the_file_limit_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(make_regions_about_the_limit), 0);
}

/* ---- signals ---- */

enum { COMMITTED = 64 << 20 };

static volatile sig_atomic_t ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

/* Newer kernels go on unless the signal is fatal; older ones would begin anew at each.
 *
 * With a handler far more often than the range can be had in between. A limit of processor time
 * ends what would go on for ever. */
static int commit_under_a_timer(void)
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval often = {{0, 200}, {0, 200}};
    struct rlimit seconds = {20, 20};
    int fd;
    if (cohi_os_shared_create("unit", COMMITTED, &fd) != 0 || setrlimit(RLIMIT_CPU, &seconds) != 0
        || sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
        return 1;
    if (cohi_os_commit_shared(fd, 0, COMMITTED) != 0)
        return 2;
    return ticks > 0 ? 0 : 3; /* they came once it was done */
}

static void signals_do_not_undo_a_commit(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(commit_under_a_timer), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_limit_is_an_error),
        cmocka_unit_test(signals_do_not_undo_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
