#include "engine/mpi/mpi.h"

#include "base/error.h"
#include "engine/modules/threads.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- the end, by this module ---- */

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
        cohi_mpi_finalize(started, !atomic_load(&spoiled), status);
    else if (cohi_mpi_session_is_held() && is_finalized && !atomic_load(&spoiled))
        cohi_mpi_finalize_rest(started, status);
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

/*
 * Open MPI's MPI_Finalize takes its components out of memory, and that for PMIx before the thread is stopped that calls
 * it for events (4.1.4): 5 of some 2500 processes crashed there on a machine with 50 others to run. One more reference
 * keeps it.
 */
#if defined(OPEN_MPI)
static int find_pmix(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (!strstr(info->dlpi_name, "/mca_pmix_"))
        return 0;
    snprintf(path, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

static void keep_pmix(void)
{
    char path[PATH_MAX];
    if (dl_iterate_phdr(find_pmix, path))
        (void)dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}
#else
static void keep_pmix(void)
{
}
#endif

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
    keep_pmix();
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

/* ---- broken pipes ---- */

static bool handled; /* by let_pass */

static void let_pass(int signal)
{
    (void)signal;
}

/* MPI writes to the sockets of ranks that are gone, and Open MPI does not keep the signal away that the kernel sends then: it would
 * end this rank as well. A handler is not passed on to programs that this one starts, as it would be if the signal
 * were ignored. */
static void handle_broken_pipes(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) != 0 || now.sa_flags & SA_SIGINFO
        || now.sa_handler != SIG_DFL)
        return;
    now.sa_handler = let_pass;
    now.sa_flags = SA_RESTART;
    handled = sigaction(SIGPIPE, &now, NULL) == 0;
}

static void leave_broken_pipes(void)
{
    struct sigaction now;
    if (!handled || sigaction(SIGPIPE, NULL, &now) != 0)
        return;
    handled = false;
    if (now.sa_flags & SA_SIGINFO || now.sa_handler != let_pass)
        return; /* the program has its own by now */
    now.sa_handler = SIG_DFL;
    (void)sigaction(SIGPIPE, &now, NULL);
}

/* ---- worlds ---- */

void cohi_mpi_process_add(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&lock);
    if (!endpoints)
        handle_broken_pipes();
    endpoint->next = endpoints;
    endpoints = endpoint;
    if (endpoint->threaded && initialised_here != (int)getpid())
        cohi_mpi_session_hold(endpoint->mpi);
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
    if (!endpoints)
        leave_broken_pipes();
    if (!endpoints && cohi_mpi_session_is_held() && !cohi_mpi_is_finalized(started))
        cohi_mpi_session_end(started);
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
