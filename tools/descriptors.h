/*
 * descriptors.h - the open descriptors of this process.
 *
 * A sandbox may refuse a call that the kernel has, with any error. Each of these functions then has
 * another way.
 */
#ifndef COHI_TOOLS_DESCRIPTORS_H
#define COHI_TOOLS_DESCRIPTORS_H

#include <poll.h>

/* The open descriptors; the caller frees *list, which is NULL when there is no memory. How many. */
int cohi_descriptors_list(int **list);

/* Closes all descriptors but the `count` in keep[], which it sorts. 0, or an errno. */
int cohi_descriptors_keep(int *keep, int count);

/*
 * poll(2). Where that is refused, it sleeps for a few milliseconds, or timeout_ms if that is less,
 * and reports everything as ready: use it with descriptors that do not block.
 */
int cohi_descriptors_poll(struct pollfd *polls, nfds_t count, int timeout_ms);

#endif
