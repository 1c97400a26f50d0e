#include "core/message/frame.h"

#include "core/health/control.h"
#include "core/message/far.h"
#include "core/message/match.h"
#include "core/message/parcel.h"
#include "core/health/verdict.h"

#include <string.h>

/* ---- sending ---- */

coh_status cohi_frame_send(const coh_world *world, int to, const cohi_frame_head *head)
{
    return world->engine->channel->send(world->endpoint, to, head, sizeof *head, NULL, 0, NULL);
}

/* With its data behind it, which fits. */
static coh_status send_inline(coh_world *world, int to, const cohi_frame_head *head,
                              const void *data, size_t bytes)
{
    unsigned char frame[COHI_HEAD_BYTES];
    memcpy(frame, head, sizeof *head);
    if (bytes > 0)
        memcpy(frame + sizeof *head, data, bytes);
    return world->engine->channel->send(world->endpoint, to, frame, sizeof *head + bytes, NULL, 0,
                                        NULL);
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

/* Lock held. */
static uint64_t take_owed(cohi_mailbox *box, cohi_partner *partner)
{
    uint64_t owed = partner->owed;
    partner->owed = 0;
    if (!partner->is_crediting)
        return owed;
    cohi_queue_remove(&partner->crediting);
    partner->is_crediting = false;
    atomic_fetch_sub(&box->work, 1);
    return owed;
}

static cohi_partner *take_crediting(cohi_mailbox *box, uint64_t *owed)
{
    cohi_latch_take(&box->lock);
    cohi_link *first = cohi_queue_first(&box->crediting);
    cohi_partner *partner =
        first ? (cohi_partner *)((char *)first - offsetof(cohi_partner, crediting)) : NULL;
    if (partner)
        *owed = take_owed(box, partner);
    cohi_latch_give(&box->lock);
    return partner;
}

/* What could not be sent goes with the next. */
static void give_credit(cohi_mailbox *box)
{
    cohi_partner *partner;
    uint64_t owed;
    while ((partner = take_crediting(box, &owed))) {
        cohi_frame_head head = {.kind = COHI_FRAME_CREDIT, .bytes = owed};
        if (cohi_frame_send(box->world, (int)(partner - box->partners), &head) == COH_OK)
            continue;
        cohi_latch_take(&box->lock);
        partner->owed += owed;
        cohi_latch_give(&box->lock);
    }
}

/* ---- issuing ---- */

static void announce(cohi_mailbox *box, coh_request *send, int to)
{
    cohi_latch_take(&box->lock);
    cohi_far_announce(box, send);
    cohi_latch_give(&box->lock);
    cohi_frame_head head = {.kind = COHI_FRAME_OFFER,
                            .tag = send->tag,
                            .team = send->key,
                            .bytes = send->bytes,
                            .serial = send->serial,
                            .place = send->move.place};
    coh_status status = cohi_frame_send(box->world, to, &head);
    if (status == COH_OK)
        return;
    cohi_latch_take(&box->lock);
    cohi_far_end(box, send, status);
    cohi_latch_give(&box->lock);
}

/* The engine may have the copy as long as it likes. */
static coh_status send_copy(cohi_mailbox *box, int to, const cohi_frame_head *head,
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

/* The engine sends it, or copies what it could not send: no parcel is needed. */
static bool send_now(const cohi_mailbox *box, int to, const cohi_frame_head *head, const void *data)
{
    const coh_world *world = box->world;
    const cohi_engine_channel *channel = world->engine->channel;
    return channel->send_now
           && channel->send_now(world->endpoint, to, head, sizeof *head, data, head->bytes);
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
    cohi_frame_head head = {
        .kind = COHI_FRAME_MESSAGE, .tag = send->tag, .team = send->key, .bytes = send->bytes};
    bool fits_head = sizeof head + send->bytes <= COHI_HEAD_BYTES;
    cohi_parcel *parcel = NULL;
    coh_status status = COH_OK;
    bool gone = !fits_head && send_now(box, to, &head, send->data);
    if (!fits_head && !gone && !prepare_copy(box, to, &parcel, &status))
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

/*
 * Lends the engine the caller's memory, with the lock let go of meanwhile. What is owed goes along: of ranks that exchange
 * long messages no credit is sent by itself, which costs 5 us over TCP.
 */
static coh_status lend(cohi_mailbox *box, coh_request *send, int to, cohi_parcel *parcel)
{
    const coh_world *world = box->world;
    cohi_frame_head head = {
        .kind = COHI_FRAME_MESSAGE, .tag = send->tag, .team = send->key, .bytes = send->bytes};
    head.other = parcel->returned = take_owed(box, &box->partners[to]);
    send->users++;
    cohi_latch_give(&box->lock);
    coh_status status = world->engine->channel->send(world->endpoint, to, &head, sizeof head,
                                                     send->data, send->bytes, &parcel->op);
    cohi_latch_take(&box->lock);
    send->users--;
    if (status == COH_OK) {
        cohi_parcel_launch(box, parcel);
    } else {
        cohi_frame_consumed(box, to, parcel->returned);
        cohi_parcel_give(box, parcel);
    }
    return status;
}

/* A whole message that is not copied: it moves until the engine is done with it. */
static bool send_lent(cohi_mailbox *box, coh_request *send, int to, int64_t cost)
{
    cohi_parcel *parcel;
    cohi_latch_take(&box->lock);
    coh_status status = cohi_parcel_take(box, to, send, &parcel);
    bool goes = status != COH_OK || parcel;
    if (goes)
        cohi_far_lend(box, send);
    if (parcel) {
        spend(&box->partners[to], cost);
        parcel->cost = cost;
        status = lend(box, send, to, parcel);
        if (status != COH_OK)
            spend(&box->partners[to], -cost);
    }
    if (status != COH_OK)
        send->move.status = status;
    if (goes && send->move.flying == 0)
        cohi_far_end(box, send, send->move.status);
    cohi_latch_give(&box->lock);
    return goes;
}

/* A longer one takes no more than half of the credit: the rest is for short ones, and for what announces others. Else
 * messages that nobody receives yet would keep back those that the receiver waits for. */
static bool may_lend(cohi_partner *partner, int64_t cost)
{
    return has_credit(partner, cost + COHI_UNEXPECTED_BYTES / 2);
}

/*
 * Short messages go whole, as copies. So does what fits a frame, uncopied: asking the receiver first would only cost the
 * time of an answer, and what comes before its receive is kept.
 */
bool cohi_frame_issue(cohi_mailbox *box, coh_request *send, int to)
{
    bool copied = send->bytes <= COHI_PARCEL_COPY && send->bytes <= box->piece;
    int64_t whole = COHI_ARRIVAL_COST + (int64_t)send->bytes;
    bool lent = !copied && send->bytes <= box->piece && may_lend(&box->partners[to], whole);
    int64_t cost = copied || lent ? whole : COHI_ARRIVAL_COST;
    if (!has_credit(&box->partners[to], cost))
        return false;
    if (copied)
        return send_whole(box, send, to, cost);
    if (lent)
        return send_lent(box, send, to, cost);
    spend(&box->partners[to], cost);
    announce(box, send, to);
    return true;
}

/* ---- accepting ---- */

/* From here on its data may come, and it may be gone. */
static bool take_accepting(cohi_mailbox *box, int *to, cohi_frame_head *head)
{
    cohi_latch_take(&box->lock);
    cohi_link *first = cohi_queue_first(&box->accepting);
    if (first) {
        coh_request *receive = (coh_request *)first;
        cohi_queue_remove(first);
        cohi_queue_append(&box->moving, first);
        *to = atomic_load_explicit(&receive->peer, memory_order_relaxed);
        *head = (cohi_frame_head){.kind = COHI_FRAME_ACCEPT,
                                  .tag = receive->move.landing,
                                  .serial = receive->move.partner,
                                  .other = receive->serial,
                                  .place = receive->move.place};
    }
    cohi_latch_give(&box->lock);
    return first != NULL;
}

/* A sender that is gone gets its verdict elsewhere. */
static void accept_all(cohi_mailbox *box)
{
    cohi_frame_head head;
    int to;
    while (take_accepting(box, &to, &head)) {
        coh_status status = cohi_frame_send(box->world, to, &head);
        if (status == COH_OK || status == COH_PEER_LOST)
            continue;
        cohi_latch_take(&box->lock);
        coh_request *receive = cohi_far_find(box, COHI_OP_RECEIVE, to, head.other);
        if (receive)
            cohi_far_end(box, receive, status);
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

/* ---- arriving ---- */

bool cohi_frame_take_credit(cohi_mailbox *box, int from, uint64_t bytes)
{
    if (bytes > COHI_UNEXPECTED_BYTES)
        return false;
    if (bytes > 0)
        atomic_fetch_add(&box->partners[from].credit, (int64_t)bytes);
    return true;
}

/* Each returns false for a frame that this library does not write. */

/* None, or a range that the engine reaches. */
static bool is_place(const cohi_mailbox *box, uint64_t place, uint64_t bytes)
{
    return place == COHI_NO_SPOT || (place <= box->reach && bytes <= box->reach - place);
}

static bool on_message(cohi_mailbox *box, int from, const cohi_frame_head *head,
                       const unsigned char *data, size_t count)
{
    cohi_envelope envelope = {
        .team = head->team, .tag = head->tag, .from = from, .bytes = head->bytes};
    return count == head->bytes && cohi_frame_take_credit(box, from, head->other)
           && cohi_match_deliver(box, &envelope, data, NULL, false);
}

static bool on_offer(cohi_mailbox *box, int from, const cohi_frame_head *head,
                     const unsigned char *data, size_t count)
{
    (void)data;
    cohi_envelope envelope = {
        .team = head->team, .tag = head->tag, .from = from, .bytes = head->bytes};
    cohi_offer offer = {.serial = head->serial, .spot = head->place};
    return count == 0 && is_place(box, head->place, head->bytes)
           && cohi_match_deliver(box, &envelope, NULL, &offer, false);
}

/* A request that is not there was given up. */
static bool on_accept(cohi_mailbox *box, int from, const cohi_frame_head *head,
                      const unsigned char *data, size_t count)
{
    (void)data;
    coh_request *send = cohi_far_find(box, COHI_OP_SEND, from, head->serial);
    if (!send)
        return count == 0;
    if (count != 0 || send->move.accepted || !is_place(box, head->place, send->bytes)
        || head->tag >= COHI_LANDINGS)
        return false;
    send->move.accepted = true;
    send->move.partner = head->other;
    send->move.way = head->place == COHI_NO_SPOT ? COHI_WAY_PIECES : COHI_WAY_PUT;
    send->move.place = head->place;
    send->move.landing = head->tag;
    return true;
}

static bool on_data(cohi_mailbox *box, int from, const cohi_frame_head *head,
                    const unsigned char *data, size_t count)
{
    coh_request *receive = cohi_far_find(box, COHI_OP_RECEIVE, from, head->serial);
    if (!receive)
        return true;
    if (receive->move.way != COHI_WAY_PIECES || count != head->bytes
        || head->other != receive->move.gone || count > receive->bytes - receive->move.gone)
        return false;
    receive->users++;
    cohi_latch_give(&box->lock);
    memcpy(receive->data + receive->move.gone, data, count);
    cohi_latch_take(&box->lock);
    receive->users--;
    receive->move.gone += count;
    cohi_mailbox_note_piece(box);
    if (receive->move.gone == receive->bytes)
        cohi_far_end(box, receive, COH_OK);
    return true;
}

/* Only what was offered with a place, and is not being sent, can have been fetched. */
static bool on_fetched(cohi_mailbox *box, int from, const cohi_frame_head *head,
                       const unsigned char *data, size_t count)
{
    (void)data;
    coh_request *send = cohi_far_find(box, COHI_OP_SEND, from, head->serial);
    if (!send)
        return count == 0;
    if (count != 0 || send->move.accepted || send->move.place == COHI_NO_SPOT)
        return false;
    cohi_far_end(box, send, COH_OK);
    return true;
}

static bool on_credit(cohi_mailbox *box, int from, const cohi_frame_head *head,
                      const unsigned char *data, size_t count)
{
    (void)data;
    return count == 0 && cohi_frame_take_credit(box, from, head->bytes);
}

typedef bool on_frame(cohi_mailbox *box, int from, const cohi_frame_head *head,
                      const unsigned char *data, size_t count);

static on_frame *const by_kind[] = {
    [COHI_FRAME_MESSAGE] = on_message, [COHI_FRAME_OFFER] = on_offer,
    [COHI_FRAME_ACCEPT] = on_accept,   [COHI_FRAME_DATA] = on_data,
    [COHI_FRAME_CREDIT] = on_credit,   [COHI_FRAME_FETCHED] = on_fetched,
};

static bool dispatch(cohi_mailbox *box, int from, const unsigned char *bytes, size_t count)
{
    cohi_frame_head head;
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
    cohi_mailbox *box = __atomic_load_n(&world->mailbox, __ATOMIC_ACQUIRE);
    if (!dispatch(box, from, bytes, count))
        cohi_verdict_lost(world, from, COHI_LOSS_LINK, 0);
    cohi_slot_ring(world->slot);
}
