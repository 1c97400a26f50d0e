#include "core/heap/heap.h"

#include "base/os.h"
#include "core/team/agree.h"
#include "core/heap/blocks.h"
#include "core/heap/driven.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/heap/register.h"
#include "core/heap/locate.h"
#include "core/team/enter.h"
#include "core/team/rounds.h"
#include "memory/host_region.h"

#include <stdlib.h>
#include <string.h>

struct cohi_heap {
    pthread_mutex_t lock; /* of `blocks`; collectives change it one at a time, others look */
    cohi_blocks *blocks;
    uint64_t reserved;
    uint64_t backed; /* on this rank; beyond heap_limit only while a growth is agreed on */
    uint64_t turns;  /* allocation calls made, for driven ranks */
    uint64_t bare_from, bare_to; /* what a growth leaves without memory: see cohi_heap_take_bare */
    uint64_t refill_from,
        refill_to; /* of the block being made: was given back, gets memory again */
    uint64_t keep; /* free bytes that are not given back */
    bool checks;
};

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

#define NO_OFFSET UINT64_MAX /* where a record has no block to name */

/* Small heaps grow by this, large ones by whole huge pages, and never by much more than is needed.
 */
#define SMALL_STEP     (256 * KIB)
#define LARGE_STEP     (2 * MIB)
#define MOST_AHEAD     (16 * MIB)
#define MOST_ALIGNMENT ((uint64_t)COHI_REGION_ALIGNMENT) /* where every rank's heap starts */
#define SLICE          (64 * MIB) /* well within a second, also where the kernel is slow at it */

/*
 * Freed memory goes back to the host in pieces of at least GIVE_LEAST, when more than `keep` bytes
 * lie idle. `keep` grows with what was given back and asked for again, so that a program that
 * frees and allocates in turns pays for it once (512 MiB: 0.8 s on two busy cores, then 6 us); up to a share of
 * the heap, divided among the ranks.
 */
#define GIVE_LEAST MIB
#define KEEP_FIRST (64 * MIB)
#define KEEP_PART  8

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* ---- size ---- */

/* All ranks' reservations are mapped by each: a share of the address space each, and a half of what
 * a limit leaves, so that the program has the other half. */
uint64_t cohi_heap_reservation(uint64_t asked, int size)
{
    const uint64_t address_space = UINT64_C(64) << 40;
    uint64_t wanted = asked ? asked : cohi_os_memory_total();
    uint64_t left = cohi_os_address_space_left();
    uint64_t share = address_space / (uint64_t)size;
    if (!asked && left != UINT64_MAX && left / 2 / (uint64_t)size < share)
        share = left / 2 / (uint64_t)size;
    if (wanted > share)
        wanted = share / LARGE_STEP * LARGE_STEP;
    return wanted < LARGE_STEP ? LARGE_STEP : round_up(wanted, LARGE_STEP);
}

/* Where the bound goes so that `needed` bytes are inside; the same on all ranks. */
static uint64_t next_limit(const coh_world *world, uint64_t needed)
{
    uint64_t limit = atomic_load(&((coh_world *)world)->heap_limit);
    uint64_t ahead = limit / 4 < MOST_AHEAD ? limit / 4 : MOST_AHEAD;
    uint64_t target = needed > limit + ahead ? needed : limit + ahead;
    target = round_up(target, target < LARGE_STEP ? SMALL_STEP : LARGE_STEP);
    return target < world->heap->reserved ? target : world->heap->reserved;
}

/* The first block is memory that was there before the heap, and that nothing backs or frees. */
static bool take_prepared(struct cohi_heap *heap, coh_world *world)
{
    uint64_t offset = 0;
    heap->backed = world->prepared;
    atomic_store(&world->heap_limit, world->prepared);
    return world->prepared == 0
           || (cohi_blocks_take(heap->blocks, world->prepared, COHI_BLOCK_BYTES, &offset)
               && offset == 0);
}

coh_status cohi_heap_open(coh_world *world, uint64_t bytes, bool checks)
{
    struct cohi_heap *heap = calloc(1, sizeof *heap);
    if (heap)
        heap->blocks = cohi_blocks_create(bytes);
    if (!heap || !heap->blocks || !take_prepared(heap, world)) {
        if (heap)
            cohi_blocks_destroy(heap->blocks);
        free(heap);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the heap's map");
    }
    pthread_mutex_init(&heap->lock, NULL);
    heap->reserved = bytes;
    heap->keep = KEEP_FIRST;
    heap->checks = checks;
    world->heap = heap;
    return COH_OK;
}

void cohi_heap_close(coh_world *world)
{
    if (!world->heap)
        return;
    cohi_blocks_destroy(world->heap->blocks);
    pthread_mutex_destroy(&world->heap->lock);
    free(world->heap);
    world->heap = NULL;
}

uint64_t cohi_heap_reserved(const coh_world *world)
{
    return world->heap->reserved;
}

bool cohi_heap_checks(const coh_world *world)
{
    return world->heap->checks;
}

bool cohi_heap_find(coh_world *world, uint64_t offset, uint64_t *start, uint64_t *bytes)
{
    pthread_mutex_lock(&world->heap->lock);
    bool found = cohi_blocks_find(world->heap->blocks, offset, start, bytes);
    pthread_mutex_unlock(&world->heap->lock);
    return found;
}

/* ---- the map of blocks, under its lock ---- */

static bool take(struct cohi_heap *heap, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    pthread_mutex_lock(&heap->lock);
    bool taken = cohi_blocks_take(heap->blocks, bytes, alignment, offset);
    heap->refill_from = heap->refill_to = 0;
    if (taken)
        cohi_blocks_claim(heap->blocks, *offset, &heap->refill_from, &heap->refill_to);
    pthread_mutex_unlock(&heap->lock);
    return taken;
}

static void give(struct cohi_heap *heap, uint64_t offset)
{
    pthread_mutex_lock(&heap->lock);
    cohi_blocks_give(heap->blocks, offset);
    pthread_mutex_unlock(&heap->lock);
}

static bool resize(struct cohi_heap *heap, uint64_t offset, uint64_t bytes)
{
    pthread_mutex_lock(&heap->lock);
    bool resized = cohi_blocks_resize(heap->blocks, offset, bytes);
    cohi_blocks_claim(heap->blocks, offset, &heap->refill_from, &heap->refill_to);
    pthread_mutex_unlock(&heap->lock);
    return resized;
}

static bool is_driven(const coh_world *world)
{
    return world->driven;
}

/* ---- backing ---- */

/*
 * Long work goes in slices, each a beat, so that waiting ranks see progress; and before each
 * the memory is looked at again, since another job may be taking it at the same time.
 */
static coh_status commit_slice(coh_world *world, uint64_t from, uint64_t to)
{
    cohi_os_memory memory = cohi_os_memory_look();
    atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    if (to - from > memory.available) {
        char text[COHI_OS_MEMORY_TEXT];
        cohi_os_memory_describe(&memory, text, sizeof text);
        return cohi_fail(COH_NO_MEMORY, "%llu more bytes are needed, %s",
                         (unsigned long long)(to - from), text);
    }
    return world->engine->memory->segment_commit(world->endpoint, COHI_SEGMENT_HEAP, from, to);
}

static coh_status advance(coh_world *world, uint64_t to)
{
    coh_status status = commit_slice(world, world->heap->backed, to);
    if (status == COH_OK)
        world->heap->backed = to;
    return status;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

coh_status cohi_heap_commit(coh_world *world, uint64_t bytes)
{
    struct cohi_heap *heap = world->heap;
    coh_status status = cohi_fault_strike(world->fault, COHI_OP_COMMIT);
    while (status == COH_OK && heap->backed < bytes) {
        uint64_t to = least(bytes, heap->backed + SLICE);
        if (heap->backed >= heap->bare_from && heap->backed < heap->bare_to)
            heap->backed = least(bytes, heap->bare_to);
        else
            status =
                advance(world, heap->backed < heap->bare_from ? least(to, heap->bare_from) : to);
    }
    return status;
}

static coh_status refill(coh_world *world)
{
    uint64_t from = world->heap->refill_from, end = world->heap->refill_to;
    coh_status status = COH_OK;
    for (; status == COH_OK && from < end; from += SLICE)
        status = commit_slice(world, from, least(end, from + SLICE));
    return status;
}

/* Takes the memory from a bare range of the map; all ranks have done with what was there. */
static void uncover(coh_world *world, uint64_t from, uint64_t to)
{
    for (; from < to; from += SLICE) {
        world->engine->memory->segment_decommit(world->endpoint, COHI_SEGMENT_HEAP, from,
                                                least(to, from + SLICE));
        atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    }
}

/* What a call that failed had taken of a bare range is bare again. */
static void strip(coh_world *world, uint64_t from, uint64_t to)
{
    if (from == to)
        return;
    pthread_mutex_lock(&world->heap->lock);
    cohi_blocks_strip(world->heap->blocks, from, to);
    pthread_mutex_unlock(&world->heap->lock);
    uncover(world, from, to);
}

/* Whether the free block around has enough memory to give back, and the heap more than it keeps. */
static bool is_worth_giving(const struct cohi_heap *heap, const cohi_hole *hole, uint64_t limit)
{
    uint64_t end = least(hole->to, limit);
    uint64_t backed = end > hole->from ? end - hole->from : 0;
    uint64_t idle = limit - cohi_blocks_used(heap->blocks) - cohi_blocks_bare(heap->blocks);
    return backed >= hole->bare_to - hole->bare_from + GIVE_LEAST && idle > heap->keep;
}

/* Frees a block, and gives memory back. Depends on the history of calls alone, as the map does. */
static void discard(coh_world *world, uint64_t offset)
{
    struct cohi_heap *heap = world->heap;
    uint64_t page = cohi_os_page_bytes(), limit = atomic_load(&world->heap_limit);
    cohi_hole hole = {0};
    give(heap, offset);
    if (is_driven(world))
        return;
    pthread_mutex_lock(&heap->lock);
    (void)cohi_blocks_hole(heap->blocks, offset, &hole);
    if (is_worth_giving(heap, &hole, limit))
        cohi_blocks_strip(heap->blocks, round_up(hole.from, page),
                          least(hole.to, limit) / page * page);
    (void)cohi_blocks_hole(heap->blocks, offset, &hole);
    pthread_mutex_unlock(&heap->lock);
    if (hole.bare_from <= round_up(offset, page) && hole.bare_to > offset)
        uncover(world, hole.bare_from, hole.bare_to);
}

coh_status cohi_heap_fill(coh_world *world, uint64_t offset, uint64_t bytes)
{
    return world->engine->memory->segment_commit(world->endpoint, COHI_SEGMENT_HEAP, offset,
                                                 offset + bytes);
}

void cohi_heap_trim(coh_world *world)
{
    struct cohi_heap *heap = world->heap;
    uint64_t limit = atomic_load(&world->heap_limit);
    if (heap->backed <= limit)
        return;
    world->engine->memory->segment_decommit(world->endpoint, COHI_SEGMENT_HEAP, limit,
                                            heap->backed);
    heap->backed = limit;
}

static coh_status back(coh_world *world, const char *call, const cohi_record *record,
                       uint64_t target)
{
    uint64_t growth = target - atomic_load(&world->heap_limit);
    coh_status status = cohi_heap_commit(world, target);
    if (status == COH_OK)
        status = refill(world);
    if (status == COH_OK)
        return COH_OK;
    growth += world->heap->refill_to - world->heap->refill_from;
    return cohi_world_fail(world, call, status,
                           "%llu bytes: rank %d cannot grow its heap by %llu bytes: %s",
                           (unsigned long long)record->argument[0], world->rank,
                           (unsigned long long)growth, coh_last_error());
}

static void zero(coh_world *world, uint64_t from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += SLICE) {
        uint64_t left = bytes - done;
        memset(world->heap_base + from + done, 0, left < SLICE ? left : SLICE);
        atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    }
}

/* One rank of each host looks, for all of them: looking each for itself, they would all pass, and
 * together take more than there is. */
static coh_status check_memory(const coh_world *world, const char *call, uint64_t target)
{
    uint64_t limit = atomic_load(&((coh_world *)world)->heap_limit);
    uint64_t ranks = (uint64_t)world->local_size;
    cohi_os_memory memory = cohi_os_memory_look();
    uint64_t bare_from = limit > world->heap->bare_from ? limit : world->heap->bare_from;
    uint64_t bare = world->heap->bare_to > bare_from ? world->heap->bare_to - bare_from : 0;
    uint64_t growth = target - limit - bare + world->heap->refill_to - world->heap->refill_from;
    if (world->local_rank != 0 || growth <= memory.available / ranks)
        return COH_OK;
    char text[COHI_OS_MEMORY_TEXT];
    cohi_os_memory_describe(&memory, text, sizeof text);
    return cohi_world_fail(world, call, COH_NO_MEMORY,
                           "%llu more bytes for each of %llu ranks on this host are needed; in all "
                           "%s",
                           (unsigned long long)growth, (unsigned long long)ranks, text);
}

/* What was given back is needed again. */
static void keep_more(coh_world *world, uint64_t bytes)
{
    struct cohi_heap *heap = world->heap;
    uint64_t most = heap->reserved / KEEP_PART / (uint64_t)world->size;
    if (bytes > heap->keep && most > heap->keep)
        heap->keep = least(bytes, most);
}

/*
 * Agrees with all ranks on `record`, having backed the heap up to `needed` and, if told so, zeroed
 * the new block. Memory is asked for only after all agreed that there is enough.
 */
static coh_status settle(coh_world *world, const char *call, cohi_record *record, uint64_t needed,
                         uint64_t zero_from, uint64_t zero_bytes)
{
    struct cohi_heap *heap = world->heap;
    cohi_entry entry = cohi_entry_of(world->team, call, (cohi_opcode)record->op);
    uint64_t limit = atomic_load(&world->heap_limit);
    uint64_t refilled = record->status == COH_OK ? heap->refill_to - heap->refill_from : 0;
    bool grows = record->status == COH_OK && needed > limit;
    uint64_t target = grows ? next_limit(world, needed) : limit;
    if (grows || refilled > 0) {
        record->status = (int32_t)check_memory(world, call, target);
        coh_status status = cohi_agree(&entry, record);
        if (status != COH_OK)
            return status;
        record->status = (int32_t)back(world, call, record, target);
    }
    if (record->status == COH_OK && zero_bytes > 0)
        zero(world, zero_from, zero_bytes);
    coh_status status = cohi_agree(&entry, record);
    if (status == COH_OK && grows)
        atomic_store(&world->heap_limit, target);
    else if (grows)
        cohi_heap_trim(world);
    if (status == COH_OK && refilled > 0)
        keep_more(world, refilled);
    return status;
}

/* Driven ranks: nobody can be waited for, so the first one there acts for all. */
static coh_status settle_driven(coh_world *world, const char *call, cohi_record *record,
                                uint64_t needed, uint64_t zero_from, uint64_t zero_bytes)
{
    bool grows = record->status == COH_OK && needed > atomic_load(&world->heap_limit);
    uint64_t target = grows ? next_limit(world, needed) : 0;
    coh_status status = cohi_driven_agree(world, call, record, world->heap->turns, target);
    world->heap->turns++;
    if (status != COH_OK)
        return status;
    if (zero_bytes > 0)
        zero(world, zero_from, zero_bytes);
    if (grows)
        atomic_store(&world->heap_limit, target);
    return COH_OK;
}

static coh_status conclude(coh_world *world, const char *call, cohi_record *record, uint64_t needed,
                           uint64_t zero_from, uint64_t zero_bytes)
{
    return (is_driven(world) ? settle_driven : settle)(world, call, record, needed, zero_from,
                                                       zero_bytes);
}

/* ---- entering ---- */

static coh_status check_heap(coh_world *world, const char *call, const void *output)
{
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    if (!world->heap)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "engine %s has no one-sided memory, so there is no heap",
                               world->engine->name);
    if (!output)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "the place for the result is NULL");
    return COH_OK;
}

/* Collective, and everything issued before is complete. */
static coh_status begin(coh_world *world, const char *call, cohi_opcode op)
{
    cohi_entry entry = cohi_entry_of(world->team, call, op);
    coh_status status = cohi_team_enter(&entry);
    if (status != COH_OK)
        return status;
    status = cohi_order_quiet(world, call, op);
    return status == COH_OK ? status : cohi_team_leave(world->team, status);
}

static coh_status end(coh_world *world, coh_status status)
{
    world->heap->refill_from = world->heap->refill_to = 0;
    return cohi_team_leave(world->team, status);
}

/* ---- allocation ---- */

/* Where a block would fit whatever its alignment, memory for the map of blocks was missing. */
static coh_status fail_room(coh_world *world, const char *call, uint64_t bytes)
{
    struct cohi_heap *heap = world->heap;
    uint64_t largest = cohi_blocks_largest(heap->blocks);
    if (largest > MOST_ALIGNMENT && bytes <= largest - MOST_ALIGNMENT)
        return cohi_world_fail(world, call, COH_NO_MEMORY,
                               "%llu bytes: out of memory for the heap's map",
                               (unsigned long long)bytes);
    (void)cohi_world_fail(world, call, COH_NO_MEMORY,
                          "%llu bytes do not fit: the heap can grow to %llu bytes (COHORT_HEAP, "
                          "cohort run --heap), %llu are in use, the largest free block has %llu",
                          (unsigned long long)bytes, (unsigned long long)heap->reserved,
                          (unsigned long long)cohi_blocks_used(heap->blocks),
                          (unsigned long long)largest);
    return cohi_fail_range(COH_NO_MEMORY, COH_NO_FACT, bytes, largest);
}

/* What a new block is to be like. */
enum content { ANY, ZEROED, BARE };

static coh_status allocate(coh_world *world, const char *call, cohi_opcode op, uint64_t bytes,
                           uint64_t alignment, enum content content, void **pointer)
{
    struct cohi_heap *heap = world->heap;
    uint64_t offset = NO_OFFSET;
    coh_status status = begin(world, call, op);
    if (status != COH_OK)
        return status;
    bool taken = take(heap, bytes, alignment, &offset);
    uint64_t refill_from = heap->refill_from, refill_to = heap->refill_to;
    cohi_record record = {.op = op, .argument = {bytes, alignment, offset, NO_OFFSET}};
    if (!taken)
        record.status = (int32_t)fail_room(world, call, bytes);
    if (taken && content == BARE) {
        heap->bare_from = offset;
        heap->bare_to = offset + bytes;
        heap->refill_from = heap->refill_to = 0;
    }
    status = conclude(world, call, &record, offset + bytes, offset, content == ZEROED ? bytes : 0);
    heap->bare_from = heap->bare_to = 0;
    if (status != COH_OK && taken) {
        give(heap, offset);
        strip(world, refill_from, refill_to);
    }
    if (status == COH_OK)
        *pointer = world->heap_base + offset;
    return end(world, status);
}

coh_status cohi_heap_take_bare(coh_world *world, const char *call, cohi_opcode op, uint64_t bytes,
                               uint64_t alignment, uint64_t *offset)
{
    void *pointer = NULL;
    coh_status status = check_heap(world, call, offset);
    if (status == COH_OK)
        status = allocate(world, call, op, bytes, alignment, BARE, &pointer);
    if (status == COH_OK)
        *offset = (uint64_t)((char *)pointer - world->heap_base);
    return status;
}

coh_status coh_malloc(coh_world *world, size_t bytes, void **pointer)
{
    static const char call[] = "coh_malloc";
    coh_status status = check_heap(world, call, pointer);
    if (status != COH_OK)
        return status;
    if (bytes == 0) {
        *pointer = NULL;
        return COH_OK;
    }
    return allocate(world, call, COHI_OP_MALLOC, bytes, COHI_BLOCK_BYTES, ANY, pointer);
}

coh_status coh_calloc(coh_world *world, size_t count, size_t size, void **pointer)
{
    static const char call[] = "coh_calloc";
    coh_status status = check_heap(world, call, pointer);
    if (status != COH_OK)
        return status;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%zu elements of %zu bytes overflow", count, size);
    if (bytes == 0) {
        *pointer = NULL;
        return COH_OK;
    }
    return allocate(world, call, COHI_OP_CALLOC, bytes, COHI_BLOCK_BYTES, ZEROED, pointer);
}

coh_status coh_align(coh_world *world, size_t alignment, size_t bytes, void **pointer)
{
    static const char call[] = "coh_align";
    coh_status status = check_heap(world, call, pointer);
    if (status != COH_OK)
        return status;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > MOST_ALIGNMENT)
        return cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                               "the alignment %zu is not a power of two from 1 to %llu", alignment,
                               (unsigned long long)MOST_ALIGNMENT);
    if (bytes == 0) {
        *pointer = NULL;
        return COH_OK;
    }
    uint64_t at_least = alignment < COHI_BLOCK_BYTES ? COHI_BLOCK_BYTES : alignment;
    return allocate(world, call, COHI_OP_ALIGN, bytes, at_least, ANY, pointer);
}

/* ---- freeing ---- */

/* The offset of a live allocation that starts at `pointer`, and its length. */
static coh_status find_start(coh_world *world, const char *call, const void *pointer,
                             uint64_t *offset, uint64_t *bytes)
{
    uint64_t start;
    coh_status status = cohi_heap_locate(world, call, pointer, offset);
    if (status == COH_OK && cohi_register_holds(world, *offset))
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                 "%p is registered memory, not an allocation", pointer);
    if (status != COH_OK)
        return status;
    if (!cohi_heap_find(world, *offset, &start, bytes))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%p (offset %llu) is not a live allocation; it may have been freed "
                               "before",
                               pointer, (unsigned long long)*offset);
    if (start != *offset)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%p (offset %llu) is %llu bytes inside the allocation at offset "
                               "%llu, not its start",
                               pointer, (unsigned long long)*offset,
                               (unsigned long long)(*offset - start), (unsigned long long)start);
    return COH_OK;
}

static coh_status release(coh_world *world, const char *call, cohi_opcode op, uint64_t offset)
{
    coh_status status = begin(world, call, op);
    if (status != COH_OK)
        return status;
    cohi_record record = {.op = op, .argument = {0, 0, offset, NO_OFFSET}};
    status = conclude(world, call, &record, 0, 0, 0);
    if (status == COH_OK)
        discard(world, offset);
    return end(world, status);
}

coh_status cohi_heap_give(coh_world *world, const char *call, cohi_opcode op, uint64_t offset)
{
    return release(world, call, op, offset);
}

coh_status coh_free(coh_world *world, void *pointer)
{
    static const char call[] = "coh_free";
    uint64_t offset, bytes;
    coh_status status = check_heap(world, call, call); /* it has no result */
    if (status != COH_OK || !pointer)
        return status;
    status = find_start(world, call, pointer, &offset, &bytes);
    return status == COH_OK ? release(world, call, COHI_OP_FREE, offset) : status;
}

/* ---- resizing ---- */

/* A resize under way: where the block was and where it will be. */
struct move {
    uint64_t from, had;
    uint64_t to, bytes;
    bool placed; /* `to` is set */
};

static void place(struct cohi_heap *heap, struct move *move)
{
    move->to = move->from;
    move->placed = resize(heap, move->from, move->bytes)
                   || take(heap, move->bytes, COHI_BLOCK_BYTES, &move->to);
}

static void undo(coh_world *world, const struct move *move)
{
    uint64_t from = world->heap->refill_from, to = world->heap->refill_to;
    if (!move->placed)
        return;
    if (move->to == move->from)
        resize(world->heap, move->from, move->had);
    else
        give(world->heap, move->to);
    strip(world, from, to);
}

/* All have come, so nobody writes to the old place any more; nobody may write to the new one before
 * all have copied. */
static coh_status carry_over(coh_world *world, const char *call, const struct move *move)
{
    if (move->to == move->from)
        return COH_OK;
    memcpy(world->heap_base + move->to, world->heap_base + move->from,
           move->had < move->bytes ? move->had : move->bytes);
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_REALLOC);
    coh_status status = is_driven(world) ? COH_OK : cohi_team_meet(&entry);
    if (status == COH_OK)
        discard(world, move->from);
    return status;
}

static coh_status reallocate(coh_world *world, const char *call, struct move *move)
{
    struct cohi_heap *heap = world->heap;
    coh_status status = begin(world, call, COHI_OP_REALLOC);
    if (status != COH_OK)
        return status;
    place(heap, move);
    cohi_record record = {
        .op = COHI_OP_REALLOC,
        .argument = {move->bytes, 0, move->from, move->placed ? move->to : NO_OFFSET}};
    if (!move->placed)
        record.status = (int32_t)fail_room(world, call, move->bytes);
    status = conclude(world, call, &record, move->to + move->bytes, 0, 0);
    if (status == COH_OK)
        status = carry_over(world, call, move);
    if (status != COH_OK)
        undo(world, move);
    return end(world, status);
}

coh_status coh_realloc(coh_world *world, void *pointer, size_t bytes, void **resized)
{
    static const char call[] = "coh_realloc";
    coh_status status = check_heap(world, call, resized);
    if (status != COH_OK)
        return status;
    struct move move = {.bytes = bytes};
    if (pointer)
        status = find_start(world, call, pointer, &move.from, &move.had);
    if (status != COH_OK)
        return status;
    if (!pointer && bytes > 0)
        return allocate(world, call, COHI_OP_REALLOC, bytes, COHI_BLOCK_BYTES, ANY, resized);
    if (bytes > 0)
        status = reallocate(world, call, &move);
    else if (pointer)
        status = release(world, call, COHI_OP_REALLOC, move.from);
    if (status == COH_OK)
        *resized = bytes > 0 ? world->heap_base + move.to : NULL;
    return status;
}

/* ---- statistics ---- */

coh_status coh_heap_query(coh_world *world, coh_heap_stats *stats)
{
    static const char call[] = "coh_heap_query";
    coh_status status = check_heap(world, call, stats);
    if (status != COH_OK)
        return status;
    if (stats->size < sizeof *stats)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "stats->size is %zu; set it to sizeof(coh_heap_stats), %zu",
                               stats->size, sizeof *stats);
    struct cohi_heap *heap = world->heap;
    pthread_mutex_lock(&heap->lock);
    stats->reserved = heap->reserved;
    stats->committed = atomic_load(&world->heap_limit);
    stats->used = cohi_blocks_used(heap->blocks);
    stats->largest = cohi_blocks_largest(heap->blocks);
    stats->count = cohi_blocks_count(heap->blocks);
    pthread_mutex_unlock(&heap->lock);
    return COH_OK;
}
