#include "engine/mpi/mpi.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

bool cohi_mpi_session_is_held(void)
{
    return session_held == (int)getpid();
}

void cohi_mpi_session_hold(const cohi_mpi_library *library)
{
    bool may =
        library->MPI_Session_init && library->MPI_Session_finalize && !cohi_mpi_session_is_held();
    if (may
        && library->MPI_Session_init(MPI_INFO_NULL, library->errors_return, &session)
               == MPI_SUCCESS)
        session_held = (int)getpid();
}

void cohi_mpi_session_end(const cohi_mpi_library *library)
{
    session_held = 0;
    (void)library->MPI_Session_finalize(&session);
}
#else
bool cohi_mpi_session_is_held(void)
{
    return false;
}

void cohi_mpi_session_hold(const cohi_mpi_library *library)
{
    (void)library;
}

void cohi_mpi_session_end(const cohi_mpi_library *library)
{
    (void)library;
}
#endif

/* ---- the others ---- */

static void end_mpi(const cohi_mpi_library *library)
{
    if (cohi_mpi_session_is_held())
        cohi_mpi_session_end(library);
    else
        (void)library->MPI_Finalize();
}

#define SETTLE_NS (40 * COHI_NS_PER_MS)
#define MEET_NS   (2 * COHI_NS_PER_S) /* all are known to be on their way out */
#define NO_LIMIT  UINT64_MAX
/* To be connected on a busy machine. One that is gone says nothing. */
#define HEAR_NS (400 * COHI_NS_PER_MS)

/* Of a byte that is passed around, and of the word of a process that does not end in order. */
enum { SETTLE_TAG = 2, SPOILED_TAG = 3 };

/* Looks often at first. Another rank may work for as long as it likes before it comes. */
static void pause_from(uint64_t began_ns)
{
    const struct timespec nap = {.tv_nsec = (long)COHI_NS_PER_MS};
    if (cohi_now_ns() - began_ns < SETTLE_NS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* Whether any process has said that it does not end in order. The word stays for hear_others. */
static bool is_spoiled(const cohi_mpi_library *mpi)
{
    int said = 0;
    MPI_Status ignored;
    return mpi->MPI_Iprobe(MPI_ANY_SOURCE, SPOILED_TAG, mpi->world, &said, &ignored) == MPI_SUCCESS
           && said;
}

/* Sends a byte to one process and receives one of another. False: one does not end in order, or did not
 * come in time, and MPI may have the requests still. */
static bool pass_on(const cohi_mpi_library *mpi, int to, int from, uint64_t until_ns)
{
    static char out, in; /* MPI may keep them */
    MPI_Request both[2];
    MPI_Status ignored;
    uint64_t began_ns = cohi_now_ns();
    if (mpi->MPI_Irecv(&in, 1, mpi->byte, from, SETTLE_TAG, mpi->world, &both[0]) != MPI_SUCCESS
        || mpi->MPI_Isend(&out, 1, mpi->byte, to, SETTLE_TAG, mpi->world, &both[1]) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < 2; i++) {
        int done = 0;
        while (mpi->MPI_Test(&both[i], &done, &ignored) == MPI_SUCCESS && !done) {
            if (cohi_now_ns() > until_ns || is_spoiled(mpi))
                return false;
            pause_from(began_ns);
        }
        if (!done)
            return false;
    }
    return true;
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

static bool is_sent(const cohi_mpi_library *mpi, MPI_Request *request)
{
    int done = 0;
    MPI_Status ignored;
    return mpi->MPI_Test(request, &done, &ignored) != MPI_SUCCESS || done;
}

/*
 * Until all others have said that they do not end in order, or the time is over. One that hears it tells all, so its word
 * shows that this process's has come: MPI takes a byte for sent while it is still connecting, and who leaves then takes it
 * along, so that the other would wait for it without end.
 */
static void hear_others(const cohi_mpi_library *mpi, int rank, int size)
{
    static char word; /* MPI may keep it */
    MPI_Request request;
    MPI_Status status;
    uint64_t began_ns = cohi_now_ns();
    bool *heard = calloc((size_t)size, sizeof *heard);
    int missing = size - 1, done = 1;
    while (heard && missing > 0 && cohi_now_ns() - began_ns < HEAR_NS) {
        if (done
            && mpi->MPI_Irecv(&word, 1, mpi->byte, MPI_ANY_SOURCE, SPOILED_TAG, mpi->world,
                              &request)
                   != MPI_SUCCESS)
            break;
        if (mpi->MPI_Test(&request, &done, &status) != MPI_SUCCESS)
            break;
        if (!done) {
            pause_from(began_ns);
        } else if (status.MPI_SOURCE != rank && !heard[status.MPI_SOURCE]) {
            heard[status.MPI_SOURCE] = true;
            missing--;
        }
    }
    free(heard);
}

/* Nobody need wait for a process that does not finalize MPI, nor for those that hear of it. Where the two never talked
 * MPI has to connect them first. */
static void tell_spoiled(const cohi_mpi_library *mpi)
{
    static const char word = 0;
    int rank = 0, size = 1, told = 0;
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE); /* one of them may be gone */
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    (void)mpi->MPI_Comm_rank(mpi->world, &rank);
    (void)mpi->MPI_Comm_size(mpi->world, &size);
    (void)mpi->MPI_Comm_set_errhandler(mpi->world, mpi->errors_return);
    MPI_Request *requests = calloc((size_t)size, sizeof *requests);
    for (int i = 0; requests && i < size; i++)
        if (i != rank
            && mpi->MPI_Isend(&word, 1, mpi->byte, i, SPOILED_TAG, mpi->world, &requests[told])
                   == MPI_SUCCESS)
            told++;
    uint64_t began_ns = cohi_now_ns();
    for (int i = 0; i < told; i++)
        while (!is_sent(mpi, &requests[i]) && cohi_now_ns() - began_ns < MEET_NS)
            pause_from(began_ns);
    free(requests);
    hear_others(mpi, rank, size);
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
    int thread; /* that finalizes */
    int status; /* of the process */
} finalizing = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* On which a launcher that speaks PMI-1 is spoken to, or -1. */
static int launcher_fd(void)
{
    const char *number = getenv("PMI_FD");
    int fd = number ? atoi(number) : -1;
    return fd > STDERR_FILENO ? fd : -1;
}

/* Whether the thread waits for an answer of the launcher's. */
static bool is_asking(int thread, int fd)
{
    char path[64], text[64];
    long number;
    unsigned long first;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    return cohi_os_read_start(path, text, sizeof text) > 0
           && sscanf(text, "%ld %lx", &number, &first) == 2 && number == SYS_read
           && first == (unsigned long)fd;
}

/* MPI's thread may come to its own words any time. Nobody hears them any more, and nobody answers. */
static int take_launcher(int fd)
{
    int deaf[2], taken = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (taken >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, deaf) == 0)
        (void)dup3(deaf[0], fd, O_CLOEXEC);
    return taken;
}

/* What it answers makes no difference; but it breaks off the job if it finds nobody to answer. */
static void tell_launcher(int fd, const char *word)
{
    enum { ANSWER_MS = 5000 };
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    char ignored[256];
    if (write(fd, word, strlen(word)) < 0 || poll(&answer, 1, ANSWER_MS) <= 0
        || read(fd, ignored, sizeof ignored) <= 0)
        cohi_log(COH_LOG_WARN, "mpi: the launcher does not answer");
}

/*
 * The others wait in MPI's last barrier, which is the launcher's: where a process does not come to it, it fails on them,
 * and MPI aborts them. One that ends without the last word is taken for one that failed.
 */
static void leave_launcher(int fd, bool came_to_barrier)
{
    int taken = take_launcher(fd);
    if (!came_to_barrier)
        tell_launcher(taken, "cmd=barrier_in\n");
    tell_launcher(taken, "cmd=finalize\n");
}

/* False: the time is over. */
static bool await_finalized(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(FINALIZE_NS / COHI_NS_PER_S);
    pthread_mutex_lock(&finalizing.lock);
    int late = 0;
    while (!finalizing.is_over && late == 0)
        late = pthread_cond_timedwait(&finalizing.over, &finalizing.lock, &until);
    bool is_over = finalizing.is_over;
    pthread_mutex_unlock(&finalizing.lock);
    return is_over;
}

/* The program has come to its end, and this process's part in MPI too: it goes without MPI's consent. One that is in the
 * barrier waits for others that go like this; where they do not come, the launcher is to hear of it. */
static void *watch_finalizing(void *unused)
{
    enum { TURNS = 4 };
    int fd = launcher_fd();
    bool asking = true, came = false;
    (void)unused;
    for (int turn = 0; turn < TURNS && asking; turn++) {
        if (await_finalized())
            return NULL;
        asking = fd >= 0 && is_asking(finalizing.thread, fd);
        came = came || asking;
    }
    if (fd >= 0 && !asking) /* at once: MPI's thread may come to it */
        leave_launcher(fd, came);
    cohi_log(COH_LOG_WARN, "mpi: MPI_Finalize has not returned within %d s; the process ends",
             (int)(FINALIZE_NS / COHI_NS_PER_S));
    fflush(NULL);
    _exit(finalizing.status);
}

static void finalize(const cohi_mpi_library *mpi, int rank, int size, int status)
{
    pthread_condattr_t by_clock;
    pthread_t thread;
    settle(mpi, rank, size);
    finalizing.thread = (int)syscall(SYS_gettid);
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
void cohi_mpi_finalize(const cohi_mpi_library *mpi, bool in_order, int status)
{
    int rank, size;
    if (in_order && meet(mpi, NO_LIMIT, &rank, &size))
        finalize(mpi, rank, size, status);
    else
        tell_spoiled(mpi);
}

/* Processes that had no world are in MPI_Finalize and meet nobody. */
void cohi_mpi_finalize_rest(const cohi_mpi_library *mpi, int status)
{
    int rank, size;
    (void)meet(mpi, cohi_now_ns() + MEET_NS, &rank, &size);
    finalize(mpi, rank, size, status);
}
