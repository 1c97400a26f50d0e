/* What strikes a whole host, on ranks that play several. */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>

static const double TIMEOUT_S = 2; /* COHORT_LINK_TIMEOUT of the rows */

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
};

/* The processes of the other host are stopped together, so that nothing of it answers. */
static void silent_host(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    test_sleep(0.3); /* the last part of the barrier may still be on its way out */
    fault_stamp(&scene->stamps[self->rank]);
    if (!test_same_host(self, 0))
        raise(SIGSTOP);
    CHECK_REFUSED(coh_barrier(self->world), COH_PEER_LOST, "its host has not answered");
    double took = fault_since(&scene->stamps[self->rank]), most = TIMEOUT_S + LOSS_LIMIT_S;
    if (took < TIMEOUT_S - 0.5 || took > most + 0.5)
        test_fail("the loss was learnt after %.2f s; the deadline is %.1f s", took, most);
    (void)coh_finalize(self->world);
}

/* A rank that calls nothing for longer than the timeout is there all the same. */
static void quiet_host(test_rank *self)
{
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (!test_same_host(self, 0))
        test_sleep(2 * TIMEOUT_S);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

#define TIMEOUT "COHORT_LINK_TIMEOUT=2 COHORT_STALL=30"

const test_case fault_hosts[] = {
    CASE(silent_host, "F30", ON_TCP, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(2) | VICTIM(3), .environment = TIMEOUT),
    CASE(quiet_host, "F9a F30", ON_TCP, SIZE(4), .mode = TEST_UNJOINED, .environment = TIMEOUT),
};
FAULT_COUNT(hosts);
