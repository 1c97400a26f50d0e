/* process.c - MLX in this process: its group, and the one thread that calls it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "engine/mlx/mlx.h"
#include "engine/modules/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* How long MLX has to give up once its connections have ended. */
#define GIVE_UP_NS COHI_NS_PER_S

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t change;                            /* of `work` */
static bool started;                                     /* the thread is */
static void (*work)(void *arg); /* what it has to do, or does; NULL: nothing */
static void *work_arg;
static const cohi_mlx_shim *shim;
static struct {
    bool joined;
    bool kept; /* MLX has it still from an earlier world, connections and all */
    bool own;  /* made by the world, at ports of its own */
    int rank, size;
    cohi_mlx_sockets sockets;
} group;

const cohi_mlx_shim *cohi_mlx_inside(void)
{
    return shim;
}

cohi_mlx_sockets *cohi_mlx_connections(void)
{
    return &group.sockets;
}

bool cohi_mlx_is_joined(int *rank, int *size)
{
    *rank = group.rank;
    *size = group.size;
    return group.joined;
}

/* ---- the thread ---- */

static void *serve(void *arg)
{
    (void)arg;
    cohi_os_thread_serves(true);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!work)
            pthread_cond_wait(&change, &lock);
        pthread_mutex_unlock(&lock);
        work(work_arg);
        pthread_mutex_lock(&lock);
        work = NULL;
        pthread_cond_broadcast(&change);
    }
    return NULL;
}

/* It ends with the process: MLX's streams are those of one thread. */
static int start_thread(void)
{
    pthread_t thread;
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &by_clock);
    pthread_condattr_destroy(&by_clock);
    int error = cohi_os_thread_start("cohort-mlx", serve, NULL, &thread);
    if (!error)
        pthread_detach(thread);
    return error;
}

coh_status cohi_mlx_begin(void (*given)(void *arg), void *arg)
{
    coh_status status = cohi_mlx_library_open(&shim);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&lock);
    int error = started ? 0 : start_thread();
    started = started || !error;
    if (error)
        status = cohi_fail_os(error, "%s: cannot start the thread for MLX", cohi_mlx_name);
    else if (work)
        status = cohi_fail(COH_NOT_AVAILABLE,
                           "%s: MLX has not come back from an earlier call in this process",
                           cohi_mlx_name);
    if (status == COH_OK) {
        work = given;
        work_arg = arg;
        pthread_cond_broadcast(&change);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

bool cohi_mlx_await(uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / COHI_NS_PER_S),
                             .tv_nsec = (long)(until_ns % COHI_NS_PER_S)};
    int error = 0;
    pthread_mutex_lock(&lock);
    while (work && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&change, &lock, &until);
    bool over = !work;
    pthread_mutex_unlock(&lock);
    return over;
}

/* ---- the end of the process ---- */

static struct {
    void (*stop)(void *arg);
    void *arg;
    pid_t process;
} ending;

/* Not in a child that was forked, which has no such thread. */
static void stop_at_exit(void)
{
    if (ending.stop && ending.process == getpid())
        ending.stop(ending.arg);
}

coh_status cohi_mlx_at_exit(void (*stop)(void *arg), void *arg)
{
    static bool registered;
    if (stop && !registered && atexit(stop_at_exit) != 0)
        return cohi_fail(COH_NO_MEMORY, "%s: no room to have MLX stopped at exit", cohi_mlx_name);
    registered = registered || stop;
    ending.stop = stop;
    ending.arg = arg;
    ending.process = getpid();
    return COH_OK;
}

/* ---- waiting for MLX ---- */

/* MLX took too long: whatever it does with its connections is to fail. */
static void give_up(const cohi_mlx_sockets *connections)
{
    cohi_mlx_sockets_sever(connections);
    (void)cohi_mlx_await(cohi_now_ns() + GIVE_UP_NS);
}

/* ---- joining ---- */

/* What the thread works on; static, since a call that never comes back may still write to it. */
static struct {
    bool ok;
    int rank, size;
    char error[COHI_MLX_ERROR_BYTES];
} joining;

static void join(void *arg)
{
    cohi_threads before;
    (void)arg;
    cohi_threads_list(&before);
    joining.ok = shim->join(cohi_mlx_backend, &joining.rank, &joining.size, joining.error,
                            sizeof joining.error);
    cohi_threads_mark_new(&before);
}

/* A hostfile as MLX reads it, in memory. */
static int write_hostfile(const uint16_t *ports, int size)
{
    int fd = memfd_create("cohort-mlx-hosts", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    for (int rank = 0; rank < size; rank++)
        dprintf(fd, "%s[\"127.0.0.1:%u\"]%s", rank == 0 ? "[" : ", ", (unsigned)ports[rank],
                rank == size - 1 ? "]" : "");
    return fd;
}

static void set_variables(int fd, int rank)
{
    char path[64], number[16];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    snprintf(number, sizeof number, "%d", rank);
    setenv("MLX_HOSTFILE", path, 1);
    setenv("MLX_RANK", number, 1);
}

static coh_status fail_join(bool came_back, uint64_t began_ns, int rank)
{
    double waited_s = (double)(cohi_now_ns() - began_ns) / (double)COHI_NS_PER_S;
    const char *variable = getenv("MLX_RANK");
    int self = rank >= 0 ? rank : variable ? atoi(variable) : -1;
    if (came_back)
        return cohi_fail(COH_NOT_AVAILABLE, "%s: rank %d: MLX did not make its group: %s",
                         cohi_mlx_name, self, joining.error);
    if (self < 0)
        return cohi_fail(COH_TIMED_OUT, "%s: MLX has not made its group for %.1f s", cohi_mlx_name,
                         waited_s);
    return cohi_fail(COH_TIMED_OUT,
                     "%s: rank %d: MLX has not made its group for %.1f s: a rank that the hostfile "
                     "has did not come, perhaps the one before rank %d or after it",
                     cohi_mlx_name, self, waited_s, self);
}

/* Other back ends than the ring have connections that are none between ranks. */
static void take_connections(const cohi_mlx_fds *before)
{
    if (group.kept || strcmp(cohi_mlx_backend, "ring") != 0)
        return;
    cohi_mlx_sockets_find(before, &group.sockets);
    cohi_mlx_sockets_keep(&group.sockets);
}

static coh_status join_beside(const cohi_mlx_fds *before, uint64_t deadline_ns, int rank)
{
    uint64_t began_ns = cohi_now_ns();
    coh_status status = cohi_mlx_begin(join, NULL);
    if (status != COH_OK)
        return status;
    bool came_back = cohi_mlx_await(deadline_ns);
    if (!came_back) {
        cohi_mlx_sockets made;
        cohi_mlx_sockets_find(before, &made);
        give_up(&made);
    }
    if (!came_back || !joining.ok)
        return fail_join(came_back, began_ns, rank);
    group.joined = true;
    group.rank = joining.rank;
    group.size = joining.size;
    take_connections(before);
    return COH_OK;
}

static coh_status join_now(uint64_t deadline_ns, int rank)
{
    cohi_mlx_fds before;
    coh_status status =
        cohi_mlx_fds_list(&before)
            ? join_beside(&before, deadline_ns, rank)
            : cohi_fail(COH_NO_MEMORY, "%s: out of memory for a list of sockets", cohi_mlx_name);
    cohi_mlx_fds_free(&before);
    return status;
}

coh_status cohi_mlx_join(const uint16_t *ports, int rank, int size, uint64_t deadline_ns)
{
    if (group.joined)
        return COH_OK;
    int fd = ports ? write_hostfile(ports, size) : -1;
    if (ports && fd < 0)
        return cohi_fail_os(errno, "%s: rank %d cannot write a hostfile to memory", cohi_mlx_name,
                            rank);
    if (ports)
        set_variables(fd, rank);
    coh_status status = join_now(deadline_ns, ports ? rank : -1);
    if (ports) {
        unsetenv("MLX_HOSTFILE");
        unsetenv("MLX_RANK");
        cohi_os_close(fd);
    }
    group.own = ports != NULL;
    return status;
}

/* ---- parting ---- */

static struct {
    bool forget, keep;
} parting;

static void part(void *arg)
{
    (void)arg;
    shim->part(parting.forget, parting.keep);
    cohi_threads_unmark_ended();
}

/* MPI's end, which MLX's group brings, would wait for ranks that are gone. Nothing is begun where MLX has not come back
 * from an earlier call: that would fail, in place of the failure that is being told. */
void cohi_mlx_part(bool broken)
{
    if (!group.joined)
        return;
    bool is_mpi = strcmp(cohi_mlx_backend, "mpi") == 0;
    parting.forget = !is_mpi && (group.own || broken);
    parting.keep = is_mpi && broken;
    cohi_mlx_sockets_calm(&group.sockets, false);
    if (cohi_mlx_await(0) && cohi_mlx_begin(part, NULL) == COH_OK)
        (void)cohi_mlx_await(cohi_now_ns() + GIVE_UP_NS);
    group.joined = false;
    group.kept = !parting.forget;
    if (parting.forget)
        group.sockets.count = 0;
}

/* ---- one exchange ---- */

static struct {
    bool ok;
    size_t bytes;
    void *mine, *all; /* the module's own, for the same reason as above */
    char error[COHI_MLX_ERROR_BYTES];
} exchanging;

static void exchange(void *arg)
{
    cohi_threads before;
    void *mine, *all;
    (void)arg;
    cohi_threads_list(&before);
    exchanging.ok =
        shim->prepare(exchanging.bytes, &mine, &all, exchanging.error, sizeof exchanging.error);
    if (exchanging.ok) {
        memcpy(mine, exchanging.mine, exchanging.bytes);
        exchanging.ok = shim->gather(exchanging.error, sizeof exchanging.error);
    }
    if (exchanging.ok)
        memcpy(exchanging.all, all, exchanging.bytes * (size_t)group.size);
    cohi_threads_mark_new(&before); /* MLX starts some with the first operation */
}

static coh_status exchange_now(void *all, uint64_t deadline_ns)
{
    coh_status status = cohi_mlx_begin(exchange, NULL);
    if (status != COH_OK)
        return status;
    if (!cohi_mlx_await(deadline_ns)) {
        give_up(&group.sockets);
        return cohi_fail(COH_TIMED_OUT,
                         "%s: rank %d: the others did not come to MLX's first all_gather in time",
                         cohi_mlx_name, group.rank);
    }
    if (!exchanging.ok)
        return cohi_fail(COH_TRANSPORT, "%s: rank %d: MLX's first all_gather failed: %s",
                         cohi_mlx_name, group.rank, exchanging.error);
    memcpy(all, exchanging.all, exchanging.bytes * (size_t)group.size);
    return COH_OK;
}

coh_status cohi_mlx_exchange(const void *mine, size_t bytes, void *all, uint64_t deadline_ns)
{
    exchanging.bytes = bytes;
    exchanging.mine = malloc(bytes);
    exchanging.all = malloc(bytes * (size_t)group.size);
    if (!exchanging.mine || !exchanging.all) {
        free(exchanging.mine);
        free(exchanging.all);
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         group.size);
    }
    memcpy(exchanging.mine, mine, bytes);
    coh_status status = exchange_now(all, deadline_ns);
    if (cohi_mlx_await(0)) {
        free(exchanging.mine);
        free(exchanging.all);
    }
    return status;
}

/* ---- rank and size ---- */

/* A process that MLX's launcher has not started is a job of its own. */
static bool is_alone(void)
{
    static const struct {
        const char *backend;
        const char *variables[3];
    } rows[] = {
        {"ring", {"MLX_RANK", "MLX_HOSTFILE"}},
        {"mpi", {"OMPI_COMM_WORLD_SIZE"}},
        {"jaccl", {"MLX_RANK"}},
        {"nccl", {"MLX_RANK"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int j = 0; strcmp(rows[i].backend, cohi_mlx_backend) == 0 && rows[i].variables[j]; j++)
            if (getenv(rows[i].variables[j]))
                return false;
    return true;
}

static coh_status begin_job(uint64_t deadline_ns, int *rank, int *size)
{
    *rank = 0;
    *size = 1;
    if (is_alone())
        return COH_OK;
    coh_status status = cohi_mlx_library_look(NULL, 0);
    if (status == COH_OK)
        status = cohi_mlx_join(NULL, -1, 0, deadline_ns);
    if (status == COH_OK)
        (void)cohi_mlx_is_joined(rank, size);
    return status;
}

static coh_status share_job(void *bytes, size_t count, uint64_t deadline_ns)
{
    if (!group.joined)
        return COH_OK;
    unsigned char *all = malloc(count * (size_t)group.size);
    if (!all)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         group.size);
    coh_status status = cohi_mlx_exchange(bytes, count, all, deadline_ns);
    if (status == COH_OK)
        memcpy(bytes, all, count);
    free(all);
    return status;
}

/* The group goes on: the endpoint uses it. */
static void end_job(void)
{
}

const cohi_engine_job cohi_mlx_job = {
    .size = sizeof cohi_mlx_job,
    .begin = begin_job,
    .share = share_job,
    .end = end_job,
};
