/* check.h - what can be seen to be wrong with a call before anything moves. */
#ifndef COHI_COLL_CHECK_H
#define COHI_COLL_CHECK_H

#include "coll/call/gear.h"

/* Checks all arguments, and sets element, firsts, source_bytes, target_bytes and bytes. The error
 * names the argument and its value. The team has its gear. */
coh_status cohi_check(cohi_call *call);

/* The same but for the buffers, which are not looked at. Where blocks have no firsts theirs are stored
 * in `firsts`, [size] for each side; the team need not have its gear. */
coh_status cohi_check_form(cohi_call *call, size_t *const firsts[2]);

/* What cohi_check adds to that: the buffers. */
coh_status cohi_check_buffers(cohi_call *call);

/* Gives a call that was found good other buffers. False: they are wrong, and the call is void; what
 * is wrong with them a full check says. */
bool cohi_check_exchange(cohi_call *call, const char *source, char *target);

#endif
