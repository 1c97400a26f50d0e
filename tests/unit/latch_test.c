#include "unit.h"

#include "base/latch.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 20000 };

static cohi_latch latch;
static long count; /* guarded by the latch */

static void *add_in_turn(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        if (i % 2 == 0)
            cohi_latch_take(&latch);
        else
            while (!cohi_latch_try(&latch))
                continue;
        count++;
        cohi_latch_give(&latch);
    }
    return NULL;
}

static void one_holds_it_at_a_time(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    count = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_in_turn, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count, (long)THREADS * TURNS);
    assert_int_equal(atomic_load(&latch.sleepers), 0);
}

static void *take_and_give(void *arg)
{
    (void)arg;
    cohi_latch_take(&latch);
    count++;
    cohi_latch_give(&latch);
    return NULL;
}

/* Held for so long that the other one sleeps. */
static void a_sleeper_gets_it(void **state)
{
    pthread_t thread;
    (void)state;
    count = 0;
    cohi_latch_take(&latch);
    assert_false(cohi_latch_try(&latch));
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (atomic_load(&latch.sleepers) == 0)
        usleep(100);
    assert_int_equal(count, 0);
    cohi_latch_give(&latch);
    pthread_join(thread, NULL);
    assert_int_equal(count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_holds_it_at_a_time),
        cmocka_unit_test(a_sleeper_gets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
