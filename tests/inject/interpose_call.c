/* interpose_call.c - the functions that stand before libc's. */
#include "interpose_call.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc's own allocator, which is there before dlsym can be asked. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

/* ---- allocations ---- */

#define CALLER __builtin_return_address(0)

static bool no_memory(const void *caller, const char *function)
{
    static const int errors[INJECT_VARIANTS] = {ENOMEM};
    if (!inject_error(caller, function, errors))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return no_memory(CALLER, "malloc") ? NULL
                                       : inject_note_block(__libc_malloc(bytes), CALLER, "malloc");
}

void *calloc(size_t count, size_t size)
{
    return no_memory(CALLER, "calloc")
               ? NULL
               : inject_note_block(__libc_calloc(count, size), CALLER, "calloc");
}

void *realloc(void *block, size_t bytes)
{
    if (no_memory(CALLER, "realloc"))
        return NULL;
    void *moved = __libc_realloc(block, bytes);
    if (moved)
        inject_forget_block(block);
    return inject_note_block(moved, CALLER, "realloc");
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return no_memory(CALLER, "aligned_alloc")
               ? NULL
               : inject_note_block(__libc_memalign(alignment, bytes), CALLER, "aligned_alloc");
}

char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = no_memory(CALLER, "strdup") ? NULL : __libc_malloc(bytes);
    return copy ? inject_note_block(memcpy(copy, text, bytes), CALLER, "strdup") : NULL;
}

int asprintf(char **text, const char *format, ...)
{
    if (no_memory(CALLER, "asprintf"))
        return -1;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(text, format, arguments);
    va_end(arguments);
    if (bytes >= 0)
        inject_note_block(*text, CALLER, "asprintf");
    return bytes;
}

void free(void *block)
{
    inject_forget_block(block);
    __libc_free(block);
}

/* ---- system calls, and what libc makes of them ---- */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call that fails with `bad` and errno. The errors are what it fails with for want of something,
 * and what a sandbox answers. */
#define INTERPOSE(type, name, parameters, arguments, bad, ...)    \
    type name parameters                                          \
    {                                                             \
        static const int errors[INJECT_VARIANTS] = {__VA_ARGS__}; \
        int error = inject_error(CALLER, #name, errors);          \
        if (!error)                                               \
            return NEXT(name) arguments;                          \
        errno = error;                                            \
        return bad;                                               \
    }

/* A call that returns the error. */
#define INTERPOSE_CODE(name, parameters, arguments, ...)          \
    int name parameters                                           \
    {                                                             \
        static const int errors[INJECT_VARIANTS] = {__VA_ARGS__}; \
        int error = inject_error(CALLER, #name, errors);          \
        return error ? error : NEXT(name) arguments;              \
    }

INTERPOSE(void *, mmap, (void *at, size_t bytes, int access, int flags, int fd, off_t from),
          (at, bytes, access, flags, fd, from), MAP_FAILED, ENOMEM, EPERM)
INTERPOSE(int, munmap, (void *at, size_t bytes), (at, bytes), -1, ENOMEM)
INTERPOSE(int, mprotect, (void *at, size_t bytes, int access), (at, bytes, access), -1, ENOMEM)
INTERPOSE(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1, ENOMEM,
          EPERM)
INTERPOSE(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE, EPERM)
INTERPOSE(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1, ENOSPC, EPERM)
INTERPOSE(int, fallocate, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes), -1,
          ENOSPC, ENOSYS)
INTERPOSE(int, fstat, (int fd, struct stat *into), (fd, into), -1, ENOMEM, EPERM)
INTERPOSE(int, stat, (const char *path, struct stat *into), (path, into), -1, ENOMEM, EPERM)
INTERPOSE(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence), -1, EINVAL)
INTERPOSE(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE,
          EPERM)
INTERPOSE(int, socketpair, (int domain, int type, int protocol, int ends[2]),
          (domain, type, protocol, ends), -1, EMFILE, EPERM)
INTERPOSE(int, bind, (int fd, const struct sockaddr *at, socklen_t bytes), (fd, at, bytes), -1,
          ENOMEM, EACCES)
INTERPOSE(int, listen, (int fd, int pending), (fd, pending), -1, EACCES)
INTERPOSE(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes), -1,
          EAGAIN, EACCES)
INTERPOSE(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags),
          (fd, from, bytes, flags), -1, EMFILE, EPERM)
INTERPOSE(int, getsockopt, (int fd, int level, int name, void *into, socklen_t *bytes),
          (fd, level, name, into, bytes), -1, ENOBUFS, EPERM)
INTERPOSE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
          -1, ENOBUFS, EPERM)
INTERPOSE(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1,
          ENOMEM, EPERM)
INTERPOSE(ssize_t, send, (int fd, const void *data, size_t bytes, int flags),
          (fd, data, bytes, flags), -1, ENOBUFS, EPERM)
INTERPOSE(ssize_t, recv, (int fd, void *data, size_t bytes, int flags), (fd, data, bytes, flags),
          -1, ENOMEM, EPERM)
INTERPOSE(int, poll, (struct pollfd * set, nfds_t count, int milliseconds),
          (set, count, milliseconds), -1, ENOMEM, EPERM)
INTERPOSE(int, ppoll,
          (struct pollfd * set, nfds_t count, const struct timespec *time, const sigset_t *mask),
          (set, count, time, mask), -1, ENOMEM, EPERM)
INTERPOSE(ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes), -1, EIO)
INTERPOSE(ssize_t, pread, (int fd, void *data, size_t bytes, off_t from), (fd, data, bytes, from),
          -1, EIO)
INTERPOSE(ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes), -1, ENOSPC)
INTERPOSE(int, pipe2, (int ends[2], int flags), (ends, flags), -1, EMFILE, EPERM)
INTERPOSE(int, eventfd, (unsigned value, int flags), (value, flags), -1, EMFILE, EPERM)
INTERPOSE(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), -1, EMFILE,
          EPERM)
INTERPOSE(int, dup2, (int from, int to), (from, to), -1, EMFILE, EPERM)
INTERPOSE(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags), -1,
          ENOMEM, ENOSYS)
INTERPOSE(pid_t, fork, (void), (), -1, EAGAIN)
INTERPOSE(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), -1, EINTR)
INTERPOSE(int, waitid, (idtype_t type, id_t id, siginfo_t *into, int flags),
          (type, id, into, flags), -1, EINTR)
INTERPOSE(int, kill, (pid_t pid, int signal), (pid, signal), -1, EPERM)
INTERPOSE(int, execvp, (const char *file, char *const arguments[]), (file, arguments), -1, ENOMEM,
          EACCES)
INTERPOSE(int, setenv, (const char *name, const char *value, int over), (name, value, over), -1,
          ENOMEM)
INTERPOSE(int, putenv, (char *text), (text), -1, ENOMEM)
INTERPOSE(int, getrlimit, (__rlimit_resource_t which, struct rlimit *into), (which, into), -1,
          EPERM)
INTERPOSE(int, setrlimit, (__rlimit_resource_t which, const struct rlimit *to), (which, to), -1,
          EPERM)
INTERPOSE(int, sigaction, (int number, const struct sigaction *to, struct sigaction *was),
          (number, to, was), -1, EPERM)
INTERPOSE(ssize_t, getrandom, (void *into, size_t bytes, unsigned flags), (into, bytes, flags), -1,
          ENOSYS)
INTERPOSE(int, sched_getaffinity, (pid_t pid, size_t bytes, cpu_set_t *set), (pid, bytes, set), -1,
          EINVAL, EPERM)
INTERPOSE(int, sched_setaffinity, (pid_t pid, size_t bytes, const cpu_set_t *set),
          (pid, bytes, set), -1, EINVAL, EPERM)
INTERPOSE(int, gethostname, (char *name, size_t room), (name, room), -1, EPERM)
INTERPOSE(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC, EACCES)
INTERPOSE(int, mkostemp, (char *path, int flags), (path, flags), -1, EMFILE, EACCES)
INTERPOSE(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
INTERPOSE(int, rename, (const char *from, const char *to), (from, to), -1, ENOSPC, EACCES)
INTERPOSE(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE, EACCES)
INTERPOSE(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, ENOMEM)
INTERPOSE(FILE *, open_memstream, (char **text, size_t *bytes), (text, bytes), NULL, ENOMEM)
INTERPOSE(DIR *, opendir, (const char *path), (path), NULL, EMFILE, EACCES)
INTERPOSE(ssize_t, process_vm_readv,
          (pid_t pid, const struct iovec *here, unsigned long here_count, const struct iovec *there,
           unsigned long there_count, unsigned long flags),
          (pid, here, here_count, there, there_count, flags), -1, ENOMEM, EPERM)
INTERPOSE(ssize_t, process_vm_writev,
          (pid_t pid, const struct iovec *here, unsigned long here_count, const struct iovec *there,
           unsigned long there_count, unsigned long flags),
          (pid, here, here_count, there, there_count, flags), -1, ENOMEM, EPERM)

INTERPOSE_CODE(pthread_create,
               (pthread_t * thread, const pthread_attr_t *attributes, void *(*entry)(void *),
                void *argument),
               (thread, attributes, entry, argument), EAGAIN, EPERM)
INTERPOSE_CODE(pthread_key_create, (pthread_key_t * key, void (*destroy)(void *)), (key, destroy),
               EAGAIN)
INTERPOSE_CODE(pthread_setspecific, (pthread_key_t key, const void *value), (key, value), ENOMEM)
INTERPOSE_CODE(pthread_attr_init, (pthread_attr_t * attributes), (attributes), ENOMEM)
INTERPOSE_CODE(pthread_setname_np, (pthread_t thread, const char *name), (thread, name), EPERM)

/* The kernel has closed the descriptor when it says that something went wrong on the way. */
int close(int fd)
{
    static const int errors[INJECT_VARIANTS] = {EIO, EINTR};
    int error = inject_error(CALLER, "close", errors);
    int closed = NEXT(close)(fd);
    if (!error)
        return closed;
    errno = error;
    return -1;
}

/* ---- those that take any number of arguments ---- */

int open(const char *path, int flags, ...)
{
    static const int errors[INJECT_VARIANTS] = {EMFILE, EACCES};
    int error = inject_error(CALLER, "open", errors);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!error)
        return NEXT(open)(path, flags, mode);
    errno = error;
    return -1;
}

int fcntl(int fd, int command, ...)
{
    static const int errors[INJECT_VARIANTS] = {EMFILE, EPERM};
    int error = inject_error(CALLER, "fcntl", errors);
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (!error)
        return NEXT(fcntl)(fd, command, argument);
    errno = error;
    return -1;
}

void *mremap(void *from, size_t bytes, size_t wanted, int flags, ...)
{
    static const int errors[INJECT_VARIANTS] = {ENOMEM, EPERM};
    int error = inject_error(CALLER, "mremap", errors);
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (!error)
        return NEXT(mremap)(from, bytes, wanted, flags, to);
    errno = error;
    return MAP_FAILED;
}

int prctl(int option, ...)
{
    static const int errors[INJECT_VARIANTS] = {EPERM};
    int error = inject_error(CALLER, "prctl", errors);
    unsigned long a[4];
    va_list more;
    va_start(more, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(more, unsigned long);
    va_end(more);
    if (!error)
        return NEXT(prctl)(option, a[0], a[1], a[2], a[3]);
    errno = error;
    return -1;
}

/* By the number: what a sandbox refuses, or what is short. gettid cannot fail. */
static int syscall_error(const void *caller, long number)
{
    static const int refused[INJECT_VARIANTS] = {EPERM, ENOSYS};
    static const int scarce[INJECT_VARIANTS] = {EMFILE, EPERM};
    switch (number) {
    case SYS_gettid:
        return 0;
    case SYS_futex:
        return inject_error(caller, "futex", refused);
    case SYS_pidfd_open:
        return inject_error(caller, "pidfd_open", scarce);
    default:
        return inject_error(caller, "syscall", refused);
    }
}

long syscall(long number, ...)
{
    int error = syscall_error(CALLER, number);
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (!error)
        return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    errno = error;
    return -1;
}
