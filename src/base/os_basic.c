/* os_basic.c - what every engine needs of the operating system, those in modules too: no state. */
#include "base/os.h"

#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

bool cohi_os_refused(int error)
{
    return error == ENOSYS || error == EPERM || error == EACCES;
}

/* glibc has the texts without a translation, and safe from every thread; musl's own are both. */
const char *cohi_os_error_text(int error)
{
#ifdef __GLIBC__
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
#else
    return strerror(error);
#endif
}

/* The program's limit (ulimit -s) is each thread's default and may be far less than a log hook of
 * the program needs, which runs on our threads too. */
enum { STACK_LEAST = 256 * 1024 };

static int set_stack(pthread_attr_t *attributes)
{
    size_t bytes;
    int error = pthread_attr_getstacksize(attributes, &bytes);
    return error || bytes >= STACK_LEAST ? error
                                         : pthread_attr_setstacksize(attributes, STACK_LEAST);
}

int cohi_os_thread_start(const char *name, void *(*entry)(void *), void *arg, void *pthread_out)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = set_stack(&attributes);
    if (!error)
        error = pthread_create((pthread_t *)pthread_out, &attributes, entry, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!error)
        pthread_setname_np(*(pthread_t *)pthread_out, name);
    return error;
}

void cohi_os_close(int fd)
{
    int kept = errno, held = cohi_cancel_hold();
    if (fd >= 0)
        close(fd);
    cohi_cancel_release(held);
    errno = kept;
}

int cohi_os_fd_copy(int fd, int *copy)
{
    int made = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (made < 0)
        return errno;
    *copy = made;
    return 0;
}

int cohi_os_fd_above_stdio(int *fd)
{
    if (*fd > STDERR_FILENO)
        return 0;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved < 0)
        return errno;
    close(*fd);
    *fd = moved;
    return 0;
}

/* A sandbox may allow accept only, and refuse the newer call. */
static int accept_either(int listener)
{
    int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made >= 0 || !cohi_os_refused(errno))
        return made;
    made = accept(listener, NULL, NULL);
    if (made >= 0
        && (fcntl(made, F_SETFD, FD_CLOEXEC) != 0 || fcntl(made, F_SETFL, O_NONBLOCK) != 0)) {
        cohi_os_close(made);
        return -1;
    }
    return made;
}

int cohi_os_accept(int listener, int *fd)
{
    int held = cohi_cancel_hold(), made = accept_either(listener);
    int error = made >= 0 ? cohi_os_fd_above_stdio(&made) : errno;
    cohi_cancel_release(held);
    if (made < 0)
        return error == EINTR || error == ECONNABORTED ? EAGAIN : error;
    if (error) {
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_random(void *bytes, size_t count)
{
    char *at = bytes;
    int error = 0, held = cohi_cancel_hold();
    while (count > 0 && !error) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0 && errno != EINTR)
            error = errno;
        if (got > 0) {
            at += got;
            count -= (size_t)got;
        }
    }
    cohi_cancel_release(held);
    return error;
}

ssize_t cohi_os_read_start(const char *path, char *text, size_t room)
{
    int held = cohi_cancel_hold();
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, text, room - 1);
        close(fd);
    }
    cohi_cancel_release(held);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

uint64_t cohi_os_kernel_id(void)
{
    char text[128];
    ssize_t got = cohi_os_read_start("/proc/sys/kernel/random/boot_id", text, sizeof text);
    return got > 0 ? hash_bytes(FNV_BASIS, text, (size_t)got) : 0;
}

uint64_t cohi_os_host_id(void)
{
    char text[128];
    uint64_t kernel = cohi_os_kernel_id(), hash = kernel ? kernel : FNV_BASIS;
    if (gethostname(text, sizeof text) == 0)
        hash = hash_bytes(hash, text, strnlen(text, sizeof text));
    return hash;
}

uint64_t cohi_os_network_id(void)
{
    char text[128];
    ssize_t got = readlink("/proc/thread-self/ns/net", text, sizeof text);
    uint64_t kernel = cohi_os_kernel_id();
    return got > 0 ? hash_bytes(kernel ? kernel : FNV_BASIS, text, (size_t)got) : 0;
}
