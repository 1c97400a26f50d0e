/* Heaps on an engine that backs all of a segment at once: the simulator with commit=whole. It fails a
 * commit, and overwrites what is given back. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { RANKS = 2, MIB = 1 << 20, HEAP = 96 * MIB };

static coh_world *worlds[RANKS];

static void open_all(uint64_t bytes, const char *script)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim";
    options.heap = bytes;
    setenv("COHORT_SIM", script, 1);
    assert_int_equal(coh_init_threads(RANKS, &options, worlds), COH_OK);
}

static atomic_int failures;

static void must(bool good, const char *expression, int line)
{
    if (good)
        return;
    print_error("line %d: %s: %s\n", line, expression, coh_last_error());
    atomic_fetch_add(&failures, 1);
}

#define MUST(expression) must((expression), #expression, __LINE__)

static void each(void *(*body)(void *world))
{
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, worlds[i]), 0);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&failures), 0);
}

static void *use_heap(void *argument)
{
    coh_world *world = argument;
    int right = (coh_rank(world) + 1) % RANKS;
    unsigned char *kept, *large, *again, ones[64];
    memset(ones, 1, sizeof ones);
    MUST(coh_malloc(world, 4096, (void **)&kept) == COH_OK);
    memset(kept, 7, 4096);
    /* More than a heap keeps is freed, and would be given back. */
    for (int round = 0; round < 3; round++) {
        MUST(coh_malloc(world, 80 * MIB, (void **)&large) == COH_OK);
        MUST(coh_put(world, large + 79 * MIB, ones, sizeof ones, right) == COH_OK);
        MUST(coh_barrier(world) == COH_OK);
        MUST(memcmp(large + 79 * MIB, ones, sizeof ones) == 0);
        MUST(coh_free(world, large) == COH_OK);
    }
    /* What is beyond the heap fails as it does elsewhere, and the heap goes on. */
    MUST(coh_malloc(world, HEAP, (void **)&again) == COH_NO_MEMORY);
    MUST(coh_calloc(world, 5, MIB, (void **)&again) == COH_OK);
    MUST(again[0] == 0 && again[5 * MIB - 1] == 0);
    MUST(kept[0] == 7 && kept[4095] == 7);
    MUST(coh_finalize(world) == COH_OK);
    return NULL;
}

static void a_heap_is_used_without_commits(void **state)
{
    (void)state;
    open_all(HEAP, "seed=1,commit=whole");
    each(use_heap);
    open_all(HEAP, "seed=1,commit=whole,hosts=2");
    each(use_heap);
}

static void *use_further_heap(void *argument)
{
    coh_world *world = argument;
    coh_heap *heap;
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    unsigned char *block;
    options.bytes = 8 * MIB;
    MUST(coh_heap_create(world, &options, &heap) == COH_OK);
    MUST(coh_heap_malloc(heap, 6 * MIB, (void **)&block) == COH_OK);
    block[6 * MIB - 1] = 1;
    MUST(coh_free(world, block) == COH_OK);
    options.bytes = UINT64_C(1) << 40;
    coh_heap *larger;
    MUST(coh_heap_create(world, &options, &larger) == COH_NO_MEMORY);
    MUST(coh_heap_destroy(heap) == COH_OK);
    MUST(coh_finalize(world) == COH_OK);
    return NULL;
}

static void further_heaps_too(void **state)
{
    (void)state;
    open_all(HEAP, "seed=2,commit=whole");
    each(use_further_heap);
}

static void more_than_the_host_has_is_refused_at_init(void **state)
{
    (void)state;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim";
    options.heap = UINT64_C(1) << 40;
    setenv("COHORT_SIM", "seed=3,commit=whole", 1);
    assert_int_equal(coh_init_threads(RANKS, &options, worlds), COH_NO_MEMORY);
    assert_says("engine sim backs all of a heap at once: 1099511627776 bytes for each of 2 ranks");
}

static void *look_at_size(void *argument)
{
    coh_world *world = argument;
    coh_heap_stats stats = {.size = sizeof stats};
    MUST(coh_heap_query(world, &stats) == COH_OK);
    MUST(stats.reserved <= 256 * MIB);
    MUST(coh_finalize(world) == COH_OK);
    return NULL;
}

static void by_itself_it_is_small(void **state)
{
    (void)state;
    unsetenv("COHORT_HEAP");
    open_all(0, "seed=4,commit=whole");
    each(look_at_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_is_used_without_commits),
        cmocka_unit_test(further_heaps_too),
        cmocka_unit_test(more_than_the_host_has_is_refused_at_init),
        cmocka_unit_test(by_itself_it_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
