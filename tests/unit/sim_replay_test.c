/* A whole program on the simulator, through the public interface, is the same run for the same
 * seed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <cohort.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 5, ROUNDS = 12, BYTES = 700 };

static char trace_line[128];
static atomic_int wrong;

static void keep_trace(void *arg, coh_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    if (strstr(message, "steps, trace "))
        snprintf(trace_line, sizeof trace_line, "%s", message);
}

/* Allocates, puts to all, meets, looks, frees: what a program does. */
static int one_round(coh_world *world, int round)
{
    size_t size = (size_t)coh_size(world), bytes = BYTES + (size_t)round;
    int rank = coh_rank(world), bad = 0;
    char source[BYTES + ROUNDS], *box;
    memset(source, rank + 1, sizeof source);
    if (coh_malloc(world, bytes * size, (void **)&box) != COH_OK)
        return 1;
    for (int to = 0; to < (int)size; to++)
        bad += coh_put(world, box + bytes * (size_t)rank, source, bytes, to) != COH_OK;
    bad += coh_barrier(world) != COH_OK;
    for (size_t i = 0; i < bytes * size; i++)
        bad += box[i] != (char)(i / bytes + 1);
    return bad + (coh_free(world, box) != COH_OK);
}

static void *run_rank(void *arg)
{
    coh_world *world = arg;
    for (int round = 0; round < ROUNDS; round++)
        atomic_fetch_add(&wrong, one_round(world, round));
    atomic_fetch_add(&wrong, coh_finalize(world) != COH_OK);
    return NULL;
}

static void run_program(int ranks, const char *engine, const char *script)
{
    coh_world *worlds[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = engine;
    options.heap = 1 << 20;
    setenv("COHORT_SIM", script, 1);
    if (coh_init_threads(ranks, &options, worlds) != COH_OK)
        fail_msg("%s", coh_last_error());
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(pthread_create(&threads[rank], NULL, run_rank, worlds[rank]), 0);
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
    unsetenv("COHORT_SIM");
    assert_int_equal(atomic_load(&wrong), 0);
}

static void test_program_replays(void **state)
{
    (void)state;
    coh_log_to(keep_trace, NULL, COH_LOG_INFO);
    char first[128], before[128] = "";
    for (int ranks = 2; ranks <= RANKS_MAX; ranks++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%d,patience=20000", ranks);
        trace_line[0] = '\0';
        run_program(ranks, "sim", script);
        memcpy(first, trace_line, sizeof first);
        assert_non_null(strstr(first, "trace "));
        assert_string_not_equal(first, before);
        run_program(ranks, "sim", script);
        assert_string_equal(trace_line, first);
        memcpy(before, first, sizeof before);
    }
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

static void test_programs_of_many_seeds_are_right(void **state)
{
    (void)state;
    static const char *const words[] = {"delay=0", "delay=1", "delay=100", "split=64",
                                        "order=keep"};
    for (int seed = 0; seed < 10; seed++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%d,%s", seed, words[seed % 5]);
        run_program(2 + seed % (RANKS_MAX - 1), "sim", script);
    }
}

static void test_bad_script_is_refused_by_init(void **state)
{
    (void)state;
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim";
    setenv("COHORT_SIM", "seed=1,kill=2@1", 1);
    assert_int_equal(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT);
    unsetenv("COHORT_SIM");
    assert_non_null(strstr(coh_last_error(), "word 2, 'kill=2@1'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_replays),
        cmocka_unit_test(test_programs_of_many_seeds_are_right),
        cmocka_unit_test(test_bad_script_is_refused_by_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
