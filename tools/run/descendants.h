/*
 * descendants.h - the processes below this one.
 *
 * Meant for a subreaper: an orphan among its descendants becomes its child. So a process that kills
 * its children, again and again until it has none, has killed all of them, however they detached
 * themselves.
 *
 * The children are listed by /proc. Where that is not mounted, the kernel is asked of one process
 * number after the other whether it is a child's: a few microseconds for each process that was
 * started since, and up to a second where the numbers have gone round.
 */
#ifndef COHI_TOOLS_DESCENDANTS_H
#define COHI_TOOLS_DESCENDANTS_H

#include <sys/types.h>

/* The children of this process, zombies too; the caller frees *list. How many. */
int cohi_children_list(pid_t **list);

/* Whether `pid` is one of them. */
int cohi_children_has(pid_t pid);

/* Sends `signal` to the children of this process, except those in spared[count]. To how many. */
int cohi_children_signal(int signal, const pid_t *spared, int count);

/* Sends `signal` to all descendants of this process, as far as they are there when it looks;
 * without /proc to its children only. */
void cohi_descendants_signal(int signal);

#endif
