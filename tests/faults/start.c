/* Jobs that do not come together: FAULTS.md rows 3 and 4, and a rank that dies in init. */
#include "faults.h"

#include <string.h>

/* Init fails in bounded time, and the sentence names each of `missing`. */
static void joining_fails(test_rank *self, double within_s, const char *missing)
{
    double began = test_now();
    coh_status status = test_join(self);
    if (!CHECK(status == COH_TIMED_OUT || status == COH_PEER_LOST))
        test_fail("init was %s: %s", coh_status_name(status), coh_last_error());
    CHECK_SAYS(missing);
    CHECK(test_now() - began < within_s);
    CHECK(self->world == NULL);
}

static void root_dies_in_init(test_rank *self)
{
    joining_fails(self, 6, "0");
}

static void rank_dies_in_init(test_rank *self)
{
    joining_fails(self, 6, "2");
}

static void one_never_starts(test_rank *self)
{
    if (self->rank != 3)
        joining_fails(self, 8, "3");
}

static void two_never_start(test_rank *self)
{
    if (self->rank != 1 && self->rank != 3)
        joining_fails(self, 8, "1|3");
}

static void root_never_starts(test_rank *self)
{
    if (self->rank != 0)
        joining_fails(self, 8, "0");
}

/* Ranks that disagree about the size, or claim the same rank, do not make a job. */
static void sizes_disagree(test_rank *self)
{
    coh_world *world = NULL;
    int size = self->rank == 1 ? 4 : 3;
    double began = test_now();
    coh_status status = coh_init_unique_id(&self->ids[0], self->rank, size, NULL, &world);
    CHECK(status != COH_OK && status != COH_SYSTEM);
    CHECK(strlen(coh_last_error()) > 0);
    CHECK(test_now() - began < 6);
}

static void rank_claimed_twice(test_rank *self)
{
    coh_world *world = NULL;
    int rank = self->rank == 2 ? 1 : self->rank;
    double began = test_now();
    coh_status status = coh_init_unique_id(&self->ids[0], rank, 3, NULL, &world);
    CHECK(status != COH_OK && status != COH_SYSTEM);
    CHECK(test_now() - began < 6);
}

/* Ranks that come one after the other, slowly, are a job all the same. */
static void slow_to_come(test_rank *self)
{
    test_sleep(0.1 * self->rank);
    if (CHECK_OK(test_join(self)) && CHECK_OK(coh_barrier(self->world)))
        CHECK_OK(coh_finalize(self->world));
}

const test_case fault_start[] = {
    CASE(root_dies_in_init, "F3", ON_SHM, SIZE(4), .mode = TEST_UNJOINED, .victims = VICTIM(0),
         .environment = "COHORT_FAULT=kill@init,rank=0 COHORT_INIT_TIMEOUT=2"),
    CASE(rank_dies_in_init, "F1 F3", ON_SHM, SIZE(4), .mode = TEST_UNJOINED, .victims = VICTIM(2),
         .environment = "COHORT_FAULT=kill@init,rank=2 COHORT_INIT_TIMEOUT=2"),
    CASE(one_never_starts, "F4", ON_SHM, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(two_never_start, "F4", ON_SHM, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(root_never_starts, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(sizes_disagree, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=1"),
    CASE(rank_claimed_twice, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=1"),
    CASE(slow_to_come, "F4", ON_SHM, SIZE(5), .mode = TEST_UNJOINED),
};
FAULT_COUNT(start);
