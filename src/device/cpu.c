/* cpu.c - the host as a device: its memory is the process's, its kernels are functions. */
#include "device/kind.h"
#include "device/options.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CPU_ALIGNMENT = 64,         /* a cache line, and the widest vector */
    HUGE_FROM = 2 * 1024 * 1024 /* blocks that hold a huge page are aligned to one */
};

static const char *cpu_probe(void)
{
    return NULL;
}

static int cpu_count(void)
{
    return 1;
}

static void cpu_describe(int index, coh_device_info *info)
{
    cpu_set_t cores;
    (void)index;
    info->cores = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    info->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    info->alignment = CPU_ALIGNMENT;
}

static coh_status cpu_allocate(int index, uint64_t bytes, uint64_t alignment, void **pointer)
{
    void *memory;
    (void)index;
    if (bytes >= HUGE_FROM && alignment < HUGE_FROM)
        alignment = HUGE_FROM;
    int error = bytes > SIZE_MAX / 2 ? ENOMEM : posix_memalign(&memory, alignment, bytes);
    if (error)
        return cohi_fail_errno(error, "cpu: allocating %llu bytes", (unsigned long long)bytes);
    if (bytes >= HUGE_FROM)
        madvise(memory, bytes, MADV_HUGEPAGE); /* a kernel without them is no error */
    memset(memory, 0, bytes);
    *pointer = memory;
    return COH_OK;
}

static void cpu_release(int index, void *pointer)
{
    (void)index;
    free(pointer);
}

static coh_status cpu_copy(int index, void *target, const void *source, uint64_t bytes)
{
    (void)index;
    memmove(target, source, bytes);
    return COH_OK;
}

static void *cpu_mapped(int index, void *pointer)
{
    (void)index;
    return pointer;
}

const cohi_device_kind cohi_device_kind_cpu = {
    .probe = cpu_probe,
    .count = cpu_count,
    .describe = cpu_describe,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy = cpu_copy,
    .mapped = cpu_mapped,
};
