/* check.h - what can be seen to be wrong with a call before anything moves. */
#ifndef COHI_COLL_CHECK_H
#define COHI_COLL_CHECK_H

#include "coll/gear.h"

/* Checks all arguments, and sets element, firsts, source_bytes, target_bytes and bytes. The error
 * names the argument and its value. The team has its gear. */
coh_status cohi_check(cohi_call *call);

/* Only what a call that is like an earlier one in all but its buffers can have wrong. */
coh_status cohi_check_buffers(const cohi_call *call);

#endif
