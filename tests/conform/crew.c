/* Ranks inside one process, bound to threads or driven by one: docs/semantics.md S19. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const double PATIENCE_S = 20;

/* ---- one thread each ---- */

/* Rank 0 hands its world to rank 1, whose thread is another rank's and must be refused. */
struct handover {
    uint64_t *word; /* in rank 0's heap; written before `world` */
    coh_world *_Atomic world;
    _Atomic uint64_t tried;
};

static void try_as_stranger(struct handover *handover)
{
    coh_world *world = atomic_load(&handover->world);
    uint64_t value = 0;
    void *memory;
    CHECK_EQ(coh_rank(world), 0);
    CHECK_REFUSED(coh_barrier(world), COH_WRONG_THREAD, "rank 0|rank 1");
    CHECK_REFUSED(coh_sync(world), COH_WRONG_THREAD, "rank 0|rank 1");
    CHECK_REFUSED(coh_malloc(world, 100, &memory), COH_WRONG_THREAD, "rank 0|rank 1");
    CHECK_REFUSED(coh_put(world, handover->word, &value, sizeof value, 0), COH_WRONG_THREAD,
                  "rank 0|rank 1");
    CHECK_REFUSED(coh_quiet(world), COH_WRONG_THREAD, "rank 0|rank 1");
    CHECK_REFUSED(coh_finalize(world), COH_WRONG_THREAD, "rank 0|rank 1");
}

static void worlds_are_bound(test_rank *self)
{
    struct handover *handover = self->shared;
    uint64_t *word;
    if (!CHECK_OK(coh_malloc(self->world, sizeof *word, (void **)&word))) /* binds the world */
        return;
    if (self->rank == 0) {
        handover->word = word;
        atomic_store(&handover->world, self->world);
        CHECK(test_await(&handover->tried, 1, PATIENCE_S));
    } else if (self->rank == 1) {
        double until = test_now() + PATIENCE_S;
        while (!atomic_load(&handover->world) && test_now() < until)
            test_sleep(0.001);
        if (CHECK(atomic_load(&handover->world) != NULL))
            try_as_stranger(handover);
        atomic_store(&handover->tried, 1);
    }
    CHECK_OK(coh_barrier(self->world));
}

/* A query by another rank's thread does not bind: the owner's first call still does. */
static void queries_do_not_bind(test_rank *self)
{
    struct seen {
        coh_world *_Atomic worlds[8];
        _Atomic uint64_t looked;
    } *seen = self->shared;
    atomic_store(&seen->worlds[self->rank], self->world);
    int next = (self->rank + 1) % self->size;
    while (!atomic_load(&seen->worlds[next]))
        test_sleep(0.001);
    coh_world *other = atomic_load(&seen->worlds[next]);
    CHECK_EQ(coh_rank(other), next);
    CHECK_EQ(coh_size(other), self->size);
    CHECK(strcmp(coh_engine(other), self->engine) == 0);
    atomic_fetch_add(&seen->looked, 1);
    CHECK(test_await(&seen->looked, (uint64_t)self->size, PATIENCE_S));
    CHECK_OK(coh_barrier(self->world));
}

static void *put_from_unbound(void *arg)
{
    test_rank *self = arg;
    uint64_t *word, value = 11, found = 0;
    test_this_is_rank(self->rank);
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return NULL;
    CHECK_OK(coh_put(self->world, word, &value, sizeof value, 0));
    CHECK_OK(coh_quiet(self->world));
    CHECK_OK(coh_get(self->world, &found, word, sizeof found, 0));
    CHECK_EQ(found, value);
    CHECK_OK(coh_free(self->world, word));
    return NULL;
}

/* A thread that is bound to no rank may do a rank's calls, also collective ones. */
static void unbound_threads_may_call(test_rank *self)
{
    pthread_t helper;
    CHECK_OK(coh_barrier(self->world));
    if (CHECK(pthread_create(&helper, NULL, put_from_unbound, self) == 0))
        pthread_join(helper, NULL);
    CHECK_OK(coh_barrier(self->world));
}

/* ---- one thread for all ---- */

enum { DRIVEN = 4 };

static bool open_driven(const test_rank *self, coh_world **worlds)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    options.driven = 1;
    return CHECK_OK(coh_init_threads(DRIVEN, &options, worlds));
}

static void close_driven(coh_world **worlds)
{
    for (int rank = 0; rank < DRIVEN; rank++)
        CHECK_OK(coh_finalize(worlds[rank]));
}

static bool allocate_driven(coh_world **worlds, size_t bytes, unsigned char **memory)
{
    for (int rank = 0; rank < DRIVEN; rank++)
        if (!CHECK_OK(coh_malloc(worlds[rank], bytes, (void **)&memory[rank])))
            return false;
    return true;
}

static void put_driven(coh_world **worlds, unsigned char **memory, size_t bytes)
{
    unsigned char sent[2000], found[2000];
    for (int rank = 0; rank < DRIVEN; rank++) {
        int right = (rank + 1) % DRIVEN;
        test_fill(sent, bytes, (uint64_t)rank);
        CHECK_OK(coh_put(worlds[rank], memory[rank], sent, bytes, right));
        CHECK_OK(coh_fence(worlds[rank]));
        CHECK_OK(coh_quiet(worlds[rank]));
        CHECK_EQ(test_differs(memory[right], bytes, (uint64_t)rank), bytes);
        CHECK_OK(coh_get(worlds[rank], found, memory[rank], bytes, right));
        CHECK_EQ(test_differs(found, bytes, (uint64_t)rank), bytes);
    }
}

static void driven_by_one_thread(test_rank *self)
{
    coh_world *worlds[DRIVEN];
    unsigned char *memory[DRIVEN];
    if (!open_driven(self, worlds))
        return;
    for (int rank = 0; rank < DRIVEN; rank++) {
        CHECK_EQ(coh_rank(worlds[rank]), rank);
        CHECK_EQ(coh_size(worlds[rank]), DRIVEN);
    }
    if (!allocate_driven(worlds, 2000, memory))
        return;
    put_driven(worlds, memory, 2000);
    for (int rank = DRIVEN - 1; rank >= 0; rank--)
        CHECK_OK(coh_free(worlds[rank], memory[rank]));
    close_driven(worlds);
}

static void driven_refuses_to_wait(test_rank *self)
{
    coh_world *worlds[DRIVEN];
    if (!open_driven(self, worlds))
        return;
    CHECK_REFUSED(coh_barrier(worlds[0]), COH_UNSUPPORTED, "driven");
    CHECK_REFUSED(coh_sync(worlds[2]), COH_UNSUPPORTED, "driven");
    close_driven(worlds);
}

/* The n-th allocation of each rank must ask for what the first that got there asked for. */
static void driven_allocations_agree(test_rank *self)
{
    coh_world *worlds[DRIVEN];
    void *first, *second, *other;
    coh_view one, two;
    if (!open_driven(self, worlds))
        return;
    CHECK_OK(coh_malloc(worlds[0], 1000, &first));
    CHECK_OK(coh_malloc(worlds[0], 3000, &second));
    CHECK_OK(coh_malloc(worlds[1], 1000, &other));
    CHECK_OK(coh_view_of(worlds[0], first, 1000, 0, &one));
    CHECK_OK(coh_view_of(worlds[1], other, 1000, 1, &two));
    CHECK_EQ(one.offset, two.offset);
    CHECK_REFUSED(coh_malloc(worlds[1], 4000, &other), COH_MISMATCH, "3000|4000");
    for (int rank = 0; rank < DRIVEN; rank++)
        (void)coh_finalize(worlds[rank]); /* after a mismatch its status is not what is tested */
}

const test_case conform_crew[] = {
    CASE(worlds_are_bound, "S19", ON_THREADS | ON_SIM, SIZE(2) | SIZE(3)),
    CASE(queries_do_not_bind, "S19", ON_CREW, SIZE(2) | SIZE(3)),
    CASE(unbound_threads_may_call, "S19", ON_MEMORY, ANY_SIZE),
    CASE(driven_by_one_thread, "S19", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(driven_refuses_to_wait, "S19", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(driven_allocations_agree, "S19", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(crew);
