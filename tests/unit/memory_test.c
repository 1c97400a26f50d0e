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

/* ---- what is available ---- */

static const uint64_t MIB = 1 << 20;

struct reckoning {
    uint64_t limit, used, total, left; /* MiB; of the cgroup, then of the host */
    uint64_t available;
    bool grouped;
};

/* What is kept back is a share of the limit that binds: a small container on a large host does not
 * keep back the share of the host. */
static void the_reserve_is_of_the_limit_that_binds(void **state)
{
    static const struct reckoning cases[] = {
        {400, 16, 24576, 20000, 371, true},         /* 400 / 32 is 12.5 */
        {1408, 0, 24576, 20000, 1364, true},        /* 44 kept back */
        {400, 400, 24576, 20000, 0, true},          /* full */
        {400, 500, 24576, 20000, 0, true},          /* the limit was lowered below the use */
        {400, 395, 24576, 20000, 0, true},          /* less is left than is to be kept back */
        {16384, 1024, 24576, 1024, 256, false},     /* the host is fuller than the container */
        {65536, 64000, 24576, 20000, 19232, false}, /* a limit above the host's memory is none */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct reckoning *c = &cases[i];
        cohi_os_memory memory =
            cohi_os_memory_judge(c->limit * MIB, c->used * MIB, c->total * MIB, c->left * MIB);
        assert_int_equal(memory.available / MIB, c->available);
        assert_int_equal(memory.grouped, c->grouped);
        assert_int_equal(memory.left - memory.reserve, memory.available);
    }
}

static void what_is_available_is_told(void **state)
{
    char text[COHI_OS_MEMORY_TEXT];
    cohi_os_memory memory = cohi_os_memory_judge(UINT64_MAX - 1, 0, UINT64_MAX, UINT64_MAX);
    (void)state;
    cohi_os_memory_describe(&memory, text, sizeof text);
    assert_true(strlen(text) + 1 < sizeof text); /* the longest fits */
    memory = cohi_os_memory_judge(3200, 1200, 100000, 90000);
    cohi_os_memory_describe(&memory, text, sizeof text);
    assert_string_equal(text, "1900 are available (this container (memory cgroup) has 3200 bytes, "
                              "of which 2000 are free; 100 of these are kept back for its other "
                              "processes)");
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
        cmocka_unit_test(the_reserve_is_of_the_limit_that_binds),
        cmocka_unit_test(what_is_available_is_told),
        cmocka_unit_test(signals_do_not_undo_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
