#include "core/heap/heap.h"

#include "base/os.h"
#include "core/team/agree.h"
#include "core/heap/device.h"
#include "core/heap/driven.h"
#include "core/heap/segment.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/health/wait.h"
#include "core/team/enter.h"
#include "core/team/rounds.h"
#include "memory/host_region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

#define NO_OFFSET UINT64_MAX /* where a record has no block to name */

/* Small heaps grow by this, large ones by whole huge pages, and never by much more than is needed.
 */
#define SMALL_STEP         (256 * KIB)
#define LARGE_STEP         (2 * MIB)
#define MOST_AHEAD         (16 * MIB)
#define MOST_AHEAD_ON_CARD (512 * MIB)
#define MOST_ALIGNMENT     ((uint64_t)COHI_REGION_ALIGNMENT) /* where every rank's heap starts */
#define WHOLE_MOST         (256 * MIB) /* of a heap that is backed at once, if nobody said how large */
#define SLICE              (64 * MIB) /* well within a second, also where the kernel is slow at it */

/*
 * Freed memory goes back to the host in pieces of at least GIVE_LEAST, when more than `keep` bytes
 * lie idle. `keep` grows with what was given back and asked for again, so that a program that
 * frees and allocates in turns pays for it once (512 MiB: 0.8 s on two busy cores, then 6 us); up to a share of
 * the heap, divided among the ranks.
 */
#define GIVE_LEAST MIB
#define KEEP_FIRST (64 * MIB)
#define KEEP_PART  8

static int segment_of(const coh_heap *heap)
{
    return COHI_SEGMENT_HEAP + heap->number;
}

static cohi_server server_of(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_HOST ? cohi_world_server(heap->world)
                                       : cohi_world_device(heap->world)->server;
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* ---- size ---- */

static bool is_whole(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_HOST ? heap->world->facts.commits_whole
                                       : cohi_world_device(heap->world)->facts.commits_whole;
}

/* Where all of a heap is backed at once, all ranks may be on one host, and more than half of its memory
 * is to be left. */
static uint64_t default_bytes(const coh_world *world)
{
    uint64_t total = cohi_os_memory_total(), share = total / 2 / (uint64_t)world->size;
    if (!world->facts.commits_whole)
        return total;
    return share < WHOLE_MOST ? share : WHOLE_MOST;
}

/* All ranks' reservations are mapped by each: a share of the address space each, and a half of what
 * a limit leaves, so that the program has the other half. */
uint64_t cohi_heap_reservation(const coh_world *world, uint64_t asked)
{
    const uint64_t address_space = UINT64_C(64) << 40;
    int size = world->size;
    uint64_t wanted = asked ? asked : default_bytes(world);
    uint64_t left = cohi_os_address_space_left();
    uint64_t share = address_space / (uint64_t)size;
    if (!asked && left != UINT64_MAX && left / 2 / (uint64_t)size < share)
        share = left / 2 / (uint64_t)size;
    if (wanted > share)
        wanted = share / LARGE_STEP * LARGE_STEP;
    return wanted < LARGE_STEP ? LARGE_STEP : round_up(wanted, LARGE_STEP);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A heap on a card grows in larger steps: each is a descriptor for every peer. */
static uint64_t most_ahead(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_CUDA ? MOST_AHEAD_ON_CARD : MOST_AHEAD;
}

static uint64_t least_ahead(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_CUDA ? cohi_world_device(heap->world)->facts.growth_bytes : 0;
}

static int ranks_here(const coh_world *world)
{
    int count = 0;
    for (int rank = 0; rank < world->size; rank++)
        count += world->host_of[rank] == world->host_of[world->rank];
    return count;
}

coh_status cohi_heap_check_whole(const coh_world *world, uint64_t bytes)
{
    char text[COHI_OS_MEMORY_TEXT];
    cohi_os_memory memory = cohi_os_memory_look();
    int ranks = ranks_here(world);
    if (!world->facts.commits_whole || bytes <= memory.available / (uint64_t)ranks)
        return COH_OK;
    cohi_os_memory_describe(&memory, text, sizeof text);
    return cohi_fail(
        COH_NO_MEMORY,
        "engine %s backs all of a heap at once: %llu bytes for each of %d ranks on this "
        "host are needed; in all %s",
        world->engine->name, (unsigned long long)bytes, ranks, text);
}

/* Where the bound goes so that `needed` bytes are inside; the same on all ranks. */
static uint64_t next_limit(const coh_heap *heap, uint64_t needed)
{
    uint64_t limit = atomic_load(heap->limit);
    uint64_t ahead = least(limit / 4, most_ahead(heap));
    ahead = ahead < least_ahead(heap) ? least_ahead(heap) : ahead;
    uint64_t target = needed > limit + ahead ? needed : limit + ahead;
    target = round_up(target, target < LARGE_STEP ? SMALL_STEP : LARGE_STEP);
    return target < heap->reserved ? target : heap->reserved;
}

/* ---- opening and closing ---- */

coh_heap *cohi_heap_handle(coh_world *world, int number)
{
    coh_heap *heap = world->heaps[number];
    if (heap)
        return heap;
    heap = calloc(1, sizeof *heap);
    if (!heap)
        return NULL;
    heap->world = world;
    heap->number = number;
    heap->limit = number == 0 ? &world->heap_limit : &heap->own_limit;
    world->heaps[number] = heap;
    if (world->heap_count <= number)
        world->heap_count = number + 1;
    return heap;
}

coh_status cohi_heap_open(coh_heap *heap, char *base, uint64_t bytes)
{
    heap->blocks = cohi_blocks_create(bytes);
    if (!heap->blocks)
        return cohi_fail(COH_NO_MEMORY, "out of memory for the heap's map");
    pthread_mutex_init(&heap->lock, NULL);
    heap->backed = is_whole(heap) ? bytes : 0;
    heap->keep = KEEP_FIRST;
    heap->base = base;
    atomic_store(heap->limit, 0);
    heap->reserved = bytes; /* from now on it is found */
    return COH_OK;
}

/* The first block is memory that was there before the heap, and that nothing backs or frees. */
static coh_status take_prepared(coh_heap *heap, uint64_t bytes)
{
    uint64_t offset = 0;
    if (bytes == 0)
        return COH_OK;
    heap->backed = bytes;
    atomic_store(heap->limit, bytes);
    if (cohi_blocks_take(heap->blocks, bytes, COHI_BLOCK_BYTES, &offset))
        return COH_OK;
    return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the heap's map");
}

coh_status cohi_heap_open_own(coh_world *world, uint64_t bytes)
{
    coh_heap *heap = cohi_heap_handle(world, 0);
    if (!heap)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the heap's map");
    coh_status status = cohi_heap_open(heap, world->heap_base, bytes);
    return status == COH_OK ? take_prepared(heap, world->prepared) : status;
}

void cohi_heap_close(coh_heap *heap)
{
    if (heap->reserved == 0)
        return;
    heap->reserved = 0;
    cohi_blocks_destroy(heap->blocks);
    pthread_mutex_destroy(&heap->lock);
}

void cohi_heap_close_all(coh_world *world)
{
    for (int number = 0; number < world->heap_count; number++)
        if (world->heaps[number])
            cohi_heap_close(world->heaps[number]);
}

void cohi_heap_forget_all(coh_world *world)
{
    for (int number = 0; number < world->heap_count; number++) {
        coh_heap *heap = world->heaps[number];
        if (heap) {
            free(heap->peers);
            free(heap->addresses);
        }
        free(heap);
    }
    world->heap_count = 0;
}

uint64_t cohi_heap_reserved(const coh_world *world)
{
    return world->heaps[0]->reserved;
}

coh_status cohi_heap_check_own(const coh_world *world, const char *call)
{
    if (COHI_LIKELY(world->heaps[0] != NULL))
        return COH_OK;
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "engine %s has no one-sided memory, so there is no heap",
                           world->engine->name);
}

coh_status cohi_heap_enter(coh_heap *heap, const char *call)
{
    if (!heap)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the heap is NULL", call);
    coh_status status = cohi_world_enter(heap->world, call);
    if (status == COH_OK && heap->reserved == 0)
        status = cohi_world_fail(heap->world, call, COH_INVALID_ARGUMENT, "heap %d is destroyed",
                                 heap->number);
    return status;
}

cohi_heap_text cohi_heap_name(const coh_heap *heap)
{
    cohi_heap_text name = {"the heap"};
    if (heap->number > 0)
        snprintf(name.text, sizeof name.text, "heap %d", heap->number);
    return name;
}

bool cohi_heap_find(coh_world *world, cohi_spot spot, cohi_spot *start, uint64_t *bytes)
{
    coh_heap *heap = cohi_heap_numbered(world, cohi_spot_heap(spot));
    uint64_t offset = 0;
    if (!heap)
        return false;
    pthread_mutex_lock(&heap->lock);
    bool found = cohi_blocks_find(heap->blocks, cohi_spot_offset(spot), &offset, bytes);
    pthread_mutex_unlock(&heap->lock);
    *start = cohi_spot_make(heap->number, offset);
    return found;
}

/* ---- the map of blocks, under its lock ---- */

static bool take(coh_heap *heap, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    pthread_mutex_lock(&heap->lock);
    bool taken = cohi_blocks_take(heap->blocks, bytes, alignment, offset);
    heap->refill_from = heap->refill_to = 0;
    if (taken)
        cohi_blocks_claim(heap->blocks, *offset, &heap->refill_from, &heap->refill_to);
    pthread_mutex_unlock(&heap->lock);
    return taken;
}

static void give(coh_heap *heap, uint64_t offset)
{
    pthread_mutex_lock(&heap->lock);
    cohi_blocks_give(heap->blocks, offset);
    pthread_mutex_unlock(&heap->lock);
}

static bool resize(coh_heap *heap, uint64_t offset, uint64_t bytes)
{
    pthread_mutex_lock(&heap->lock);
    bool resized = cohi_blocks_resize(heap->blocks, offset, bytes);
    cohi_blocks_claim(heap->blocks, offset, &heap->refill_from, &heap->refill_to);
    pthread_mutex_unlock(&heap->lock);
    return resized;
}

/* ---- backing ---- */

/*
 * Long work goes in slices, each a beat, so that waiting ranks see progress; and before each
 * the memory is looked at again, since another job may be taking it at the same time.
 */
static coh_status commit_slice(coh_heap *heap, uint64_t from, uint64_t to)
{
    coh_world *world = heap->world;
    cohi_server server = server_of(heap);
    cohi_os_memory memory = cohi_os_memory_look();
    atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    if (heap->kind == COH_HEAP_HOST && to - from > memory.available) {
        char text[COHI_OS_MEMORY_TEXT];
        cohi_os_memory_describe(&memory, text, sizeof text);
        return cohi_fail(COH_NO_MEMORY, "%llu more bytes are needed, %s",
                         (unsigned long long)(to - from), text);
    }
    return server.engine->memory->segment_commit(server.endpoint, segment_of(heap), from, to);
}

/* What a card gives it gives at once, as one part. */
static uint64_t slice_of(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_HOST ? SLICE : UINT64_C(1) << COHI_HEAP_BITS;
}

static coh_status advance(coh_heap *heap, uint64_t to)
{
    coh_status status = commit_slice(heap, heap->backed, to);
    if (status == COH_OK)
        heap->backed = to;
    return status;
}

coh_status cohi_heap_commit(coh_heap *heap, uint64_t bytes)
{
    coh_world *world = heap->world;
    coh_status status = cohi_fault_strike(world->fault, COHI_OP_COMMIT);
    while (status == COH_OK && heap->backed < bytes) {
        uint64_t to = least(bytes, heap->backed + slice_of(heap));
        if (heap->backed >= heap->bare_from && heap->backed < heap->bare_to)
            heap->backed = least(bytes, heap->bare_to);
        else
            status =
                advance(heap, heap->backed < heap->bare_from ? least(to, heap->bare_from) : to);
    }
    return status;
}

static coh_status refill(coh_heap *heap)
{
    uint64_t from = heap->refill_from, end = heap->refill_to;
    coh_status status = COH_OK;
    for (; status == COH_OK && from < end; from += SLICE)
        status = commit_slice(heap, from, least(end, from + SLICE));
    return status;
}

/* Takes the memory from a bare range of the map; all ranks have done with what was there. */
static void uncover(coh_heap *heap, uint64_t from, uint64_t to)
{
    coh_world *world = heap->world;
    cohi_server server = server_of(heap);
    for (; from < to; from += SLICE) {
        server.engine->memory->segment_decommit(server.endpoint, segment_of(heap), from,
                                                least(to, from + SLICE));
        atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    }
}

/* What a call that failed had taken of a bare range is bare again. */
static void strip(coh_heap *heap, uint64_t from, uint64_t to)
{
    if (from == to)
        return;
    pthread_mutex_lock(&heap->lock);
    cohi_blocks_strip(heap->blocks, from, to);
    pthread_mutex_unlock(&heap->lock);
    uncover(heap, from, to);
}

/* Whether the free block around has enough memory to give back, and the heap more than it keeps. */
static bool is_worth_giving(const coh_heap *heap, const cohi_hole *hole, uint64_t limit)
{
    uint64_t end = least(hole->to, limit);
    uint64_t backed = end > hole->from ? end - hole->from : 0;
    uint64_t idle = limit - cohi_blocks_used(heap->blocks) - cohi_blocks_bare(heap->blocks);
    return backed >= hole->bare_to - hole->bare_from + GIVE_LEAST && idle > heap->keep;
}

/* Frees a block, and gives memory back, which a card takes only from the end. Depends on the history of
 * calls alone, as the map does. */
static void discard(coh_heap *heap, uint64_t offset)
{
    coh_world *world = heap->world;
    uint64_t page = cohi_os_page_bytes(), limit = atomic_load(heap->limit);
    cohi_hole hole = {0};
    give(heap, offset);
    if (world->driven || heap->kind != COH_HEAP_HOST || is_whole(heap))
        return;
    pthread_mutex_lock(&heap->lock);
    (void)cohi_blocks_hole(heap->blocks, offset, &hole);
    if (is_worth_giving(heap, &hole, limit))
        cohi_blocks_strip(heap->blocks, round_up(hole.from, page),
                          least(hole.to, limit) / page * page);
    (void)cohi_blocks_hole(heap->blocks, offset, &hole);
    pthread_mutex_unlock(&heap->lock);
    if (hole.bare_from <= round_up(offset, page) && hole.bare_to > offset)
        uncover(heap, hole.bare_from, hole.bare_to);
}

coh_status cohi_heap_fill(coh_heap *heap, uint64_t offset, uint64_t bytes)
{
    cohi_server server = server_of(heap);
    return server.engine->memory->segment_commit(server.endpoint, segment_of(heap), offset,
                                                 offset + bytes);
}

void cohi_heap_trim(coh_heap *heap)
{
    cohi_server server = server_of(heap);
    uint64_t limit = atomic_load(heap->limit);
    if (heap->backed <= limit || is_whole(heap))
        return;
    server.engine->memory->segment_decommit(server.endpoint, segment_of(heap), limit, heap->backed);
    heap->backed = limit;
}

static coh_status back(coh_heap *heap, const char *call, const cohi_record *record, uint64_t target)
{
    coh_world *world = heap->world;
    uint64_t growth = target - atomic_load(heap->limit);
    coh_status status = cohi_heap_commit(heap, target);
    if (status == COH_OK)
        status = refill(heap);
    if (status == COH_OK)
        return COH_OK;
    growth += heap->refill_to - heap->refill_from;
    return cohi_world_fail(world, call, status,
                           "%llu bytes: rank %d cannot grow %s by %llu bytes: %s",
                           (unsigned long long)record->argument[0], world->rank,
                           cohi_heap_name(heap).text, (unsigned long long)growth, coh_last_error());
}

static coh_status zero_on_card(coh_heap *heap, const char *call, uint64_t from, uint64_t bytes)
{
    cohi_op done = COHI_NEW_OP;
    cohi_server server = server_of(heap);
    coh_status status =
        server.engine->memory->zero(server.endpoint, segment_of(heap), from, bytes, &done);
    if (status != COH_OK)
        return cohi_world_fail(heap->world, call, status, "%s", coh_last_error());
    return cohi_wait_op_of(heap->world, server, call, COHI_OP_CALLOC, heap->world->rank, &done);
}

static coh_status zero(coh_heap *heap, const char *call, uint64_t from, uint64_t bytes)
{
    coh_world *world = heap->world;
    if (heap->kind != COH_HEAP_HOST)
        return zero_on_card(heap, call, from, bytes);
    for (uint64_t done = 0; done < bytes; done += SLICE) {
        uint64_t left = bytes - done;
        memset(heap->base + from + done, 0, left < SLICE ? left : SLICE);
        atomic_fetch_add_explicit(&world->slot->beat, 1, memory_order_relaxed);
    }
    return COH_OK;
}

/* Each rank looks for itself: the card may be its own. Where several share one, and together take more
 * than there is, one of them finds out when it takes it. */
static coh_status check_card(const coh_heap *heap, const char *call, uint64_t growth)
{
    cohi_server server = server_of(heap);
    const cohi_engine_facts *facts = &cohi_world_device(heap->world)->facts;
    uint64_t available = server.engine->memory->available(server.endpoint);
    coh_status status = cohi_segment_check_exchange(heap->world, call);
    if (status != COH_OK || growth <= available)
        return status;
    return cohi_world_fail(heap->world, call, COH_NO_MEMORY,
                           "%llu more bytes are needed; card %d has %llu bytes, of which %llu are "
                           "free",
                           (unsigned long long)growth, facts->device,
                           (unsigned long long)facts->memory_bytes, (unsigned long long)available);
}

/* One rank of each host looks, for all of them: looking each for itself, they would all pass, and
 * together take more than there is. */
static coh_status check_memory(const coh_heap *heap, const char *call, uint64_t target)
{
    coh_world *world = heap->world;
    uint64_t limit = atomic_load(heap->limit);
    if (heap->kind != COH_HEAP_HOST)
        return is_whole(heap) ? COH_OK : check_card(heap, call, target - limit);
    uint64_t ranks = (uint64_t)world->local_size;
    cohi_os_memory memory = cohi_os_memory_look();
    uint64_t bare_from = limit > heap->bare_from ? limit : heap->bare_from;
    uint64_t bare = heap->bare_to > bare_from ? heap->bare_to - bare_from : 0;
    uint64_t growth = target - limit - bare + heap->refill_to - heap->refill_from;
    if (world->local_rank != 0 || is_whole(heap) || growth <= memory.available / ranks)
        return COH_OK;
    char text[COHI_OS_MEMORY_TEXT];
    cohi_os_memory_describe(&memory, text, sizeof text);
    return cohi_world_fail(world, call, COH_NO_MEMORY,
                           "%llu more bytes for each of %llu ranks on this host are needed; in all "
                           "%s",
                           (unsigned long long)growth, (unsigned long long)ranks, text);
}

/* What was given back is needed again. */
static void keep_more(coh_heap *heap, uint64_t bytes)
{
    uint64_t most = heap->reserved / KEEP_PART / (uint64_t)heap->world->size;
    if (bytes > heap->keep && most > heap->keep)
        heap->keep = least(bytes, most);
}

/* The others' parts of a growth, which they have offered. */
static coh_status attach_growth(coh_heap *heap, const char *call)
{
    coh_world *world = heap->world;
    cohi_segment_card *cards = calloc((size_t)world->size, sizeof *cards);
    if (!cards)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for %d ranks",
                               world->size);
    coh_status status = cohi_segment_exchange(world, &world->arriving, cards);
    bool exchanged = status == COH_OK;
    for (int rank = 0; rank < world->size && status == COH_OK; rank++)
        if (rank != world->rank)
            status = cohi_segment_attach(server_of(heap), segment_of(heap), rank, cards[rank].bytes,
                                         &cards[rank].key);
    if (exchanged)
        cohi_segment_drop(world, cards);
    free(cards);
    if (status == COH_OK)
        return COH_OK;
    return cohi_world_fail(world, call, status, "%s cannot be reached: %s",
                           cohi_heap_name(heap).text, coh_last_error());
}

/* Where what backs a growth has a key of its own, all ranks get all others'. The status of this rank's
 * own part comes in `record`, and goes out in it. */
static coh_status share_growth(coh_heap *heap, const cohi_entry *entry, cohi_record *record)
{
    coh_world *world = heap->world;
    cohi_server server = server_of(heap);
    cohi_segment_card card = {.bytes = heap->reserved, .key = {.fd = -1}};
    if (record->status == COH_OK)
        record->status = (int32_t)server.engine->memory->region_export(server.endpoint,
                                                                       segment_of(heap), &card.key);
    world->arriving = card;
    coh_status status = cohi_agree(entry, record);
    if (status == COH_OK)
        record->status = (int32_t)attach_growth(heap, entry->call);
    return status;
}

/*
 * Agrees with all ranks on `record`, having backed the heap up to `needed` and, if told so, zeroed
 * the new block. Memory is asked for only after all agreed that there is enough.
 */
static coh_status settle(coh_heap *heap, const char *call, cohi_record *record, uint64_t needed,
                         uint64_t zero_from, uint64_t zero_bytes)
{
    coh_world *world = heap->world;
    cohi_entry entry = cohi_entry_of(world->team, call, (cohi_opcode)record->op);
    uint64_t limit = atomic_load(heap->limit);
    uint64_t refilled = record->status == COH_OK ? heap->refill_to - heap->refill_from : 0;
    bool grows = record->status == COH_OK && needed > limit;
    uint64_t target = grows ? next_limit(heap, needed) : limit;
    if (grows || refilled > 0) {
        record->status = (int32_t)check_memory(heap, call, target);
        coh_status status = cohi_agree(&entry, record);
        if (status != COH_OK)
            return status;
        record->status = (int32_t)back(heap, call, record, target);
    }
    if (grows && heap->kind != COH_HEAP_HOST) {
        coh_status status = share_growth(heap, &entry, record);
        if (status != COH_OK) {
            cohi_heap_trim(heap);
            return status;
        }
    }
    if (record->status == COH_OK && zero_bytes > 0)
        record->status = (int32_t)zero(heap, call, zero_from, zero_bytes);
    coh_status status = cohi_agree(&entry, record);
    if (status == COH_OK && grows)
        atomic_store(heap->limit, target);
    else if (grows)
        cohi_heap_trim(heap);
    if (status == COH_OK && refilled > 0)
        keep_more(heap, refilled);
    return status;
}

/* Driven ranks: nobody can be waited for, so the first one there acts for all. */
static coh_status settle_driven(coh_heap *heap, const char *call, cohi_record *record,
                                uint64_t needed, uint64_t zero_from, uint64_t zero_bytes)
{
    coh_world *world = heap->world;
    bool grows = record->status == COH_OK && needed > atomic_load(heap->limit);
    uint64_t target = grows ? next_limit(heap, needed) : 0;
    coh_status status = cohi_driven_agree(world, call, record, heap->turns, target);
    heap->turns++;
    if (status != COH_OK)
        return status;
    if (zero_bytes > 0)
        (void)zero(heap, call, zero_from, zero_bytes); /* driven ranks have host memory alone */
    if (grows)
        atomic_store(heap->limit, target);
    return COH_OK;
}

static coh_status conclude(coh_heap *heap, const char *call, cohi_record *record, uint64_t needed,
                           uint64_t zero_from, uint64_t zero_bytes)
{
    record->heap = (uint32_t)heap->number;
    return (heap->world->driven ? settle_driven : settle)(heap, call, record, needed, zero_from,
                                                          zero_bytes);
}

/* ---- entering ---- */

/* Collective, and everything issued before is complete. */
static coh_status begin(coh_heap *heap, const char *call, cohi_opcode op)
{
    coh_world *world = heap->world;
    cohi_entry entry = cohi_entry_of(world->team, call, op);
    coh_status status = cohi_team_enter(&entry);
    if (status != COH_OK)
        return status;
    status = cohi_order_quiet(world, call, op);
    return status == COH_OK ? status : cohi_team_leave(world->team, status);
}

static coh_status end(coh_heap *heap, coh_status status)
{
    heap->refill_from = heap->refill_to = 0;
    return cohi_team_leave(heap->world->team, status);
}

/* ---- allocation ---- */

/* Where a block would fit whatever its alignment, memory for the map of blocks was missing. */
static coh_status fail_room(coh_heap *heap, const char *call, uint64_t bytes)
{
    coh_world *world = heap->world;
    uint64_t largest = cohi_blocks_largest(heap->blocks);
    if (largest > MOST_ALIGNMENT && bytes <= largest - MOST_ALIGNMENT)
        return cohi_world_fail(world, call, COH_NO_MEMORY,
                               "%llu bytes: out of memory for the heap's map",
                               (unsigned long long)bytes);
    (void)cohi_world_fail(
        world, call, COH_NO_MEMORY,
        "%llu bytes do not fit: %s can grow to %llu bytes (%s), %llu are in use, "
        "the largest free block has %llu",
        (unsigned long long)bytes, cohi_heap_name(heap).text, (unsigned long long)heap->reserved,
        heap->number == 0 ? "COHORT_HEAP, cohort run --heap" : "bytes of its coh_heap_options",
        (unsigned long long)cohi_blocks_used(heap->blocks), (unsigned long long)largest);
    return cohi_fail_range(COH_NO_MEMORY, COH_NO_FACT, bytes, largest);
}

coh_status cohi_heap_allocate(coh_heap *heap, const char *call, cohi_opcode op, uint64_t bytes,
                              uint64_t alignment, cohi_content content, void **pointer)
{
    uint64_t offset = NO_OFFSET;
    coh_status status = begin(heap, call, op);
    if (status != COH_OK)
        return status;
    bool taken = take(heap, bytes, alignment, &offset);
    uint64_t refill_from = heap->refill_from, refill_to = heap->refill_to;
    cohi_record record = {.op = op, .argument = {bytes, alignment, offset, NO_OFFSET}};
    if (!taken)
        record.status = (int32_t)fail_room(heap, call, bytes);
    if (taken && content == COHI_CONTENT_BARE) {
        heap->bare_from = offset;
        heap->bare_to = offset + bytes;
        heap->refill_from = heap->refill_to = 0;
    }
    status = conclude(heap, call, &record, offset + bytes, offset,
                      content == COHI_CONTENT_ZERO ? bytes : 0);
    heap->bare_from = heap->bare_to = 0;
    if (status != COH_OK && taken) {
        give(heap, offset);
        strip(heap, refill_from, refill_to);
    }
    if (status == COH_OK)
        *pointer = heap->base + offset;
    return end(heap, status);
}

/* ---- freeing ---- */

coh_status cohi_heap_release(coh_heap *heap, const char *call, cohi_opcode op, uint64_t offset)
{
    coh_status status = begin(heap, call, op);
    if (status != COH_OK)
        return status;
    cohi_record record = {.op = op, .argument = {0, 0, offset, NO_OFFSET}};
    status = conclude(heap, call, &record, 0, 0, 0);
    if (status == COH_OK)
        discard(heap, offset);
    return end(heap, status);
}

/* ---- resizing ---- */

/* A resize under way: where the block was and where it will be. */
struct move {
    uint64_t from, had;
    uint64_t to, bytes;
    bool placed; /* `to` is set */
};

static void place(coh_heap *heap, struct move *move)
{
    move->to = move->from;
    move->placed = resize(heap, move->from, move->bytes)
                   || take(heap, move->bytes, COHI_BLOCK_BYTES, &move->to);
}

static void undo(coh_heap *heap, const struct move *move)
{
    uint64_t from = heap->refill_from, to = heap->refill_to;
    if (!move->placed)
        return;
    if (move->to == move->from)
        resize(heap, move->from, move->had);
    else
        give(heap, move->to);
    strip(heap, from, to);
}

/* All have come, so nobody writes to the old place any more; nobody may write to the new one before
 * all have copied. */
static coh_status carry_over(coh_heap *heap, const char *call, const struct move *move)
{
    coh_world *world = heap->world;
    if (move->to == move->from)
        return COH_OK;
    coh_status status = COH_OK;
    uint64_t kept = least(move->had, move->bytes);
    if (heap->kind == COH_HEAP_HOST)
        memcpy(heap->base + move->to, heap->base + move->from, kept);
    else
        status = cohi_device_copy(world, call, COHI_OP_REALLOC, heap->base + move->to,
                                  heap->base + move->from, kept);
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_REALLOC);
    coh_status met = world->driven ? COH_OK : cohi_team_meet(&entry);
    status = met != COH_OK ? met : status;
    if (status == COH_OK)
        discard(heap, move->from);
    return status;
}

coh_status cohi_heap_resize(coh_heap *heap, const char *call, uint64_t offset, uint64_t had,
                            uint64_t bytes, void **resized)
{
    struct move move = {.from = offset, .had = had, .bytes = bytes};
    coh_status status = begin(heap, call, COHI_OP_REALLOC);
    if (status != COH_OK)
        return status;
    place(heap, &move);
    cohi_record record = {
        .op = COHI_OP_REALLOC,
        .argument = {move.bytes, 0, move.from, move.placed ? move.to : NO_OFFSET}};
    if (!move.placed)
        record.status = (int32_t)fail_room(heap, call, move.bytes);
    status = conclude(heap, call, &record, move.to + move.bytes, 0, 0);
    if (status == COH_OK)
        status = carry_over(heap, call, &move);
    if (status != COH_OK)
        undo(heap, &move);
    else
        *resized = heap->base + move.to;
    return end(heap, status);
}
