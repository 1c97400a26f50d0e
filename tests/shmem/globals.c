/* Global and static variables are symmetric: they are put to, waited on, locked and reduced as
 * allocated memory is. A forked child has its own. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int initialized_global = 41;
long zeroed_global[3000];
static double static_variable = 0.5;
static long lock;

static void put_to_the_right(void)
{
    int me = shmem_my_pe(), all = shmem_n_pes(), right = (me + 1) % all,
        left = (me + all - 1) % all;
    CHECK(initialized_global == 41 && static_variable == 0.5);
    shmem_barrier_all();
    shmem_int_p(&initialized_global, 100 + me, right);
    shmem_double_p(&static_variable, me + 0.25, right);
    shmem_long_p(&zeroed_global[2999], me + 1, right);
    shmem_barrier_all();
    CHECK(initialized_global == 100 + left && static_variable == left + 0.25);
    CHECK(zeroed_global[2999] == left + 1);
    CHECK(shmem_long_g(&zeroed_global[2999], right) == me + 1);
}

/* Then other PEs' memory has no address here. */
static int looks_for_races(void)
{
    const char *check = getenv("COHORT_CHECK");
    return check && strcmp(check, "order") == 0;
}

static void look_at_addresses(void)
{
    int on_the_stack = 0, all = shmem_n_pes();
    for (int pe = 0; pe < all; pe++) {
        CHECK(shmem_addr_accessible(&initialized_global, pe) == 1);
        CHECK(shmem_addr_accessible(&on_the_stack, pe) == 0);
        int *theirs = shmem_ptr(&initialized_global, pe);
        CHECK(theirs ? *theirs == shmem_int_g(&initialized_global, pe) : looks_for_races());
    }
    CHECK(shmem_ptr(&on_the_stack, 0) == NULL);
}

static void count_and_lock(void)
{
    enum { ROUNDS = 200 };
    int all = shmem_n_pes();
    for (int i = 0; i < ROUNDS; i++) {
        shmem_long_atomic_inc(&zeroed_global[0], 0);
        shmem_set_lock(&lock);
        shmem_long_p(&zeroed_global[1], shmem_long_g(&zeroed_global[1], 0) + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(&zeroed_global[0], 0) == (long)ROUNDS * all);
    CHECK(shmem_long_g(&zeroed_global[1], 0) == (long)ROUNDS * all);
}

static void fork_a_child(void)
{
    int before = initialized_global, status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (initialized_global != before)
            _exit(1);
        initialized_global = -1;
        zeroed_global[5] = -1;
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(initialized_global == before && zeroed_global[5] == 0);
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    int all = shmem_n_pes();
    put_to_the_right();
    look_at_addresses();
    count_and_lock();
    fork_a_child();
    initialized_global = 1;
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &initialized_global, &initialized_global, 1);
    CHECK(initialized_global == all);
    shmem_finalize();
    return initialized_global == all ? 0 : 1; /* and they stay as they were */
}
