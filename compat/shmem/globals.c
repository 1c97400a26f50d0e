/* globals.c - the program's own variables are symmetric: the standard says so of all that are
 * global or static. Those of libraries are left alone. */
#include "internal.h"

#include <link.h>
#include <unistd.h>

enum { RANGES_MAX = 4 };

/* Whole pages of the program that hold variables and stay writable. */
struct ranges {
    int count;
    struct {
        char *base;
        size_t bytes;
    } at[RANGES_MAX];
};

/* The end of what the loader makes read-only after it has relocated it, in this segment; else 0. */
static uintptr_t read_only_until(const struct dl_phdr_info *info, const ElfW(Phdr) * load)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_GNU_RELRO && part->p_vaddr >= load->p_vaddr
            && part->p_vaddr < load->p_vaddr + load->p_memsz)
            return info->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    return 0;
}

static void add_segment(const struct dl_phdr_info *info, const ElfW(Phdr) * load,
                        struct ranges *ranges)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = info->dlpi_addr + load->p_vaddr;
    uintptr_t to = from + load->p_memsz;
    uintptr_t fixed = read_only_until(info, load);
    from = (fixed > from ? fixed : from) / page * page;
    to = (to + page - 1) / page * page;
    if (from >= to || ranges->count == RANGES_MAX)
        return;
    ranges->at[ranges->count].base = (char *)from;
    ranges->at[ranges->count].bytes = to - from;
    ranges->count++;
}

/* The program is the first that is listed. */
static int find_in_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) && !(part->p_flags & PF_X))
            add_segment(info, part, arg);
    }
    return 1;
}

static struct ranges find_ranges(void)
{
    struct ranges ranges = {.count = 0};
    dl_iterate_phdr(find_in_program, &ranges);
    return ranges;
}

size_t shmemi_globals_bytes(void)
{
    struct ranges ranges = find_ranges();
    size_t bytes = 0;
    for (int i = 0; i < ranges.count; i++)
        bytes += ranges.at[i].bytes;
    return bytes;
}

/*
 * While the program has no thread but this one, so that no store of another is lost when its pages
 * change places. Where that fails, because this library is loaded later or descriptors are short,
 * it is done in shmem_init.
 */
__attribute__((constructor)) static void prepare_globals(void)
{
    struct ranges ranges = find_ranges();
    for (int i = 0; i < ranges.count; i++)
        if (coh_prepare(ranges.at[i].base, ranges.at[i].bytes) != COH_OK)
            return;
}

bool shmemi_open_globals(void)
{
    struct ranges ranges = find_ranges();
    for (int i = 0; i < ranges.count; i++)
        if (coh_register(shmemi.world, ranges.at[i].base, ranges.at[i].bytes) != COH_OK)
            return false;
    return true;
}
