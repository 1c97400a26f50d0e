#include "base/os.h"

#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; absent from older headers */
#endif

size_t cohi_os_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Past the limit the kernel does not only refuse: its signal ends the process. */
static int exceeds_file_limit(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
           && bytes > limit.rlim_cur;
}

static int seal(int fd, size_t bytes)
{
    if (exceeds_file_limit(bytes))
        return EFBIG;
    if (ftruncate(fd, (off_t)bytes) != 0)
        return errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return errno;
    return 0;
}

int cohi_os_shared_create(const char *name, size_t bytes, int *fd)
{
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return errno;
    int error = cohi_os_fd_above_stdio(&made);
    if (!error)
        error = seal(made, bytes);
    if (error) {
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_file_bytes(int fd, size_t *bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return errno;
    *bytes = (size_t)info.st_size;
    return 0;
}

uint64_t cohi_os_file_id(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 ? (uint64_t)info.st_ino ^ (uint64_t)info.st_dev << 32 : 0;
}

/* Reserves more than asked, then gives back what lies outside the aligned part. */
static int reserve_aligned(size_t bytes, size_t alignment, char **base)
{
    size_t span = bytes + alignment;
    if (span < bytes)
        return ENOMEM;
    char *wide = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED)
        return errno;
    char *aligned = (char *)(((uintptr_t)wide + alignment - 1) & ~(uintptr_t)(alignment - 1));
    if (aligned > wide)
        munmap(wide, (size_t)(aligned - wide));
    size_t behind = (size_t)(wide + span - (aligned + bytes));
    if (behind > 0)
        munmap(aligned + bytes, behind);
    *base = aligned;
    return 0;
}

static int map_over(size_t bytes, size_t alignment, int flags, int fd, void **base)
{
    char *place = NULL;
    int error = reserve_aligned(bytes, alignment, &place);
    if (error)
        return error;
    void *mapped =
        mmap(place, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (mapped == MAP_FAILED) {
        error = errno;
        munmap(place, bytes);
        return error;
    }
    *base = mapped;
    return 0;
}

int cohi_os_map_shared(int fd, size_t bytes, size_t alignment, void **base)
{
    return map_over(bytes, alignment, MAP_SHARED, fd, base);
}

/* Without access, so that it does not count where the kernel counts every promise of memory. */
int cohi_os_map_private(size_t bytes, size_t alignment, void **base)
{
    char *place = NULL;
    int error = reserve_aligned(bytes, alignment, &place);
    if (!error)
        *base = place;
    return error;
}

void cohi_os_unmap(void *base, size_t bytes)
{
    if (base)
        munmap(base, bytes);
}

/* A signal makes the kernel give back all that it has allocated in the call, so that under a timer
 * a large range would never be done: no handler of this thread runs meanwhile. */
int cohi_os_commit_shared(int fd, size_t from, size_t to)
{
    sigset_t all, before;
    int error, held = cohi_cancel_hold();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    do {
        error = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) ? errno : 0;
    } while (error == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cohi_cancel_release(held);
    return error;
}

/* A kernel before 5.14 cannot populate on demand; there the pages come when they are touched. */
int cohi_os_commit_private(void *base, size_t from, size_t to)
{
    char *start = (char *)base + from;
    if (mprotect(start, to - from, PROT_READ | PROT_WRITE) != 0)
        return errno;
    if (madvise(start, to - from, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
        return 0;
    int error = errno == EFAULT ? ENOMEM : errno;
    cohi_os_decommit_private(base, from, to);
    return error;
}

int cohi_os_decommit_shared(int fd, size_t from, size_t to)
{
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    int held = cohi_cancel_hold();
    int error = fallocate(fd, mode, (off_t)from, (off_t)(to - from)) == 0 ? 0 : errno;
    cohi_cancel_release(held);
    return error;
}

void cohi_os_decommit_private(void *base, size_t from, size_t to)
{
    (void)madvise((char *)base + from, to - from, MADV_DONTNEED);
}

void cohi_os_advise_huge(void *base, size_t bytes)
{
    (void)madvise(base, bytes, MADV_HUGEPAGE);
}

/* The number behind `key` in a file of "key: number" lines, or the whole file when key is NULL. */
static int read_number(const char *path, const char *key, uint64_t *number)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char line[256];
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        size_t skip = key ? strlen(key) : 0;
        if (key && strncmp(line, key, skip) != 0)
            continue;
        char *end;
        unsigned long long value = strtoull(line + skip, &end, 10);
        found = end != line + skip;
        if (found)
            *number = value;
    }
    fclose(file);
    return found;
}

static uint64_t meminfo(const char *key)
{
    uint64_t kib = 0;
    return read_number("/proc/meminfo", key, &kib) ? kib * 1024 : UINT64_MAX;
}

/* This process's cgroup in the hierarchy whose /proc/self/cgroup line has `marker`. */
static int cgroup_path(const char *marker, char *path, size_t room)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return 0;
    char line[512];
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        char *at = strstr(line, marker);
        if (!at)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, room, "%s", at + strlen(marker));
        found = 1;
    }
    fclose(file);
    return found;
}

/* The files of one version of memory cgroups. */
struct cgroup_files {
    const char *marker; /* of its line in /proc/self/cgroup */
    const char *root;
    const char *limit;
    const char *usage;
    const char *cache; /* in memory.stat: what the kernel gives up when it must */
};

static const struct cgroup_files cgroup_versions[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
};

static int read_in(const char *folder, const char *file, const char *key, uint64_t *number)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return read_number(path, key, number);
}

/* One part in this many of the limit that binds is never counted as available: what other processes
 * under the same limit ask for while this one is committing must not wake the OOM killer. */
enum { RESERVE_PART = 32 };

static cohi_os_memory under_limit(uint64_t limit, uint64_t left, bool grouped)
{
    uint64_t reserve = limit / RESERVE_PART;
    reserve = reserve < left ? reserve : left;
    return (cohi_os_memory){limit, left, reserve, left - reserve, grouped};
}

static cohi_os_memory narrower(cohi_os_memory a, cohi_os_memory b)
{
    return b.available < a.available ? b : a;
}

cohi_os_memory cohi_os_memory_judge(uint64_t limit, uint64_t used, uint64_t total, uint64_t left)
{
    cohi_os_memory host = under_limit(total, left, false);
    if (limit >= total)
        return host;
    return narrower(host, under_limit(limit, used < limit ? limit - used : 0, true));
}

/* Files whose pages the kernel gives up when it must do not count as used. */
static bool read_group(const char *folder, const struct cgroup_files *files, uint64_t *limit,
                       uint64_t *used)
{
    uint64_t cache = 0;
    if (!read_in(folder, files->limit, NULL, limit) || !read_in(folder, files->usage, NULL, used))
        return false;
    (void)read_in(folder, "memory.stat", files->cache, &cache);
    *used -= cache < *used ? cache : *used;
    return true;
}

/* The group and those above it each have a limit; a container may see its own as the root. */
static cohi_os_memory judge_hierarchy(const struct cgroup_files *files, cohi_os_memory host)
{
    char group[512], folder[768];
    uint64_t limit, used;
    cohi_os_memory least = host;
    if (!cgroup_path(files->marker, group, sizeof group))
        return least;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", files->root, group);
        if (read_group(folder, files, &limit, &used))
            least = narrower(least, cohi_os_memory_judge(limit, used, host.limit, host.left));
        char *last = strrchr(group, '/');
        if (!last || group[0] == '\0')
            return least;
        *last = '\0';
    }
}

/* For want of a descriptor /proc cannot be read; this leaves out what the page cache would
 * give up. */
static uint64_t free_memory(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (uint64_t)info.freeram * info.mem_unit : UINT64_MAX;
}

cohi_os_memory cohi_os_memory_look(void)
{
    int held = cohi_cancel_hold();
    uint64_t left = meminfo("MemAvailable:");
    if (left == UINT64_MAX)
        left = free_memory();
    cohi_os_memory host = under_limit(cohi_os_memory_total(), left, false), least = host;
    for (size_t i = 0; i < sizeof cgroup_versions / sizeof *cgroup_versions; i++)
        least = narrower(least, judge_hierarchy(&cgroup_versions[i], host));
    cohi_cancel_release(held);
    return least;
}

void cohi_os_memory_describe(const cohi_os_memory *memory, char *text, size_t room)
{
    snprintf(text, room,
             "%llu are available (%s has %llu bytes, of which %llu are free; %llu of these are "
             "kept back for %s)",
             (unsigned long long)memory->available,
             memory->grouped ? "this container (memory cgroup)" : "this host",
             (unsigned long long)memory->limit, (unsigned long long)memory->left,
             (unsigned long long)memory->reserve,
             memory->grouped ? "its other processes" : "other programs");
}

uint64_t cohi_os_memory_total(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : UINT64_MAX;
}

uint64_t cohi_os_address_space_left(void)
{
    struct rlimit limit;
    uint64_t kib;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    if (!read_number("/proc/self/status", "VmSize:", &kib))
        return UINT64_MAX;
    return limit.rlim_cur > kib * 1024 ? limit.rlim_cur - kib * 1024 : 0;
}
