/*
 * device.h - the engine for heaps on a card, beside the world's own.
 *
 * It is opened by all ranks together when the first such heap is made, and stays until the world ends. What
 * works on symmetric memory asks which of the two serves a spot.
 */
#ifndef COHI_CORE_HEAP_DEVICE_H
#define COHI_CORE_HEAP_DEVICE_H

#include "core/heap/heap.h"
#include "core/team/entry.h"

/* Collective, within a call of the world's team that agrees on `record`: after it all ranks have the
 * engine, or none and all were told why. `device` is the number of this rank's card, or -1. */
coh_status cohi_device_open(coh_world *world, const cohi_entry *entry, cohi_record *record,
                            int device);

/* With the endpoint of the world's own; not collective. */
void cohi_device_close(coh_world *world);

/* Whether the spot's heap is on a card. */
bool cohi_device_serves(const coh_world *world, cohi_spot spot);

/* What serves the spot. */
cohi_server cohi_device_server(const coh_world *world, cohi_spot spot);

/* Copies between any memory of this process, of the host or of a card, and waits for the end. The world
 * has a device. */
coh_status cohi_device_copy(coh_world *world, const char *call, cohi_opcode op, void *target,
                            const void *source, size_t bytes);

/* The same for a few words of this rank's own heap, for who waits already: it looks until they are here,
 * and nothing else is done meanwhile. */
coh_status cohi_device_read(coh_world *world, const char *call, const void *words, size_t bytes,
                            void *target);

/* Waits for an op of the engine for cards, likewise, and returns how it ended. */
coh_status cohi_device_settle(cohi_server server, cohi_op *op);

/* COH_INVALID_ARGUMENT when `pointer`, which is called `what`, is memory of a card. */
coh_status cohi_device_refuse(const coh_world *world, const char *call, const char *what,
                              const void *pointer);

#endif
