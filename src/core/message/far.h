/*
 * far.h - moving announced messages between ranks that are not mapped, from the one's memory straight
 * to the other's.
 *
 * The announcement tells where in the sender's heap the data is, if it is there; the receiver, when it
 * has a buffer, decides how it comes:
 *
 *   put     its buffer is in its heap: it tells where, and the sender puts the data there;
 *   get     the data is in the sender's heap: it gets it, and tells the sender that it has;
 *   pieces  neither, or the engine has no one-sided operations: it accepts, and the data follows in
 *           frames (core/message/frame.h).
 *
 * That all of a put is there is told by a word, the landing, which the sender puts behind the data with
 * a fence between. A frame would not do, as the channel is not ordered with puts; nor a quiet before
 * the frame, as it waits for all peers, and one that is stopped would hold up messages to the others.
 */
#ifndef COHI_CORE_MESSAGE_FAR_H
#define COHI_CORE_MESSAGE_FAR_H

#include "core/message/mailbox.h"

/* Makes an announced send one that moves; its serial and place are set. Lock held. */
void cohi_far_announce(cohi_mailbox *box, coh_request *send);

/* Makes a send one that moves, of which the engine gets all at once, unasked. Lock held. */
void cohi_far_lend(cohi_mailbox *box, coh_request *send);

/* A receive whose message comes unasked, and is received into its buffer. Lock held. */
void cohi_far_claim(cohi_mailbox *box, coh_request *receive);

/* Accepts the offer of a peer that is not mapped for a receive; lock held. */
void cohi_far_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                     const cohi_offer *offer);

/* A request that moves, by its serial, or NULL: it was given up. Lock held. */
coh_request *cohi_far_find(cohi_mailbox *box, cohi_opcode op, int peer, uint64_t serial);

/* As cohi_large_step. */
bool cohi_far_step(cohi_mailbox *box, coh_request *request);

/* Ends a request that moves; lock held. */
void cohi_far_end(cohi_mailbox *box, coh_request *request, coh_status status);

/* A request that moves is given up; lock held. What the engine has of it is to be recalled
 * (core/message/parcel.h); what the other side has begun to put may still come. */
void cohi_far_stop(cohi_mailbox *box, coh_request *request);

#endif
