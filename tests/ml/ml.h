/* ml.h - what every test of libcohort-ml includes. */
#ifndef TEST_ML_H
#define TEST_ML_H

#include "../unit/unit.h"

#include <cohort-ml.h>
#include <pthread.h>
#include <stdlib.h>

#define assert_ok(call) assert_status(call, COH_OK, #call, __FILE__, __LINE__)
#define assert_fails(call, wanted, text)                        \
    do {                                                        \
        assert_status(call, wanted, #call, __FILE__, __LINE__); \
        assert_says(text);                                      \
    } while (0)

static inline void assert_status(coh_status got, coh_status wanted, const char *call,
                                 const char *file, int line)
{
    if (got == wanted)
        return;
    print_error("%s:%d: %s is %s, wanted %s: %s\n", file, line, call, coh_status_name(got),
                coh_status_name(wanted), coh_last_error());
    fail();
}

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Runs `body` as each of `ranks` ranks, threads of this process. It reports what is wrong by
 * returning a text; cmocka's assertions are for the main thread. */
typedef const char *rank_body(coh_world *world, coh_device *device);

typedef struct rank_thread {
    rank_body *body;
    coh_world *world;
    const char *wrong;
    char sentence[1024];
} rank_thread;

static inline void *run_rank(void *arg)
{
    rank_thread *self = arg;
    coh_device *device = NULL;
    self->wrong = coh_device_open(COH_DEVICE_CPU, 0, &device) == COH_OK
                      ? self->body(self->world, device)
                      : "the device does not open";
    strncpy(self->sentence, coh_last_error(), sizeof self->sentence - 1);
    if (!self->wrong && coh_device_close(device) != COH_OK)
        self->wrong = "the device does not close";
    if (coh_finalize(self->world) != COH_OK && !self->wrong)
        self->wrong = "finalize";
    return NULL;
}

enum { RANKS_MOST = 8 };

static inline void run_ranks(int ranks, rank_body *body)
{
    coh_world *worlds[RANKS_MOST];
    rank_thread threads[RANKS_MOST] = {0};
    pthread_t ids[RANKS_MOST];
    coh_options options = COH_OPTIONS_INIT;
    options.heap = 16 << 20;
    assert_ok(coh_init_threads(ranks, &options, worlds));
    for (int i = 0; i < ranks; i++) {
        threads[i].body = body;
        threads[i].world = worlds[i];
        assert_int_equal(pthread_create(&ids[i], NULL, run_rank, &threads[i]), 0);
    }
    for (int i = 0; i < ranks; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < ranks; i++)
        if (threads[i].wrong)
            fail_msg("rank %d: %s: %s", i, threads[i].wrong, threads[i].sentence);
}

static inline coh_device *open_cpu(void)
{
    coh_device *device = NULL;
    assert_ok(coh_device_open(COH_DEVICE_CPU, 0, &device));
    return device;
}

#endif
