/*
 * fetch.h - private memory of other members, read and written through the kernel
 * (process_vm_readv).
 *
 * One copy instead of two through the staging areas, where the kernel allows it. Every member must
 * know that all can, so each looks once, in a call that is still staged, and posts what it found in
 * those that follow.
 */
#ifndef COHI_COLL_MAPPED_FETCH_H
#define COHI_COLL_MAPPED_FETCH_H

#include "coll/call/gear.h"

/* Whether all members posted that they can; the same on all of them. Looks, if this one does not
 * know of itself. After cohi_place_enter. */
bool cohi_fetch_agreed(cohi_call *call);

/* All_reduce once the members have entered and agreed. */
coh_status cohi_fetch_all_reduce(cohi_call *call);

#endif
