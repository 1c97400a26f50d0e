/* Barriers and epochs: docs/semantics.md S15, S16 and S17. */
#include "conform.h"

#include <stdatomic.h>

/* A third of the time a rank dawdles, so that others can run ahead of it. */
static void dawdle(uint64_t *random)
{
    if (test_random(random) % 3 == 0)
        test_sleep((double)(test_random(random) % 200) * 1e-6);
}

typedef coh_status meet_function(coh_world *world);

/* Between a rank's n-th and n+1-st meeting, every other rank has counted n or n+1. */
static void meet_in_step(test_rank *self, meet_function *meet, uint64_t rounds)
{
    _Atomic uint64_t *counts = self->shared;
    uint64_t random = self->seed + (uint64_t)self->rank * 77 + 1;
    uint64_t base = atomic_load(&counts[self->rank]);
    for (uint64_t round = base + 1; round <= base + rounds; round++) {
        dawdle(&random);
        atomic_store(&counts[self->rank], round);
        if (!CHECK_OK(meet(self->world)))
            return;
        for (int rank = 0; rank < self->size; rank++) {
            uint64_t count = atomic_load(&counts[rank]);
            if (!CHECK(count == round || count == round + 1))
                return;
        }
    }
}

static void barriers_never_mix(test_rank *self)
{
    meet_in_step(self, coh_barrier, (uint64_t)test_scaled(self, 500));
}

static void syncs_never_mix(test_rank *self)
{
    meet_in_step(self, coh_sync, (uint64_t)test_scaled(self, 500));
}

/* Epochs start close to where they wrap, so this many meetings cross it whatever the engine. */
static void epochs_wrap(test_rank *self)
{
    enum { ACROSS = 150 };
    meet_in_step(self, coh_barrier, ACROSS);
    meet_in_step(self, coh_sync, ACROSS);
}

/* Allocations one after the other, each with its own size: what a slow rank still reads of one
 * must not be the next one's. All ranks must come to the same places. */
static void allocations_in_step(test_rank *self)
{
    struct table {
        _Atomic uint64_t offset[400];
    } *table = self->shared;
    uint64_t random = self->seed + (uint64_t)self->rank * 13 + 1;
    int rounds = test_scaled(self, 300);
    for (int i = 0; i < rounds; i++) {
        void *memory;
        coh_view view;
        dawdle(&random);
        if (!CHECK_OK(coh_malloc(self->world, 64 + (size_t)(i % 37) * 100, &memory))
            || !CHECK_OK(coh_view_of(self->world, memory, 64, self->rank, &view)))
            return;
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&table->offset[i], &none, view.offset + 1)
            && !CHECK_EQ(none, view.offset + 1))
            return;
        dawdle(&random);
        if (i % 4 != 0 && !CHECK_OK(coh_free(self->world, memory)))
            return;
    }
}

/* A barrier right behind an allocation right behind a free, in every order. */
static void collectives_back_to_back(test_rank *self)
{
    uint64_t random = self->seed + 5; /* the same on all ranks */
    void *memory = NULL;
    int rounds = test_scaled(self, 1000);
    for (int i = 0; i < rounds; i++) {
        switch (test_random(&random) % 4) {
        case 0:
            CHECK_OK(coh_barrier(self->world));
            break;
        case 1:
            CHECK_OK(coh_sync(self->world));
            break;
        case 2:
            CHECK_OK(coh_realloc(self->world, memory, 1 + test_random(&random) % 9000, &memory));
            break;
        default:
            CHECK_OK(coh_free(self->world, memory));
            memory = NULL;
            break;
        }
        if (test_failed())
            return;
    }
    CHECK_OK(coh_free(self->world, memory));
}

const test_case conform_epochs[] = {
    CASE(barriers_never_mix, "S15", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(syncs_never_mix, "S15", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(epochs_wrap, "S16", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(allocations_in_step, "S17", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(collectives_back_to_back, "S17", ON_MEMORY, ANY_SIZE, .limit_s = 60),
};
CONFORM_COUNT(epochs);
