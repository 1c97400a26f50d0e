#include "core/message/frame.h"

#include "core/health/control.h"
#include "core/message/match.h"
#include "core/message/parcel.h"
#include "core/health/verdict.h"

#include <string.h>

enum frame_kind {
    FRAME_MESSAGE = 2, /* head, data */
    FRAME_OFFER = 3,   /* serial: the send's */
    FRAME_ACCEPT = 4,  /* serial: the send's; other: the receive's */
    FRAME_DATA = 5,    /* serial: the receive's; other: the offset; data */
    FRAME_CREDIT = 6,  /* bytes: how many */
    FRAME_LEFT = 7     /* the last one */
};

struct frame_head {
    uint32_t kind;
    uint32_t tag;
    uint64_t team;
    uint64_t bytes;
    uint64_t serial;
    uint64_t other;
};

_Static_assert(sizeof(struct frame_head) <= COHI_HEAD_BYTES, "frames without data need no op");

/* ---- sending frames; neither lock of the mailbox is held that an upcall needs ---- */

static coh_status send_head(coh_world *world, int to, const struct frame_head *head)
{
    return world->engine->channel->send(world->endpoint, to, head, sizeof *head, NULL, 0, NULL);
}

/* With its data behind it, which fits. */
static coh_status send_inline(coh_world *world, int to, const struct frame_head *head,
                              const void *data, size_t bytes)
{
    unsigned char frame[COHI_HEAD_BYTES];
    memcpy(frame, head, sizeof *head);
    if (bytes > 0)
        memcpy(frame + sizeof *head, data, bytes);
    return world->engine->channel->send(world->endpoint, to, frame, sizeof *head + bytes, NULL, 0,
                                        NULL);
}

/* It is no use to a peer that is gone itself. */
void cohi_frame_leave(cohi_mailbox *box, int to)
{
    (void)send_head(box->world, to, &(struct frame_head){.kind = FRAME_LEFT});
}

/* ---- credit ---- */

static bool has_credit(cohi_partner *partner, int64_t cost)
{
    return atomic_load_explicit(&partner->credit, memory_order_relaxed) >= cost;
}

static void spend(cohi_partner *partner, int64_t cost)
{
    atomic_fetch_sub(&partner->credit, cost);
}

void cohi_frame_consumed(cohi_mailbox *box, int from, uint64_t cost)
{
    cohi_partner *partner = &box->partners[from];
    partner->owed += cost;
    if (partner->owed < COHI_UNEXPECTED_BYTES / 4 || partner->is_crediting)
        return;
    partner->is_crediting = true;
    cohi_queue_append(&box->crediting, &partner->crediting);
    atomic_fetch_add(&box->work, 1);
}

static cohi_partner *take_crediting(cohi_mailbox *box, uint64_t *owed)
{
    cohi_latch_take(&box->lock);
    cohi_link *first = cohi_queue_first(&box->crediting);
    cohi_partner *partner =
        first ? (cohi_partner *)((char *)first - offsetof(cohi_partner, crediting)) : NULL;
    if (partner) {
        cohi_queue_remove(first);
        partner->is_crediting = false;
        *owed = partner->owed;
        partner->owed = 0;
        atomic_fetch_sub(&box->work, 1);
    }
    cohi_latch_give(&box->lock);
    return partner;
}

/* What could not be sent goes with the next. */
static void give_credit(cohi_mailbox *box)
{
    cohi_partner *partner;
    uint64_t owed;
    while ((partner = take_crediting(box, &owed))) {
        struct frame_head head = {.kind = FRAME_CREDIT, .bytes = owed};
        if (send_head(box->world, (int)(partner - box->partners), &head) == COH_OK)
            continue;
        cohi_latch_take(&box->lock);
        partner->owed += owed;
        cohi_latch_give(&box->lock);
    }
}

/* ---- requests ---- */

static void start_moving(cohi_mailbox *box, cohi_queue *queue, coh_request *request)
{
    request->stage = COHI_REQUEST_MOVING;
    cohi_queue_append(queue, &request->link);
    atomic_fetch_add(&box->work, 1);
}

static void end(cohi_mailbox *box, coh_request *request, coh_status status)
{
    cohi_queue_remove(&request->link);
    request->stage = COHI_REQUEST_NEW;
    atomic_fetch_sub(&box->work, 1);
    cohi_request_complete(request, status);
}

static void announce(cohi_mailbox *box, coh_request *send, int to)
{
    cohi_latch_take(&box->lock);
    send->serial = ++box->serial;
    send->move = (cohi_move){.accepted = false};
    start_moving(box, &box->moving, send);
    cohi_latch_give(&box->lock);
    struct frame_head head = {.kind = FRAME_OFFER,
                              .tag = send->tag,
                              .team = send->key,
                              .bytes = send->bytes,
                              .serial = send->serial};
    coh_status status = send_head(box->world, to, &head);
    if (status == COH_OK)
        return;
    cohi_latch_take(&box->lock);
    end(box, send, status);
    cohi_latch_give(&box->lock);
}

/* The engine may have the copy as long as it likes. */
static coh_status send_copy(cohi_mailbox *box, int to, const struct frame_head *head,
                            const void *data, cohi_parcel *parcel)
{
    const coh_world *world = box->world;
    memcpy(parcel->copy, data, head->bytes);
    coh_status status = world->engine->channel->send(world->endpoint, to, head, sizeof *head,
                                                     parcel->copy, head->bytes, &parcel->op);
    cohi_latch_take(&box->lock);
    if (status == COH_OK)
        cohi_parcel_launch(box, parcel);
    else
        cohi_parcel_give(box, parcel);
    cohi_latch_give(&box->lock);
    return status;
}

/* True when nothing is in the way of sending it: *parcel is for a message that needs one. */
static bool prepare_copy(cohi_mailbox *box, int to, cohi_parcel **parcel, coh_status *status)
{
    cohi_latch_take(&box->lock);
    *status = cohi_parcel_take(box, to, NULL, parcel);
    cohi_latch_give(&box->lock);
    return *status != COH_OK || *parcel;
}

static bool send_whole(cohi_mailbox *box, coh_request *send, int to, int64_t cost)
{
    struct frame_head head = {
        .kind = FRAME_MESSAGE, .tag = send->tag, .team = send->key, .bytes = send->bytes};
    bool fits_head = sizeof head + send->bytes <= COHI_HEAD_BYTES;
    cohi_parcel *parcel = NULL;
    coh_status status = COH_OK;
    if (!fits_head && !prepare_copy(box, to, &parcel, &status))
        return false;
    spend(&box->partners[to], cost);
    if (fits_head)
        status = send_inline(box->world, to, &head, send->data, send->bytes);
    else if (parcel)
        status = send_copy(box, to, &head, send->data, parcel);
    cohi_latch_take(&box->lock);
    cohi_request_complete(send, status);
    cohi_latch_give(&box->lock);
    return true;
}

bool cohi_frame_issue(cohi_mailbox *box, coh_request *send, int to)
{
    bool whole = send->bytes <= COHI_PARCEL_COPY && send->bytes <= box->piece;
    int64_t cost = COHI_ARRIVAL_COST + (whole ? (int64_t)send->bytes : 0);
    if (!has_credit(&box->partners[to], cost))
        return false;
    if (whole)
        return send_whole(box, send, to, cost);
    spend(&box->partners[to], cost);
    announce(box, send, to);
    return true;
}

/* ---- accepting ---- */

void cohi_frame_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                       const cohi_offer *offer)
{
    receive->serial = ++box->serial;
    receive->bytes = envelope->bytes;
    receive->move = (cohi_move){.accepted = true, .partner = offer->serial};
    start_moving(box, &box->accepting, receive);
}

static coh_request *find_moving(cohi_mailbox *box, cohi_opcode op, int peer, uint64_t serial)
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

/* From here on its data may come, and it may be gone. */
static bool take_accepting(cohi_mailbox *box, int *to, struct frame_head *head)
{
    cohi_latch_take(&box->lock);
    cohi_link *first = cohi_queue_first(&box->accepting);
    if (first) {
        coh_request *receive = (coh_request *)first;
        cohi_queue_remove(first);
        cohi_queue_append(&box->moving, first);
        *to = atomic_load_explicit(&receive->peer, memory_order_relaxed);
        *head = (struct frame_head){
            .kind = FRAME_ACCEPT, .serial = receive->move.partner, .other = receive->serial};
    }
    cohi_latch_give(&box->lock);
    return first != NULL;
}

/* A sender that is gone gets its verdict elsewhere. */
static void accept_all(cohi_mailbox *box)
{
    struct frame_head head;
    int to;
    while (take_accepting(box, &to, &head)) {
        coh_status status = send_head(box->world, to, &head);
        if (status == COH_OK || status == COH_PEER_LOST)
            continue;
        cohi_latch_take(&box->lock);
        coh_request *receive = find_moving(box, COHI_OP_RECEIVE, to, head.other);
        if (receive)
            end(box, receive, status);
        cohi_latch_give(&box->lock);
    }
}

void cohi_frame_flush(cohi_mailbox *box)
{
    cohi_latch_take(&box->lock);
    cohi_parcel_reap(box);
    cohi_latch_give(&box->lock);
    accept_all(box);
    give_credit(box);
}

/* ---- moving ---- */

static coh_status send_piece(const coh_world *world, const coh_request *request, int to, size_t at,
                             size_t bytes, cohi_op *op)
{
    struct frame_head head = {
        .kind = FRAME_DATA, .bytes = bytes, .serial = request->move.partner, .other = at};
    return world->engine->channel->send(world->endpoint, to, &head, sizeof head, request->data + at,
                                        bytes, op);
}

/* Gives the engine the next piece, with the lock let go of; one thread at a time, since pieces are
 * counted. False when the peer has as many in flight as it may. */
static bool launch_next(cohi_mailbox *box, coh_request *request)
{
    cohi_move *move = &request->move;
    int peer = atomic_load_explicit(&request->peer, memory_order_relaxed);
    size_t at = move->gone, left = request->bytes - at;
    size_t bytes = left < box->piece ? left : box->piece;
    cohi_parcel *parcel;
    coh_status status = cohi_parcel_take(box, peer, request, &parcel);
    if (status == COH_OK && !parcel)
        return false;
    if (parcel) {
        request->users++;
        cohi_latch_give(&box->lock);
        status = send_piece(box->world, request, peer, at, bytes, &parcel->op);
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

bool cohi_frame_step(cohi_mailbox *box, coh_request *request)
{
    const cohi_move *move = &request->move;
    if (request->op != COHI_OP_SEND || !move->accepted || request->users > 0)
        return false;
    if (move->gone < request->bytes && move->status == COH_OK)
        return launch_next(box, request);
    if (move->flying > 0)
        return false;
    end(box, request, move->status);
    return true;
}

/* ---- arriving ---- */

/* Each returns false for a frame that this library does not write. */

static bool on_message(cohi_mailbox *box, int from, const struct frame_head *head,
                       const unsigned char *data, size_t count)
{
    cohi_envelope envelope = {
        .team = head->team, .tag = head->tag, .from = from, .bytes = head->bytes};
    return count == head->bytes && cohi_match_deliver(box, &envelope, data, NULL, false);
}

static bool on_offer(cohi_mailbox *box, int from, const struct frame_head *head,
                     const unsigned char *data, size_t count)
{
    (void)data;
    cohi_envelope envelope = {
        .team = head->team, .tag = head->tag, .from = from, .bytes = head->bytes};
    cohi_offer offer = {.serial = head->serial};
    return count == 0 && cohi_match_deliver(box, &envelope, NULL, &offer, false);
}

/* A request that is not there was given up. */
static bool on_accept(cohi_mailbox *box, int from, const struct frame_head *head,
                      const unsigned char *data, size_t count)
{
    (void)data;
    coh_request *send = find_moving(box, COHI_OP_SEND, from, head->serial);
    if (!send)
        return count == 0;
    if (count != 0 || send->move.accepted)
        return false;
    send->move.accepted = true;
    send->move.partner = head->other;
    return true;
}

static bool on_data(cohi_mailbox *box, int from, const struct frame_head *head,
                    const unsigned char *data, size_t count)
{
    coh_request *receive = find_moving(box, COHI_OP_RECEIVE, from, head->serial);
    if (!receive)
        return true;
    if (count != head->bytes || head->other != receive->move.gone
        || count > receive->bytes - receive->move.gone)
        return false;
    receive->users++;
    cohi_latch_give(&box->lock);
    memcpy(receive->data + receive->move.gone, data, count);
    cohi_latch_take(&box->lock);
    receive->users--;
    receive->move.gone += count;
    if (receive->move.gone == receive->bytes)
        end(box, receive, COH_OK);
    return true;
}

static bool on_credit(cohi_mailbox *box, int from, const struct frame_head *head,
                      const unsigned char *data, size_t count)
{
    (void)data;
    if (count != 0 || head->bytes > COHI_UNEXPECTED_BYTES)
        return false;
    atomic_fetch_add(&box->partners[from].credit, (int64_t)head->bytes);
    return true;
}

static bool on_left(cohi_mailbox *box, int from, const struct frame_head *head,
                    const unsigned char *data, size_t count)
{
    (void)head;
    (void)data;
    atomic_store_explicit(&box->world->left[from], true, memory_order_release);
    return count == 0;
}

typedef bool on_frame(cohi_mailbox *box, int from, const struct frame_head *head,
                      const unsigned char *data, size_t count);

static on_frame *const by_kind[] = {
    [FRAME_MESSAGE] = on_message, [FRAME_OFFER] = on_offer,   [FRAME_ACCEPT] = on_accept,
    [FRAME_DATA] = on_data,       [FRAME_CREDIT] = on_credit, [FRAME_LEFT] = on_left,
};

static bool dispatch(cohi_mailbox *box, int from, const unsigned char *bytes, size_t count)
{
    struct frame_head head;
    if (!box || count < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.kind >= sizeof by_kind / sizeof *by_kind || !by_kind[head.kind])
        return false;
    cohi_latch_take(&box->lock);
    bool good = by_kind[head.kind](box, from, &head, bytes + sizeof head, count - sizeof head);
    cohi_latch_give(&box->lock);
    return good;
}

void cohi_frame_deliver(coh_world *world, int from, const void *bytes, size_t count)
{
    if (!dispatch(world->mailbox, from, bytes, count))
        cohi_verdict_lost(world, from, COHI_LOSS_LINK, 0);
    cohi_slot_ring(world->slot);
}
