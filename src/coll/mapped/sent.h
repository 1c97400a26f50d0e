/*
 * sent.h - how members of a variable all_to_all learn what the others send, and where it lies.
 */
#ifndef COHI_COLL_MAPPED_SENT_H
#define COHI_COLL_MAPPED_SENT_H

#include "coll/mapped/buffers.h"

/*
 * Enters an all_to_all with the places of this member's buffers and, in its scratch, what it sends
 * to whom; waits for all and compares that with what this member expects. COH_MISMATCH with both
 * counts where they differ.
 */
coh_status cohi_parts_enter(cohi_call *call);

/* The element of member `index`'s source at which the block for this member begins. */
size_t cohi_parts_first(const cohi_call *call, int index);

#endif
