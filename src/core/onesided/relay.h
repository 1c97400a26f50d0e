/*
 * relay.h - operations on a heap on a card of another host.
 *
 * No engine reaches such memory yet, so the rank that has it does the work: what is asked of it comes on
 * the channel of the world's own engine, is done by its engine for cards, and is answered, also while
 * the rank computes. Bytes go through memory of the host, in pieces. Each operation is over when the
 * call returns, so there is nothing to order or complete.
 */
#ifndef COHI_CORE_ONESIDED_RELAY_H
#define COHI_CORE_ONESIDED_RELAY_H

#include "core/onesided/atomic.h"
#include "core/onesided/rma.h"

/* Kinds of frames; those below are others' (core/health/control.h, core/message/frame.h). */
enum { COHI_FRAME_RELAY = 16, COHI_FRAME_RELAYED = 17 };

/* For a world on several hosts; without one, the rest does nothing. */
coh_status cohi_relay_open(coh_world *world);
void cohi_relay_close(coh_world *world);

/* Whether it is the way to that rank's copy of the spot. */
bool cohi_relay_serves(const coh_world *world, int rank, cohi_spot spot);

/* Checked transfers and atomics. */
coh_status cohi_relay_transfer(coh_world *world, const cohi_transfer *transfer);
coh_status cohi_relay_atomic(coh_world *world, const cohi_amo *amo);

/* Takes what came by channel; from any thread. */
void cohi_relay_deliver(coh_world *world, int from, const void *bytes, size_t count);

/* Does what others have asked for. */
void cohi_relay_serve(coh_world *world);

#endif
