/*
 * bench/folder.c - a temporary folder that is removed however the tool ends.
 *
 * A keeper holds one end of a pipe and waits for its other end to close, which the kernel does
 * when the tool ends, be it by SIGKILL. It is in a session of its own, so that what is sent to the
 * tool's group does not reach it.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat, (void)type, (void)where;
    return remove(path);
}

/* Programs that the tool had started may still write there until they notice that it is gone. */
static void remove_all(const char *path)
{
    enum { TRIES = 100, FOLDERS_OPEN = 8 };
    static const struct timespec between = {.tv_nsec = 100000000};
    for (int i = 0; i < TRIES && access(path, F_OK) == 0; i++) {
        if (nftw(path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) != 0)
            nanosleep(&between, NULL);
    }
}

_Noreturn static void keep(const char *path, int held)
{
    char unused;
    int nothing = open("/dev/null", O_RDWR);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    while (read(held, &unused, 1) < 0 && errno == EINTR)
        continue;
    remove_all(path);
    _exit(EXIT_SUCCESS);
}

static int start_keeper(cohi_bench_folder *folder)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    folder->keeper = fork();
    if (folder->keeper == 0) {
        close(ends[1]);
        keep(folder->path, ends[0]);
    }
    close(ends[0]);
    if (folder->keeper < 0) {
        close(ends[1]);
        return -1;
    }
    folder->held = ends[1];
    return 0;
}

int cohi_bench_folder_make(cohi_bench_folder *folder)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%.200s/cohort-peers-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(folder->path)) {
        folder->path[0] = '\0';
        return -1;
    }
    if (start_keeper(folder) == 0)
        return 0;
    int error = errno;
    rmdir(folder->path);
    folder->path[0] = '\0';
    errno = error;
    return -1;
}

void cohi_bench_folder_remove(cohi_bench_folder *folder)
{
    if (!folder->path[0])
        return;
    close(folder->held);
    while (waitpid(folder->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    folder->path[0] = '\0';
}
