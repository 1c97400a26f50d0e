#include "core/message/large.h"

#include "base/os.h"
#include "core/health/control.h"
#include "core/heap/heap.h"
#include "core/message/match.h"
#include "core/onesided/rma.h"
#include "memory/host_copy.h"

#include <errno.h>
#include <string.h>

/*
 * How a message is cut into chunks, one of which a side copies at a time: so many, but of so many
 * bytes. Enough that both sides are busy to the end, few enough that claiming one (a line that
 * both write, twice) or asking the kernel is little compared with copying it. Measured on two cores,
 * private memory of two processes: 64 KiB in 2 / 4 / 8 chunks 4.7 / 5.6 / 7.4 us; 4 MiB in chunks
 * of 64 / 128 / 256 / 512 KiB 254 / 259 / 226 / 220 us. The shorter ones share better when a side
 * is interrupted.
 */
static const struct chunking {
    uint32_t count;
    uint32_t most; /* in units of the profile's message_chunk */
} chunkings[] = {
    [COHI_REACH_NONE] = {8, 1},
    [COHI_REACH_COPY] = {8, 1},
    [COHI_REACH_KERNEL] = {2, 2},
};

/* A chunk of a message that is long enough to be stored past the caches (memory/host_copy.h). */
enum { CHUNK_LEAST = 8 << 10, CHUNK_STREAMED = 2 << 20, PAGE = 4096 };

/* Added to the claims of a request that is given up: nobody finds a chunk any more. */
#define STOP (UINT64_C(1) << 40)

_Static_assert(sizeof(cohi_offer) - sizeof(uint64_t) == COHI_CELL_BYTES,
               "an offer without the serial, which frames have, fits a cell");

/* ---- reaching the other's memory ---- */

/* Whether the kernel copies between the two processes: looked once, at a word that only the peer
 * knows. */
static bool kernel_reaches(cohi_mailbox *box, int rank, uint64_t token_at, uint64_t token)
{
    cohi_partner *partner = &box->partners[rank];
    int known = atomic_load_explicit(&partner->kernel, memory_order_relaxed);
    if (known == 0) {
        pid_t pid = box->world->peers[rank].pid;
        known = cohi_os_process_holds(pid, token_at, &token, sizeof token) ? 1 : -1;
        atomic_store_explicit(&partner->kernel, known, memory_order_relaxed);
    }
    return known > 0;
}

static cohi_reach reach(cohi_mailbox *box, int rank, size_t bytes, const cohi_offer *place,
                        char **there)
{
    coh_world *world = box->world;
    *there = (char *)(uintptr_t)place->address;
    if (world->crew)
        return COHI_REACH_COPY;
    char *mapped = cohi_heap_reach_told(world, rank, place->spot, bytes);
    if (mapped) {
        *there = mapped;
        return COHI_REACH_COPY;
    }
    return kernel_reaches(box, rank, place->token_at, place->token) ? COHI_REACH_KERNEL
                                                                    : COHI_REACH_NONE;
}

/* ---- announcing and accepting ---- */

static int take_ticket(cohi_partner *partner)
{
    uint64_t idle = atomic_load_explicit(&partner->idle_tickets, memory_order_relaxed);
    for (; idle; idle &= idle - 1) {
        int number = __builtin_ctzll(idle);
        _Atomic uint32_t *state = &partner->out.lane->tickets[number].state;
        if (atomic_load_explicit(state, memory_order_acquire) != COHI_TICKET_FREE)
            continue; /* the receiver has yet to see that it is done */
        atomic_fetch_and(&partner->idle_tickets, ~(UINT64_C(1) << number));
        return number;
    }
    return -1;
}

static void give_ticket(cohi_partner *partner, uint32_t number)
{
    atomic_fetch_or(&partner->idle_tickets, UINT64_C(1) << number);
}

static void start_moving(cohi_mailbox *box, coh_request *request)
{
    request->stage = COHI_REQUEST_MOVING;
    cohi_queue_append(&box->moving, &request->link);
    atomic_fetch_add(&box->work, 1);
}

bool cohi_large_announce(cohi_mailbox *box, coh_request *send, int to)
{
    cohi_partner *partner = &box->partners[to];
    int number = take_ticket(partner);
    if (number < 0)
        return false;
    cohi_ticket *ticket = &partner->out.lane->tickets[number];
    atomic_store_explicit(&ticket->claimed, 0, memory_order_relaxed);
    atomic_store_explicit(&ticket->done, 0, memory_order_relaxed);
    atomic_store_explicit(&ticket->state, COHI_TICKET_OFFERED, memory_order_relaxed);
    cohi_offer offer = {.address = (uintptr_t)send->data,
                        .spot = cohi_heap_spot_of(box->world, send->data, send->bytes),
                        .token_at = (uintptr_t)&box->token,
                        .token = box->token,
                        .ticket = (uint32_t)number};
    unsigned char data[COHI_CELL_BYTES];
    memcpy(data, &offer, sizeof data);
    send->move = (cohi_move){.ticket = ticket, .number = (uint32_t)number};
    cohi_latch_take(&box->lock);
    bool announced = cohi_lane_announce(&partner->out, send->key, send->tag, send->bytes, data);
    if (announced)
        start_moving(box, send);
    cohi_latch_give(&box->lock);
    if (announced)
        return true;
    atomic_store_explicit(&ticket->state, COHI_TICKET_FREE, memory_order_relaxed);
    give_ticket(partner, (uint32_t)number);
    return false;
}

cohi_offer cohi_large_offer(const cohi_cell *cell)
{
    cohi_offer offer = {.serial = 0};
    memcpy(&offer, cell->data, sizeof cell->data);
    return offer;
}

static uint32_t chunk_for(const cohi_profile *profile, uint64_t bytes, cohi_reach how)
{
    if (bytes >= cohi_profile_bytes(profile, COHI_ROW_message_stream_from))
        return CHUNK_STREAMED;
    const struct chunking *cut = &chunkings[how];
    uint64_t most = cut->most * (uint64_t)cohi_profile_bytes(profile, COHI_ROW_message_chunk);
    uint64_t chunk = (bytes / cut->count + PAGE - 1) / PAGE * PAGE;
    chunk = chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk;
    return (uint32_t)(chunk > most ? most : chunk);
}

static uint64_t chunks_in(uint64_t bytes, uint64_t chunk)
{
    return (bytes + chunk - 1) / chunk;
}

void cohi_large_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                       const cohi_offer *offer)
{
    coh_world *world = box->world;
    cohi_move *move = &receive->move;
    uint32_t number = offer->ticket % COHI_LANE_TICKETS;
    cohi_ticket *ticket = &box->partners[envelope->from].in.lane->tickets[number];
    *move = (cohi_move){.ticket = ticket, .number = number};
    move->reach = reach(box, envelope->from, envelope->bytes, offer, &move->there);
    receive->bytes = envelope->bytes;
    ticket->chunk = chunk_for(&world->profile, envelope->bytes, move->reach);
    ticket->address = (uintptr_t)receive->data;
    ticket->spot = cohi_heap_spot_of(world, receive->data, envelope->bytes);
    ticket->token_at = (uintptr_t)&box->token;
    ticket->token = box->token;
    move->chunks = chunks_in(envelope->bytes, ticket->chunk);
    bool stream = move->reach == COHI_REACH_NONE && ticket->spot == COHI_NO_SPOT;
    atomic_store_explicit(&ticket->state, stream ? COHI_TICKET_STREAMING : COHI_TICKET_MOVING,
                          memory_order_release);
    cohi_control_wake(world, world->peers[envelope->from].slot);
    start_moving(box, receive);
}

/* ---- moving ---- */

static void stop_moving(cohi_mailbox *box, coh_request *request)
{
    cohi_queue_remove(&request->link);
    request->stage = COHI_REQUEST_NEW;
    atomic_fetch_sub(&box->work, 1);
}

static bool end(cohi_mailbox *box, coh_request *request, coh_status status)
{
    stop_moving(box, request);
    cohi_ticket *ticket = request->move.ticket;
    int peer = atomic_load_explicit(&request->peer, memory_order_relaxed);
    if (request->op == COHI_OP_SEND)
        give_ticket(&box->partners[peer], request->move.number);
    else if (status
             == COH_OK) /* a failed one is never used again: the other side has yet to look */
        atomic_store_explicit(&ticket->state, COHI_TICKET_FREE, memory_order_release);
    cohi_request_complete(request, status);
    return true;
}

static int copy_chunk(const coh_world *world, const coh_request *request, int peer, uint64_t at,
                      size_t bytes)
{
    char *here = request->data + at, *there = request->move.there + at;
    bool send = request->op == COHI_OP_SEND;
    pid_t pid = world->peers[peer].pid;
    if (request->move.reach == COHI_REACH_KERNEL)
        return send ? cohi_os_process_write(pid, here, (uintptr_t)there, bytes)
                    : cohi_os_process_read(pid, here, (uintptr_t)there, bytes);
    const char *from = send ? here : there;
    cohi_copy_by(cohi_host_copy_form(from, bytes, request->bytes, 2), send ? there : here, from,
                 bytes);
    return 0;
}

/*
 * Copies one chunk with the lock let go of. A receiver that cannot read what was offered says so; a
 * sender that cannot write leaves the chunk undone to the same effect. A peer that is gone gets its
 * verdict elsewhere.
 */
static bool move_chunk(cohi_mailbox *box, coh_request *request, int peer)
{
    cohi_ticket *ticket = request->move.ticket;
    uint64_t chunk = atomic_fetch_add(&ticket->claimed, 1);
    if (chunk >= request->move.chunks)
        return false;
    uint64_t at = chunk * ticket->chunk, left = request->bytes - at;
    size_t bytes = (size_t)(left < ticket->chunk ? left : ticket->chunk);
    request->users++;
    cohi_latch_give(&box->lock);
    int error = copy_chunk(box->world, request, peer, at, bytes);
    cohi_latch_take(&box->lock);
    request->users--;
    if (error == 0)
        atomic_fetch_add(&ticket->done, 1);
    else if (error != ESRCH)
        atomic_store_explicit(&ticket->state, COHI_TICKET_FAILED, memory_order_release);
    cohi_control_wake(box->world, box->world->peers[peer].slot);
    return true;
}

static bool all_done(const coh_request *request)
{
    return atomic_load_explicit(&request->move.ticket->done, memory_order_acquire)
           >= request->move.chunks;
}

static bool step_shared(cohi_mailbox *box, coh_request *request, int peer)
{
    if (all_done(request))
        return request->users == 0 && end(box, request, COH_OK);
    bool claims =
        request->move.reach == COHI_REACH_COPY || request->move.reach == COHI_REACH_KERNEL;
    uint64_t claimed = atomic_load_explicit(&request->move.ticket->claimed, memory_order_relaxed);
    return claims && claimed < request->move.chunks && move_chunk(box, request, peer);
}

static void learn_target(cohi_mailbox *box, coh_request *send, int to)
{
    const cohi_ticket *ticket = send->move.ticket;
    cohi_offer place = {.address = ticket->address,
                        .spot = ticket->spot,
                        .token_at = ticket->token_at,
                        .token = ticket->token};
    send->move.chunks = chunks_in(send->bytes, ticket->chunk);
    send->move.reach = reach(box, to, send->bytes, &place, &send->move.there);
}

/* ---- streaming ---- */

static bool stream_out(cohi_mailbox *box, coh_request *send, int to)
{
    cohi_lane_out *out = &box->partners[to].out;
    cohi_stream_slot *slot = &out->lane->stream[out->stream % COHI_STREAM_SLOTS];
    if (atomic_load_explicit(&slot->full, memory_order_acquire))
        return false;
    size_t left = send->bytes - send->move.gone;
    slot->ticket = send->move.number;
    slot->offset = send->move.gone;
    slot->bytes = (uint32_t)(left < COHI_STREAM_BYTES ? left : COHI_STREAM_BYTES);
    memcpy(slot->data, send->data + send->move.gone, slot->bytes);
    send->move.gone += slot->bytes;
    out->stream++;
    atomic_store_explicit(&slot->full, 1, memory_order_release);
    cohi_control_wake(box->world, box->world->peers[to].slot);
    return send->move.gone < send->bytes || end(box, send, COH_OK);
}

static bool stream_in(cohi_mailbox *box, coh_request *receive, int from)
{
    cohi_lane_in *in = &box->partners[from].in;
    cohi_stream_slot *slot = &in->lane->stream[in->stream % COHI_STREAM_SLOTS];
    if (!atomic_load_explicit(&slot->full, memory_order_acquire)
        || slot->ticket != receive->move.number)
        return false;
    memcpy(receive->data + slot->offset, slot->data, slot->bytes);
    receive->move.gone += slot->bytes;
    in->stream++;
    atomic_store_explicit(&slot->full, 0, memory_order_release);
    cohi_control_wake(box->world, box->world->peers[from].slot);
    return receive->move.gone < receive->bytes || end(box, receive, COH_OK);
}

bool cohi_large_step(cohi_mailbox *box, coh_request *request)
{
    int peer = atomic_load_explicit(&request->peer, memory_order_relaxed);
    bool send = request->op == COHI_OP_SEND;
    switch (atomic_load_explicit(&request->move.ticket->state, memory_order_acquire)) {
    case COHI_TICKET_FREE: /* the receiver has all of it, and is done with the ticket */
        return send && request->users == 0 && end(box, request, COH_OK);
    case COHI_TICKET_MOVING:
        if (request->move.reach == COHI_REACH_UNKNOWN)
            learn_target(box, request, peer);
        return step_shared(box, request, peer);
    case COHI_TICKET_STREAMING:
        return send ? stream_out(box, request, peer) : stream_in(box, request, peer);
    case COHI_TICKET_FAILED:
        return request->users == 0 && end(box, request, COH_SYSTEM);
    default:
        return false;
    }
}

bool cohi_large_is_accepted(const coh_request *request)
{
    uint32_t state = atomic_load_explicit(&request->move.ticket->state, memory_order_acquire);
    return state == COHI_TICKET_MOVING || state == COHI_TICKET_STREAMING;
}

void cohi_large_stop(coh_request *request)
{
    uint64_t claimed = atomic_fetch_add(&request->move.ticket->claimed, STOP);
    claimed %= STOP; /* the other side may have given it up as well */
    request->move.claimed = claimed < request->move.chunks ? claimed : request->move.chunks;
}

bool cohi_large_is_copying(const coh_request *request)
{
    const cohi_ticket *ticket = request->move.ticket;
    uint32_t state = atomic_load_explicit(&ticket->state, memory_order_acquire);
    return state == COHI_TICKET_MOVING
           && atomic_load_explicit(&ticket->done, memory_order_acquire) < request->move.claimed;
}
