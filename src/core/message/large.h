/*
 * large.h - moving announced messages between mapped ranks with a single copy.
 *
 * The sender's cell tells where the data is; the receiver, when it has a buffer for it, says on
 * the ticket where that is. Then both sides claim chunks of the message in turn and copy them,
 * each if it reaches the other's buffer: in the other's heap, anywhere in the same process, or
 * through the kernel (process_vm_readv). Where neither does, the message is streamed through
 * slots of the lane.
 *
 * Measured on two cores (GB/s, receiver alone / both): 64 KiB of heap 16 / 35, 1 MiB 19 / 37; of
 * private memory 9 / 15 and 12 / 20, where a stream through the lane makes 9 and 10.
 */
#ifndef COHI_CORE_MESSAGE_LARGE_H
#define COHI_CORE_MESSAGE_LARGE_H

#include "core/message/mailbox.h"

/* Announces a send; out_lock is held, lock is not. False: no ticket or no room in the lane. */
bool cohi_large_announce(cohi_mailbox *box, coh_request *send, int to);

/* The offer in a cell of the peer's lane. */
cohi_offer cohi_large_offer(const cohi_cell *cell);

/* Accepts the offer of a mapped peer for a receive; lock held. */
void cohi_large_accept(cohi_mailbox *box, coh_request *receive, const cohi_envelope *envelope,
                       const cohi_offer *offer);

/*
 * Does one step for a moving request; lock held. True when it did something; then the lock was
 * let go of, perhaps, and the queue may have changed.
 */
bool cohi_large_step(cohi_mailbox *box, coh_request *request);

/* Whether the receiver has accepted it, so that it goes on as both sides make calls. */
bool cohi_large_is_accepted(const coh_request *request);

/* Stops the other side from claiming more; for a request that is given up. */
void cohi_large_stop(coh_request *request);

/* Whether the other side may still be copying a chunk that it had claimed before. */
bool cohi_large_is_copying(const coh_request *request);

#endif
