#include "engine/mpi/mpi.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "engine/modules/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static const cohi_mpi_library *started;
static bool registered;      /* MPI is finalized at exit, where that is due */
static bool watched;         /* MPI_Finalize is noticed */
static int initialised_here; /* the process in which this module called MPI_Init_thread; 0: none */
static cohi_endpoint *endpoints;
static atomic_bool spoiled; /* a rank was lost, or a world not left in order */
static atomic_bool lost;    /* a rank: all hear of it, and MPI may abort whoever sends to it */

void cohi_mpi_lose_rank(void)
{
    atomic_store(&lost, true);
    cohi_mpi_spoil();
}

void cohi_mpi_spoil(void)
{
    atomic_store(&spoiled, true);
}

bool cohi_mpi_is_finalized(const cohi_mpi_library *library)
{
    int finalized = 0;
    return library->MPI_Finalized(&finalized) == MPI_SUCCESS && finalized;
}

/* ---- the end of MPI ---- */

static int copy_nothing(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

/* MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, while all of MPI still works. */
static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    pthread_mutex_lock(&lock);
    for (cohi_endpoint *endpoint = endpoints; endpoint; endpoint = endpoint->next)
        cohi_mpi_shut(endpoint);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static void watch_finalize(const cohi_mpi_library *library)
{
    int key;
    if (!watched
        && library->MPI_Comm_create_keyval(copy_nothing, on_finalize, &key, NULL) == MPI_SUCCESS)
        watched = library->MPI_Comm_set_attr(library->self, key, NULL) == MPI_SUCCESS;
}

/* ---- a session ---- */

/*
 * In MPI_Finalize MPICH stops locking before it deletes any attribute (4.0.2). An engine's thread that is in MPI at that
 * moment never gives back the lock that it has, and the process is aborted when that is destroyed: 6 of 100 programs
 * that finalized MPI at once after they had used a world. A session keeps MPI as it is until the session ends too. It
 * is held while worlds are open. Where the program's MPI_Finalize comes before the last of them is closed, MPI ends with
 * the process.
 */
#if defined(COHI_MPI_HAS_SESSIONS)
static MPI_Session session;
static int session_held; /* the process that holds it, or 0 */

static bool is_session_held(void)
{
    return session_held == (int)getpid();
}

static void hold_session(const cohi_mpi_library *library)
{
    bool may = library->MPI_Session_init && library->MPI_Session_finalize && !is_session_held();
    if (may
        && library->MPI_Session_init(MPI_INFO_NULL, library->errors_return, &session)
               == MPI_SUCCESS)
        session_held = (int)getpid();
}

static void end_session(const cohi_mpi_library *library)
{
    session_held = 0;
    (void)library->MPI_Session_finalize(&session);
}
#else
static bool is_session_held(void)
{
    return false;
}

static void hold_session(const cohi_mpi_library *library)
{
    (void)library;
}

static void end_session(const cohi_mpi_library *library)
{
    (void)library;
}
#endif

/* ---- the end, by this module ---- */

static void end_mpi(const cohi_mpi_library *library)
{
    if (is_session_held())
        end_session(library);
    else
        (void)library->MPI_Finalize();
}

#define SETTLE_NS (40 * COHI_NS_PER_MS)
#define MEET_NS   (2 * COHI_NS_PER_S) /* all are known to be on their way out */
#define NO_LIMIT  UINT64_MAX

enum { SETTLE_TAG = 2 };

/* What is passed. */
enum { IN_ORDER, NOT_IN_ORDER };

/* Looks often at first. Another rank may work for as long as it likes before it comes. */
static void pause_from(uint64_t began_ns)
{
    const struct timespec nap = {.tv_nsec = (long)COHI_NS_PER_MS};
    if (cohi_now_ns() - began_ns < SETTLE_NS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* Sends a byte to one process and receives one of another. False: one does not end in order, or did not
 * come in time, and MPI may have the requests still. */
static bool pass_on(const cohi_mpi_library *mpi, int to, int from, uint64_t until_ns)
{
    static char out = IN_ORDER, in; /* MPI may keep them */
    MPI_Request both[2];
    MPI_Status ignored;
    uint64_t began_ns = cohi_now_ns();
    if (mpi->MPI_Irecv(&in, 1, mpi->byte, from, SETTLE_TAG, mpi->world, &both[0]) != MPI_SUCCESS
        || mpi->MPI_Isend(&out, 1, mpi->byte, to, SETTLE_TAG, mpi->world, &both[1]) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < 2; i++) {
        int done = 0;
        while (mpi->MPI_Test(&both[i], &done, &ignored) == MPI_SUCCESS && !done) {
            if (cohi_now_ns() > until_ns)
                return false;
            pause_from(began_ns);
        }
        if (!done)
            return false;
    }
    return in == IN_ORDER;
}

/* All pass bytes to all, both ways: a barrier too. Where they are few each meets each, else those at powers
 * of 2. */
static bool pass_around(const cohi_mpi_library *mpi, int rank, int size, uint64_t until_ns)
{
    enum { FEW = 16 };
    bool met = true;
    for (int distance = 1; distance < size && met; distance += size <= FEW ? 1 : distance) {
        int after = (rank + distance) % size, before = (rank - distance + size) % size;
        met = pass_on(mpi, after, before, until_ns) && pass_on(mpi, before, after, until_ns);
    }
    return met;
}

static void let_work(const cohi_mpi_library *mpi)
{
    int flag;
    MPI_Status ignored;
    for (uint64_t until_ns = cohi_now_ns() + SETTLE_NS; cohi_now_ns() < until_ns; sched_yield())
        (void)mpi->MPI_Iprobe(MPI_ANY_SOURCE, SETTLE_TAG, mpi->world, &flag, &ignored);
}

/* Nobody need wait for a process that does not finalize MPI, nor for those that hear of it. */
static void tell_spoiled(const cohi_mpi_library *mpi)
{
    static const char word = NOT_IN_ORDER;
    int rank = 0, size = 1;
    MPI_Request request; /* never done: the process ends */
    (void)mpi->MPI_Comm_rank(mpi->world, &rank);
    (void)mpi->MPI_Comm_size(mpi->world, &size);
    (void)mpi->MPI_Comm_set_errhandler(mpi->world, mpi->errors_return);
    for (int i = 0; i < size; i++)
        if (i != rank)
            (void)mpi->MPI_Isend(&word, 1, mpi->byte, i, SETTLE_TAG, mpi->world, &request);
    let_work(mpi);
}

/* False: a rank does not end in order, or does not come. */
static bool meet(const cohi_mpi_library *mpi, uint64_t until_ns, int *rank, int *size)
{
    *rank = 0;
    *size = 1;
    (void)mpi->MPI_Comm_rank(mpi->world, rank);
    (void)mpi->MPI_Comm_size(mpi->world, size);
    (void)mpi->MPI_Comm_set_errhandler(mpi->world, mpi->errors_return); /* one may be gone */
    return pass_around(mpi, *rank, *size, until_ns);
}

#if defined(OPEN_MPI)
/* All have come, so that it returns. */
static void finalize(const cohi_mpi_library *mpi, int rank, int size, int status)
{
    (void)rank, (void)size, (void)status;
    end_mpi(mpi);
}
#else
/*
 * MPICH over UCX (4.0.2, TCP) may never come out of MPI_Finalize: a process closes its connections, for
 * which the other side must still answer, while that waits for it by other means. Any program can run
 * into it, above all if a connection was just made, or used in one direction alone. So all pass bytes
 * around, and let their connections come to rest. On a busy machine one may rest while another does not
 * run, so they meet again, when each has had its rest, and rest once more.
 */
static void settle(const cohi_mpi_library *mpi, int rank, int size)
{
    enum { RESTS = 3 };
    bool met = true;
    for (int rests = 1; rests < RESTS && met; rests++) {
        let_work(mpi);
        met = pass_around(mpi, rank, size, cohi_now_ns() + MEET_NS);
    }
    if (met)
        let_work(mpi);
}

/* How long MPI_Finalize may take, once all are known to be on their way out. */
#define FINALIZE_NS (3 * COHI_NS_PER_S)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
    int status; /* of the process */
} finalizing = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A launcher that speaks PMI-1 takes a process that ends without this word for one that failed, and ends the
 * others. MPI would say it next. */
static void say_finalize(void)
{
    static const char word[] = "cmd=finalize\n";
    const char *number = getenv("PMI_FD");
    int fd = number ? atoi(number) : -1;
    if (fd > STDERR_FILENO && write(fd, word, sizeof word - 1) < 0)
        cohi_log(COH_LOG_WARN, "mpi: the launcher is gone");
}

/* The program has come to its end, and this process's part in MPI too: it goes without MPI's consent. */
static void *watch_finalizing(void *unused)
{
    struct timespec until;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(FINALIZE_NS / COHI_NS_PER_S);
    pthread_mutex_lock(&finalizing.lock);
    int late = 0;
    while (!finalizing.is_over && late == 0)
        late = pthread_cond_timedwait(&finalizing.over, &finalizing.lock, &until);
    bool is_over = finalizing.is_over;
    pthread_mutex_unlock(&finalizing.lock);
    if (is_over)
        return NULL;
    cohi_log(COH_LOG_WARN, "mpi: MPI_Finalize has not returned within %d s; the process ends",
             (int)(FINALIZE_NS / COHI_NS_PER_S));
    fflush(NULL);
    say_finalize();
    _exit(finalizing.status);
}

static void finalize(const cohi_mpi_library *mpi, int rank, int size, int status)
{
    pthread_condattr_t by_clock;
    pthread_t thread;
    settle(mpi, rank, size);
    finalizing.status = status;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&finalizing.over, &by_clock);
    pthread_condattr_destroy(&by_clock);
    bool watched_over =
        cohi_os_thread_start("cohort-mpi-end", watch_finalizing, NULL, &thread) == 0;
    end_mpi(mpi);
    pthread_mutex_lock(&finalizing.lock);
    finalizing.is_over = true;
    pthread_cond_signal(&finalizing.over);
    pthread_mutex_unlock(&finalizing.lock);
    if (watched_over)
        pthread_join(thread, NULL);
}
#endif

/* There is no limit: coh_finalize says nothing of when a process exits, and of one that died the launcher hears. */
static void finalize_own(int status)
{
    int rank, size;
    if (!atomic_load(&spoiled) && meet(started, NO_LIMIT, &rank, &size))
        finalize(started, rank, size, status);
    else
        tell_spoiled(started);
}

/* The program has finalized MPI, and what it began is left. Processes that had no world are in MPI_Finalize and meet
 * nobody. */
static void finalize_what_is_left(int status)
{
    int rank, size;
    (void)meet(started, cohi_now_ns() + MEET_NS, &rank, &size);
    finalize(started, rank, size, status);
}

/*
 * MPI_Finalize waits for the others, so it is for a process that ends in order: its worlds are closed, and
 * nobody was lost. Of one that does not, mpirun finds that it ended without. Not in a child that was forked.
 */
static void finalize_at_exit(int status, void *unused)
{
    (void)unused;
    if (endpoints || atomic_load(&lost))
        return;
    bool is_finalized = cohi_mpi_is_finalized(started);
    if (initialised_here == (int)getpid() && !is_finalized)
        finalize_own(status);
    else if (is_session_held() && is_finalized && !atomic_load(&spoiled))
        finalize_what_is_left(status);
}

/* ---- the start ---- */

/* Where the program has closed a standard stream, MPI would get its number, now or for a connection that it
 * makes later, and take what the program does with the stream. */
static void fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
            return; /* no /dev/null here, or another thread was first: as it was */
}

/* Open MPI takes over the signals of a crash. They stay the program's. */
static int initialise(const cohi_mpi_library *library)
{
    enum { FIRST = 1, LAST = 31 };
    struct sigaction kept[LAST + 1];
    cohi_threads before;
    int level;
    fill_streams();
    cohi_threads_list(&before);
    for (int number = FIRST; number <= LAST; number++)
        sigaction(number, NULL, &kept[number]);
    int error = library->MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    for (int number = FIRST; number <= LAST; number++)
        if (number != SIGKILL && number != SIGSTOP)
            sigaction(number, &kept[number], NULL);
    cohi_threads_mark_new(&before);
    return error;
}

/* Open MPI ends the process when it gets no descriptor for a thread of its own. */
static coh_status check_descriptors(void)
{
    enum { NEEDED = 48 };
    struct rlimit limit;
    int used = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        used++;
    if (folder)
        closedir(folder);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
        || limit.rlim_cur >= (rlim_t)used + NEEDED)
        return COH_OK;
    return cohi_fail(
        COH_LIMIT,
        "mpi: this process may open %llu descriptors (ulimit -n) and has %d; MPI needs %d",
        (unsigned long long)limit.rlim_cur, used, NEEDED);
}

static coh_status start(const cohi_mpi_library *library)
{
    int is_initialised = 0;
    if (cohi_mpi_is_finalized(library))
        return cohi_fail(COH_NOT_AVAILABLE,
                         "mpi: MPI was finalized in this process, and cannot be started again");
    (void)library->MPI_Initialized(&is_initialised);
    started = library;
    if (!is_initialised) {
        coh_status status = check_descriptors();
        if (status != COH_OK)
            return status;
        int error = initialise(library);
        if (error != MPI_SUCCESS)
            return cohi_fail(COH_NOT_AVAILABLE, "mpi: MPI_Init_thread failed with error %d", error);
        initialised_here = (int)getpid();
    }
    if (!registered && on_exit(finalize_at_exit, NULL) != 0)
        return cohi_fail(COH_NO_MEMORY, "mpi: no room to have MPI finalized at exit");
    registered = true;
    watch_finalize(library);
    return COH_OK;
}

/* What less than MPI_THREAD_SERIALIZED allows. */
static coh_status check_thread(const cohi_mpi_library *library, int level)
{
    int is_main = 1;
    if (level < MPI_THREAD_SERIALIZED)
        (void)library->MPI_Is_thread_main(&is_main);
    if (is_main)
        return COH_OK;
    return cohi_fail(COH_UNSUPPORTED,
                     "mpi: MPI was initialised for calls of its main thread alone, and this is "
                     "another; MPI_Init_thread with MPI_THREAD_MULTIPLE allows all");
}

coh_status cohi_mpi_start(const cohi_mpi_library **library, int *level)
{
    coh_status status = cohi_mpi_library_open(library);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = start(*library);
    pthread_mutex_unlock(&lock);
    if (status != COH_OK)
        return status;
    *level = MPI_THREAD_SINGLE;
    (void)(*library)->MPI_Query_thread(level);
    return check_thread(*library, *level);
}

void cohi_mpi_process_add(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&lock);
    endpoint->next = endpoints;
    endpoints = endpoint;
    if (endpoint->threaded && initialised_here != (int)getpid())
        hold_session(endpoint->mpi);
    pthread_mutex_unlock(&lock);
}

void cohi_mpi_process_remove(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&lock);
    cohi_endpoint **place = &endpoints;
    while (*place && *place != endpoint)
        place = &(*place)->next;
    if (*place)
        *place = endpoint->next;
    if (!endpoints && is_session_held() && !cohi_mpi_is_finalized(started))
        end_session(started);
    pthread_mutex_unlock(&lock);
}

/* ---- rank and size ---- */

static coh_status begin_job(uint64_t deadline_ns, int *rank, int *size)
{
    const cohi_mpi_library *library;
    int level;
    (void)deadline_ns; /* MPI cannot be told */
    coh_status status = cohi_mpi_start(&library, &level);
    if (status != COH_OK)
        return status;
    (void)library->MPI_Comm_rank(library->world, rank);
    (void)library->MPI_Comm_size(library->world, size);
    return COH_OK;
}

static coh_status share_job(void *bytes, size_t count, uint64_t deadline_ns)
{
    (void)deadline_ns;
    if (count > INT_MAX)
        return cohi_fail(COH_LIMIT, "mpi: %zu bytes are too many to share", count);
    int error = started->MPI_Bcast(bytes, (int)count, started->byte, 0, started->world);
    return error == MPI_SUCCESS
               ? COH_OK
               : cohi_fail(COH_TRANSPORT, "mpi: MPI_Bcast failed with error %d", error);
}

/* MPI goes on until the process ends: it can be started once. */
static void end_job(void)
{
}

const cohi_engine_job cohi_mpi_job = {
    .size = sizeof cohi_mpi_job,
    .begin = begin_job,
    .share = share_job,
    .end = end_job,
};
