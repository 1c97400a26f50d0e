/*
 * frame.h - messages as frames on the engine's channel, for peers that are not mapped.
 *
 * Short messages travel whole, under credit: the sender knows how many bytes the receiver still
 * takes unasked. Long ones are announced; the receiver accepts when it has a buffer, and the data
 * follows in pieces, from the one's memory straight to the other's. An upcall must not send: what is
 * to be answered is noted, and sent by the next call that makes progress.
 */
#ifndef COHI_CORE_MESSAGE_FRAME_H
#define COHI_CORE_MESSAGE_FRAME_H

#include "core/message/mailbox.h"

/* Sends or announces; out_lock is held, lock is not. False: no credit, or as much is in flight to
 * the peer as may be. Otherwise the request is complete, moving, or has failed. */
bool cohi_frame_issue(cohi_mailbox *box, coh_request *send, int to);

/* Accepts an offer that came by frame; lock held. */
void cohi_frame_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                       const cohi_offer *offer);

/* An arrival that came by frame is no longer held; lock held. */
void cohi_frame_consumed(cohi_mailbox *box, int from, uint64_t cost);

/* As cohi_large_step. */
bool cohi_frame_step(cohi_mailbox *box, coh_request *request);

/* Tells a peer that this rank leaves. */
void cohi_frame_leave(cohi_mailbox *box, int to);

/* Sends what upcalls have noted, and ends the parcels that the engine is done with. */
void cohi_frame_flush(cohi_mailbox *box);

/* Takes what came by channel; any kind but COHI_FRAME_CONTROL (core/health/control.h). */
void cohi_frame_deliver(coh_world *world, int from, const void *bytes, size_t count);

#endif
