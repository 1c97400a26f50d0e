/* message.h - making requests, for the calls that send and receive. */
#ifndef COHI_CORE_MESSAGE_MESSAGE_H
#define COHI_CORE_MESSAGE_MESSAGE_H

#include "core/message/mailbox.h"

/* A request to send to, or receive from, member `index` of the team (or COH_ANY_RANK). */
void cohi_message_prepare(coh_request *request, coh_team *team, cohi_opcode op, int index,
                          uint32_t tag, void *data, size_t bytes);

/* Starts it. */
void cohi_message_start(coh_request *request);

/* The error for a request whose peer, or for COH_ANY_RANK any member of the team, is lost. */
coh_status cohi_message_standing(const coh_request *request, const char *call);

/* Whether a message that the receive would take is here; then request->got is that message. */
bool cohi_message_find(coh_request *request);

/* Adds to the error message of a failed call which message it was for. */
coh_status cohi_message_tell(const coh_request *request, coh_status status);

/* What came, with the source as an index in the team. */
void cohi_message_got(const coh_request *request, coh_message *got);

#endif
