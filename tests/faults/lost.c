/* Ranks that are lost: docs/faults.md F1, F7, F8, F10, F13 and F26. */
#include "faults.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM_RANK = 1 };

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t ready;
    _Atomic uint64_t finished;
    char path[64];
};

/* What must hold for a survivor once it knows. */
static void after_the_loss(test_rank *self, int lost)
{
    coh_peer_state state = COH_PEER_ALIVE;
    char text[128] = "";
    void *memory;
    double began = test_now();
    CHECK_STATUS(coh_barrier(self->world), COH_PEER_LOST); /* sticky */
    CHECK_STATUS(coh_malloc(self->world, 10, &memory), COH_PEER_LOST);
    CHECK_OK(coh_peer_query(self->world, lost, &state, text, sizeof text));
    CHECK_EQ(state, COH_PEER_GONE);
    CHECK(strlen(text) > 0);
    (void)coh_finalize(self->world); /* it may report the loss; it must come back */
    CHECK(test_now() - began < 5);
}

/* The hook of COHORT_FAULT strikes rank 1 somewhere in the program. */
static void lost_in_program(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_status status = fault_program(self, scene->stamps, 20);
    if (status == COH_OK && strstr(self->row->environment, "finalize")) {
        fault_stamp(&scene->stamps[self->rank]);
        fault_check_lost(coh_finalize(self->world), VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
        return;
    }
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        after_the_loss(self, VICTIM_RANK);
}

/* A crash must be a signal's, not a sanitizer's exit. */
static void crash_in_program(test_rank *self)
{
    signal(SIGSEGV, SIG_DFL);
    lost_in_program(self);
}

/* Another host sees no more than that a link broke, and may tell it first. */
static bool knows_why(const test_rank *self)
{
    return !test_has_links(self->engine);
}

static void exit_in_program(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_status status = fault_program(self, scene->stamps, 20);
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        CHECK_SAYS(knows_why(self) ? "exited without finalize" : "lost");
    (void)coh_finalize(self->world);
}

/* Rank 1 returns from main, so to speak. */
static void returns_without_finalize(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_status status = coh_barrier(self->world); /* may be hit already: the victim runs ahead */
    fault_stamp(&scene->stamps[self->rank]);
    if (self->rank == VICTIM_RANK)
        return;
    if (status == COH_OK)
        status = coh_barrier(self->world);
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK])
        && strcmp(self->engine, "shm") == 0)
        CHECK_SAYS(knows_why(self) ? "exited without finalize" : "lost");
    (void)coh_finalize(self->world);
}

/* ---- the process is there, and the rank is not ---- */

static void never_return(void)
{
    for (;;)
        pause();
}

static void exec_another(void)
{
    execl("/bin/sleep", "sleep", "20", (char *)NULL);
}

static void end_main_thread(void)
{
    pthread_exit(NULL);
}

/* What runs at exit was registered before Cohort was. */
static void exit_for_ever(void)
{
    exit(0);
}

static void gone_in_a_way(test_rank *self, void (*go)(void), const char *words)
{
    struct scene *scene = self->shared;
    if (go == exit_for_ever && self->rank == VICTIM_RANK)
        atexit(never_return);
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == VICTIM_RANK)
        fault_let_others_out();
    fault_stamp(&scene->stamps[self->rank]);
    if (self->rank == VICTIM_RANK)
        go();
    CHECK_REFUSED(coh_barrier(self->world), COH_PEER_LOST, knows_why(self) ? words : "rank 1");
    double took = fault_since(&scene->stamps[VICTIM_RANK]);
    if (took > LOSS_LIMIT_S + 0.5)
        test_fail("the loss was learnt after %.2f s; the deadline is %.1f s", took, LOSS_LIMIT_S);
    (void)coh_finalize(self->world);
}

static void replaced_by_exec(test_rank *self)
{
    if (fault_is_told(self, VICTIM_RANK)) /* it keeps the engine's sockets open */
        gone_in_a_way(self, exec_another, "rank 1|another program");
}

static void main_thread_ends(test_rank *self)
{
    gone_in_a_way(self, end_main_thread, "rank 1|without finalize");
}

static void exit_handler_never_returns(test_rank *self)
{
    gone_in_a_way(self, exit_for_ever, "rank 1|without finalize");
}

/* ---- a process that ends slowly ---- */

static const double BUSY_S = 1.5;

static void stay_on_first_core(void)
{
    cpu_set_t cores;
    size_t first = 0;
    if (!CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0))
        return;
    while (!CPU_ISSET(first, &cores))
        first++;
    CPU_ZERO(&cores);
    CPU_SET(first, &cores);
    CHECK(sched_setaffinity(0, sizeof cores, &cores) == 0);
}

/* Takes the core only while nobody else wants it, also to end there. */
static void *wait_at_the_back(void *ready)
{
    struct sched_param none = {.sched_priority = 0};
    stay_on_first_core();
    CHECK(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
    atomic_store((_Atomic uint64_t *)ready, 1);
    never_return();
    return NULL;
}

static void *keep_core_busy(void *ready)
{
    double until = test_now() + BUSY_S;
    stay_on_first_core();
    atomic_store((_Atomic uint64_t *)ready, 1);
    while (test_now() < until)
        continue;
    return NULL;
}

/* One of the threads of the rank that is killed has no core to end on, while the one that stands for its
 * program has ended: it is not taken for one that runs another. */
static void killed_and_ends_slowly(test_rank *self)
{
    struct scene *scene = self->shared;
    bool victim = self->rank == VICTIM_RANK;
    pthread_t thread;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (victim && CHECK(pthread_create(&thread, NULL, wait_at_the_back, &scene->ready) == 0)
        && CHECK(test_await(&scene->finished, 1, 10)))
        raise(SIGKILL);
    if (!CHECK(test_await(&scene->ready, 1, 10)))
        return;
    bool busy = self->rank == 0
                && CHECK(pthread_create(&thread, NULL, keep_core_busy, &scene->finished) == 0);
    CHECK_REFUSED(coh_barrier(self->world), COH_PEER_LOST,
                  knows_why(self) ? "rank 1|its process ended" : "rank 1");
    (void)coh_finalize(self->world);
    if (busy)
        CHECK(pthread_join(thread, NULL) == 0);
}

/* Nobody meets anybody: only puts, to all ranks in turn, until one is refused. */
static void killed_in_puts(test_rank *self)
{
    struct scene *scene = self->shared;
    uint64_t *words;
    if (strcmp(self->engine, "mpi:openmpi") == 0) {
        test_skip("Open MPI ends a process now and then that has more to send to one that was "
                  "killed");
        return;
    }
    if (!CHECK_OK(test_join(self))
        || !CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words)))
        return;
    atomic_fetch_add(&scene->ready, 1); /* all are out of the allocation before one is struck */
    CHECK(test_await(&scene->ready, (uint64_t)self->size, 10));
    coh_status status = COH_OK;
    double until = test_now() + 20;
    for (uint64_t i = 0; status == COH_OK && test_now() < until; i++) {
        fault_stamp(&scene->stamps[self->rank]);
        for (int rank = 0; status == COH_OK && rank < self->size; rank++)
            status = coh_put(self->world, &words[self->rank], &i, sizeof i, rank);
    }
    if (!fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]))
        return;
    uint64_t value = 5; /* pairs without the lost rank go on */
    int other = self->rank == 0 ? 2 : 0;
    CHECK_OK(coh_put(self->world, &words[self->rank], &value, sizeof value, other));
    CHECK_OK(coh_get(self->world, &value, &words[self->rank], sizeof value, self->rank));
    atomic_fetch_add(&scene->finished, 1);
    test_await(&scene->finished, (uint64_t)self->size - 1, 5); /* nobody else leaves before */
    after_the_loss(self, VICTIM_RANK);
}

/* Killed in a barrier that the others are in already, by a signal from outside. */
static void waits_in_barrier(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    if (self->rank == VICTIM_RANK) {
        test_sleep(0.05);
        fault_stamp(&scene->stamps[self->rank]);
        raise(SIGKILL);
    }
    coh_status status = coh_barrier(self->world);
    if (fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK])) {
        CHECK_SAYS("barrier");
        after_the_loss(self, VICTIM_RANK);
    }
}

/* Ranks 0 and 1 are one job, 2 and 3 another; rank 1 dies. Then the survivors start a third. */
static bool barriers_until(coh_world *world, int count, coh_status *status)
{
    *status = COH_OK;
    for (int i = 0; i < count && *status == COH_OK; i++)
        *status = coh_barrier(world);
    return *status == COH_OK;
}

static bool join_job(test_rank *self, int id, int rank, int size, coh_world **world)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    return CHECK_OK(coh_init_unique_id(&self->ids[id], rank, size, &options, world));
}

static void jobs_are_independent(test_rank *self)
{
    struct scene *scene = self->shared;
    coh_status status;
    coh_world *world;
    bool first = self->rank < 2;
    if (test_bed) {
        test_skip("rank 0 of each job would have to be where the ids were made");
        return;
    }
    if (strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip("MPI_Init waits for all processes of MPI's job, the one that was killed too");
        return;
    }
    if (!join_job(self, first ? 0 : 1, self->rank % 2, 2, &world))
        return;
    fault_stamp(&scene->stamps[self->rank]);
    if (self->rank == VICTIM_RANK)
        raise(SIGKILL);
    barriers_until(world, 300, &status);
    if (first)
        fault_check_lost(status, 1, &scene->stamps[VICTIM_RANK]);
    else
        CHECK_OK(status);
    coh_status left = coh_finalize(world);
    CHECK(first || left == COH_OK);
    if (!join_job(self, 2, self->rank == 0 ? 0 : self->rank - 1, 3, &world))
        return;
    CHECK(barriers_until(world, 300, &status));
    CHECK_OK(coh_finalize(world));
}

/* ---- a thread that is a rank of two crews ---- */

enum { CREWS = 2 };

typedef coh_world *crew[2];

/* Rank 1 of both: it meets rank 0 in each and ends without finalize. */
static void *meet_and_end(void *arg)
{
    crew *crews = arg;
    for (int i = 0; i < CREWS; i++)
        CHECK_OK(coh_barrier(crews[i][1]));
    return NULL;
}

static void thread_of_two_crews_ends(test_rank *self)
{
    crew crews[CREWS];
    pthread_t thread;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    for (int i = 0; i < CREWS; i++)
        if (!CHECK_OK(coh_init_threads(2, &options, crews[i])))
            return;
    if (!CHECK(pthread_create(&thread, NULL, meet_and_end, crews) == 0))
        return;
    for (int i = 0; i < CREWS; i++)
        CHECK_OK(coh_barrier(crews[i][0]));
    for (int i = 0; i < CREWS; i++)
        CHECK_REFUSED(coh_barrier(crews[i][1]), COH_WRONG_THREAD, "rank 0");
    pthread_join(thread, NULL);
    for (int i = 0; i < CREWS; i++)
        CHECK_REFUSED(coh_barrier(crews[i][0]), COH_PEER_LOST, "rank 1|thread ended");
    for (int i = 0; i < CREWS; i++) {
        (void)coh_finalize(crews[i][0]); /* they may report the loss; they must come back */
        (void)coh_finalize(crews[i][1]);
    }
}

/* ---- global exit ---- */

enum { EXIT_CODE = 42 };

/* Rank 2 leaves something in a stdio buffer, which must reach the file. */
static void write_unflushed(struct scene *scene)
{
    const char *folder = getenv("TMPDIR");
    snprintf(scene->path, sizeof scene->path, "%s/cohort-test-XXXXXX", folder ? folder : P_tmpdir);
    int fd = mkstemp(scene->path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (CHECK(file != NULL))
        fputs("flushed", file);
}

static void exits_globally(test_rank *self)
{
    struct scene *scene = self->shared;
    void *memory;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == 2)
        write_unflushed(scene);
    atomic_fetch_add(&scene->ready, 1);
    test_await(&scene->ready, (uint64_t)self->size, 10);
    if (self->rank == 0)
        (void)coh_barrier(self->world);
    else if (self->rank == 3)
        (void)coh_malloc(self->world, 100, &memory);
    else if (self->rank == 1)
        CHECK_OK(coh_global_exit(self->world, EXIT_CODE));
    test_sleep(10); /* busy outside Cohort; ended from there */
    test_fail("outlived the global exit by 10 s");
}

static void await_flushed(test_job *job)
{
    struct scene *scene = job->shared;
    char text[16] = "";
    double until = test_now() + 10;
    while (strcmp(text, "flushed") != 0 && test_now() < until) {
        test_sleep(0.01);
        FILE *file = scene->path[0] ? fopen(scene->path, "re") : NULL;
        if (!file)
            continue;
        if (!fgets(text, sizeof text, file))
            text[0] = '\0';
        fclose(file);
    }
    if (strcmp(text, "flushed") != 0)
        test_fail("a stdio buffer was not flushed at global exit");
    unlink(scene->path);
}

static void exit_code_out_of_range(test_rank *self)
{
    CHECK_REFUSED(coh_global_exit(self->world, 256), COH_INVALID_ARGUMENT, "256|255");
    CHECK_REFUSED(coh_global_exit(self->world, -1), COH_INVALID_ARGUMENT, "-1|255");
    CHECK_OK(coh_barrier(self->world));
}

#define STRUCK(row_name, function, faults, row_names)                                             \
    {                                                                                             \
        .name = row_name, .rows = row_names, .body = function, .engines = ON_PROCESSES,           \
        .sizes = SIZE(4), .mode = TEST_UNJOINED, .environment = "COHORT_FAULT=" faults ",rank=1", \
        .victims = VICTIM(VICTIM_RANK)                                                            \
    }
#define KILLED_IN(operation) \
    STRUCK("killed_in_" operation, lost_in_program, "kill@" operation ":2", "F1")

const test_case fault_lost[] = {
    KILLED_IN("malloc"),
    KILLED_IN("calloc"),
    KILLED_IN("align"),
    KILLED_IN("realloc"),
    KILLED_IN("free"),
    KILLED_IN("put"),
    KILLED_IN("get"),
    KILLED_IN("fence"),
    KILLED_IN("quiet"),
    KILLED_IN("sync"),
    KILLED_IN("barrier"),
    STRUCK("killed_in_finalize", lost_in_program, "kill@finalize", "F1"),
    STRUCK("killed_in_puts", killed_in_puts, "kill@put:2000", "F1"),
    STRUCK("exits_in_barrier", exit_in_program, "exit@barrier:3", "F7"),
    STRUCK("exits_in_put", exit_in_program, "exit@put:3", "F7"),
    STRUCK("crashes_in_barrier", crash_in_program, "crash@barrier:3", "F8"),
    STRUCK("crashes_in_get", crash_in_program, "crash@get:3", "F8"),
    CASE(waits_in_barrier, "F1", ON_PROCESSES, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(returns_without_finalize, "F7 F26", ON_MEMORY, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(jobs_are_independent, "F13", ON_PROCESSES, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(replaced_by_exec, "F1 F7", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(killed_and_ends_slowly, "F1", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(main_thread_ends, "F1 F7", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(exit_handler_never_returns, "F1 F7", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(thread_of_two_crews_ends, "F7", ON_THREADS, SIZE(1), .mode = TEST_ALONE, .limit_s = 20),
    CASE(exits_globally, "F10", ON_PROCESSES | ON_THREADS, SIZE(4), .mode = TEST_UNJOINED,
         .exit_code = EXIT_CODE, .director = await_flushed),
    CASE(exit_code_out_of_range, "F10", ON_PROCESSES | ON_THREADS, SIZE(2), .limit_s = 30),
};
FAULT_COUNT(lost);
