/*
 * claim.h - long messages that an engine receives straight into their buffers, while they come.
 *
 * Between hosts a message that is not claimed is put together, or kept, in memory of the engine's, and
 * copied from there. Where a receive is posted for it when its head comes, the receive is *claimed*: from
 * then on the engine borrows its buffer for each part that it reads. In between the receive may be given
 * up; the rest of the message is dropped then.
 *
 * All three are upcalls (engine/engine.h), and take the mailbox's lock. No slot of the engine's is called with that
 * lock held, so that an engine may call these three with its own.
 */
#ifndef COHI_CORE_MESSAGE_CLAIM_H
#define COHI_CORE_MESSAGE_CLAIM_H

#include "core/message/mailbox.h"

uint64_t cohi_claim_begin(void *world, int from, const cohi_arriving *message, size_t *head);
void *cohi_claim_borrow(void *world, int from, uint64_t claim, size_t bytes);
void cohi_claim_return(void *world, int from, uint64_t claim, size_t come);

#endif
