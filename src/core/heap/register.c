#include "core/heap/register.h"

#include "base/os.h"
#include "core/team/agree.h"
#include "core/heap/heap.h"
#include "core/heap/locate.h"
#include "core/team/enter.h"
#include "memory/prepared.h"

#include <inttypes.h>
#include <string.h>

/* ---- looking ---- */

/* The next that is in use after `window`; the first after NULL. */
static cohi_window *next_window(const coh_world *world, const cohi_window *window)
{
    coh_world *all = (coh_world *)world;
    int count = atomic_load_explicit(&all->window_count, memory_order_acquire);
    for (int i = window ? (int)(window - all->windows) + 1 : 0; i < count; i++)
        if (all->windows[i].bytes > 0)
            return &all->windows[i];
    return NULL;
}

bool cohi_register_holds(const coh_world *world, uint64_t offset)
{
    if (offset < world->prepared)
        return true;
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        if (offset - window->offset < window->bytes)
            return true;
    return false;
}

static cohi_window *find_window(coh_world *world, const void *base)
{
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        if (window->base == base)
            return window;
    return NULL;
}

static cohi_window *find_free(coh_world *world)
{
    for (int i = 0; i < COHI_WINDOWS_MAX; i++)
        if (world->windows[i].bytes == 0)
            return &world->windows[i];
    return NULL;
}

static bool overlaps(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
    return (uintptr_t)a - (uintptr_t)b < b_bytes || (uintptr_t)b - (uintptr_t)a < a_bytes;
}

static bool lies_in_heap(coh_world *world, const char *base, uint64_t bytes)
{
    for (int number = 0; number < world->heap_count; number++) {
        const coh_heap *heap = cohi_heap_numbered(world, number);
        if (heap && overlaps(base, bytes, heap->base, heap->reserved))
            return true;
    }
    return false;
}

/* The descriptor of this rank's heap, or -1 where it has none. */
static int heap_descriptor(coh_world *world)
{
    cohi_region_key key = {.fd = -1};
    if (world->engine->memory->region_export(world->endpoint, COHI_SEGMENT_HEAP, &key) != COH_OK)
        return -1;
    return key.fd;
}

/* ---- checks ---- */

static coh_status check_engine(coh_world *world, const char *call)
{
    if (world->crew && world->size > 1)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "the ranks are threads of one process and have this memory in "
                               "common; it cannot be a copy of each");
    if (!world->engine->memory || heap_descriptor(world) < 0)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "the heap of engine %s is not memory that can be mapped a second "
                               "time; shm's is",
                               world->engine->name);
    return COH_OK;
}

static bool is_whole_pages(const char *base, size_t bytes)
{
    size_t page = cohi_os_page_bytes();
    return base && bytes > 0 && (uintptr_t)base % page == 0 && bytes % page == 0
           && (uintptr_t)base + bytes >= (uintptr_t)base;
}

static coh_status check_range(coh_world *world, const char *call, char *base, size_t bytes)
{
    if (!is_whole_pages(base, bytes))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%zu bytes at %p are not whole pages of %zu bytes", bytes,
                               (void *)base, cohi_os_page_bytes());
    if (cohi_world_is_on_card(world, base))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%zu bytes at %p are memory of a card; coh_heap_create makes such "
                               "memory symmetric, with kind COH_HEAP_CUDA",
                               bytes, (void *)base);
    if (lies_in_heap(world, base, bytes))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%zu bytes at %p lie in a symmetric heap", bytes, (void *)base);
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        if (overlaps(base, bytes, window->base, window->bytes))
            return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                   "%zu bytes at %p overlap what is registered: %" PRIu64
                                   " bytes at %p",
                                   bytes, (void *)base, window->bytes, (void *)window->base);
    if (!find_free(world))
        return cohi_world_fail(world, call, COH_LIMIT,
                               "%d ranges are registered, which is all "
                               "that a world can have",
                               COHI_WINDOWS_MAX);
    return COH_OK;
}

/* ---- pages to and from the heap ---- */

/* Puts the contents into private pages again. */
static int withdraw(coh_world *world, cohi_window *window)
{
    void *copy = NULL;
    int error = cohi_os_window_copy(heap_descriptor(world), window->offset, window->bytes, &copy);
    if (!error)
        error = cohi_os_window_replace(copy, window->base, window->bytes);
    if (error)
        cohi_os_unmap(copy, window->bytes);
    return error;
}

static coh_status open_window(coh_world *world, const char *call, cohi_window *window)
{
    int error =
        cohi_os_window_open(heap_descriptor(world), window->offset, window->base, window->bytes);
    if (!error)
        return COH_OK;
    return cohi_world_fail(world, call, COH_SYSTEM, "the pages at %p cannot be replaced: %s",
                           (void *)window->base, strerror(error));
}

/* The heap may give the pages to other allocations, which count on memory behind them. */
static coh_status fill(coh_world *world, const char *call, const cohi_window *window)
{
    coh_status status = cohi_heap_fill(world->heaps[0], window->offset, window->bytes);
    if (status == COH_OK)
        return COH_OK;
    return cohi_world_fail(world, call, status, "%" PRIu64 " bytes at %p: %s", window->bytes,
                           (void *)window->base, coh_last_error());
}

static void publish(coh_world *world, const cohi_window *window, cohi_window *slot)
{
    int count = (int)(slot - world->windows) + 1;
    slot->offset = window->offset;
    slot->prepared = window->prepared;
    slot->base = window->base;
    slot->bytes = window->bytes;
    if (count > world->window_count)
        world->window_count = count;
}

/* All ranks have their window, or none has. */
static coh_status agree(coh_world *world, const char *call, cohi_record *record)
{
    cohi_entry entry = cohi_entry_of(world->team, call, (cohi_opcode)record->op);
    coh_status status = cohi_team_enter(&entry);
    return status == COH_OK ? cohi_team_leave(world->team, cohi_agree(&entry, record)) : status;
}

/* ---- registering ---- */

/* Moves the memory into a new block of the heap. */
static coh_status move_in(coh_world *world, const char *call, cohi_window *window)
{
    uint64_t offset, bytes = window->bytes;
    coh_status status =
        cohi_heap_take_bare(world, call, COHI_OP_REGISTER, bytes, cohi_os_page_bytes(), &offset);
    if (status != COH_OK)
        return status;
    window->offset = offset;
    coh_status mine = open_window(world, call, window);
    cohi_record record = {.op = COHI_OP_REGISTER, .status = (int32_t)mine};
    status = agree(world, call, &record);
    if (status == COH_OK)
        return COH_OK;
    if (mine == COH_OK)
        (void)withdraw(world, window);
    (void)cohi_heap_fill(world->heaps[0], offset, bytes);
    (void)cohi_heap_give(world, call, COHI_OP_REGISTER, offset);
    return status;
}

/* It lies in the heap already; the others' must lie in the same place. The record is that of
 * move_in's block, so that a rank that has to move its own is told from this. */
static coh_status find_in(coh_world *world, const char *call, const cohi_window *window)
{
    cohi_record record = {
        .op = COHI_OP_REGISTER,
        .argument = {window->bytes, cohi_os_page_bytes(), window->offset, UINT64_MAX}};
    return agree(world, call, &record);
}

/* ---- the public calls ---- */

static void note_open(coh_world *world, void *open)
{
    (void)world;
    *(bool *)open = true;
}

coh_status coh_prepare(void *base, size_t bytes)
{
    static const char call[] = "coh_prepare";
    if (!is_whole_pages(base, bytes))
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: %zu bytes at %p are not whole pages of %zu bytes", call, bytes, base,
                         cohi_os_page_bytes());
    bool open = false;
    cohi_world_each(note_open, &open);
    if (open)
        return cohi_fail(COH_BUSY, "%s: the process has a world; memory is prepared before", call);
    return cohi_prepared_add(call, base, bytes);
}

coh_status coh_register(coh_world *world, void *base, size_t bytes)
{
    static const char call[] = "coh_register";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = check_engine(world, call);
    if (status == COH_OK)
        status = check_range(world, call, base, bytes);
    cohi_window *slot = status == COH_OK ? find_free(world) : NULL;
    if (!slot)
        return status;
    uint64_t offset = 0;
    bool prepared = world->prepared > 0 && cohi_prepared_find(base, bytes, &offset);
    cohi_window window = {.base = base, .bytes = bytes, .offset = offset, .prepared = prepared};
    status = prepared ? find_in(world, call, &window) : move_in(world, call, &window);
    if (status == COH_OK)
        publish(world, &window, slot);
    return status;
}

coh_status coh_unregister(coh_world *world, void *base)
{
    static const char call[] = "coh_unregister";
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    cohi_window *window = find_window(world, base);
    if (!window)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%p is not the start of registered memory", base);
    bool prepared = window->prepared;
    cohi_record record = {.op = COHI_OP_UNREGISTER};
    if (!prepared)
        record.status = (int32_t)fill(world, call, window);
    status = agree(world, call, &record); /* nobody writes to it any more */
    if (status != COH_OK)
        return status;
    if (prepared) {
        window->bytes = 0;
        return COH_OK;
    }
    int error = withdraw(world, window);
    if (error)
        return cohi_world_fail(world, call, COH_SYSTEM, "the pages at %p cannot be given back: %s",
                               base, strerror(error));
    window->bytes = 0;
    return cohi_heap_give(world, call, COHI_OP_UNREGISTER, window->offset);
}

/* The one with the least offset from `offset` on. */
static cohi_window *next_by_offset(const coh_world *world, uint64_t offset)
{
    cohi_window *least = NULL;
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        if (window->offset >= offset && (!least || window->offset < least->offset))
            least = window;
    return least;
}

void cohi_register_keep_alone(coh_world *world)
{
    uint64_t from = 0;
    if (world->prepared > 0 || !next_window(world, NULL))
        return; /* closing does it with a heap that stays */
    for (cohi_window *window; (window = next_by_offset(world, from));) {
        if (window->offset > from)
            (void)cohi_os_decommit_shared(heap_descriptor(world), from, window->offset);
        from = window->offset + window->bytes;
    }
    if (from < cohi_heap_reserved(world))
        (void)cohi_os_decommit_shared(heap_descriptor(world), from, cohi_heap_reserved(world));
}

void cohi_register_abandon(coh_world *world)
{
    if (world->prepared > 0)
        cohi_prepared_forget();
    world->prepared = 0;
}

/* Below a view that is detached the file of the heap lives on. Copies would double the memory at
 * the end of a program that has nearly all of the host's; but the file of prepared memory becomes
 * the next world's heap. */
static void close_window(coh_world *world, cohi_window *window)
{
    if (window->prepared || (world->prepared > 0 && withdraw(world, window) == 0))
        return;
    (void)cohi_os_window_detach(heap_descriptor(world), window->offset, window->base,
                                window->bytes);
    cohi_register_abandon(world); /* its file must stay as it is */
}

void cohi_register_close(coh_world *world)
{
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        close_window(world, window);
    if (world->prepared > 0)
        cohi_prepared_release();
    world->prepared = 0;
    world->window_count = 0;
}

/* ---- fork: prepared memory sees to itself ---- */

void cohi_register_before_fork(coh_world *world)
{
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window)) {
        window->spare = NULL;
        if (window->prepared)
            continue;
        (void)cohi_os_window_copy(heap_descriptor(world), window->offset, window->bytes,
                                  &window->spare);
    }
}

void cohi_register_in_parent(coh_world *world)
{
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window))
        cohi_os_unmap(window->spare, window->bytes);
}

void cohi_register_in_child(coh_world *world)
{
    for (cohi_window *window = next_window(world, NULL); window;
         window = next_window(world, window)) {
        if (window->prepared)
            continue;
        if (!window->spare || cohi_os_window_replace(window->spare, window->base, window->bytes))
            (void)cohi_os_window_detach(heap_descriptor(world), window->offset, window->base,
                                        window->bytes);
    }
}
