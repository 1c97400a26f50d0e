/*
 * match.h - which message goes to which receive: the first of its source, team and tag, in the
 * order of sending; the first receive that was posted for it.
 *
 * Everything here is called with the mailbox's lock held.
 */
#ifndef COHI_CORE_MESSAGE_MATCH_H
#define COHI_CORE_MESSAGE_MATCH_H

#include "core/message/mailbox.h"

/*
 * A message has come: with its data, or (data NULL) on offer. It goes to a posted receive or
 * waits. A receive without room for it ends with COH_LENGTH_MISMATCH, and the message goes on to
 * the next. False: it would have to wait, and there is no room for it (bounded), or no memory;
 * nothing has changed.
 */
bool cohi_match_deliver(cohi_mailbox *box, const cohi_envelope *envelope, const void *data,
                        const cohi_offer *offer, bool bounded);

/* The receive that a message is for which begins to come, no longer posted and `bytes` as long as the
 * message; NULL where none is posted, or the first one has no room. Its credit is given back. */
coh_request *cohi_match_claim(cohi_mailbox *box, const cohi_envelope *envelope);

/* Gives a receive what is there for it, or posts it. */
void cohi_match_receive(cohi_mailbox *box, coh_request *request);

/* What a receive would get, or NULL. */
const cohi_arrival *cohi_match_find(cohi_mailbox *box, const coh_request *request);

/*
 * Brings offered messages here without being asked, into memory of this rank's own. For a rank
 * that is held up in a send: the others may be held up too, and none would come to its receive. One
 * message of each peer beyond COHI_UNEXPECTED_BYTES.
 */
void cohi_match_absorb(cohi_mailbox *box);

/* A request that absorbs has all of its data. */
void cohi_match_absorbed(cohi_mailbox *box, coh_request *absorber);

/* Takes a receive back out of wherever it waits. */
void cohi_match_withdraw(cohi_mailbox *box, coh_request *request);

/* Frees all arrivals. */
void cohi_match_close(cohi_mailbox *box);

/* Frees what has come of messages within collectives of the team, up to that of the epoch `last`, in
 * which nobody takes part any more. */
void cohi_match_discard_calls(cohi_mailbox *box, const coh_team *team, uint32_t last);

#endif
