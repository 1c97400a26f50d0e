#include "core/message/parcel.h"

#include "core/message/frame.h"

#include <stdlib.h>

#define ALL_PARCELS ((UINT32_C(1) << COHI_PARCELS) - 1)

/* ---- taking and giving back ---- */

static bool make_room(cohi_parcel *parcel)
{
    if (!parcel->copy)
        parcel->copy = malloc(COHI_PARCEL_COPY);
    return parcel->copy != NULL;
}

coh_status cohi_parcel_take(cohi_mailbox *box, int peer, coh_request *request, cohi_parcel **parcel)
{
    cohi_partner *partner = &box->partners[peer];
    *parcel = NULL;
    if (!partner->parcels)
        partner->parcels = calloc(COHI_PARCELS, sizeof *partner->parcels);
    if (!partner->parcels)
        return COH_NO_MEMORY;
    uint32_t idle = ~partner->busy_parcels & ALL_PARCELS;
    int kept = request ? COHI_PARCELS - COHI_PARCELS_LONG : 0;
    if (__builtin_popcount(idle) <= kept)
        return COH_OK;
    cohi_parcel *found = &partner->parcels[__builtin_ctz(idle)];
    if (!request && !make_room(found))
        return COH_NO_MEMORY;
    partner->busy_parcels |= idle & -idle;
    found->op = (cohi_op)COHI_NEW_OP;
    found->peer = peer;
    found->recalled = false;
    found->request = request;
    found->cost = 0;
    found->returned = 0;
    *parcel = found;
    return COH_OK;
}

void cohi_parcel_give(cohi_mailbox *box, cohi_parcel *parcel)
{
    cohi_partner *partner = &box->partners[parcel->peer];
    partner->busy_parcels &= ~(UINT32_C(1) << (parcel - partner->parcels));
}

/* ---- in flight ---- */

static bool is_done(cohi_parcel *parcel)
{
    return atomic_load_explicit(&parcel->op.done, memory_order_acquire);
}

static void end(cohi_mailbox *box, cohi_parcel *parcel)
{
    coh_request *request = parcel->request;
    cohi_queue_remove(&parcel->link);
    atomic_fetch_sub(&box->work, 1);
    cohi_parcel_give(box, parcel);
    if (parcel->op.status != COH_OK) {
        atomic_fetch_add(&box->partners[parcel->peer].credit, parcel->cost);
        cohi_frame_consumed(box, parcel->peer, parcel->returned);
    }
    if (!request)
        return;
    request->move.flying--;
    if (request->move.status == COH_OK)
        request->move.status = parcel->op.status;
}

void cohi_parcel_launch(cohi_mailbox *box, cohi_parcel *parcel)
{
    cohi_queue_append(&box->flying, &parcel->link);
    atomic_fetch_add(&box->work, 1);
    if (parcel->request)
        parcel->request->move.flying++;
    if (is_done(parcel))
        end(box, parcel);
}

void cohi_parcel_reap(cohi_mailbox *box)
{
    cohi_link *next, *at = cohi_queue_first(&box->flying);
    for (; at; at = next) {
        cohi_parcel *parcel = (cohi_parcel *)at;
        next = cohi_queue_next(&box->flying, at);
        if (!parcel->recalled && is_done(parcel))
            end(box, parcel);
    }
}

static cohi_parcel *find(cohi_mailbox *box, const coh_request *request)
{
    cohi_link *at = cohi_queue_first(&box->flying);
    while (at && ((cohi_parcel *)at)->request != request)
        at = cohi_queue_next(&box->flying, at);
    return (cohi_parcel *)at;
}

/* Cancelling makes upcalls, which take the lock. */
void cohi_parcel_recall(cohi_mailbox *box, const coh_request *request)
{
    const coh_world *world = box->world;
    cohi_parcel *parcel;
    cohi_latch_take(&box->lock);
    while ((parcel = find(box, request))) {
        parcel->recalled = true;
        cohi_latch_give(&box->lock);
        if (!is_done(parcel))
            world->engine->lifecycle->cancel(world->endpoint, &parcel->op);
        cohi_latch_take(&box->lock);
        end(box, parcel);
    }
    cohi_latch_give(&box->lock);
}

void cohi_parcel_close(cohi_mailbox *box)
{
    for (int rank = 0; rank < box->world->size; rank++) {
        cohi_parcel *parcels = box->partners[rank].parcels;
        for (int i = 0; parcels && i < COHI_PARCELS; i++)
            free(parcels[i].copy);
        free(parcels);
    }
}
