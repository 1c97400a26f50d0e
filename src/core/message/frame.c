#include "core/message/frame.h"

#include "core/health/control.h"
#include "core/message/match.h"
#include "core/health/verdict.h"

#include <stdlib.h>
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

/* A frame that the engine has. */
struct flying {
    cohi_link link;
    cohi_op op;
    unsigned char bytes[];
};

/* A frame without data, to be sent by the next call that waits. */
struct answer {
    cohi_link link;
    int to;
    struct frame_head head;
};

enum { FLYING_MOST = 16 }; /* pieces of long messages that the engine has at once */

/* ---- sending frames ---- */

static coh_status send_short(coh_world *world, int to, const struct frame_head *head,
                             const void *data, size_t bytes)
{
    unsigned char frame[COHI_HEAD_BYTES];
    memcpy(frame, head, sizeof *head);
    if (bytes > 0)
        memcpy(frame + sizeof *head, data, bytes);
    return world->engine->channel->send(world->endpoint, to, frame, sizeof *head + bytes, NULL, 0,
                                        NULL);
}

/* The data is copied; the engine may have the copy as long as it likes. Neither lock of the
 * mailbox is held that an upcall needs. */
static coh_status send_frame(cohi_mailbox *box, int to, const struct frame_head *head,
                             const void *data, size_t bytes)
{
    coh_world *world = box->world;
    if (sizeof *head + bytes <= COHI_HEAD_BYTES)
        return send_short(world, to, head, data, bytes);
    struct flying *frame = malloc(sizeof *frame + bytes);
    if (!frame)
        return COH_NO_MEMORY;
    frame->op = (cohi_op){.status = COH_OK};
    memcpy(frame->bytes, data, bytes);
    coh_status status = world->engine->channel->send(world->endpoint, to, head, sizeof *head,
                                                     frame->bytes, bytes, &frame->op);
    if (status != COH_OK) {
        free(frame);
        return status;
    }
    cohi_latch_take(&box->lock);
    cohi_queue_append(&box->flying, &frame->link);
    box->flying_count++;
    cohi_latch_give(&box->lock);
    atomic_fetch_add(&box->work, 1);
    return COH_OK;
}

static bool answer(cohi_mailbox *box, int to, struct frame_head head)
{
    struct answer *made = malloc(sizeof *made);
    if (!made)
        return false;
    *made = (struct answer){.to = to, .head = head};
    cohi_queue_append(&box->outbox, &made->link);
    atomic_fetch_add(&box->work, 1);
    return true;
}

static void reap(cohi_mailbox *box)
{
    cohi_link *next, *at = cohi_queue_first(&box->flying);
    for (; at; at = next) {
        struct flying *frame = (struct flying *)at;
        next = cohi_queue_next(&box->flying, at);
        if (!atomic_load_explicit(&frame->op.done, memory_order_acquire))
            continue;
        cohi_queue_remove(at);
        free(frame);
        box->flying_count--;
        atomic_fetch_sub(&box->work, 1);
    }
}

static struct answer *take_answer(cohi_mailbox *box)
{
    cohi_latch_take(&box->lock);
    reap(box);
    cohi_link *first = cohi_queue_first(&box->outbox);
    if (first)
        cohi_queue_remove(first);
    cohi_latch_give(&box->lock);
    return (struct answer *)first;
}

/* An answer to a peer that is gone has nobody to miss it. */
void cohi_frame_flush(cohi_mailbox *box)
{
    struct answer *made;
    while ((made = take_answer(box))) {
        (void)send_short(box->world, made->to, &made->head, NULL, 0);
        free(made);
        atomic_fetch_sub(&box->work, 1);
    }
}

/* It is no use to a peer that is gone itself. */
void cohi_frame_leave(cohi_mailbox *box, int to)
{
    (void)send_short(box->world, to, &(struct frame_head){.kind = FRAME_LEFT}, NULL, 0);
}

/* ---- credit ---- */

static bool spend(cohi_partner *partner, int64_t cost)
{
    if (atomic_load_explicit(&partner->credit, memory_order_relaxed) < cost)
        return false;
    atomic_fetch_sub(&partner->credit, cost);
    return true;
}

void cohi_frame_consumed(cohi_mailbox *box, int from, uint64_t cost)
{
    cohi_partner *partner = &box->partners[from];
    partner->owed += cost;
    if (partner->owed < COHI_UNEXPECTED_BYTES / 4)
        return;
    if (answer(box, from, (struct frame_head){.kind = FRAME_CREDIT, .bytes = partner->owed}))
        partner->owed = 0;
}

/* ---- requests ---- */

static void start_moving(cohi_mailbox *box, coh_request *request)
{
    request->stage = COHI_REQUEST_MOVING;
    cohi_queue_append(&box->moving, &request->link);
    atomic_fetch_add(&box->work, 1);
}

static void end(cohi_mailbox *box, coh_request *request, coh_status status)
{
    cohi_queue_remove(&request->link);
    request->stage = COHI_REQUEST_NEW;
    atomic_fetch_sub(&box->work, 1);
    cohi_request_complete(request, status);
}

static coh_status announce(cohi_mailbox *box, coh_request *send, int to)
{
    cohi_latch_take(&box->lock);
    send->serial = ++box->serial;
    send->move = (cohi_move){.accepted = false};
    start_moving(box, send);
    cohi_latch_give(&box->lock);
    struct frame_head head = {.kind = FRAME_OFFER,
                              .tag = send->tag,
                              .team = send->key,
                              .bytes = send->bytes,
                              .serial = send->serial};
    coh_status status = send_frame(box, to, &head, NULL, 0);
    if (status == COH_OK)
        return COH_OK;
    cohi_latch_take(&box->lock);
    end(box, send, status);
    cohi_latch_give(&box->lock);
    return status;
}

static void send_whole(cohi_mailbox *box, coh_request *send, int to)
{
    struct frame_head head = {
        .kind = FRAME_MESSAGE, .tag = send->tag, .team = send->key, .bytes = send->bytes};
    coh_status status = send_frame(box, to, &head, send->data, send->bytes);
    cohi_latch_take(&box->lock);
    cohi_request_complete(send, status);
    cohi_latch_give(&box->lock);
}

bool cohi_frame_issue(cohi_mailbox *box, coh_request *send, int to)
{
    bool whole = send->bytes <= COHI_FRAME_EAGER && send->bytes <= box->piece;
    int64_t cost = COHI_ARRIVAL_COST + (whole ? (int64_t)send->bytes : 0);
    if (!spend(&box->partners[to], cost))
        return false;
    if (whole)
        send_whole(box, send, to);
    else
        (void)announce(box, send, to);
    return true;
}

void cohi_frame_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                       const cohi_offer *offer)
{
    receive->serial = ++box->serial;
    receive->bytes = envelope->bytes;
    receive->move = (cohi_move){.accepted = true, .partner = offer->serial};
    start_moving(box, receive);
    if (!answer(box, envelope->from,
                (struct frame_head){
                    .kind = FRAME_ACCEPT, .serial = offer->serial, .other = receive->serial}))
        end(box, receive, COH_NO_MEMORY);
}

/* Sends the next piece; one thread at a time, since pieces are counted. */
bool cohi_frame_step(cohi_mailbox *box, coh_request *request)
{
    cohi_move *move = &request->move;
    if (request->op != COHI_OP_SEND || !move->accepted || request->users > 0
        || box->flying_count >= FLYING_MOST)
        return false;
    size_t left = request->bytes - move->gone, bytes = left < box->piece ? left : box->piece;
    struct frame_head head = {
        .kind = FRAME_DATA, .bytes = bytes, .serial = move->partner, .other = move->gone};
    int to = atomic_load_explicit(&request->peer, memory_order_relaxed);
    request->users++;
    cohi_latch_give(&box->lock);
    coh_status status = send_frame(box, to, &head, request->data + head.other, bytes);
    cohi_latch_take(&box->lock);
    request->users--;
    move->gone += bytes;
    if (status != COH_OK || move->gone == request->bytes)
        end(box, request, status);
    return true;
}

/* ---- arriving ---- */

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
    if (send) {
        send->move.accepted = true;
        send->move.partner = head->other;
    }
    return count == 0;
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
    memcpy(receive->data + receive->move.gone, data, count);
    receive->move.gone += count;
    if (receive->move.gone == receive->bytes)
        end(box, receive, COH_OK);
    return true;
}

static bool on_credit(cohi_mailbox *box, int from, const struct frame_head *head,
                      const unsigned char *data, size_t count)
{
    (void)data;
    atomic_fetch_add(&box->partners[from].credit, (int64_t)head->bytes);
    return count == 0 && head->bytes <= COHI_UNEXPECTED_BYTES;
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

void cohi_frame_close(cohi_mailbox *box)
{
    cohi_queue *queues[] = {&box->outbox, &box->flying};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
        cohi_link *at;
        while ((at = cohi_queue_first(queues[i]))) {
            cohi_queue_remove(at);
            free(at);
        }
    }
}
