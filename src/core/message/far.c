#include "core/message/far.h"

#include "core/heap/locate.h"
#include "core/message/frame.h"
#include "core/message/parcel.h"

/* Bytes that are put or got at once: enough that a piece's own cost does not count, few enough that
 * others see the message move. */
enum { PUT_BYTES = 1 << 20 };

/* ---- landings ---- */

static bool take_landing(cohi_mailbox *box, int from, uint32_t *number)
{
    cohi_partner *partner = &box->partners[from];
    cohi_landings *landings = partner->landings;
    if (!landings && cohi_lane_landings(box->world, from, &landings) != COH_OK)
        return false;
    partner->landings = landings;
    uint64_t idle = ~partner->busy_landings;
    if (idle == 0)
        return false;
    *number = (uint32_t)__builtin_ctzll(idle);
    partner->busy_landings |= idle & -idle;
    return true;
}

/* The next receive may have it at once: serials differ, and words come in the order in which they
 * were put. */
static void give_landing(cohi_mailbox *box, const coh_request *receive)
{
    int from = atomic_load_explicit(&((coh_request *)receive)->peer, memory_order_relaxed);
    box->partners[from].busy_landings &= ~(UINT64_C(1) << receive->move.landing);
}

static bool has_landed(cohi_mailbox *box, const coh_request *receive)
{
    int from = atomic_load_explicit(&((coh_request *)receive)->peer, memory_order_relaxed);
    cohi_landings *landings = box->partners[from].landings;
    return atomic_load_explicit(&landings->serials[receive->move.landing], memory_order_acquire)
           == receive->serial;
}

/* The data is with the engine; its word goes behind it. */
static coh_status put_landing(const coh_world *world, const coh_request *send, int to)
{
    const cohi_engine_rma *rma = world->engine->rma;
    coh_status status = rma->fence(world->endpoint, COHI_CONTEXT_MESSAGES);
    if (status != COH_OK)
        return status;
    return rma->put(world->endpoint,
                    (cohi_remote){COHI_CONTEXT_MESSAGES, to, COHI_SEGMENT_CONTROL,
                                  cohi_lane_landing_offset(world, send->move.landing)},
                    &send->move.partner, sizeof send->move.partner, NULL);
}

void cohi_far_stop(cohi_mailbox *box, coh_request *request)
{
    if (request->op == COHI_OP_RECEIVE && request->move.way == COHI_WAY_PUT)
        give_landing(box, request);
}

/* ---- beginning and ending ---- */

static void start_moving(cohi_mailbox *box, cohi_queue *queue, coh_request *request)
{
    request->stage = COHI_REQUEST_MOVING;
    cohi_queue_append(queue, &request->link);
    atomic_fetch_add(&box->work, 1);
}

void cohi_far_end(cohi_mailbox *box, coh_request *request, coh_status status)
{
    cohi_far_stop(box, request);
    cohi_queue_remove(&request->link);
    request->stage = COHI_REQUEST_NEW;
    atomic_fetch_sub(&box->work, 1);
    cohi_request_complete(request, status);
}

coh_request *cohi_far_find(cohi_mailbox *box, cohi_opcode op, int peer, uint64_t serial)
{
    for (cohi_link *at = cohi_queue_first(&box->moving); at;
         at = cohi_queue_next(&box->moving, at)) {
        coh_request *request = (coh_request *)at;
        if (request->op == op && request->serial == serial && !request->move.ticket
            && atomic_load_explicit(&request->peer, memory_order_relaxed) == peer)
            return request;
    }
    return NULL;
}

/* Where the other side reaches the request's memory, or COHI_NO_SPOT. */
static uint64_t offset_of(const cohi_mailbox *box, const coh_request *request)
{
    bool reaches = box->reach > 0 && !box->world->facts.moves_by_messages;
    return reaches ? cohi_heap_offset_of(box->world, request->data, request->bytes) : COHI_NO_SPOT;
}

void cohi_far_announce(cohi_mailbox *box, coh_request *send)
{
    send->serial = ++box->serial;
    send->move = (cohi_move){.place = offset_of(box, send)};
    start_moving(box, &box->moving, send);
}

void cohi_far_lend(cohi_mailbox *box, coh_request *send)
{
    send->serial = ++box->serial;
    send->move =
        (cohi_move){.accepted = true, .place = COHI_NO_SPOT, .gone = send->bytes, .told = true};
    start_moving(box, &box->moving, send);
}

void cohi_far_claim(cohi_mailbox *box, coh_request *receive)
{
    receive->serial = ++box->serial;
    receive->move = (cohi_move){.accepted = true, .way = COHI_WAY_PIECES, .place = COHI_NO_SPOT};
    start_moving(box, &box->moving, receive);
}

/* A put needs no answer, so it is preferred where both could. */
static void choose_way(cohi_mailbox *box, coh_request *receive, int from, const cohi_offer *offer)
{
    cohi_move *move = &receive->move;
    move->place = offset_of(box, receive);
    if (move->place != COHI_NO_SPOT && take_landing(box, from, &move->landing)) {
        move->way = COHI_WAY_PUT;
    } else if (offer->spot != COHI_NO_SPOT && !box->world->facts.moves_by_messages) {
        move->way = COHI_WAY_GET;
        move->place = offer->spot;
    } else {
        move->place = COHI_NO_SPOT;
    }
}

/* A sender whose data is got has nothing to do meanwhile, so it is not told. */
void cohi_far_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                     const cohi_offer *offer)
{
    receive->serial = ++box->serial;
    receive->bytes = envelope->bytes;
    receive->move = (cohi_move){.accepted = true, .partner = offer->serial};
    choose_way(box, receive, envelope->from, offer);
    start_moving(box, receive->move.way == COHI_WAY_GET ? &box->moving : &box->accepting, receive);
}

/* ---- moving ---- */

static coh_status send_piece(const coh_world *world, const coh_request *request, int to, size_t at,
                             size_t bytes, cohi_op *op)
{
    cohi_frame_head head = {
        .kind = COHI_FRAME_DATA, .bytes = bytes, .serial = request->move.partner, .other = at};
    return world->engine->channel->send(world->endpoint, to, &head, sizeof head, request->data + at,
                                        bytes, op);
}

static coh_status put_piece(const coh_world *world, const coh_request *request, int to, size_t at,
                            size_t bytes, cohi_op *op)
{
    return world->engine->rma->put(
        world->endpoint,
        (cohi_remote){COHI_CONTEXT_MESSAGES, to, COHI_SEGMENT_HEAP, request->move.place + at},
        request->data + at, bytes, op);
}

static coh_status get_piece(const coh_world *world, const coh_request *request, int from, size_t at,
                            size_t bytes, cohi_op *op)
{
    return world->engine->rma->get(
        world->endpoint,
        (cohi_remote){COHI_CONTEXT_MESSAGES, from, COHI_SEGMENT_HEAP, request->move.place + at},
        request->data + at, bytes, op);
}

static coh_status move_piece(const coh_world *world, const coh_request *request, int peer,
                             size_t at, size_t bytes, cohi_op *op)
{
    static coh_status (*const by_way[])(const coh_world *, const coh_request *, int, size_t, size_t,
                                        cohi_op *) = {
        [COHI_WAY_PIECES] = send_piece, [COHI_WAY_PUT] = put_piece, [COHI_WAY_GET] = get_piece};
    return by_way[request->move.way](world, request, peer, at, bytes, op);
}

/* Tells the other side that all of it is there (put), or here (got). */
static coh_status tell_end(coh_world *world, const coh_request *request, int peer)
{
    if (request->move.way == COHI_WAY_PUT)
        return put_landing(world, request, peer);
    cohi_frame_head head = {.kind = COHI_FRAME_FETCHED, .serial = request->move.partner};
    return cohi_frame_send(world, peer, &head);
}

/* Gives the engine the next piece, with the lock let go of; one thread at a time, since pieces are
 * counted. False when the peer has as many in flight as it may. */
static bool launch_next(cohi_mailbox *box, coh_request *request, int peer)
{
    cohi_move *move = &request->move;
    size_t most = move->way == COHI_WAY_PIECES ? box->piece : PUT_BYTES;
    size_t at = move->gone, left = request->bytes - at, bytes = left < most ? left : most;
    cohi_parcel *parcel;
    coh_status status = cohi_parcel_take(box, peer, request, &parcel);
    if (status == COH_OK && !parcel)
        return false;
    if (parcel) {
        request->users++;
        cohi_latch_give(&box->lock);
        status = move_piece(box->world, request, peer, at, bytes, &parcel->op);
        cohi_latch_take(&box->lock);
        request->users--;
    }
    if (status == COH_OK) {
        move->gone += bytes;
        cohi_parcel_launch(box, parcel);
        return true;
    }
    if (parcel)
        cohi_parcel_give(box, parcel);
    move->status = status;
    return true;
}

/* Tells it with the lock let go of. */
static bool tell_end_unlocked(cohi_mailbox *box, coh_request *request, int peer)
{
    cohi_move *move = &request->move;
    move->told = true;
    request->users++;
    cohi_latch_give(&box->lock);
    coh_status status = tell_end(box->world, request, peer);
    cohi_latch_take(&box->lock);
    request->users--;
    if (move->status == COH_OK)
        move->status = status;
    return true;
}

/* The word of a put goes behind its last piece at once; what is got is told of when it is here. The
 * last piece tells of itself. */
static bool is_to_tell(const cohi_move *move)
{
    if (move->told || move->status != COH_OK)
        return false;
    return move->way == COHI_WAY_PUT || (move->way == COHI_WAY_GET && move->flying == 0);
}

/* All of it is with the engine, or one piece has failed. */
static bool conclude(cohi_mailbox *box, coh_request *request, int peer)
{
    const cohi_move *move = &request->move;
    if (is_to_tell(move))
        return tell_end_unlocked(box, request, peer);
    if (move->flying > 0)
        return false;
    cohi_far_end(box, request, move->status);
    return true;
}

static bool look_at_landing(cohi_mailbox *box, coh_request *receive)
{
    if (!has_landed(box, receive))
        return false;
    cohi_far_end(box, receive, COH_OK);
    return true;
}

bool cohi_far_step(cohi_mailbox *box, coh_request *request)
{
    const cohi_move *move = &request->move;
    int peer = atomic_load_explicit(&request->peer, memory_order_relaxed);
    if (request->users > 0 || !move->accepted)
        return false;
    if (request->op == COHI_OP_RECEIVE && move->way != COHI_WAY_GET)
        return move->way == COHI_WAY_PUT && look_at_landing(box, request);
    if (move->gone < request->bytes && move->status == COH_OK)
        return launch_next(box, request, peer);
    return conclude(box, request, peer);
}
