/* os_window.c - pages of the process that become a view of a shared file, and private again. */
#include "base/os.h"

#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* pread or pwrite, by number: not the library's, which a sanitizer watches. */
static int move_whole(long number, int fd, char *memory, size_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        long moved = syscall(number, fd, memory, bytes, (off_t)offset);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return moved < 0 ? errno : EIO;
        memory += moved;
        offset += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

static int map_window(int flags, int fd, uint64_t offset, void *base, size_t bytes)
{
    void *mapped = mmap(base, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, (off_t)offset);
    return mapped == MAP_FAILED ? errno : 0;
}

/* ---- memory into the file ---- */

/* A copy under way: what lies at `base` belongs at `offset` of `fd`. */
struct transfer {
    int fd;
    uint64_t offset;
    char *base;
    int pagemap; /* -1: it cannot be read, and every page is copied */
};

static int copy_in(const struct transfer *transfer, char *from, char *to)
{
    uint64_t offset = transfer->offset + (uint64_t)(from - transfer->base);
    return move_whole(SYS_pwrite64, transfer->fd, from, (size_t)(to - from), offset);
}

/* Of a page's word in /proc/self/pagemap. */
#define PAGE_PRESENT  (UINT64_C(1) << 63)
#define PAGE_SWAPPED  (UINT64_C(1) << 62)
#define PAGES_AT_ONCE 512

/* Reads the words of the next pages, at most PAGES_AT_ONCE; how many, 0 where that fails. */
static size_t read_pagemap(int pagemap, const char *from, const char *to, uint64_t *words)
{
    size_t page = cohi_os_page_bytes(), count = (size_t)(to - from) / page;
    if (count > PAGES_AT_ONCE)
        count = PAGES_AT_ONCE;
    off_t at = (off_t)((uintptr_t)from / page * sizeof *words);
    return pread(pagemap, words, count * sizeof *words, at) == (ssize_t)(count * sizeof *words)
               ? count
               : 0;
}

/* Anonymous memory: a page that is neither present nor swapped out was never touched, and is zero.
 * Reading it would make it present. */
static int copy_touched(const struct transfer *transfer, char *from, char *to)
{
    uint64_t words[PAGES_AT_ONCE];
    size_t page = cohi_os_page_bytes();
    int error = 0;
    while (!error && from < to) {
        size_t count = read_pagemap(transfer->pagemap, from, to, words);
        if (count == 0)
            return copy_in(transfer, from, to);
        for (size_t i = 0, end; !error && i < count; i = end + 1) {
            for (end = i; end < count && (words[end] & (PAGE_PRESENT | PAGE_SWAPPED)) != 0;)
                end++;
            error = copy_in(transfer, from + i * page, from + end * page);
        }
        from += count * page;
    }
    return error;
}

struct range {
    char *from, *to;
};
enum { RANGES_MAX = 32 }; /* those behind are copied whole */

static void add_anonymous(const char *line, const struct range *within, struct range *found,
                          size_t *count)
{
    uintptr_t start, end, from = (uintptr_t)within->from, to = (uintptr_t)within->to;
    unsigned long inode;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %lu", &start, &end, &inode) != 3
        || inode != 0 || end <= from || start >= to || *count == RANGES_MAX)
        return;
    found[*count].from = start > from ? (char *)start : within->from;
    found[*count].to = end < to ? (char *)end : within->to;
    (*count)++;
}

/* The anonymous parts, in order of address. A page of a file that is not present is not zero. */
static size_t find_anonymous(const struct range *within, struct range *found)
{
    char line[4352]; /* a path and what is before it */
    size_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        add_anonymous(line, within, found, &count);
    if (maps)
        fclose(maps);
    return count;
}

/* The C library's variables may be among the memory when it is linked statically: nothing of it is
 * called here that changes them. */
static int copy_all(const struct transfer *transfer, const struct range *within,
                    const struct range *anonymous, size_t count)
{
    char *from = within->from;
    int error = 0;
    for (size_t i = 0; !error && i < count; i++) {
        error = copy_in(transfer, from, anonymous[i].from);
        if (!error)
            error = copy_touched(transfer, anonymous[i].from, anonymous[i].to);
        from = anonymous[i].to;
    }
    return error ? error : copy_in(transfer, from, within->to);
}

int cohi_os_window_open(int fd, uint64_t offset, void *base, size_t bytes)
{
    struct range within = {base, (char *)base + bytes}, anonymous[RANGES_MAX];
    struct transfer transfer = {.fd = fd, .offset = offset, .base = base};
    int held = cohi_cancel_hold();
    size_t count = find_anonymous(&within, anonymous);
    /* What is not copied is to read as zero; where that cannot be had, all is copied. */
    bool zero = cohi_os_decommit_shared(fd, offset, offset + bytes) == 0;
    transfer.pagemap = zero ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
    int error = copy_all(&transfer, &within, anonymous, count);
    cohi_os_close(transfer.pagemap);
    cohi_cancel_release(held);
    return error ? error : map_window(MAP_SHARED, fd, offset, base, bytes);
}

/* ---- the file into memory ---- */

/* The next part of [*from, end) that is no hole; `end` in *from when there is none. */
static int find_data(int fd, uint64_t end, uint64_t *from, uint64_t *to)
{
    off_t data = lseek(fd, (off_t)*from, SEEK_DATA);
    if (data < 0 && errno != ENXIO)
        return errno;
    *from = data < 0 || (uint64_t)data > end ? end : (uint64_t)data;
    off_t hole = *from < end ? lseek(fd, (off_t)*from, SEEK_HOLE) : (off_t)end;
    if (hole < 0)
        return errno;
    *to = (uint64_t)hole < end ? (uint64_t)hole : end;
    return 0;
}

static int copy_out(int fd, uint64_t offset, size_t bytes, char *copy)
{
    uint64_t from = offset, end = offset + bytes, to = end;
    int error = 0;
    for (; !error && from < end; from = to) {
        error = find_data(fd, end, &from, &to);
        if (!error && from < to)
            error = move_whole(SYS_pread64, fd, copy + (from - offset), to - from, from);
    }
    return error;
}

int cohi_os_window_copy(int fd, uint64_t offset, size_t bytes, void **copy)
{
    void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return errno;
    int error = copy_out(fd, offset, bytes, made);
    if (error) {
        munmap(made, bytes);
        return error;
    }
    *copy = made;
    return 0;
}

/* By number: UCX puts a function of its own in the place of libc's mremap, which drops the last argument. */
int cohi_os_window_replace(void *copy, void *base, size_t bytes)
{
    long moved = syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base);
    return moved == -1 ? errno : 0;
}

int cohi_os_window_detach(int fd, uint64_t offset, void *base, size_t bytes)
{
    return map_window(MAP_PRIVATE, fd, offset, base, bytes);
}
