/* What strikes a whole host, on ranks that play several. */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double TIMEOUT_S = 2; /* COHORT_LINK_TIMEOUT of the rows */
static const double STALL_S = 3;   /* COHORT_STALL of those that stop */

enum { CUT = 2 }; /* the rank whose host is struck, and one behind it */

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t cut;
    _Atomic uint64_t told;
};

static void check_time(struct scene *scene, const test_rank *self, double least, double most)
{
    double took = fault_since(&scene->stamps[self->rank]);
    if (took < least || took > most)
        test_fail("it was told after %.2f s; due are %.1f to %.1f s", took, least, most);
}

/* At the other end of this host's cable: its own routes stay. */
static bool set_link(const char *state)
{
    char command[96], host[16] = "";
    int number = -1;
    if (gethostname(host, sizeof host - 1) != 0 || sscanf(host, "h%d", &number) != 1)
        return CHECK(number >= 0);
    snprintf(command, sizeof command, "ip -n %s-bridge link set v%d %s", test_bed, number + 1,
             state);
    return CHECK(system(command) == 0);
}

/* The cable of one host is pulled: its ranks and all others lose each other. */
static void silent_host(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!test_bed) {
        test_skip("the cable of a host is pulled on a test bed alone");
        return;
    }
    if (strcmp(self->engine, "ucx") == 0) {
        test_skip("UCX calls a rank for the first time by a call that blocks, for 3 s or more "
                  "where nobody answers");
        return;
    }
    if (strcmp(self->engine, "mpi:openmpi") == 0) {
        test_skip("Open MPI asks its launcher, which on a test bed is on the first host alone");
        return;
    }
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    test_sleep(0.3); /* the last part of the barrier may still be on its way out */
    if (self->rank == CUT)
        atomic_store(&scene->cut, set_link("down"));
    if (!CHECK(test_await(&scene->cut, 1, 10)))
        return;
    fault_stamp(&scene->stamps[self->rank]);
    CHECK_REFUSED(coh_barrier(self->world), COH_PEER_LOST, "its host has not answered");
    check_time(scene, self, TIMEOUT_S - 0.5, TIMEOUT_S + LOSS_LIMIT_S + 0.5);
    atomic_fetch_add(&scene->told, 1);
    if (self->rank == CUT && CHECK(test_await(&scene->told, (uint64_t)self->size, 10))) {
        set_link("up");
        test_sleep(0.5); /* until both ends have noticed: another row may follow */
    }
    (void)coh_finalize(self->world);
}

/* Whether the engine can tell a process that says nothing from a host that does not: it asks its sockets what the
 * kernel at the other end has acknowledged. A library keeps its sockets to itself. */
static bool sees_kernels(const char *engine)
{
    return strcmp(engine, "tcp") == 0;
}

/* All processes of a host are stopped, and nobody is left there to tell. Its kernel answers, so it is
 * no silent host; and data that nobody takes must not break a link either. */
static void stopped_host(test_rank *self)
{
    enum { BYTES = 16 << 20 };
    struct scene *scene = self->shared;
    char *data;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_calloc(self->world, BYTES, 1, (void **)&data))
        || !CHECK_OK(coh_barrier(self->world)))
        return;
    test_sleep(0.3);
    if (self->rank >= CUT) {
        atomic_fetch_add(&scene->cut, 1);
        raise(SIGSTOP);
    }
    CHECK(test_await(&scene->cut, (uint64_t)(self->size - CUT), 10));
    test_sleep(0.3); /* until they have stopped, on a busy machine too */
    fault_stamp(&scene->stamps[self->rank]);
    char *source = calloc(1, BYTES);
    coh_status status = source ? coh_put(self->world, data, source, BYTES, CUT) : COH_NO_MEMORY;
    if (status == COH_OK)
        status = coh_quiet(self->world);
    if (sees_kernels(self->engine)) {
        CHECK_REFUSED(status, COH_STALLED, "rank 2|its host does (stopped?)");
        check_time(scene, self, STALL_S - 0.5, STALL_S + 5);
    } else {
        CHECK_REFUSED(status, COH_PEER_LOST, "rank 2|its host has not answered");
        check_time(scene, self, TIMEOUT_S - 1, TIMEOUT_S + LOSS_LIMIT_S + 0.5);
    }
    (void)coh_finalize(self->world);
    free(source);
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
    CASE(silent_host, "F30", ON_TCP, SIZE(4), .mode = TEST_UNJOINED, .environment = TIMEOUT),
    CASE(stopped_host, "F32", ON_TCP, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(CUT) | VICTIM(CUT + 1),
         .environment = "COHORT_LINK_TIMEOUT=2 COHORT_STALL=3"),
    CASE(quiet_host, "F9a F30", ON_TCP, SIZE(4), .mode = TEST_UNJOINED, .environment = TIMEOUT),
};
FAULT_COUNT(hosts);
