/*
 * A wall clock that jumps by days must not be noticed: docs/semantics.md S48. This program brings
 * its own clock_gettime, gettimeofday and time, which the library then calls.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls;

/* Forth and back, by more each time. */
static time_t jump(void)
{
    int call = atomic_fetch_add(&calls, 1);
    return (time_t)86400 * (call % 2 ? call + 1 : -call);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long outcome = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += jump();
    return (int)outcome;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    long outcome = syscall(SYS_gettimeofday, now, zone);
    now->tv_sec += jump();
    return (int)outcome;
}

time_t time(time_t *result)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}

enum { RANKS = 3 };

static void *rank_main(void *arg)
{
    coh_world *world = arg;
    void *memory;
    intptr_t failed = 0;
    for (int i = 0; i < 200 && !failed; i++) {
        if (coh_rank(world) == i % RANKS)
            usleep(200); /* the others sleep in the barrier */
        failed = coh_barrier(world) != COH_OK;
    }
    failed |= coh_malloc(world, 1000, &memory) != COH_OK;
    failed |= coh_free(world, memory) != COH_OK;
    failed |= coh_finalize(world) != COH_OK;
    return (void *)failed;
}

static void a_jumping_clock_is_not_noticed(void **state)
{
    coh_world *worlds[RANKS];
    pthread_t threads[RANKS];
    coh_options options = COH_OPTIONS_INIT;
    (void)state;
    setenv("COHORT_STALL", "5", 1);
    setenv("COHORT_TIMEOUT", "5", 1);
    options.engine = "threads";
    assert_int_equal(coh_init_threads(RANKS, &options, worlds), COH_OK);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rank_main, worlds[i]), 0);
    for (int i = 0; i < RANKS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* The clock of this program really jumps, or the test above would show nothing. */
static void the_clock_jumps(void **state)
{
    (void)state;
    time_t one = time(NULL), two = time(NULL);
    assert_true(labs((long)(two - one)) > 80000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_jumps),
        cmocka_unit_test(a_jumping_clock_is_not_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
