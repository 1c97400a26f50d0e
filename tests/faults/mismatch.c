/* Ranks that disagree, and misuse on one rank: docs/faults.md F17 and F18. */
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>

static const double PATIENCE_S = 20;

/* A mismatch shows at this call, or, for a rank that had done its part, at its next. */
static void expect_mismatch(test_rank *self, coh_status status, const char *words)
{
    if (status == COH_OK)
        status = coh_barrier(self->world);
    CHECK_REFUSED(status, COH_MISMATCH, words);
}

static bool join(test_rank *self)
{
    return CHECK_OK(test_join(self));
}

/* Where all ranks found it out together the team may go on; where not, it is refused. Nobody waits
 * for what cannot come, and leaving is possible. */
static void leave(test_rank *self)
{
    double began = test_now();
    void *memory;
    coh_status status = coh_barrier(self->world);
    if (status == COH_OK)
        CHECK_OK(coh_malloc(self->world, 100, &memory));
    else
        CHECK_STATUS(status, COH_MISMATCH);
    (void)coh_finalize(self->world);
    CHECK(test_now() - began < 5);
}

static void unequal_mallocs(test_rank *self)
{
    char mark;
    void *memory = &mark;
    if (!join(self))
        return;
    expect_mismatch(self, coh_malloc(self->world, self->rank == 0 ? 1111 : 2222, &memory),
                    "malloc|1111|2222");
    CHECK(memory == &mark);
    leave(self);
}

static void unequal_alignments(test_rank *self)
{
    void *memory = NULL;
    if (!join(self))
        return;
    size_t alignment = self->rank == 1 ? 4096 : 128;
    expect_mismatch(self, coh_align(self->world, alignment, 1000, &memory), "align|4096|128");
    CHECK(memory == NULL);
    leave(self);
}

static void unequal_reallocs(test_rank *self)
{
    unsigned char *memory = NULL;
    void *resized = NULL;
    if (!join(self) || !CHECK_OK(coh_malloc(self->world, 500, (void **)&memory)))
        return;
    test_fill(memory, 500, 3);
    size_t bytes = self->rank == 0 ? 7000 : 9000;
    expect_mismatch(self, coh_realloc(self->world, memory, bytes, &resized), "7000|9000");
    CHECK(resized == NULL);
    CHECK_EQ(test_differs(memory, 500, 3), 500); /* as it was */
    leave(self);
}

static void unequal_frees(test_rank *self)
{
    void *one, *two;
    if (!join(self) || !CHECK_OK(coh_malloc(self->world, 100, &one))
        || !CHECK_OK(coh_malloc(self->world, 100, &two)))
        return;
    expect_mismatch(self, coh_free(self->world, self->rank == 0 ? one : two), "free");
    leave(self);
}

static void barrier_against_malloc(test_rank *self)
{
    void *memory = NULL;
    if (!join(self))
        return;
    coh_status status =
        self->rank == 0 ? coh_barrier(self->world) : coh_malloc(self->world, 3000, &memory);
    expect_mismatch(self, status, "barrier|malloc");
    CHECK(memory == NULL);
    leave(self);
}

static void malloc_against_calloc(test_rank *self)
{
    void *memory = NULL;
    if (!join(self))
        return;
    coh_status status = self->rank == 0 ? coh_malloc(self->world, 100, &memory)
                                        : coh_calloc(self->world, 10, 10, &memory);
    expect_mismatch(self, status, "malloc|calloc");
    CHECK(memory == NULL);
    leave(self);
}

static void free_on_one_rank(test_rank *self)
{
    void *memory;
    if (!join(self) || !CHECK_OK(coh_malloc(self->world, 100, &memory)))
        return;
    coh_status status = self->rank == 1 ? coh_free(self->world, memory) : coh_barrier(self->world);
    expect_mismatch(self, status, "barrier|free");
    leave(self);
}

static void sync_against_barrier(test_rank *self)
{
    if (!join(self))
        return;
    coh_status status = self->rank == 0 ? coh_sync(self->world) : coh_barrier(self->world);
    expect_mismatch(self, status, "barrier|sync");
    leave(self);
}

/* All make the first call alike: that one is a success, however slow a rank is to get out of it. */
static void the_call_before_is_spared(test_rank *self)
{
    if (!join(self) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_status status = self->rank == 0 ? coh_sync(self->world) : coh_barrier(self->world);
    expect_mismatch(self, status, "barrier|sync");
    (void)coh_finalize(self->world);
}

static void finalize_against_barrier(test_rank *self)
{
    if (!join(self))
        return;
    if (self->rank == 0) {
        CHECK_STATUS(coh_finalize(self->world), COH_MISMATCH);
        return;
    }
    CHECK_REFUSED(coh_barrier(self->world), COH_MISMATCH, "barrier|finalize");
    (void)coh_finalize(self->world);
}

/* The last rank is one round behind: it disagrees with nobody at the same time, only in order. */
static void out_of_order(test_rank *self)
{
    void *memory = NULL;
    if (!join(self))
        return;
    bool late = self->rank == self->size - 1;
    coh_status status = late ? coh_sync(self->world) : coh_malloc(self->world, 64, &memory);
    if (status == COH_OK)
        status = late ? coh_malloc(self->world, 64, &memory) : coh_sync(self->world);
    CHECK_STATUS(status, COH_MISMATCH);
    leave(self);
}

/* ---- misuse on one rank: told to the caller alone ---- */

struct pair {
    test_rank *self;
    _Atomic uint64_t *busy; /* threads that were told so */
    _Atomic uint64_t *fine;
};

static void *enter_barrier(void *arg)
{
    struct pair *pair = arg;
    test_this_is_rank(pair->self->rank);
    coh_status status = coh_barrier(pair->self->world);
    if (status == COH_BUSY) {
        CHECK_SAYS("barrier");
        atomic_fetch_add(pair->busy, 1);
    } else if (CHECK_OK(status)) {
        atomic_fetch_add(pair->fine, 1);
    }
    return NULL;
}

/* Two threads of rank 0 in one barrier: one waits, the other is refused at once. */
static void two_threads_in_a_barrier(test_rank *self)
{
    _Atomic uint64_t *counts = self->shared;
    if (!join(self) || !CHECK_OK(coh_barrier(self->world))) /* binds worlds of a crew */
        return;
    if (self->rank == 0) {
        pthread_t one, two;
        struct pair pair = {self, &counts[0], &counts[1]};
        CHECK(pthread_create(&one, NULL, enter_barrier, &pair) == 0);
        CHECK(pthread_create(&two, NULL, enter_barrier, &pair) == 0);
        pthread_join(one, NULL);
        pthread_join(two, NULL);
        CHECK_EQ(atomic_load(&counts[0]), 1);
        CHECK_EQ(atomic_load(&counts[1]), 1);
    } else {
        CHECK(test_await(&counts[0], 1, PATIENCE_S)); /* so the other one is inside */
        CHECK_OK(coh_barrier(self->world));
    }
    CHECK_OK(coh_finalize(self->world));
}

static void double_free(test_rank *self)
{
    void *memory, *other;
    if (!join(self) || !CHECK_OK(coh_malloc(self->world, 100, &memory))
        || !CHECK_OK(coh_free(self->world, memory)))
        return;
    if (self->rank == 0) /* on one rank only, and it must not wait for the rest */
        CHECK_REFUSED(coh_free(self->world, memory), COH_INVALID_ARGUMENT, "free");
    CHECK_OK(coh_malloc(self->world, 100, &other));
    CHECK_OK(coh_free(self->world, other));
    CHECK_OK(coh_finalize(self->world));
}

#define DISAGREE(function, engines) \
    CASE(function, "F18", engines, SIZE(2) | SIZE(3) | SIZE(5) | SIZE(7), .mode = TEST_UNJOINED)

const test_case fault_mismatch[] = {
    DISAGREE(unequal_mallocs, ON_MEMORY),
    DISAGREE(unequal_alignments, ON_MEMORY),
    DISAGREE(unequal_reallocs, ON_MEMORY),
    DISAGREE(unequal_frees, ON_MEMORY),
    DISAGREE(barrier_against_malloc, ON_MEMORY),
    DISAGREE(malloc_against_calloc, ON_MEMORY),
    DISAGREE(free_on_one_rank, ON_MEMORY),
    DISAGREE(sync_against_barrier, ON_ALL),
    DISAGREE(finalize_against_barrier, ON_ALL),
    DISAGREE(the_call_before_is_spared, ON_ALL),
    DISAGREE(out_of_order, ON_MEMORY),
    CASE(two_threads_in_a_barrier, "F17", ON_ALL, SIZE(2) | SIZE(3), .mode = TEST_UNJOINED),
    CASE(double_free, "F17", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED),
};
FAULT_COUNT(mismatch);
