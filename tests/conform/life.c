/* Life: docs/semantics.md S46, S47 and S48. */
#include "conform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const double PATIENCE_S = 20;

/* ---- S46 ---- */

/* A ring of puts in one world. */
static bool use_world(coh_world *world)
{
    int *box, rank = coh_rank(world), size = coh_size(world);
    if (!CHECK_OK(coh_malloc(world, sizeof *box, (void **)&box)))
        return false;
    return CHECK_OK(coh_put(world, box, &rank, sizeof rank, (rank + 1) % size))
           && CHECK_OK(coh_barrier(world)) && CHECK_EQ(*box, (rank + size - 1) % size)
           && CHECK_OK(coh_free(world, box));
}

static void use_and_finalize(test_rank *self)
{
    if (CHECK_EQ(coh_size(self->world), self->size) && use_world(self->world))
        CHECK_OK(coh_finalize(self->world));
}

static void crews_one_after_another(test_rank *self)
{
    static const int sizes[] = {2, 1, 5, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !test_failed(); i++)
        test_crew(self, sizes[i], use_and_finalize);
}

static bool join_as(test_rank *self, int id, int rank, int size, coh_world **world)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    return CHECK_OK(coh_init_unique_id(&self->ids[id], rank, size, &options, world));
}

/* This rank in a world of another order. Rank 0 stays where the id was made, if that is a host. */
static int reversed(const test_rank *self)
{
    if (test_bed)
        return self->rank == 0 ? 0 : self->size - self->rank;
    return self->size - 1 - self->rank;
}

/* All ranks, then all but the last, then all in reverse order. */
static void jobs_one_after_another(test_rank *self)
{
    coh_world *world;
    if (!join_as(self, 0, self->rank, self->size, &world) || !use_world(world)
        || !CHECK_OK(coh_finalize(world)))
        return;
    if (self->rank < self->size - 1
        && (!join_as(self, 1, self->rank, self->size - 1, &world) || !use_world(world)
            || !CHECK_OK(coh_finalize(world))))
        return;
    if (join_as(self, 2, reversed(self), self->size, &world) && use_world(world))
        CHECK_OK(coh_finalize(world));
}

static void two_jobs_at_once(test_rank *self)
{
    coh_world *one, *two;
    if (!join_as(self, 0, self->rank, self->size, &one)
        || !join_as(self, 1, reversed(self), self->size, &two))
        return;
    CHECK_EQ(coh_rank(one), self->rank);
    CHECK_EQ(coh_rank(two), reversed(self));
    for (int i = 0; i < 20; i++)
        if (!use_world(one) || !use_world(two))
            return;
    CHECK_OK(coh_finalize(one));
    if (use_world(two))
        CHECK_OK(coh_finalize(two));
}

static void two_crews_body(test_rank *self)
{
    coh_world *const *others = *(coh_world ***)self->shared;
    for (int i = 0; i < 20; i++)
        if (!use_world(self->world) || !use_world(others[self->rank]))
            return;
    CHECK_OK(coh_finalize(self->world));
    if (use_world(others[self->rank]))
        CHECK_OK(coh_finalize(others[self->rank]));
}

static void two_crews_at_once(test_rank *self)
{
    coh_world *worlds[3];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    if (!CHECK_OK(coh_init_threads(3, &options, worlds)))
        return;
    *(coh_world ***)self->shared = worlds;
    test_crew(self, 3, two_crews_body);
}

/* Rank 0 leaves with puts under way; the others see them arrive before they leave too. */
static void finalize_completes(test_rank *self)
{
    enum { WORDS = 500 };
    uint64_t *words, *source = malloc(WORDS * sizeof *source);
    if (!CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words)))
        return;
    if (self->rank == 0) {
        for (size_t i = 0; i < WORDS; i++) {
            source[i] = i + 1;
            for (int to = 1; to < self->size; to++)
                CHECK_OK(coh_put_nbi(self->world, &words[i], &source[i], sizeof *words, to));
        }
    } else {
        for (size_t i = 0; i < WORDS; i++)
            if (!CHECK(test_await_word(&words[i], i + 1, PATIENCE_S)))
                break;
    }
    CHECK_OK(coh_finalize(self->world));
    self->world = NULL;
    free(source);
}

/* A long message that both sides have started is whole when they have left. */
static void finalize_moves_messages(test_rank *self)
{
    enum { BYTES = 8 << 20 };
    unsigned char *memory = malloc(BYTES);
    coh_request *request = NULL;
    coh_team *team = coh_team_world(self->world);
    memset(memory, self->rank == 0 ? 7 : 0, BYTES);
    if (self->rank == 0 && self->seed % 2)
        test_sleep(0.02);
    if (self->rank == 0)
        CHECK_OK(coh_send_start(team, 1, 5, memory, BYTES, &request));
    if (self->rank == 1)
        CHECK_OK(coh_receive_start(team, 0, 5, memory, BYTES, &request));
    CHECK_OK(coh_finalize(self->world));
    self->world = NULL;
    for (size_t i = 0; i < BYTES && self->rank == 1; i++)
        if (!CHECK_EQ(memory[i], 7))
            break;
    free(memory);
}

static void finalize_twice(test_rank *self)
{
    void *memory;
    coh_heap_stats stats = {.size = sizeof stats};
    coh_world *world = self->world;
    CHECK_OK(coh_barrier(world));
    CHECK_OK(coh_finalize(world));
    self->world = NULL;
    CHECK_OK(coh_finalize(world));
    CHECK_EQ(coh_rank(world), -1);
    CHECK_EQ(coh_size(world), -1);
    CHECK(coh_engine(world) == NULL);
    CHECK_REFUSED(coh_barrier(world), COH_FINALIZED, "barrier");
    CHECK_REFUSED(coh_sync(world), COH_FINALIZED, "sync");
    CHECK_REFUSED(coh_fence(world), COH_FINALIZED, "fence");
    CHECK_REFUSED(coh_quiet(world), COH_FINALIZED, "quiet");
    CHECK_REFUSED(coh_malloc(world, 1, &memory), COH_FINALIZED, "malloc");
    CHECK_REFUSED(coh_free(world, &memory), COH_FINALIZED, "free");
    CHECK_REFUSED(coh_put(world, &memory, &memory, 1, 0), COH_FINALIZED, "put");
    CHECK_REFUSED(coh_get(world, &memory, &memory, 1, 0), COH_FINALIZED, "get");
    CHECK_REFUSED(coh_ptr(world, &memory, 0, &memory), COH_FINALIZED, "ptr");
    CHECK_REFUSED(coh_heap_query(world, &stats), COH_FINALIZED, "coh_heap_");
    CHECK_STATUS(coh_global_exit(world, 3), COH_FINALIZED);
    CHECK_OK(coh_finalize(world));
}

static void singleton(test_rank *self)
{
    coh_world *world, *again;
    (void)self;
    if (!CHECK_OK(coh_init(NULL, &world)))
        return;
    CHECK_EQ(coh_rank(world), 0);
    CHECK_EQ(coh_size(world), 1);
    CHECK_EQ(coh_local_rank(world), 0);
    CHECK_EQ(coh_local_size(world), 1);
    CHECK(use_world(world));
    CHECK_OK(coh_init(NULL, &again));
    CHECK(use_world(again));
    CHECK_OK(coh_finalize(world));
    CHECK(use_world(again));
    CHECK_OK(coh_finalize(again));
}

/* A launcher that cannot be joined: an error, or a world of one where that was asked for. */
static void fall_back(test_rank *self)
{
    coh_world *world = NULL;
    coh_options options = COH_OPTIONS_INIT;
    (void)self;
    setenv("COHORT_RANK", "1", 1);
    setenv("COHORT_SIZE", "2", 1);
    setenv("COHORT_JOB_FD", "873", 1);
    CHECK(coh_init(&options, &world) != COH_OK);
    CHECK_SAYS("873");
    CHECK(world == NULL);
    options.fall_back = 1;
    if (!CHECK_OK(coh_init(&options, &world)))
        return;
    CHECK_EQ(coh_size(world), 1);
    CHECK(use_world(world));
    CHECK_OK(coh_finalize(world));
}

/* Below another launcher, whose ranks would each be a world of one: the same choice. */
static void other_launchers(test_rank *self)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    coh_world *world = NULL;
    coh_options options = COH_OPTIONS_INIT;
    (void)self;
    setenv("SLURM_PROCID", "3", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setenv(sizes[i], "3", 1);
        options.fall_back = 0;
        CHECK_EQ(coh_init(&options, &world), COH_NOT_AVAILABLE);
        CHECK_SAYS(sizes[i]);
        CHECK_SAYS("cohort run");
        CHECK_SAYS("fall_back");
        CHECK(world == NULL);
        options.fall_back = 1;
        if (CHECK_OK(coh_init(&options, &world)))
            CHECK_OK(coh_finalize(world));
        world = NULL;
        setenv(sizes[i], "1", 1);
    }
    if (CHECK_OK(coh_init(NULL, &world)))
        CHECK_OK(coh_finalize(world));
}

static void facts(test_rank *self)
{
    int major, minor, patch;
    char version[64];
    CHECK_EQ(coh_rank(self->world), self->rank);
    CHECK_EQ(coh_size(self->world), self->size);
    int before = 0, here = 0;
    for (int rank = 0; rank < self->size; rank++) {
        bool near = test_hosts == 0 || test_same_host(self, rank);
        before += near && rank < self->rank;
        here += near;
    }
    CHECK_EQ(coh_local_rank(self->world), before);
    CHECK_EQ(coh_local_size(self->world), here);
    const char *engine = strcmp(self->engine, "nvshmem") == 0 ? "shm+nvshmem" : self->engine;
    CHECK(strcmp(coh_engine(self->world), engine) == 0);
    coh_version(&major, &minor, &patch);
    coh_version(NULL, NULL, NULL);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    CHECK(strcmp(version, coh_version_string()) == 0);
    CHECK_EQ(major, COH_VERSION_MAJOR);
}

/* ---- S47 ---- */

/* What a forked child may do with its parent's world: nothing. Its findings reach the shared
 * page. */
static void child_is_refused(coh_world *world, void *memory)
{
    char byte = 0;
    void *other;
    CHECK_REFUSED(coh_put(world, memory, &byte, 1, 0), COH_FORKED, "put");
    CHECK_REFUSED(coh_get(world, &byte, memory, 1, 0), COH_FORKED, "get");
    CHECK_REFUSED(coh_barrier(world), COH_FORKED, "barrier");
    CHECK_REFUSED(coh_sync(world), COH_FORKED, "sync");
    CHECK_REFUSED(coh_quiet(world), COH_FORKED, "quiet");
    CHECK_REFUSED(coh_malloc(world, 10, &other), COH_FORKED, "malloc");
    CHECK_REFUSED(coh_free(world, memory), COH_FORKED, "free");
    CHECK_STATUS(coh_global_exit(world, 9), COH_FORKED);
    CHECK_STATUS(coh_finalize(world), COH_FORKED);
}

static void check_child(pid_t child)
{
    int status = -1;
    if (CHECK(child > 0) && CHECK_EQ(waitpid(child, &status, 0), child))
        CHECK_EQ(status, 0);
}

static void fork_is_harmless(test_rank *self)
{
    void *memory;
    if (!CHECK_OK(coh_malloc(self->world, 100, &memory)))
        return;
    pid_t child = fork();
    if (child == 0) {
        child_is_refused(self->world, memory);
        _exit(0);
    }
    check_child(child);
    for (int i = 0; i < 10 && use_world(self->world); i++)
        continue;
    CHECK_OK(coh_free(self->world, memory));
}

/* What only a thread of the parent knew looks leaked in the child: the leak sanitizer asks
 * this first. */
static int leaks_do_not_count;

__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return leaks_do_not_count;
}

/* A child that ends through exit(3): handlers that the library registered must leave the job
 * alone. */
static void forked_child_may_exit(test_rank *self)
{
    CHECK_OK(coh_barrier(self->world));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        leaks_do_not_count = 1;
        exit(0);
    }
    check_child(child);
    CHECK(use_world(self->world));
}

static void exec_is_harmless(test_rank *self)
{
    CHECK_OK(coh_barrier(self->world));
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    check_child(child);
    CHECK(use_world(self->world));
}

static bool is_a_librarys(const char *target)
{
    return strstr(target, "memfd:") || strstr(target, "socket:") || strstr(target, "anon_inode:");
}

/* Kinds of descriptors that only the library opens here must all be close-on-exec. */
static void descriptors_close_on_exec(test_rank *self)
{
    char path[300], target[256];
    if (strcmp(self->engine, "ucx") == 0 || strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip(
            "the library behind the engine opens its descriptors itself, and lets them survive "
            "exec");
        return;
    }
    CHECK_OK(coh_barrier(self->world));
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        int fd = atoi(entry->d_name);
        if (length <= 0 || fd <= STDERR_FILENO)
            continue;
        target[length] = '\0';
        if (is_a_librarys(target) && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            test_fail("descriptor %d (%s) would survive exec", fd, target);
    }
    if (folder)
        closedir(folder);
    CHECK_OK(coh_barrier(self->world));
}

/* ---- S48 ---- */

static void ignore_signal(int number)
{
    (void)number;
}

static void set_storm(long microseconds)
{
    struct itimerval every = {.it_interval.tv_usec = microseconds,
                              .it_value.tv_usec = microseconds};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

/* Signals all the time, without SA_RESTART: no call may notice. */
static void signals_all_the_time(test_rank *self)
{
    struct sigaction action = {.sa_handler = ignore_signal};
    sigaction(SIGALRM, &action, NULL);
    set_storm(300);
    int rounds = test_scaled(self, 300);
    for (int i = 0; i < rounds && !test_failed(); i++) {
        if (i % 16 == self->rank)
            test_sleep(0.002); /* the others sleep in their calls */
        if (!use_world(self->world))
            break;
    }
    CHECK_OK(coh_barrier(self->world));
    set_storm(0);
}

/* The same while the ranks find each other. */
static void signals_while_joining(test_rank *self)
{
    struct sigaction action = {.sa_handler = ignore_signal};
    sigaction(SIGALRM, &action, NULL);
    set_storm(300);
    if (self->rank == 0)
        test_sleep(0.2);
    if (!CHECK_OK(test_join(self)))
        return;
    use_world(self->world);
    CHECK_OK(coh_finalize(self->world));
    set_storm(0);
}

enum { STREAMS = 3, KEPT_AT = 700 };

static void close_streams(void)
{
    for (int fd = 0; fd < STREAMS; fd++) {
        fcntl(fd, F_DUPFD_CLOEXEC, KEPT_AT + fd);
        close(fd);
    }
}

static void reopen_streams(void)
{
    for (int fd = 0; fd < STREAMS; fd++) {
        if (!CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF))
            test_fail("descriptor %d, which was closed, is in use", fd);
        dup2(KEPT_AT + fd, fd);
        close(KEPT_AT + fd);
    }
}

static void closed_streams(test_rank *self)
{
    if (strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip("the engine opens /dev/null in the place of closed streams: MPI would take their "
                  "numbers");
        return;
    }
    close_streams();
    if (CHECK_OK(test_join(self))) {
        use_world(self->world);
        CHECK_OK(coh_finalize(self->world));
    }
    reopen_streams();
}

static void closed_streams_crew(test_rank *self)
{
    close_streams();
    test_crew(self, 3, use_and_finalize);
    reopen_streams();
}

const test_case conform_life[] = {
    CASE(crews_one_after_another, "S46", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(jobs_one_after_another, "S46", ON_PROCESSES, FROM_TWO, .mode = TEST_UNJOINED),
    CASE(two_jobs_at_once, "S46", ON_PROCESSES, ANY_SIZE, .mode = TEST_UNJOINED),
    CASE(two_crews_at_once, "S46", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
    CASE(finalize_completes, "S46", ON_MEMORY, ANY_SIZE),
    CASE(finalize_moves_messages, "S46", ON_MAPPED, FROM_TWO),
    CASE(finalize_twice, "S46 F17", ON_ALL, ANY_SIZE),
    CASE(singleton, "S46", ON_SHM, SIZE(1), .mode = TEST_ALONE),
    CASE(fall_back, "S46", ON_SHM, SIZE(1), .mode = TEST_ALONE),
    CASE(other_launchers, "S46 F38", ON_SHM, SIZE(1), .mode = TEST_ALONE),
    CASE(facts, "S46", ON_ALL, ANY_SIZE),
    CASE(fork_is_harmless, "S47 F26", ON_MEMORY, SIZE(1) | SIZE(3)),
    CASE(forked_child_may_exit, "S47", ON_PROCESSES, SIZE(1) | SIZE(3)),
    CASE(exec_is_harmless, "S47", ON_MEMORY, SIZE(1) | SIZE(3)),
    CASE(descriptors_close_on_exec, "S47", ON_MEMORY, SIZE(3)),
    CASE(signals_all_the_time, "S48 F26", ON_MEMORY, SIZE(1) | SIZE(3) | SIZE(4), .limit_s = 60),
    CASE(signals_while_joining, "S48 F26", ON_PROCESSES, FROM_TWO, .mode = TEST_UNJOINED),
    CASE(closed_streams, "S48", ON_PROCESSES, SIZE(1) | SIZE(3), .mode = TEST_UNJOINED),
    CASE(closed_streams_crew, "S48", ON_THREADS | ON_SIM, SIZE(3), .mode = TEST_ALONE),
};
CONFORM_COUNT(life);
