/* Worlds that come and go in one process: what holds of the second, and of handles of the first. */
#include "conform.h"

#include <pthread.h>

static bool open_crew(test_rank *self, int ranks, int driven, coh_world **worlds)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    options.driven = driven;
    options.heap = 128 << 20; /* hundreds of ranks fit a sanitizer's address space */
    return CHECK_OK(coh_init_threads(ranks, &options, worlds));
}

/* One of the driven ranks has left; what would need it is refused, what does not goes on. */
static void driven_after_one_left(test_rank *self)
{
    enum { MANY = 64 << 20 };
    coh_world *worlds[2];
    void *memory;
    if (!open_crew(self, 2, 1, worlds))
        return;
    CHECK_OK(coh_finalize(worlds[1]));
    CHECK_REFUSED(coh_malloc(worlds[0], MANY, &memory), COH_PEER_LOST, "rank 1");
    CHECK_OK(coh_quiet(worlds[0]));
    CHECK_OK(coh_finalize(worlds[0]));
}

/* A handle that is finalized stays one, however many came after it. */
static void many_are_finalized_twice(test_rank *self)
{
    enum { RANKS = 300 };
    static coh_world *worlds[RANKS];
    if (!open_crew(self, RANKS, 1, worlds))
        return;
    for (int rank = 0; rank < RANKS; rank++)
        CHECK_OK(coh_finalize(worlds[rank]));
    for (int rank = 0; rank < RANKS; rank++)
        CHECK_OK(coh_finalize(worlds[rank]));
    CHECK_REFUSED(coh_quiet(worlds[0]), COH_FINALIZED, "coh_quiet");
}

static void *bind_then_wait(void *arg)
{
    coh_world **worlds = arg;
    CHECK_OK(coh_quiet(worlds[0])); /* binds */
    pthread_barrier_wait((pthread_barrier_t *)(void *)worlds[1]);
    pthread_barrier_wait((pthread_barrier_t *)(void *)worlds[1]);
    CHECK_OK(coh_quiet(worlds[2])); /* binds anew, and ends without finalize */
    return NULL;
}

/* A thread whose rank another one finalized is free to be a rank again, and missed when it ends. */
static void a_thread_is_bound_anew(test_rank *self)
{
    coh_world *first[1], *second[2], *shown[3];
    pthread_barrier_t turn;
    pthread_t thread;
    if (!open_crew(self, 1, 0, first))
        return;
    pthread_barrier_init(&turn, NULL, 2);
    shown[0] = first[0];
    shown[1] = (coh_world *)(void *)&turn;
    pthread_create(&thread, NULL, bind_then_wait, shown);
    pthread_barrier_wait(&turn);
    CHECK_OK(coh_finalize(first[0]));
    bool open = open_crew(self, 2, 0, second);
    shown[2] = open ? second[1] : NULL;
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&turn);
    if (!open)
        return;
    CHECK_REFUSED(coh_barrier(second[0]), COH_PEER_LOST, "rank 1");
    (void)coh_finalize(second[0]);
    (void)coh_finalize(second[1]);
}

static void too_many_ranks(test_rank *self)
{
    enum { TOO_MANY = 131072 };
    static coh_world *worlds[TOO_MANY];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    CHECK_REFUSED(coh_init_threads(TOO_MANY, &options, worlds), COH_INVALID_ARGUMENT,
                  "131072|1024");
    CHECK_REFUSED(coh_init_unique_id(&self->ids[0], 0, TOO_MANY, NULL, worlds),
                  COH_INVALID_ARGUMENT, "131072|131071");
}

/* A call that succeeds leaves no error message of what it tried on the way. */
static void success_is_silent(test_rank *self)
{
    coh_world *world;
    (void)self;
    CHECK_OK(coh_init(NULL, &world));
    CHECK(coh_last_error()[0] == '\0');
    CHECK_OK(coh_finalize(world));
}

const test_case conform_again[] = {
    CASE(driven_after_one_left, "S19 F34", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(many_are_finalized_twice, "S46", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(a_thread_is_bound_anew, "F26", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(too_many_ranks, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(success_is_silent, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(again);
