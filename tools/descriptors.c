#include "descriptors.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Without /proc: how many numbers are tried. The kernel gives out the lowest that is free. */
enum { TRIED_MAX = 65536 };

/* Where poll is refused: how often to look. */
enum { LOOK_MS = 5 };

/* ---- listing ---- */

struct numbers {
    int *list;
    int count, room;
};

static int add(struct numbers *numbers, int fd)
{
    if (numbers->count == numbers->room) {
        int room = numbers->room ? 2 * numbers->room : 64;
        int *longer = realloc(numbers->list, (size_t)room * sizeof *longer);
        if (!longer)
            return -1;
        numbers->list = longer;
        numbers->room = room;
    }
    numbers->list[numbers->count++] = fd;
    return 0;
}

static int list_folder(DIR *folder, struct numbers *numbers)
{
    for (struct dirent *entry; (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (!isdigit((unsigned char)entry->d_name[0]) || fd == dirfd(folder))
            continue;
        if (add(numbers, fd) != 0)
            return -1;
    }
    return 0;
}

static int try_all(struct numbers *numbers)
{
    struct rlimit limit;
    int end = TRIED_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)end)
        end = (int)limit.rlim_cur;
    for (int fd = 0; fd < end; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 && add(numbers, fd) != 0)
            return -1;
    }
    return 0;
}

int cohi_descriptors_list(int **list)
{
    struct numbers numbers = {0};
    DIR *folder = opendir("/proc/self/fd");
    int failed = folder ? list_folder(folder, &numbers) : try_all(&numbers);
    if (folder)
        closedir(folder);
    if (!failed && !numbers.list)
        numbers.list = malloc(sizeof *numbers.list); /* none is open, which is no failure */
    if (failed) {
        free(numbers.list);
        numbers = (struct numbers){0};
    }
    *list = numbers.list;
    return numbers.count;
}

/* ---- closing ---- */

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int close_ranges(const int *keep, int count)
{
    unsigned next = 0;
    for (int i = 0; i < count; i++) {
        if (keep[i] > (int)next && close_range(next, (unsigned)keep[i] - 1, 0) != 0)
            return -1;
        next = (unsigned)keep[i] + 1;
    }
    return close_range(next, ~0U, 0);
}

static int close_each(const int *keep, int count)
{
    int *open;
    int opened = cohi_descriptors_list(&open);
    if (!open)
        return ENOMEM;
    for (int i = 0; i < opened; i++) {
        if (!bsearch(&open[i], keep, (size_t)count, sizeof *keep, ascending))
            close(open[i]);
    }
    free(open);
    return 0;
}

int cohi_descriptors_keep(int *keep, int count)
{
    qsort(keep, (size_t)count, sizeof *keep, ascending);
    return close_ranges(keep, count) == 0 ? 0 : close_each(keep, count);
}

/* ---- waiting ---- */

int cohi_descriptors_poll(struct pollfd *polls, nfds_t count, int timeout_ms)
{
    int ready = poll(polls, count, timeout_ms);
    if (ready >= 0 || errno == EINTR)
        return ready;
    int pause_ms = timeout_ms >= 0 && timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
    nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
    for (nfds_t i = 0; i < count; i++)
        polls[i].revents = polls[i].fd >= 0 ? polls[i].events : 0;
    return (int)count;
}
