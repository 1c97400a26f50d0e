#include "base/clock.h"
#include "core/health/control.h"
#include "core/message/far.h"
#include "core/message/large.h"
#include "core/message/match.h"
#include "core/message/message.h"
#include "core/message/parcel.h"
#include "core/health/order.h"
#include "core/health/peer.h"
#include "core/onesided/rma.h"
#include "core/team/apart.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"

#include <sched.h>
#include <stdlib.h>

/* ---- ending ---- */

void cohi_request_complete(coh_request *request, coh_status status)
{
    coh_world *world = request->world;
    request->status = status;
    if (request->arrival) {
        cohi_match_absorbed(world->mailbox, request);
        return;
    }
    atomic_store_explicit(&request->done, 1, memory_order_release);
    cohi_control_wake(world, world->slot); /* it may be another thread's */
}

static bool is_done(const coh_request *request)
{
    return atomic_load_explicit(&((coh_request *)request)->done, memory_order_acquire);
}

static void stop_moving(cohi_mailbox *box, coh_request *request)
{
    if (request->move.ticket)
        cohi_large_stop(request);
    else
        cohi_far_stop(box, request);
    cohi_queue_remove(&request->link);
    atomic_fetch_sub(&box->work, 1);
    request->stage = COHI_REQUEST_NEW;
}

static void stop_pending(cohi_mailbox *box, cohi_partner *partner, coh_request *request)
{
    cohi_queue_remove(&request->link);
    atomic_fetch_sub(&partner->pending_count, 1);
    atomic_fetch_sub(&box->pendings, 1);
    atomic_fetch_sub(&box->work, 1);
    request->stage = COHI_REQUEST_NEW;
}

static void stop(cohi_mailbox *box, cohi_partner *partner, coh_request *request)
{
    if (request->stage == COHI_REQUEST_PENDING)
        stop_pending(box, partner, request);
    else if (request->stage == COHI_REQUEST_MOVING)
        stop_moving(box, request);
    else
        cohi_match_withdraw(box, request);
}

/* What made the wait fail makes the worker's call fail too. */
static void await_worker(const coh_request *request)
{
    while (!is_done(request))
        sched_yield();
}

/* The other side may be in the middle of a chunk, which takes it a millisecond if it is well; the
 * memory is the caller's again then. */
static void await_chunk(const coh_request *request)
{
    const uint64_t end = cohi_now_ns() + COHI_NS_PER_S;
    int peer = atomic_load(&request->peer);
    while (cohi_large_is_copying(request) && cohi_now_ns() < end
           && cohi_verdict_on(request->world, peer) == 0)
        sched_yield();
}

/* Takes it back; false when it is done after all: what had come before the peer ended counts.
 * Another thread may be copying for it. */
static bool withdraw(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    if (request->error) {
        await_worker(request);
        return false;
    }
    cohi_mailbox_progress(box);
    bool send = request->op == COHI_OP_SEND;
    cohi_partner *partner = send ? &box->partners[atomic_load(&request->peer)] : NULL;
    if (send)
        cohi_latch_take(&partner->out_lock);
    cohi_latch_take(&box->lock);
    while (request->users > 0) {
        cohi_latch_give(&box->lock);
        sched_yield();
        cohi_latch_take(&box->lock);
    }
    bool open = !is_done(request);
    bool moving = open && request->stage == COHI_REQUEST_MOVING;
    bool shared = moving && request->move.ticket;
    bool flying = moving && request->move.flying > 0;
    if (open)
        stop(box, partner, request);
    cohi_latch_give(&box->lock);
    if (send)
        cohi_latch_give(&partner->out_lock);
    if (shared)
        await_chunk(request);
    if (flying)
        cohi_parcel_recall(box, request);
    return open;
}

static coh_status fail_length(const coh_request *request, const char *call)
{
    const coh_message *got = &request->got;
    (void)cohi_world_fail(request->world, call, COH_LENGTH_MISMATCH,
                          "the message from member %d under tag %d has %zu bytes, the room is %zu; "
                          "it stays for the next receive",
                          request->team->indices[got->source], got->tag, got->bytes,
                          request->bytes);
    cohi_fail_range(COH_LENGTH_MISMATCH, COH_NO_FACT, got->bytes, request->bytes);
    return cohi_fail_peer(COH_LENGTH_MISMATCH, got->source);
}

/* The error message for how it ended. */
static coh_status outcome(const coh_request *request, const char *call)
{
    coh_world *world = request->world;
    coh_status status = request->status;
    if (COHI_LIKELY(status == COH_OK)) {
        cohi_order_acquire(world);
        return COH_OK;
    }
    if (request->error)
        return cohi_fail_again(request->error);
    if (status == COH_LENGTH_MISMATCH)
        return fail_length(request, call);
    int peer = atomic_load(&((coh_request *)request)->peer);
    coh_status lost = status == COH_PEER_LOST
                          ? cohi_verdict_presume(world, call, peer, COHI_LOSS_LINK)
                          : cohi_verdict_check(world, call, peer);
    if (lost != COH_OK)
        return cohi_message_tell(request, lost);
    return cohi_world_fail(world, call, status, "the message of %zu bytes %s rank %d failed: %s",
                           request->got.bytes, request->op == COHI_OP_SEND ? "to" : "from", peer,
                           status == COH_SYSTEM ? "the memory given for it cannot be accessed"
                                                : coh_status_text(status));
}

/* ---- waiting ---- */

/* What is waited for: one of these. */
struct waiting {
    coh_world *world;
    const char *call;
    coh_request **requests;
    size_t count;
    bool probe;         /* for a message for the only one of them, which is not started */
    coh_request *ended; /* the one that is done, or failed */
    uint64_t come;      /* the mailbox's count when it was last looked at */
};

static bool look(struct waiting *waiting)
{
    if (waiting->probe)
        return cohi_message_find(*waiting->requests);
    for (size_t i = 0; i < waiting->count; i++) {
        coh_request *request = waiting->requests[i];
        if (!request || !is_done(request))
            continue;
        waiting->ended = request;
        return true;
    }
    return false;
}

/* What stands against a collective's team says more than that a member is gone, which may follow from
 * it. */
static coh_status explain_loss(const struct waiting *waiting, coh_request *request,
                               coh_status status)
{
    cohi_party *party = request->collective ? &request->team->party : NULL;
    coh_status standing = party ? party->standing(party, waiting->call) : COH_OK;
    return standing != COH_OK ? standing : status;
}

static coh_status check_standing(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->count; i++) {
        coh_request *request = waiting->requests[i];
        bool message = request && !request->error;
        coh_status status = message ? cohi_message_standing(request, waiting->call) : COH_OK;
        if (status == COH_OK)
            continue;
        waiting->ended = request;
        return explain_loss(waiting, request, status);
    }
    return COH_OK;
}

static coh_request *first_of(const struct waiting *waiting)
{
    size_t i = 0;
    while (!waiting->requests[i])
        i++;
    return waiting->requests[i];
}

/* A rank that waits may itself be what others wait for: it makes room for what they send. A send
 * does so before it sleeps, a receive when it would. */
static void make_room(const struct waiting *waiting, const cohi_wait *wait)
{
    const coh_world *world = waiting->world;
    cohi_mailbox *box = world->mailbox;
    bool send = first_of(waiting)->op == COHI_OP_SEND;
    if (atomic_load_explicit(&box->offers, memory_order_relaxed) == 0
        || (send ? wait->looks <= cohi_world_spins(world) : !wait->asleep))
        return;
    cohi_latch_take(&box->lock);
    cohi_match_absorb(box);
    cohi_latch_give(&box->lock);
}

/* A collective has published itself. The number shows observers that this rank is not stuck in one
 * wait. */
static void publish(coh_world *world, cohi_opcode doing)
{
    cohi_world_show_op(world, doing);
    uint64_t number = atomic_fetch_add(&world->mailbox->waits, 1) + 1;
    atomic_store_explicit(&world->slot->sequence, number, memory_order_relaxed);
}

/* Also begins anew when something moved: the wait is for the next thing. */
static void begin(const struct waiting *waiting, cohi_wait *wait)
{
    const coh_request *first = first_of(waiting);
    coh_team *team = first->collective && !first->error ? first->team : NULL;
    if (!first->collective)
        publish(waiting->world, first->doing);
    cohi_wait_begin(wait, waiting->world, waiting->call, first->doing, team ? &team->party : NULL,
                    -1);
}

/* Who can end the wait: the ranks that the requests are with; this one itself, if its own thread
 * carries out a started collective. */
static void list_peers(const void *arg, cohi_spans *ranks)
{
    const struct waiting *waiting = arg;
    for (size_t i = 0; i < waiting->count; i++) {
        coh_request *request = waiting->requests[i];
        int peer = request ? atomic_load(&request->peer) : -1;
        if (request && request->error)
            cohi_spans_add(ranks, waiting->world->rank);
        else if (request && peer != COH_ANY_RANK)
            cohi_spans_add(ranks, peer);
        for (int of = 0; request && peer == COH_ANY_RANK && of < request->team->size; of++)
            cohi_spans_add(ranks, request->team->ranks[of]);
    }
}

/* A send to oneself waits when what was sent before is not received. Another thread may do that, so
 * it is no error as such. */
static const char *hint_for(const struct waiting *waiting, int peer)
{
    static const char text[] =
        "of what it sent itself before, as much lies unreceived as is kept (4194304 bytes)";
    _Static_assert(COHI_UNEXPECTED_BYTES == 4194304, "as the text says");
    return peer == waiting->world->rank && first_of(waiting)->op == COHI_OP_SEND ? text : NULL;
}

static void set_awaited(const struct waiting *waiting, cohi_wait *wait)
{
    const coh_request *request = first_of(waiting);
    int peer = atomic_load(&((coh_request *)request)->peer);
    bool one = waiting->count == 1;
    if (request->error) /* a thread of this rank carries it out */
        peer = waiting->world->rank;
    wait->rank = one ? peer : -1;
    wait->tag = one && !request->any_tag && !request->collective ? (int)request->tag : -1;
    wait->hint = one ? hint_for(waiting, peer) : NULL;
    wait->list = one && peer != COH_ANY_RANK ? NULL : list_peers;
    wait->waiting = waiting;
}

static uint64_t pieces_come(const struct waiting *waiting)
{
    return atomic_load_explicit(&waiting->world->mailbox->come, memory_order_relaxed);
}

/*
 * Whether anything has moved since the last time, by whomever. A piece of a long message that the engine brought counts:
 * without it the receiver would go to sleep after a while, in the middle of the message, and the engine's thread would
 * take each piece and wake it.
 */
static bool has_moved(struct waiting *waiting)
{
    bool moved = cohi_mailbox_progress(waiting->world->mailbox);
    uint64_t come = pieces_come(waiting);
    moved = moved || come != waiting->come;
    waiting->come = come;
    return moved;
}

static coh_status wait_step(struct waiting *waiting, cohi_wait *wait)
{
    if (has_moved(waiting)) {
        cohi_wait_end(wait);
        begin(waiting, wait);
        return COH_OK;
    }
    set_awaited(waiting, wait);
    coh_status status = cohi_wait_step(wait);
    if (status == COH_OK)
        make_room(waiting, wait);
    return status;
}

/* A collective's message may never come since the other side is in another call, or was refused. */
static coh_status look_around(const struct waiting *waiting, const cohi_wait *wait)
{
    const coh_request *first = first_of(waiting);
    bool collective = first->collective && !first->error;
    return wait->asleep && collective ? cohi_apart_look(first->team, waiting->call) : COH_OK;
}

static coh_status wait_long(struct waiting *waiting)
{
    bool collective = first_of(waiting)->collective;
    coh_status status = COH_OK;
    cohi_wait wait;
    waiting->come = pieces_come(waiting);
    begin(waiting, &wait);
    while (status == COH_OK && !look(waiting)) {
        status = wait_step(waiting, &wait);
        if (status == COH_OK && !look(waiting))
            status = look_around(waiting, &wait);
        if (status == COH_OK && !look(waiting))
            status = check_standing(waiting);
    }
    cohi_wait_end(&wait);
    if (!collective)
        cohi_world_show_op(waiting->world, COHI_OP_NONE);
    return status;
}

static coh_status wait_for(struct waiting *waiting)
{
    coh_world *world = waiting->world;
    for (unsigned looks = 0, most = cohi_world_spins(world); looks <= most; looks++) {
        if (cohi_mailbox_progress(world->mailbox))
            looks = 0;
        if (look(waiting))
            return COH_OK;
        cohi_cpu_relax();
    }
    return wait_long(waiting);
}

/* Nobody acts meanwhile but the engine, which gets a few steps to bring what it has. */
static coh_status wait_driven(struct waiting *waiting)
{
    enum { STEPS = 16 };
    coh_world *world = waiting->world;
    cohi_wait wait;
    coh_status status = COH_OK;
    cohi_wait_begin(&wait, world, waiting->call, first_of(waiting)->doing, NULL, -1);
    for (int idle = 0; idle < STEPS && status == COH_OK && !look(waiting);) {
        idle = cohi_mailbox_progress(world->mailbox) ? 0 : idle + 1;
        status = world->remote ? cohi_wait_step(&wait) : COH_OK;
    }
    cohi_wait_end(&wait);
    if (status != COH_OK || look(waiting))
        return status;
    return cohi_world_fail(world, waiting->call, COH_UNSUPPORTED,
                           "it would have to wait, and this world is driven by the thread that "
                           "drives the others (options.driven), so nobody could act");
}

static coh_status wait_any_of(struct waiting *waiting)
{
    if (look(waiting))
        return COH_OK;
    return waiting->world->driven ? wait_driven(waiting) : wait_for(waiting);
}

coh_status cohi_request_finish(coh_request *request, const char *call)
{
    struct waiting waiting = {
        .world = request->world, .call = call, .requests = &request, .count = 1};
    coh_status status = wait_any_of(&waiting);
    if (status != COH_OK && withdraw(request))
        return cohi_message_tell(request, status);
    return outcome(request, call);
}

/* What had come before the peer ended counts here too. */
coh_status cohi_request_probe(coh_request *wanted, const char *call)
{
    struct waiting waiting = {
        .world = wanted->world, .call = call, .requests = &wanted, .count = 1, .probe = true};
    coh_status status = wait_any_of(&waiting);
    if (status == COH_OK)
        return COH_OK;
    cohi_mailbox_progress(wanted->world->mailbox);
    return look(&waiting) ? COH_OK : cohi_message_tell(wanted, status);
}

/* ---- the calls ---- */

static void release(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    cohi_latch_take(&box->lock);
    *request->owned_at = request->next_owned;
    if (request->next_owned)
        request->next_owned->owned_at = request->owned_at;
    cohi_latch_give(&box->lock);
    free(request);
}

/* Tells how the request ended, and frees it. */
static coh_status conclude(coh_request **request, const char *call, coh_message *got)
{
    coh_request *ended = *request;
    coh_status status = outcome(ended, call);
    if (status == COH_OK || status == COH_LENGTH_MISMATCH)
        cohi_message_got(ended, got);
    release(ended);
    *request = NULL;
    return status;
}

/* The wait failed. A driven world's request goes on; another's is given up. */
static coh_status give_up(coh_request **request, const char *call, coh_status status,
                          coh_message *got)
{
    if (status == COH_UNSUPPORTED)
        return status;
    if (!withdraw(*request))
        return conclude(request, call, got);
    status = cohi_message_tell(*request, status);
    release(*request);
    *request = NULL;
    return status;
}

static coh_status refuse_null(const char *call, const char *what)
{
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: %s is NULL", call, what);
}

static coh_status wait_for_one(coh_request **request, const char *call, coh_message *got)
{
    struct waiting waiting = {
        .world = (*request)->world, .call = call, .requests = request, .count = 1};
    coh_status status = wait_any_of(&waiting);
    return status == COH_OK ? conclude(request, call, got) : give_up(request, call, status, got);
}

coh_status coh_request_wait(coh_request **request, coh_message *got)
{
    static const char call[] = "coh_request_wait";
    if (!request)
        return refuse_null(call, "the place of the request");
    coh_status status = *request ? cohi_world_enter((*request)->world, call) : COH_OK;
    return status == COH_OK && *request ? wait_for_one(request, call, got) : status;
}

coh_status coh_request_test(coh_request **request, int *done, coh_message *got)
{
    static const char call[] = "coh_request_test";
    if (!request || !done)
        return refuse_null(call, request ? "done" : "the place of the request");
    if (!*request) {
        *done = 1;
        return COH_OK;
    }
    coh_world *world = (*request)->world;
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    cohi_world_progress(world);
    cohi_mailbox_progress(world->mailbox);
    if (!is_done(*request)) {
        status = (*request)->error ? COH_OK : cohi_message_standing(*request, call);
        if (status != COH_OK)
            return give_up(request, call, status, got);
        *done = 0;
        return COH_OK;
    }
    status = conclude(request, call, got);
    if (status == COH_OK)
        *done = 1;
    return status;
}

static coh_status check_set(coh_request **requests, size_t count, const char *call, size_t *left,
                            coh_world **world)
{
    *left = 0;
    for (size_t i = 0; i < count; i++) {
        if (!requests[i])
            continue;
        if (*left > 0 && requests[i]->world != *world)
            return cohi_fail(COH_INVALID_ARGUMENT,
                             "%s: requests[%zu] is of another world than the ones before it", call,
                             i);
        *world = requests[i]->world;
        ++*left;
    }
    return *left > 0 ? cohi_world_enter(*world, call) : COH_OK;
}

static size_t place_of(coh_request **requests, const coh_request *request)
{
    size_t i = 0;
    while (requests[i] != request)
        i++;
    return i;
}

coh_status coh_request_wait_any(coh_request **requests, size_t count, size_t *index,
                                coh_message *got)
{
    static const char call[] = "coh_request_wait_any";
    if (!index || (!requests && count > 0))
        return refuse_null(call, index ? "requests" : "index");
    size_t left;
    coh_world *world = NULL;
    coh_status status = check_set(requests, count, call, &left, &world);
    if (status != COH_OK)
        return status;
    if (left == 0) {
        *index = count;
        return COH_OK;
    }
    struct waiting waiting = {.world = world, .call = call, .requests = requests, .count = count};
    status = wait_any_of(&waiting);
    if (status != COH_OK && !waiting.ended)
        return status; /* of no request in particular: all go on */
    size_t at = place_of(requests, waiting.ended);
    status = status == COH_OK ? conclude(&requests[at], call, got)
                              : give_up(&requests[at], call, status, got);
    if (status == COH_OK)
        *index = at;
    return status;
}

/* One after the other: nothing is gained by another order, since all are needed, and all of them
 * make progress in each wait. */
coh_status coh_request_wait_all(coh_request **requests, size_t count, coh_message *got)
{
    static const char call[] = "coh_request_wait_all";
    if (!requests && count > 0)
        return refuse_null(call, "requests");
    size_t left;
    coh_world *world = NULL;
    coh_status first = COH_OK, status = check_set(requests, count, call, &left, &world);
    if (status != COH_OK)
        return status;
    cohi_error kept;
    for (size_t i = 0; i < count; i++) {
        status = requests[i] ? wait_for_one(&requests[i], call, got ? &got[i] : NULL) : COH_OK;
        if (status == COH_OK || first != COH_OK)
            continue;
        first = status;
        cohi_error_keep(&kept);
    }
    return first == COH_OK ? COH_OK : cohi_fail_again(&kept);
}
