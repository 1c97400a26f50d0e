/* Jobs that do not come together, and a rank that dies in init:
 * docs/faults.md F3, F4, F23 and F24. */
#include "base/os.h"
#include "bootstrap/link.h"
#include "faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Init fails in bounded time, and the error names each of `missing`. */
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

static void join_and_leave(test_rank *self)
{
    if (CHECK_OK(test_join(self)) && CHECK_OK(coh_barrier(self->world)))
        CHECK_OK(coh_finalize(self->world));
}

/* Ranks that come one after the other, slowly, are a job all the same. */
static void slow_to_come(test_rank *self)
{
    test_sleep(0.1 * self->rank);
    join_and_leave(self);
}

/* Longer in all than the time limit, which counts from the last one that came. */
static void keep_coming(test_rank *self)
{
    test_sleep(1.2 * self->rank);
    join_and_leave(self);
}

struct search {
    const char *text;
    int found;
};

static void look_for(void *arg, coh_log_level level, const char *message)
{
    struct search *search = arg;
    if (level == COH_LOG_WARN && strstr(message, search->text))
        search->found++;
}

/* Init fails, and all that came have warned before of `text`. */
static void joining_warns(test_rank *self, const char *text, const char *missing)
{
    struct search search = {text, 0};
    coh_log_to(look_for, &search, COH_LOG_WARN);
    CHECK_STATUS(test_join(self), COH_TIMED_OUT);
    CHECK_SAYS(missing);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
    CHECK(search.found > 0);
}

static void one_is_warned_of(test_rank *self)
{
    if (self->rank != 2)
        joining_warns(self, "s in init: 3 of 4 ranks have come; missing: rank 2",
                      "3 of 4 ranks have come; missing: rank 2");
}

static void root_is_warned_of(test_rank *self)
{
    if (self->rank != 0)
        joining_warns(self, "s in init for rank 0, which has not come", "rank 0 of 3 did not come");
}

/* ---- once more, after a death ---- */

static bool lose(test_rank *self, int victim)
{
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return false;
    if (self->rank == victim)
        fault_die(self);
    CHECK_STATUS(coh_barrier(self->world), COH_PEER_LOST);
    CHECK_STATUS(coh_finalize(self->world), COH_PEER_LOST);
    return true;
}

/* The survivors join anew as many as they were: they are warned, and told who is missing. */
static void all_rejoin(test_rank *self, int victim, const char *text, const char *missing)
{
    struct search search = {text, 0};
    coh_world *world = NULL;
    if (!lose(self, victim))
        return;
    coh_log_to(look_for, &search, COH_LOG_WARN);
    double began = test_fair_now();
    CHECK_REFUSED(coh_init_unique_id(&self->ids[1], self->rank, self->size, NULL, &world),
                  COH_TIMED_OUT, missing);
    CHECK(test_fair_now() - began < 7);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
    CHECK(search.found > 0);
}

static void rejoin_without_one(test_rank *self)
{
    all_rejoin(self, 1, "s in init: 2 of 3 ranks have come; missing: rank 1",
               "2 of 3 ranks have come; missing: rank 1");
}

static void rejoin_without_the_root(test_rank *self)
{
    all_rejoin(self, 0, "s in init for rank 0, which has not come", "rank 0 of 3 did not come");
}

/* As many as they are now: they are a job. */
static void survivors_rejoin(test_rank *self)
{
    coh_world *world = NULL;
    if (!lose(self, 0)
        || !CHECK_OK(
            coh_init_unique_id(&self->ids[1], self->rank - 1, self->size - 1, NULL, &world)))
        return;
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_finalize(world));
}

/* ---- strangers ---- */

enum { SILENT = 1000, BABBLING = 100 };

/* Connects to where rank 0 listens, once it does. -1 when that cannot be. */
static int call_root(const test_rank *self)
{
    cohi_id_layout layout;
    char name[COHI_SOCKET_NAME_BYTES];
    int fd;
    CHECK_OK(cohi_unique_id_read(&self->ids[0], &layout));
    cohi_unique_id_socket(&layout, name);
    for (double until = test_now() + 10; test_now() < until; test_sleep(0.001))
        if (cohi_os_local_connect(name, &fd) == 0)
            return fd;
    return -1;
}

static bool raise_descriptor_limit(int needed)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < (rlim_t)needed)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Of a connection that the root will close. */
static bool is_told_to_call_again(int fd)
{
    cohi_frame said;
    bool told = cohi_os_receive(fd, &said, sizeof said, NULL, 0, NULL, UINT64_MAX) == 0
                && said.kind == COHI_LINK_LATER;
    cohi_os_close(fd);
    return told;
}

/* All of them are connected before a rank is: those that are read one after the other would keep
 * the ranks waiting for longer than they wait. Those who give their places to others are told to call
 * again, as they could be ranks that have no core to speak on. */
static void silent_strangers(test_rank *self)
{
    _Atomic uint64_t *called = self->shared;
    int *fds = calloc(SILENT, sizeof *fds);
    if (!raise_descriptor_limit(2 * SILENT)) {
        test_skip("not enough descriptors");
    } else if (self->rank == 1) {
        for (int i = 0; i < SILENT; i++)
            CHECK((fds[i] = call_root(self)) >= 0);
        atomic_store(called, 1);
        CHECK(is_told_to_call_again(fds[0]));
        join_and_leave(self);
        for (int i = 1; i < SILENT; i++)
            cohi_os_close(fds[i]);
    } else if (self->rank == 0 || CHECK(test_await(called, 1, 20))) {
        join_and_leave(self);
    }
    free(fds);
}

/* Where ranks of its host call rank 0, and where leaders of others do. */
static bool listen_as_root(const test_rank *self, int listeners[2])
{
    const char *host = getenv("COHORT_HOST");
    char tag[COHI_HOST_NAME_BYTES + 1], names[2][COHI_SOCKET_NAME_BYTES];
    cohi_id_layout layout;
    CHECK_OK(cohi_unique_id_read(&self->ids[0], &layout));
    snprintf(tag, sizeof tag, "=%s", host ? host : "");
    cohi_unique_id_host_socket(&layout, tag, names[0]);
    cohi_unique_id_socket(&layout, names[1]);
    return CHECK(cohi_os_local_listen(names[0], &listeners[0]) == 0)
           && CHECK(cohi_os_local_listen(names[1], &listeners[1]) == 0);
}

static int send_away(int listener)
{
    const cohi_frame later = cohi_link_frame(COHI_LINK_LATER, -1);
    int caller, count = 0;
    while (cohi_os_accept(listener, &caller)
           == 0) { /* some have only looked whether somebody is here */
        count += cohi_os_send(caller, &later, sizeof later, NULL, 0, UINT64_MAX) == 0;
        cohi_os_close(caller);
    }
    return count;
}

/* Rank 0 tells all who call for a while to call again, before it joins itself. */
static void send_all_away(const test_rank *self)
{
    int listeners[2], count = 0;
    if (!listen_as_root(self, listeners))
        return;
    for (double until = test_now() + 0.3; test_now() < until; test_sleep(0.001))
        count += send_away(listeners[0]) + send_away(listeners[1]);
    for (int i = 1; i >= 0; i--) {       /* in the order that a root does not open them */
        shutdown(listeners[i], SHUT_RD); /* who calls from now on is refused, and calls again */
        count += send_away(listeners[i]);
        cohi_os_close(listeners[i]);
    }
    CHECK(test_bed
          || count >= self->size / 2); /* ranks of a test bed's other hosts call by the network */
}

static void sent_away_and_back(test_rank *self)
{
    if (self->rank == 0)
        send_all_away(self);
    join_and_leave(self);
}

struct refusals {
    int lines, told;
};

static void count_refusals(void *arg, coh_log_level level, const char *message)
{
    struct refusals *refusals = arg;
    int told;
    (void)level;
    if (sscanf(message, "init: refused %d connection", &told) != 1)
        return;
    refusals->lines++;
    refusals->told += told;
}

/* Strangers that say something else do not fill the log, and all are counted. */
static void babbling_strangers(test_rank *self)
{
    _Atomic uint64_t *called = self->shared;
    static const cohi_hello nothing;
    struct refusals refusals = {0, 0};
    char byte;
    if (self->rank == 0) {
        coh_log_to(count_refusals, &refusals, COH_LOG_WARN);
        join_and_leave(self);
        coh_log_to(NULL, NULL, COH_LOG_OFF);
        CHECK(refusals.told >= BABBLING); /* and ranks that were sent away */
        CHECK(refusals.lines > 0 && refusals.lines < BABBLING / 2);
        return;
    }
    for (int i = 0; self->rank == 1 && i < BABBLING; i++) {
        int fd = call_root(self);
        CHECK(cohi_os_send(fd, &nothing, sizeof nothing, NULL, 0, UINT64_MAX) == 0);
        CHECK(cohi_os_receive(fd, &byte, 1, NULL, 0, NULL, UINT64_MAX) != 0); /* it is closed */
        cohi_os_close(fd);
    }
    if (self->rank == 1)
        atomic_store(called, 1);
    if (CHECK(test_await(called, 1, 20)))
        join_and_leave(self);
}

/* The one that is refused is told why; the job is as if it had not come. */
static void another_secret(test_rank *self)
{
    if (self->rank == 1) {
        cohi_id_layout layout;
        coh_unique_id forged;
        coh_world *world = NULL;
        CHECK_OK(cohi_unique_id_read(&self->ids[0], &layout));
        layout.secret[0] ^= 1;
        cohi_unique_id_write(&layout, &forged);
        CHECK_STATUS(coh_init_unique_id(&forged, 1, self->size, NULL, &world), COH_TRANSPORT);
        CHECK_SAYS("closed the connection of rank 1: it is of another job, or its unique id or "
                   "secret differs");
    }
    join_and_leave(self);
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
    CASE(rank_claimed_twice, "F4 F24", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=1"),
    CASE(slow_to_come, "F4", ON_SHM, SIZE(5), .mode = TEST_UNJOINED),
    CASE(keep_coming, "F4", ON_SHM, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(one_is_warned_of, "F4", ON_SHM, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2 COHORT_WARN=0.3"),
    CASE(root_is_warned_of, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2 COHORT_WARN=0.3"),
    CASE(rejoin_without_one, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED, .victims = VICTIM(1),
         .environment = "COHORT_INIT_TIMEOUT=3 COHORT_WARN=0.2"),
    CASE(rejoin_without_the_root, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(0), .environment = "COHORT_INIT_TIMEOUT=3 COHORT_WARN=0.2"),
    CASE(survivors_rejoin, "F4", ON_SHM, SIZE(3), .mode = TEST_UNJOINED, .victims = VICTIM(0)),
    CASE(silent_strangers, "F23", ON_SHM, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=10"),
    CASE(sent_away_and_back, "F23", ON_SHM | ON_TCP, SIZE(4), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=10"),
    CASE(babbling_strangers, "F23", ON_SHM, SIZE(3), .mode = TEST_UNJOINED),
    CASE(another_secret, "F24", ON_SHM, SIZE(3), .mode = TEST_UNJOINED),
};
FAULT_COUNT(start);
