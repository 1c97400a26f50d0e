/* wake_test.c - a put of a word rings for a rank that sleeps for it, on the slow path as on the fast
 * one. */
#include "unit.h"

#include "core/world/world.h"

#include <pthread.h>
#include <sched.h>

struct sleeper {
    coh_world *world;
    uint64_t *word;
    coh_status status;
};

static void *sleep_for_word(void *arg)
{
    struct sleeper *sleeper = arg;
    const uint64_t one = 1;
    void *memory = NULL;
    coh_status status = coh_calloc(sleeper->world, 1, sizeof one, &memory);
    sleeper->word = memory;
    if (status == COH_OK)
        status = coh_wait_until(sleeper->world, COH_U64, memory, COH_EQ, &one, 0);
    if (status == COH_OK)
        status = coh_barrier(sleeper->world);
    coh_status left = coh_finalize(sleeper->world);
    sleeper->status = status == COH_OK ? left : status;
    return NULL;
}

static void a_put_by_view_rings(void **state)
{
    enum { RANKS = 2 };
    coh_world *worlds[RANKS];
    struct sleeper sleeper = {.status = COH_OK};
    pthread_t thread;
    const uint64_t one = 1;
    void *word;
    coh_view view;
    (void)state;
    assert_int_equal(coh_init_threads(RANKS, NULL, worlds), COH_OK);
    sleeper.world = worlds[1];
    assert_int_equal(pthread_create(&thread, NULL, sleep_for_word, &sleeper), 0);
    assert_int_equal(coh_calloc(worlds[0], 1, sizeof one, &word), COH_OK);
    cohi_slot *slot = worlds[0]->peers[1].slot;
    while (atomic_load(&slot->watchers) == 0)
        sched_yield();
    unsigned bell = atomic_load(&slot->bell);
    assert_int_equal(coh_view_of(worlds[0], word, sizeof one, 1, &view), COH_OK);
    assert_int_equal(coh_put_view(worlds[0], view, &one, sizeof one), COH_OK);
    assert_true(atomic_load(&slot->bell) != bell);
    assert_int_equal(coh_barrier(worlds[0]), COH_OK);
    assert_int_equal(coh_finalize(worlds[0]), COH_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sleeper.status, COH_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_by_view_rings),
    };
    return cmocka_run_group_tests_name("wake", tests, NULL, NULL);
}
