/*
 * watch.h - the watcher: one thread a process, asleep on the descriptors of all peer processes.
 *
 * It starts with the first world that has such peers and ends with the last.
 */
#ifndef COHI_CORE_HEALTH_WATCH_H
#define COHI_CORE_HEALTH_WATCH_H

#include "core/world/world.h"

coh_status cohi_watch_add(coh_world *world);

/* After it returns the watcher does not touch the world. */
void cohi_watch_remove(coh_world *world);

/* Around a fork, so that the child's copy of the watcher's state is whole. */
void cohi_watch_hold(void);
void cohi_watch_release(void);

/* Makes the watcher look now. Any thread may call it. */
void cohi_watch_wake(void);

#endif
