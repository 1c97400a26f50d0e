#include "core/heap/device.h"

#include "base/clock.h"
#include "core/health/wait.h"
#include "core/heap/segment.h"
#include "core/team/agree.h"

#include <stdlib.h>
#include <string.h>

/* A copy of some bytes takes microseconds; a card that has not made it after this long is stuck. */
#define READ_NS (10 * COHI_NS_PER_S)

/* What this rank has of the engine while it is being opened. */
struct opening {
    cohi_server server; /* endpoint NULL: it is not open */
    cohi_engine_facts facts;
    cohi_segment_card card;
    cohi_segment_card *cards; /* [size]: everyone's */
};

/* ---- opening ---- */

/* What does not fit the key of a segment goes behind it. */
static void write_address(cohi_segment_card *card, const unsigned char *address)
{
    _Static_assert(COHI_ADDRESS_BYTES == 2 * COHI_KEY_BYTES, "an address is two keys");
    memcpy(card->key.bytes, address, COHI_KEY_BYTES);
    memcpy(card->more, address + COHI_KEY_BYTES, COHI_KEY_BYTES);
}

static void read_address(const cohi_segment_card *card, unsigned char *address)
{
    memcpy(address, card->key.bytes, COHI_KEY_BYTES);
    memcpy(address + COHI_KEY_BYTES, card->more, COHI_KEY_BYTES);
}

static coh_status open_endpoint(coh_world *world, int device, struct opening *opening)
{
    unsigned char address[COHI_ADDRESS_BYTES];
    cohi_need need = {
        .size = world->size, .in_process = world->crew != NULL, .hosts = world->hosts};
    cohi_engine_args args = {.rank = world->rank,
                             .need = need,
                             .upcalls = world->upcalls,
                             .world = world,
                             .device = device,
                             .local_rank = world->local_rank};
    coh_status status = cohi_engine_for_cards(world->cards, &opening->server.engine);
    if (status == COH_OK)
        status = opening->server.engine->lifecycle->probe(&need);
    if (status == COH_OK)
        status = cohi_engine_admit(opening->server.engine);
    if (status != COH_OK)
        return status;
    status = opening->server.engine->lifecycle->open(&args, &opening->server.endpoint);
    if (status != COH_OK)
        cohi_engine_dismiss(opening->server.engine);
    if (status == COH_OK)
        status = opening->server.engine->lifecycle->address(opening->server.endpoint, address);
    if (status == COH_OK)
        write_address(&opening->card, address);
    return status;
}

/* This rank's part, before it knows of the others. */
static coh_status prepare(coh_world *world, const char *call, int device, struct opening *opening)
{
    coh_status status = cohi_segment_check_exchange(world, call);
    if (status != COH_OK)
        return status;
    opening->cards = calloc((size_t)world->size, sizeof *opening->cards);
    if (!opening->cards)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for %d ranks",
                               world->size);
    status = open_endpoint(world, device, opening);
    world->arriving = opening->card;
    return status == COH_OK
               ? status
               : cohi_world_fail(world, call, status, "a heap of kind cuda: %s", coh_last_error());
}

static coh_status connect_endpoint(coh_world *world, struct opening *opening)
{
    unsigned char(*addresses)[COHI_ADDRESS_BYTES] = calloc((size_t)world->size, sizeof *addresses);
    if (!addresses)
        return cohi_fail(COH_NO_MEMORY, "out of memory for %d ranks", world->size);
    for (int rank = 0; rank < world->size; rank++)
        read_address(&opening->cards[rank], addresses[rank]);
    coh_status status = opening->server.engine->lifecycle->connect(
        opening->server.endpoint, (const unsigned char(*)[COHI_ADDRESS_BYTES])addresses,
        world->host_of);
    free(addresses);
    return status;
}

static coh_status connect_all(coh_world *world, const char *call, struct opening *opening)
{
    coh_status status = cohi_segment_exchange(world, &opening->card, opening->cards);
    if (status == COH_OK)
        status = connect_endpoint(world, opening);
    return status == COH_OK
               ? status
               : cohi_world_fail(world, call, status, "a heap of kind cuda: %s", coh_last_error());
}

/* A control segment, all of it there from the start. */
static coh_status offer_control(coh_world *world, const char *call, struct opening *opening)
{
    void *base;
    cohi_server server = opening->server;
    server.engine->lifecycle->query(server.endpoint, &opening->facts);
    uint64_t bytes = opening->facts.control_bytes;
    cohi_segment_spec spec = {.id = COHI_SEGMENT_CONTROL, .kind = COHI_MEMORY_CUDA, .bytes = bytes};
    coh_status status = server.engine->memory->segment_add(server.endpoint, &spec, &base);
    if (status == COH_OK && !opening->facts.commits_whole)
        status = server.engine->memory->segment_commit(server.endpoint, spec.id, 0, bytes);
    if (status == COH_OK)
        status = server.engine->memory->region_export(server.endpoint, spec.id, &opening->card.key);
    opening->card.bytes = bytes;
    world->arriving = opening->card;
    return status == COH_OK
               ? status
               : cohi_world_fail(world, call, status, "%llu bytes for the ranks' own use: %s",
                                 (unsigned long long)bytes, coh_last_error());
}

static coh_status attach_control(coh_world *world, const char *call, struct opening *opening)
{
    coh_status status = cohi_segment_exchange(world, &opening->card, opening->cards);
    bool exchanged = status == COH_OK;
    for (int rank = 0; rank < world->size && status == COH_OK; rank++)
        if (rank != world->rank)
            status = cohi_segment_attach(opening->server, COHI_SEGMENT_CONTROL, rank,
                                         opening->cards[rank].bytes, &opening->cards[rank].key);
    if (exchanged)
        cohi_segment_drop(world, opening->cards);
    if (status == COH_OK && opening->server.engine->lifecycle->settle)
        status = opening->server.engine->lifecycle->settle(opening->server.endpoint);
    return status == COH_OK
               ? status
               : cohi_world_fail(world, call, status, "a heap of kind cuda: %s", coh_last_error());
}

/* From now on calls find it, and look at what their pointers are. */
static coh_status publish(coh_world *world, const char *call, const struct opening *opening)
{
    size_t room = (size_t)world->size * sizeof(uint64_t);
    cohi_device *device = calloc(1, sizeof *device + room);
    if (!device)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for a device");
    device->server = opening->server;
    device->facts = opening->facts;
    world->delayed = true;
    atomic_store_explicit(&world->device, device, memory_order_release);
    atomic_fetch_or(&world->state, COHI_WORLD_DEVICE);
    return COH_OK;
}

static void withdraw(coh_world *world)
{
    cohi_device *device = cohi_world_device(world);
    atomic_store(&world->device, NULL);
    atomic_fetch_and(&world->state, ~(unsigned)COHI_WORLD_DEVICE);
    free(device);
}

static void close_endpoint(cohi_server server)
{
    server.engine->lifecycle->close(server.endpoint);
    cohi_engine_dismiss(server.engine);
}

/* Where this world has not come to be, some rank may not come to a collective end of the library's. */
static void give_up(cohi_server server)
{
    if (server.engine->lifecycle->abandon)
        server.engine->lifecycle->abandon(server.endpoint);
    close_endpoint(server);
}

/*
 * Four agreements: all have an endpoint; all know the others' addresses; all have a control segment;
 * all reach all of them. The one between the exchanges keeps a thread-rank's card until all have
 * read it.
 */
coh_status cohi_device_open(coh_world *world, const cohi_entry *entry, cohi_record *record,
                            int device)
{
    const char *call = entry->call;
    struct opening opening = {.card.key.fd = -1};
    if (record->status == COH_OK)
        record->status = (int32_t)prepare(world, call, device, &opening);
    coh_status status = cohi_agree(entry, record);
    if (status == COH_OK) {
        record->status = (int32_t)connect_all(world, call, &opening);
        status = cohi_agree(entry, record);
    }
    if (status == COH_OK) {
        record->status = (int32_t)offer_control(world, call, &opening);
        status = cohi_agree(entry, record);
    }
    if (status == COH_OK) {
        record->status = (int32_t)attach_control(world, call, &opening);
        if (record->status == COH_OK)
            record->status = (int32_t)publish(world, call, &opening);
        status = cohi_agree(entry, record);
    }
    free(opening.cards);
    if (status == COH_OK || !opening.server.endpoint)
        return status;
    if (cohi_world_device(world))
        withdraw(world);
    give_up(opening.server);
    return status;
}

void cohi_device_close(coh_world *world)
{
    cohi_device *device = cohi_world_device(world);
    if (!device)
        return;
    cohi_server server = device->server;
    withdraw(world);
    close_endpoint(server);
}

/* ---- who serves what ---- */

bool cohi_device_serves(const coh_world *world, cohi_spot spot)
{
    if (COHI_LIKELY(!cohi_world_device(world)))
        return false;
    const coh_heap *heap = cohi_heap_numbered((coh_world *)world, cohi_spot_heap(spot));
    return heap && heap->kind == COH_HEAP_CUDA;
}

cohi_server cohi_device_server(const coh_world *world, cohi_spot spot)
{
    return cohi_device_serves(world, spot) ? cohi_world_device(world)->server
                                           : cohi_world_server(world);
}

/* ---- copies ---- */

coh_status cohi_device_copy(coh_world *world, const char *call, cohi_opcode op, void *target,
                            const void *source, size_t bytes)
{
    cohi_op done = COHI_NEW_OP;
    cohi_server server = cohi_world_device(world)->server;
    coh_status status = server.engine->memory->copy(server.endpoint, target, source, bytes, &done);
    if (status != COH_OK)
        return cohi_world_fail(world, call, status, "%s", coh_last_error());
    return cohi_wait_op_of(world, server, call, op, world->rank, &done);
}

coh_status cohi_device_settle(cohi_server server, cohi_op *op)
{
    uint64_t until = cohi_now_ns() + READ_NS;
    while (!atomic_load_explicit(&op->done, memory_order_acquire) && cohi_now_ns() < until) {
        server.engine->lifecycle->progress(server.endpoint);
        cohi_cpu_relax();
    }
    if (!atomic_load_explicit(&op->done, memory_order_acquire))
        server.engine->lifecycle->cancel(server.endpoint, op);
    return op->status;
}

coh_status cohi_device_read(coh_world *world, const char *call, const void *words, size_t bytes,
                            void *target)
{
    cohi_op done = COHI_NEW_OP;
    cohi_server server = cohi_world_device(world)->server;
    coh_status status = server.engine->memory->copy(server.endpoint, target, words, bytes, &done);
    if (status != COH_OK)
        return cohi_world_fail(world, call, status, "%s", coh_last_error());
    status = cohi_device_settle(server, &done);
    if (status == COH_OK)
        return COH_OK;
    return cohi_world_fail(world, call, status, "%zu bytes at %p, on card %d, cannot be read",
                           bytes, words, cohi_world_device(world)->facts.device);
}

coh_status cohi_device_refuse(const coh_world *world, const char *call, const char *what,
                              const void *pointer)
{
    if (COHI_LIKELY(!cohi_world_is_on_card(world, pointer)))
        return COH_OK;
    return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                           "%s is memory of a card (%p), where memory of the host is meant", what,
                           pointer);
}
