/*
 * native.h - collectives of the library behind the engine (the group `collective` of engine.h), as
 * rows beside core's own.
 */
#ifndef COHI_COLL_NATIVE_H
#define COHI_COLL_NATIVE_H

#include "coll/call/algorithm.h"
#include "coll/call/tuned.h"
#include "core/world/world.h"

/* Takes what rank 0's engine offers into the tuning that travels to all ranks. */
void cohi_native_heed(const cohi_engine *engine, cohi_endpoint *endpoint,
                      unsigned char bytes[COHI_TUNING_BYTES]);

/* Whether the call reduces nothing, or a type, and in a way, that the library serves. */
bool cohi_native_reduces(const cohi_call *call);

/* Whether the library may still be used in the team: after a failure its members may be at different calls of it,
 * each of which waits for the others. COH_TRANSPORT, before the members meet. */
coh_status cohi_native_check(const cohi_call *call);

#endif
