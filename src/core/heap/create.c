/* create.c - further heaps: made and destroyed by all ranks together. */
#include "core/health/order.h"
#include "core/heap/device.h"
#include "core/heap/heap.h"
#include "core/heap/segment.h"
#include "core/team/agree.h"
#include "core/team/enter.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

/* A heap under way: what this rank has of it so far. */
struct making {
    int number;     /* the same on all ranks; COHI_HEAPS_MAX: none is free */
    coh_heap *heap; /* NULL: no handle yet */
    bool added;     /* the segment is there */
    char *base;
    cohi_segment_card card;
};

static int segment_of(const coh_heap *heap)
{
    return COHI_SEGMENT_HEAP + heap->number;
}

/* The lowest number that is free, or COHI_HEAPS_MAX. */
static int free_number(coh_world *world)
{
    int number = 1;
    while (number < COHI_HEAPS_MAX && cohi_heap_numbered(world, number))
        number++;
    return number;
}

/* A rank has one card, and what is on it the race check does not see. */
static coh_status check_card(const coh_world *world, const char *call, int device)
{
    const cohi_device *open = cohi_world_device(world);
    if (device < -1)
        return cohi_world_fail(
            world, call, COH_INVALID_ARGUMENT,
            "options->device is %d; cards have numbers from 0, and -1 is one that "
            "fits",
            device);
    if (world->race)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "kind cuda: the race check (COHORT_CHECK=order) does not see what a "
                               "card does to its memory");
    if (open && device >= 0 && device != open->facts.device)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "options->device is %d, but the heaps of this rank are on card %d; "
                               "a rank has one",
                               device, open->facts.device);
    return COH_OK;
}

static coh_status check_kind(const coh_world *world, const char *call,
                             const coh_heap_options *options)
{
    if (options->kind == COH_HEAP_HOST)
        return COH_OK;
    if (options->kind == COH_HEAP_CUDA)
        return check_card(world, call, options->device);
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%d is not a coh_heap_kind",
                           (int)options->kind);
}

static cohi_server server_of(const coh_heap *heap)
{
    return heap->kind == COH_HEAP_HOST ? cohi_world_server(heap->world)
                                       : cohi_world_device(heap->world)->server;
}

static coh_status take_handle(coh_world *world, const char *call, coh_heap_kind kind,
                              struct making *making)
{
    if (making->number == COHI_HEAPS_MAX)
        return cohi_world_fail(world, call, COH_LIMIT,
                               "a world can have %d heaps at once, its own among them",
                               COHI_HEAPS_MAX);
    coh_heap *heap = cohi_heap_handle(world, making->number);
    if (heap && !heap->peers)
        heap->peers = calloc((size_t)world->size, sizeof *heap->peers);
    if (heap && !heap->addresses)
        heap->addresses = calloc((size_t)world->size, sizeof *heap->addresses);
    if (!heap || !heap->peers || !heap->addresses)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for a heap");
    heap->kind = kind;
    making->heap = heap;
    return COH_OK;
}

/* Whether a heap on the card is backed at once, by all ranks together. */
static bool is_whole_on_card(const coh_world *world)
{
    return cohi_world_device(world)->facts.commits_whole != 0;
}

/* Of a heap on the card that nobody gave a size. */
static uint64_t card_bytes(const coh_world *world)
{
    const uint64_t most = UINT64_C(1) << 30, part = 4;
    uint64_t all = cohi_world_device(world)->facts.memory_bytes;
    uint64_t share = all / part / (uint64_t)world->local_size;
    if (!is_whole_on_card(world))
        return all;
    if (world->card_heap > 0)
        return world->card_heap;
    return share < most ? share : most;
}

/* What was asked for, or as much as the world's own has, or the card, where the address space allows it. */
static uint64_t reservation(const coh_world *world, const coh_heap_options *options)
{
    uint64_t asked = options->bytes;
    if (options->kind == COH_HEAP_CUDA)
        return cohi_heap_reservation(world, asked ? asked : card_bytes(world));
    uint64_t own = cohi_heap_reserved(world), most = cohi_heap_reservation(world, asked);
    return asked == 0 && own < most ? own : most;
}

/* Before all ranks take the memory of a heap at once, of which a failure could leave some waiting. */
static coh_status check_room(const coh_world *world, const char *call, uint64_t bytes)
{
    const cohi_device *device = cohi_world_device(world);
    uint64_t available = device->server.engine->memory->available(device->server.endpoint);
    if (bytes <= available)
        return COH_OK;
    return cohi_world_fail(
        world, call, COH_NO_MEMORY,
        "engine %s backs all of a heap at once: %llu bytes; card %d has %llu, of "
        "which %llu are free for one heap of this rank",
        device->server.engine->name, (unsigned long long)bytes, device->facts.device,
        (unsigned long long)device->facts.memory_bytes, (unsigned long long)available);
}

/* This rank's part, before it knows of the others. */
static coh_status offer(coh_world *world, const char *call, const coh_heap_options *options,
                        struct making *making)
{
    coh_status status = cohi_segment_check_exchange(world, call);
    if (status == COH_OK)
        status = take_handle(world, call, options->kind, making);
    if (status != COH_OK)
        return status;
    void *base;
    bool host = options->kind == COH_HEAP_HOST;
    making->card.bytes = reservation(world, options);
    cohi_segment_spec spec = {.id = segment_of(making->heap),
                              .kind = host ? COHI_MEMORY_HOST : COHI_MEMORY_CUDA,
                              .bytes = making->card.bytes,
                              .huge_pages = world->huge_pages};
    status = host ? cohi_heap_check_whole(world, spec.bytes) : COH_OK;
    if (status == COH_OK)
        status = cohi_segment_offer(server_of(making->heap), &spec, &base, &making->card.key);
    if (status != COH_OK)
        return cohi_world_fail(world, call, status, "%llu bytes cannot be reserved for %s: %s",
                               (unsigned long long)spec.bytes, cohi_heap_name(making->heap).text,
                               coh_last_error());
    making->added = true;
    making->base = base;
    world->arriving = making->card;
    return COH_OK;
}

static uint64_t common_bytes(const coh_world *world, const cohi_segment_card *cards)
{
    uint64_t least = cards[0].bytes;
    for (int rank = 1; rank < world->size; rank++)
        least = cards[rank].bytes < least ? cards[rank].bytes : least;
    return least;
}

/*
 * Core decides by the world's own heap whether a rank is reached by loads and stores. So far engines map
 * all host memory of a rank or none of it; the first that does not will be refused here.
 */
static coh_status attach(coh_world *world, const struct making *making, cohi_segment_card *cards)
{
    coh_heap *heap = making->heap;
    cohi_server server = server_of(heap);
    int id = segment_of(heap);
    uint64_t bytes = common_bytes(world, cards);
    for (int rank = 0; rank < world->size; rank++) {
        bool self = rank == world->rank;
        cohi_region_key own = {.fd = -1}, *key = self ? &own : &cards[rank].key;
        memcpy(own.bytes, cards[rank].key.bytes, sizeof own.bytes);
        coh_status status = cohi_segment_attach(server, id, rank, bytes, key);
        if (status != COH_OK)
            return status;
        if (heap->kind == COH_HEAP_CUDA) {
            heap->peers[rank] = NULL; /* the CPU reaches none of them, its own neither */
            heap->addresses[rank] = server.engine->memory->peer_address(server.endpoint, id, rank);
            continue;
        }
        heap->peers[rank] =
            self ? making->base : server.engine->memory->peer_pointer(server.endpoint, id, rank);
        if (!heap->peers[rank] != !world->peers[rank].heap)
            return cohi_fail(COH_UNSUPPORTED, "engine %s maps one heap of rank %d and not another",
                             world->engine->name, rank);
    }
    return cohi_heap_open(heap, making->base, bytes);
}

/* The message of the bootstrap without the call that it is mostly about. */
static const char *without_init(const char *message)
{
    static const char call[] = "coh_init: ";
    return strncmp(message, call, sizeof call - 1) == 0 ? message + sizeof call - 1 : message;
}

/* The others' parts: all ranks have offered theirs. */
static coh_status reach_others(coh_world *world, const char *call, const struct making *making)
{
    cohi_segment_card *cards = calloc((size_t)world->size, sizeof *cards);
    if (!cards)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for %d ranks",
                               world->size);
    coh_status status = cohi_segment_exchange(world, &making->card, cards);
    if (status == COH_OK) {
        status = attach(world, making, cards);
        cohi_segment_drop(world, cards);
    }
    free(cards);
    if (status == COH_OK)
        return COH_OK;
    return cohi_world_fail(world, call, status, "%s cannot be reached: %s",
                           cohi_heap_name(making->heap).text, without_init(coh_last_error()));
}

static void remove_heap(coh_heap *heap)
{
    cohi_server server = server_of(heap);
    cohi_heap_close(heap);
    server.engine->memory->segment_remove(server.endpoint, segment_of(heap));
}

/* Two agreements: all have a segment; all reach all segments. Before them, for the first heap on a card,
 * those of its engine; and where all ranks take the memory together, that all will, and how much. */
static coh_status make(coh_world *world, const char *call, const coh_heap_options *options,
                       struct making *making)
{
    cohi_record record = {.op = COHI_OP_HEAP_CREATE,
                          .heap = (uint32_t)making->number,
                          .argument = {options->bytes, (uint64_t)options->kind}};
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_HEAP_CREATE);
    record.status = (int32_t)check_kind(world, call, options);
    bool first = options->kind == COH_HEAP_CUDA && !cohi_world_device(world);
    coh_status status = COH_OK;
    if (first)
        status = cohi_device_open(world, &entry, &record, options->device);
    if (status == COH_OK && options->kind == COH_HEAP_CUDA && cohi_world_device(world)
        && is_whole_on_card(world)) {
        record.argument[0] = reservation(world, options);
        if (record.status == COH_OK)
            record.status = (int32_t)check_room(world, call, record.argument[0]);
        status = cohi_agree(&entry, &record);
    }
    if (status != COH_OK)
        return status;
    if (record.status == COH_OK)
        record.status = (int32_t)offer(world, call, options, making);
    status = cohi_agree(&entry, &record);
    if (status == COH_OK) {
        record.status = (int32_t)reach_others(world, call, making);
        status = cohi_agree(&entry, &record);
    }
    if (status != COH_OK && making->added)
        remove_heap(making->heap);
    return status;
}

static coh_status read_options(const coh_world *world, const char *call,
                               const coh_heap_options *given, coh_heap_options *options)
{
    *options = (coh_heap_options)COH_HEAP_OPTIONS_INIT;
    if (!given)
        return COH_OK;
    if (given->size != sizeof *given)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "options->size is %zu where this library knows %zu; start from "
                               "COH_HEAP_OPTIONS_INIT",
                               given->size, sizeof *given);
    if (given->bytes > UINT64_C(1) << COHI_HEAP_BITS)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "options->bytes is %llu; at most %llu",
                               (unsigned long long)given->bytes, 1ull << COHI_HEAP_BITS);
    *options = *given;
    return COH_OK;
}

static coh_status check_driven(const coh_world *world, const char *call)
{
    if (!world->driven)
        return COH_OK;
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "one thread drives all ranks, so none can wait for the others' parts of "
                           "a heap");
}

static coh_status begin(coh_world *world, const char *call, cohi_opcode op)
{
    cohi_entry entry = cohi_entry_of(world->team, call, op);
    return cohi_team_enter(&entry);
}

coh_status coh_heap_create(coh_world *world, const coh_heap_options *given, coh_heap **heap)
{
    static const char call[] = "coh_heap_create";
    coh_heap_options options;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = cohi_heap_check_own(world, call);
    if (status == COH_OK && !heap)
        status =
            cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "the place for the heap is NULL");
    if (status == COH_OK)
        status = read_options(world, call, given, &options);
    if (status == COH_OK)
        status = check_driven(world, call);
    if (status == COH_OK)
        status = begin(world, call, COHI_OP_HEAP_CREATE);
    if (status != COH_OK)
        return status;
    struct making making = {.number = free_number(world)};
    status = make(world, call, &options, &making);
    if (status == COH_OK)
        *heap = making.heap;
    return cohi_team_leave(world->team, status);
}

/* ---- destroying ---- */

/* What all ranks issued before is complete when they have agreed, so nobody uses it any more. */
static coh_status dismantle(coh_heap *heap, const char *call)
{
    coh_world *world = heap->world;
    cohi_record record = {.op = COHI_OP_HEAP_DESTROY, .heap = (uint32_t)heap->number};
    cohi_entry entry = cohi_entry_of(world->team, call, COHI_OP_HEAP_DESTROY);
    coh_status status = cohi_order_quiet_all(world, call, COHI_OP_HEAP_DESTROY);
    if (status == COH_OK)
        status = cohi_agree(&entry, &record);
    if (status == COH_OK)
        remove_heap(heap);
    return status;
}

coh_status coh_heap_destroy(coh_heap *heap)
{
    static const char call[] = "coh_heap_destroy";
    if (!heap)
        return COH_OK;
    coh_status status = cohi_heap_enter(heap, call);
    if (status == COH_OK && heap->number == 0)
        status = cohi_world_fail(heap->world, call, COH_INVALID_ARGUMENT,
                                 "heap 0 is the world's own, which coh_finalize frees");
    if (status == COH_OK)
        status = begin(heap->world, call, COHI_OP_HEAP_DESTROY);
    if (status != COH_OK)
        return status;
    return cohi_team_leave(heap->world->team, dismantle(heap, call));
}

/* ---- what is there ---- */

coh_heap *coh_heap_default(coh_world *world)
{
    static const char call[] = "coh_heap_default";
    if (cohi_world_enter(world, call) != COH_OK || cohi_heap_check_own(world, call) != COH_OK)
        return NULL;
    return world->heaps[0];
}

int coh_heap_number(const coh_heap *heap)
{
    return heap && ((coh_heap *)heap)->reserved > 0 ? heap->number : -1;
}
