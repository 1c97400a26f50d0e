#include "core/message/match.h"

#include "core/message/far.h"
#include "core/message/frame.h"
#include "core/message/large.h"
#include "core/team/team.h"

#include <stdlib.h>
#include <string.h>

static uint64_t cost_of(const cohi_envelope *envelope, bool offered)
{
    return COHI_ARRIVAL_COST + (offered ? 0 : envelope->bytes);
}

static bool wants(const coh_request *receive, const cohi_envelope *envelope)
{
    if (receive->key != envelope->team)
        return false;
    return receive->any_tag ? !(envelope->tag & COHI_TAG_INTERNAL) : receive->tag == envelope->tag;
}

/* ---- receives that wait ---- */

static coh_request *first_wanting(const cohi_queue *queue, const cohi_envelope *envelope)
{
    for (cohi_link *at = cohi_queue_first(queue); at; at = cohi_queue_next(queue, at))
        if (wants((coh_request *)at, envelope))
            return (coh_request *)at;
    return NULL;
}

/* Of those from this source and those from anybody, the one that was posted first. */
static coh_request *find_posted(cohi_mailbox *box, const cohi_envelope *envelope)
{
    coh_request *named = first_wanting(&box->partners[envelope->from].posted, envelope);
    coh_request *any = first_wanting(&box->posted_any, envelope);
    if (!named || !any)
        return named ? named : any;
    return named->serial < any->serial ? named : any;
}

static void post(cohi_mailbox *box, coh_request *receive)
{
    int peer = atomic_load_explicit(&receive->peer, memory_order_relaxed);
    receive->serial = ++box->serial;
    receive->stage = COHI_REQUEST_POSTED;
    cohi_queue_append(peer == COH_ANY_RANK ? &box->posted_any : &box->partners[peer].posted,
                      &receive->link);
}

static void fill_got(coh_request *receive, const cohi_envelope *envelope)
{
    receive->got = (coh_message){.source = envelope->from,
                                 .tag = (int)(envelope->tag & ~COHI_TAG_INTERNAL),
                                 .bytes = envelope->bytes};
}

/* ---- giving a message to a receive ---- */

static void accept_offer(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                         const cohi_offer *offer)
{
    if (cohi_mailbox_by_lane(box->world, envelope->from))
        cohi_large_accept(box, receive, envelope, offer);
    else
        cohi_far_accept(box, receive, envelope, offer);
}

/* Copies with the lock let go of, if that takes time; the request stays as long. */
static void copy_to(cohi_mailbox *box, coh_request *receive, const void *data, size_t bytes)
{
    if (bytes <= COHI_LANE_EAGER) {
        if (bytes > 0)
            memcpy(receive->data, data, bytes);
        return;
    }
    receive->users++;
    cohi_latch_give(&box->lock);
    memcpy(receive->data, data, bytes);
    cohi_latch_take(&box->lock);
    receive->users--;
}

/* True when the receive took it, false when it had no room, and is done. */
static bool offer_to(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                     const void *data, const cohi_offer *offer)
{
    cohi_queue_remove(&receive->link);
    receive->stage = COHI_REQUEST_NEW;
    fill_got(receive, envelope);
    if (envelope->bytes > receive->bytes) {
        cohi_request_complete(receive, COH_LENGTH_MISMATCH);
        return false;
    }
    atomic_store_explicit(&receive->peer, envelope->from, memory_order_relaxed);
    if (offer) {
        accept_offer(box, receive, envelope, offer);
        return true;
    }
    copy_to(box, receive, data, envelope->bytes);
    cohi_request_complete(receive, COH_OK);
    return true;
}

/* ---- messages that wait ---- */

static void release(cohi_mailbox *box, int from, uint64_t charge)
{
    if (!cohi_mailbox_by_lane(box->world, from))
        cohi_frame_consumed(box, from, charge);
}

static bool keep(cohi_mailbox *box, const cohi_envelope *envelope, const void *data,
                 const cohi_offer *offer)
{
    size_t bytes = offer ? 0 : envelope->bytes;
    cohi_arrival *arrival = malloc(sizeof *arrival + bytes);
    if (!arrival)
        return false;
    *arrival =
        (cohi_arrival){.envelope = *envelope, .order = ++box->serial, .offered = offer != NULL};
    arrival->charge = cost_of(envelope, arrival->offered);
    arrival->data = (char *)(arrival + 1);
    if (offer) {
        arrival->offer = *offer;
        atomic_fetch_add(&box->offers, 1);
    } else if (bytes > 0) {
        memcpy(arrival->data, data, bytes);
    }
    cohi_partner *partner = &box->partners[envelope->from];
    partner->held += arrival->charge;
    cohi_queue_append(&partner->arrivals, &arrival->link);
    return true;
}

/* Whether it is of one of the team's collectives, up to that of `last`. */
static bool is_of_calls(const coh_team *team, const cohi_envelope *envelope, uint32_t last)
{
    return envelope->tag & COHI_TAG_INTERNAL && (uint64_t)team->number == envelope->team >> 32
           && (int32_t)((uint32_t)envelope->team - team->start) > 0
           && (int32_t)(last - (uint32_t)envelope->team) >= 0;
}

/* Those of a collective have its epoch in place of the team's first: see cohi_message_call_key. */
static bool is_of_team(const coh_team *team, const cohi_envelope *envelope)
{
    if (!(envelope->tag & COHI_TAG_INTERNAL))
        return cohi_message_key(team) == envelope->team;
    return is_of_calls(team, envelope, team->epoch);
}

static bool is_destroyed(coh_world *world, const cohi_envelope *envelope)
{
    pthread_mutex_lock(&world->team_lock);
    const coh_team *team = world->teams;
    while (team && (team->open || !is_of_team(team, envelope)))
        team = team->next;
    pthread_mutex_unlock(&world->team_lock);
    return team != NULL;
}

static void discard(cohi_mailbox *box, cohi_arrival *arrival)
{
    const cohi_envelope *envelope = &arrival->envelope;
    box->partners[envelope->from].held -= cost_of(envelope, arrival->offered);
    release(box, envelope->from, arrival->charge);
    if (arrival->data != (char *)(arrival + 1))
        free(arrival->data);
    free(arrival);
}

/* Whether teams were made or destroyed since the last time. */
static bool teams_changed(cohi_mailbox *box)
{
    coh_world *world = box->world;
    pthread_mutex_lock(&world->team_lock);
    bool changed =
        world->free_teams != box->free_teams_seen || world->team_epoch != box->team_epoch_seen;
    box->free_teams_seen = world->free_teams;
    box->team_epoch_seen = world->team_epoch;
    pthread_mutex_unlock(&world->team_lock);
    return changed;
}

/* Nobody can ask for it any more. An offer stays: its sender still waits. */
static void discard_destroyed(cohi_mailbox *box, cohi_partner *partner)
{
    cohi_link *next, *at = cohi_queue_first(&partner->arrivals);
    for (; at; at = next) {
        cohi_arrival *arrival = (cohi_arrival *)at;
        next = cohi_queue_next(&partner->arrivals, at);
        if (arrival->offered || !is_destroyed(box->world, &arrival->envelope))
            continue;
        cohi_queue_remove(at);
        discard(box, arrival);
    }
}

void cohi_match_discard_calls(cohi_mailbox *box, const coh_team *team, uint32_t last)
{
    cohi_latch_take(&box->lock);
    for (int i = 0; i < team->size; i++) {
        cohi_queue *arrivals = &box->partners[team->ranks[i]].arrivals;
        cohi_link *next, *at = cohi_queue_first(arrivals);
        for (; at; at = next) {
            cohi_arrival *arrival = (cohi_arrival *)at;
            next = cohi_queue_next(arrivals, at);
            if (arrival->taker || !is_of_calls(team, &arrival->envelope, last))
                continue;
            cohi_queue_remove(at);
            atomic_fetch_sub(&box->offers, arrival->offered ? 1 : 0);
            discard(box, arrival);
        }
    }
    cohi_latch_give(&box->lock);
}

static void discard_all_destroyed(cohi_mailbox *box)
{
    if (teams_changed(box))
        for (int rank = 0; rank < box->world->size; rank++)
            discard_destroyed(box, &box->partners[rank]);
}

static bool has_room(cohi_mailbox *box, cohi_partner *partner)
{
    if (COHI_LIKELY(partner->held < COHI_UNEXPECTED_BYTES))
        return true;
    discard_all_destroyed(box);
    return partner->held < COHI_UNEXPECTED_BYTES;
}

bool cohi_match_deliver(cohi_mailbox *box, const cohi_envelope *envelope, const void *data,
                        const cohi_offer *offer, bool bounded)
{
    coh_request *receive;
    while ((receive = find_posted(box, envelope))) {
        if (!offer_to(box, receive, envelope, data, offer))
            continue;
        release(box, envelope->from, cost_of(envelope, offer != NULL));
        return true;
    }
    cohi_partner *partner = &box->partners[envelope->from];
    if (bounded && !has_room(box, partner))
        return false;
    if (!bounded
        && partner->held >= COHI_UNEXPECTED_BYTES / 2) /* it has no credit for long ones left */
        discard_all_destroyed(box);
    return keep(box, envelope, data, offer);
}

coh_request *cohi_match_claim(cohi_mailbox *box, const cohi_envelope *envelope)
{
    coh_request *receive = find_posted(box, envelope);
    if (!receive || envelope->bytes > receive->bytes)
        return NULL;
    cohi_queue_remove(&receive->link);
    fill_got(receive, envelope);
    receive->bytes = envelope->bytes;
    atomic_store_explicit(&receive->peer, envelope->from, memory_order_relaxed);
    release(box, envelope->from, cost_of(envelope, false));
    return receive;
}

static cohi_arrival *first_wanted(const cohi_queue *arrivals, const coh_request *receive)
{
    for (cohi_link *at = cohi_queue_first(arrivals); at; at = cohi_queue_next(arrivals, at))
        if (wants(receive, &((cohi_arrival *)at)->envelope))
            return (cohi_arrival *)at;
    return NULL;
}

static cohi_arrival *find_arrival(cohi_mailbox *box, const coh_request *receive)
{
    int peer = atomic_load_explicit(&((coh_request *)receive)->peer, memory_order_relaxed);
    if (peer != COH_ANY_RANK)
        return first_wanted(&box->partners[peer].arrivals, receive);
    cohi_arrival *first = NULL;
    for (int rank = 0; rank < box->world->size; rank++) {
        cohi_arrival *found = first_wanted(&box->partners[rank].arrivals, receive);
        if (found && (!first || found->order < first->order))
            first = found;
    }
    return first;
}

const cohi_arrival *cohi_match_find(cohi_mailbox *box, const coh_request *request)
{
    return find_arrival(box, request);
}

static void take(cohi_mailbox *box, coh_request *receive, cohi_arrival *arrival)
{
    cohi_queue_remove(&arrival->link);
    atomic_store_explicit(&receive->peer, arrival->envelope.from, memory_order_relaxed);
    if (arrival->absorber) {
        arrival->taker = receive;
        receive->arrival = arrival;
        receive->stage = COHI_REQUEST_TAKING;
        return;
    }
    if (arrival->offered) {
        atomic_fetch_sub(&box->offers, 1);
        accept_offer(box, receive, &arrival->envelope, &arrival->offer);
    } else {
        copy_to(box, receive, arrival->data, arrival->envelope.bytes);
        cohi_request_complete(receive, COH_OK);
    }
    discard(box, arrival);
}

void cohi_match_receive(cohi_mailbox *box, coh_request *request)
{
    cohi_arrival *arrival = find_arrival(box, request);
    if (!arrival) {
        post(box, request);
        return;
    }
    fill_got(request, &arrival->envelope);
    if (arrival->envelope.bytes > request->bytes)
        cohi_request_complete(request, COH_LENGTH_MISMATCH);
    else
        take(box, request, arrival);
}

/* ---- absorbing ---- */

static void absorb(cohi_mailbox *box, cohi_arrival *arrival)
{
    coh_request *absorber = calloc(1, sizeof *absorber);
    char *data = malloc(arrival->envelope.bytes);
    if (!absorber || !data) {
        free(absorber);
        free(data);
        return;
    }
    absorber->world = box->world;
    absorber->op = COHI_OP_RECEIVE;
    absorber->data = arrival->data = data;
    absorber->bytes = arrival->envelope.bytes;
    absorber->arrival = arrival;
    absorber->serial = ++box->serial;
    atomic_store_explicit(&absorber->peer, arrival->envelope.from, memory_order_relaxed);
    arrival->absorber = absorber;
    atomic_fetch_sub(&box->offers, 1);
    accept_offer(box, absorber, &arrival->envelope, &arrival->offer);
}

/* Not what is offered within a collective: its receiver comes to it, or both give it up. */
static void absorb_from(cohi_mailbox *box, cohi_partner *partner)
{
    for (cohi_link *at = cohi_queue_first(&partner->arrivals); at;
         at = cohi_queue_next(&partner->arrivals, at)) {
        cohi_arrival *arrival = (cohi_arrival *)at;
        if (!arrival->offered || arrival->absorber || arrival->envelope.tag & COHI_TAG_INTERNAL)
            continue;
        if (partner->held < COHI_UNEXPECTED_BYTES)
            absorb(box, arrival);
        return;
    }
}

void cohi_match_absorb(cohi_mailbox *box)
{
    for (int rank = 0; rank < box->world->size; rank++)
        absorb_from(box, &box->partners[rank]);
}

/* From here on it is as if it had come with its data. */
void cohi_match_absorbed(cohi_mailbox *box, coh_request *absorber)
{
    cohi_arrival *arrival = absorber->arrival;
    coh_request *taker = arrival->taker;
    uint64_t bytes = arrival->envelope.bytes;
    bool failed = absorber->status != COH_OK;
    coh_status status = absorber->status;
    free(absorber);
    arrival->absorber = NULL;
    arrival->offered = false;
    box->partners[arrival->envelope.from].held += bytes;
    if (!taker && failed) {
        cohi_queue_remove(&arrival->link);
        discard(box, arrival);
    }
    if (!taker)
        return;
    taker->stage = COHI_REQUEST_NEW;
    taker->arrival = NULL;
    if (!failed)
        copy_to(box, taker, arrival->data, bytes);
    cohi_request_complete(taker, status);
    discard(box, arrival);
}

/* ---- taking back, and the end ---- */

void cohi_match_withdraw(cohi_mailbox *box, coh_request *request)
{
    if (request->stage == COHI_REQUEST_POSTED)
        cohi_queue_remove(&request->link);
    if (request->stage == COHI_REQUEST_TAKING) {
        cohi_arrival *arrival = request->arrival;
        arrival->taker = NULL;
        cohi_queue_prepend(&box->partners[arrival->envelope.from].arrivals, &arrival->link);
    }
    request->stage = COHI_REQUEST_NEW;
}

static void free_arrival(cohi_arrival *arrival)
{
    if (arrival->data != (char *)(arrival + 1))
        free(arrival->data);
    free(arrival->absorber);
    free(arrival);
}

void cohi_match_close(cohi_mailbox *box)
{
    for (int rank = 0; rank < box->world->size; rank++) {
        cohi_queue *arrivals = &box->partners[rank].arrivals;
        cohi_link *at;
        while ((at = cohi_queue_first(arrivals))) {
            cohi_queue_remove(at);
            free_arrival((cohi_arrival *)at);
        }
    }
}
