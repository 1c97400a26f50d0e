/*
 * image.h - whether a process still runs the program that joined.
 *
 * A program that is replaced by exec(3) keeps its process: a wait for the end of the process
 * does not notice. Its threads do end. The kernel marks words that a thread has in its
 * list of robust locks (set_robust_list(2)) when it ends, in whatever way; the watcher, which lives
 * as long as a world is open, has one in each world's slot.
 */
#ifndef COHI_CORE_WORLD_IMAGE_H
#define COHI_CORE_WORLD_IMAGE_H

#include "core/world/world.h"

/* Called by the watcher first: from now on its end is the end of the program. */
void cohi_image_begin(void);

/* Likewise, for each world. Does nothing the second time. */
void cohi_image_hold(coh_world *world);

/* The world is about to be closed. Not while cohi_image_hold runs. */
void cohi_image_release(coh_world *world);

/* Whether the program is gone that held the slot; its process may have ended as well. */
bool cohi_image_is_gone(cohi_slot *slot);

#endif
