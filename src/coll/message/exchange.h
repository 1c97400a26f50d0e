/*
 * exchange.h - messages between the members of a team within one collective call: what algorithms
 * that map nothing are made of. They run on every engine.
 *
 * Messages from one member to another are received in the order in which they were sent. Lengths
 * are known on both sides; a message of zero bytes is not sent, and a receive of zero bytes is done
 * at once.
 */
#ifndef COHI_COLL_MESSAGE_EXCHANGE_H
#define COHI_COLL_MESSAGE_EXCHANGE_H

#include "coll/call/call.h"
#include "core/message/mailbox.h"

/* Start; the request and the data stay where they are until it is finished. */
void cohi_exchange_send(cohi_call *call, coh_request *request, int to, const void *data,
                        size_t bytes);
void cohi_exchange_receive(cohi_call *call, coh_request *request, int from, void *data,
                           size_t bytes);

/* Waits for `count` requests that were started; the first failure. Always waits for all, or takes
 * them back, so that the requests may go out of scope. */
coh_status cohi_exchange_finish(cohi_call *call, coh_request *requests, int count);

/* The same, where each of them is a beat of its own. */
coh_status cohi_exchange_finish_each(cohi_call *call, coh_request *requests, int count);

/* Sends to one member while receiving from another (or the same). */
coh_status cohi_exchange_both(cohi_call *call, int to, const void *out, size_t out_bytes, int from,
                              void *in, size_t in_bytes);

#endif
