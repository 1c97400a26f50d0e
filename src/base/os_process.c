#include "base/os.h"

#include "base/cancel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int cohi_os_pidfd_open(pid_t pid, int *fd)
{
    int made = (int)syscall(SYS_pidfd_open, pid, 0);
    if (made < 0)
        return errno;
    int error = cohi_os_fd_above_stdio(&made);
    if (error) {
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_pidfd_ended(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return cohi_os_poll(&look, 1, 0) > 0;
}

int cohi_os_poll(struct pollfd *set, unsigned long count, int timeout_ms)
{
    int ready = poll(set, (nfds_t)count, timeout_ms);
    if (ready >= 0 || !cohi_os_refused(errno))
        return ready;
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * 1000000L};
    return ppoll(set, (nfds_t)count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

char cohi_os_state_in(const char *path)
{
    char line[512];
    if (cohi_os_read_start(path, line, sizeof line) <= 0)
        return 0;
    char *after_name = strrchr(line, ')'); /* the name itself may hold anything */
    return after_name && after_name[1] == ' ' ? after_name[2] : 0;
}

char cohi_os_process_state(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return cohi_os_state_in(path);
}

bool cohi_os_thread_wants_core(pid_t pid, int thread)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, thread);
    char state = thread != cohi_os_thread_id() ? cohi_os_state_in(path) : 0;
    return state == 'R' || state == 'D';
}

bool cohi_os_process_wants_core(pid_t pid)
{
    char path[64];
    bool wants = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry && !wants;
         entry = readdir(folder))
        wants = entry->d_name[0] != '.' && cohi_os_thread_wants_core(pid, atoi(entry->d_name));
    if (folder)
        closedir(folder);
    return wants;
}

/* The kernel's PF_EXITING, of its first thread. */
static bool is_exiting(pid_t pid)
{
    enum { EXITING = 4 };
    char path[64], line[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (cohi_os_read_start(path, line, sizeof line) <= 0)
        return false;
    const char *after_name = strrchr(line, ')');
    return after_name && sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1
           && flags & EXITING;
}

/* A process that ends as a whole sends SIGKILL to each of its threads; exec spares the one that goes on. */
static bool is_being_killed(pid_t pid)
{
    char path[64], text[4096];
    unsigned long long pending = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (cohi_os_read_start(path, text, sizeof text) <= 0)
        return false;
    const char *line = strstr(text, "\nSigPnd:");
    return line && sscanf(line, "\nSigPnd: %llx", &pending) == 1 && pending >> (SIGKILL - 1) & 1;
}

bool cohi_os_process_ends(pid_t pid)
{
    return is_exiting(pid) || is_being_killed(pid);
}

bool cohi_os_process_ended(pid_t pid)
{
    int kept = errno;
    char state = cohi_os_process_state(pid);
    bool ended = state == 'Z' || state == 'X' || (kill(pid, 0) != 0 && errno == ESRCH);
    errno = kept;
    return ended;
}

_Static_assert(sizeof(cpu_set_t) == COHI_OS_CORE_BYTES, "a mask is a cpu_set_t");

/* A host with more cores than the mask has bits refuses; then every core counts as usable. */
/* process_vm_readv, or its twin. */
typedef ssize_t process_copy(pid_t pid, const struct iovec *local, unsigned long local_count,
                             const struct iovec *remote, unsigned long remote_count,
                             unsigned long flags);

static int copy_process(process_copy *copy, pid_t pid, char *here, uint64_t there, size_t bytes)
{
    while (bytes > 0) {
        struct iovec local = {here, bytes}, remote = {(void *)(uintptr_t)there, bytes};
        ssize_t moved = copy(pid, &local, 1, &remote, 1, 0);
        if (moved <= 0)
            return moved < 0 ? errno : EFAULT;
        here += moved;
        there += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

int cohi_os_process_read(pid_t pid, void *here, uint64_t there, size_t bytes)
{
    return copy_process(process_vm_readv, pid, here, there, bytes);
}

int cohi_os_process_write(pid_t pid, const void *here, uint64_t there, size_t bytes)
{
    return copy_process(process_vm_writev, pid, (char *)(uintptr_t)here, there, bytes);
}

bool cohi_os_process_holds(pid_t pid, uint64_t there, const void *expected, size_t bytes)
{
    char found[COHI_OS_TOKEN_MAX];
    return bytes <= sizeof found && cohi_os_process_read(pid, found, there, bytes) == 0
           && memcmp(found, expected, bytes) == 0;
}

void cohi_os_cores(unsigned char mask[COHI_OS_CORE_BYTES])
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        memset(&set, 0xff, sizeof set);
    memcpy(mask, &set, sizeof set);
}

int cohi_os_cores_in(const unsigned char mask[COHI_OS_CORE_BYTES])
{
    int count = 0;
    for (int i = 0; i < COHI_OS_CORE_BYTES; i++)
        count += __builtin_popcount(mask[i]);
    return count;
}

int cohi_os_core_count(void)
{
    unsigned char mask[COHI_OS_CORE_BYTES];
    cohi_os_cores(mask);
    return cohi_os_cores_in(mask);
}

int cohi_os_core_now(void)
{
    return sched_getcpu();
}

void cohi_os_host_name(char *text, size_t room)
{
    if (gethostname(text, room) != 0)
        snprintf(text, room, "unknown");
    text[room - 1] = '\0';
}

const char *cohi_os_signal_text(int signal)
{
#ifdef __GLIBC__
    const char *text = sigdescr_np(signal);
#else
    const char *text = signal > 0 && signal < SIGRTMIN ? strsignal(signal) : NULL;
#endif
    if (text)
        return text;
    return signal >= SIGRTMIN && signal <= SIGRTMAX ? "a real-time signal" : "unknown";
}

/* A folder's links are its own two and those of the folders in it, one for each thread. */
int cohi_os_thread_count(void)
{
    struct stat info;
    return stat("/proc/self/task", &info) == 0 && info.st_nlink > 2 ? (int)info.st_nlink - 2 : 0;
}
