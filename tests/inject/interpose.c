#include "interpose_call.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inject_state *state;
static atomic_bool enabled;

/* ---- the module whose calls count ---- */

static uintptr_t module_base, code_begin, code_end;

static const char *file_name(const struct dl_phdr_info *object)
{
    const char *slash = strrchr(object->dlpi_name, '/');
    if (!*object->dlpi_name)
        return program_invocation_short_name;
    return slash ? slash + 1 : object->dlpi_name;
}

static int find_code(struct dl_phdr_info *object, size_t size, void *wanted)
{
    (void)size;
    if (strncmp(file_name(object), wanted, strlen(wanted)) != 0)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        module_base = object->dlpi_addr;
        code_begin = object->dlpi_addr + part->p_vaddr;
        code_end = code_begin + part->p_memsz;
    }
    return 1;
}

static bool is_of_module(const void *caller)
{
    return (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end;
}

/* ---- the state ---- */

void inject_begin(inject_state *with)
{
    state = with;
    dl_iterate_phdr(find_code, state->module);
}

/* What a rank scenarios in turn may not see the file; nothing fails there. */
__attribute__((constructor)) static void take_state(void)
{
    const char *path = getenv("INJECT_STATE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        abort();
    inject_begin(memory);
    atomic_store(&enabled, true);
}

void inject_enable(bool on)
{
    atomic_store(&enabled, on);
}

static void lock(atomic_flag *flag)
{
    while (atomic_flag_test_and_set(flag))
        sched_yield();
}

static int find_site(uintptr_t offset, const char *function, int variants)
{
    int site = 0;
    while (site < state->site_count
           && (state->sites[site].offset != offset
               || strcmp(state->sites[site].function, function) != 0))
        site++;
    if (site == INJECT_SITES)
        abort();
    if (site == state->site_count) {
        state->sites[site] = (inject_site){.offset = offset, .variants = variants};
        snprintf(state->sites[site].function, INJECT_NAME_BYTES, "%s", function);
        state->site_count++;
    }
    return site;
}

static void log_call(inject_call call)
{
    if (state->logging && call.nth <= state->cap && state->call_count < INJECT_CALLS)
        state->calls[state->call_count++] = call;
}

static bool strikes(inject_call call)
{
    const inject_call *target = &state->target;
    if (target->site < 0)
        return false;
    if (call.site == target->site && call.nth == target->nth)
        return true;
    return state->lasting && state->struck
           && strcmp(state->sites[call.site].function, state->sites[target->site].function) == 0;
}

int inject_error(const void *caller, const char *function, const int errors[INJECT_VARIANTS])
{
    if (!is_of_module(caller) || !atomic_load(&enabled))
        return 0;
    int variants = errors[1] ? 2 : 1, error = 0;
    lock(&state->lock);
    int site = find_site((uintptr_t)caller - module_base, function, variants);
    inject_call call = {site, ++state->sites[site].calls};
    log_call(call);
    if (strikes(call)) {
        state->struck = true;
        error = errors[state->variant < variants ? state->variant : 0];
        state->error = error;
    }
    atomic_flag_clear(&state->lock);
    return error;
}

/* ---- the module's blocks ---- */

enum { BLOCKS_MAX = 1 << 16 }; /* a power of two */

static struct block {
    void *at;
    int site;
} blocks[BLOCKS_MAX];
static atomic_flag blocks_lock = ATOMIC_FLAG_INIT;
static atomic_bool noting;
static char was_freed; /* its address marks a place that was in use */

static size_t place_of(const void *block)
{
    return ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (BLOCKS_MAX - 1);
}

void *inject_note_block(void *block, const void *caller, const char *function)
{
    if (!block || !atomic_load(&noting) || !is_of_module(caller))
        return block;
    lock(&state->lock);
    int site = find_site((uintptr_t)caller - module_base, function, 1);
    atomic_flag_clear(&state->lock);
    lock(&blocks_lock);
    size_t place = place_of(block);
    while (blocks[place].at && blocks[place].at != &was_freed)
        place = (place + 1) & (BLOCKS_MAX - 1);
    blocks[place] = (struct block){block, site};
    atomic_flag_clear(&blocks_lock);
    return block;
}

void inject_forget_block(const void *block)
{
    if (!block || !atomic_load(&noting))
        return;
    lock(&blocks_lock);
    size_t place = place_of(block);
    while (blocks[place].at && blocks[place].at != block)
        place = (place + 1) & (BLOCKS_MAX - 1);
    if (blocks[place].at)
        blocks[place].at = &was_freed;
    atomic_flag_clear(&blocks_lock);
}

void inject_blocks_begin(void)
{
    memset(blocks, 0, sizeof blocks);
    atomic_store(&noting, true);
}

void inject_blocks_count(int counts[INJECT_SITES])
{
    memset(counts, 0, INJECT_SITES * sizeof *counts);
    for (size_t i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].at && blocks[i].at != &was_freed)
            counts[blocks[i].site]++;
}
