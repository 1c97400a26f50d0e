/*
 * fork.h - telling a forked child from its parent.
 *
 * Threads do not cross a fork, and what they had locked stays locked: in a child, streams, events
 * and copiers of the parent can only be refused.
 */
#ifndef COHI_DEVICE_FORK_H
#define COHI_DEVICE_FORK_H

#include <cohort-ml.h>

/* How many forks lie between the start of the program and this process; kept with what is made. */
unsigned cohi_fork_count(void);

/* COH_FORKED when `what` was made by a process that this one was forked from. */
coh_status cohi_fork_check(const char *call, const char *what, unsigned made);

#endif
