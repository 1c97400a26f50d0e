/*
 * event.h - points in streams, as streams record and await them.
 *
 * Recordings of an event are numbered as they are enqueued. `happened` is the number of the last
 * one that was reached; a waiter waits until it is at least the number that it was given.
 */
#ifndef COHI_DEVICE_EVENT_H
#define COHI_DEVICE_EVENT_H

#include "device/device.h"
#include "device/failure.h"

/* COH_OK for an event that this process can use. */
coh_status cohi_event_check(const char *call, const coh_event *event);

/* A recording is about to be enqueued: its number. The two calls that follow are made once for it,
 * in this order, also where it fails or its stream ends before it: the event counts on them. */
uint64_t cohi_event_enqueued(coh_event *event);

/* It was submitted, so it is sure to come; or it is sure not to. */
void cohi_event_submitted(coh_event *event, uint64_t number);

/* It was reached, or (failure is not NULL) will never be. */
void cohi_event_happened(coh_event *event, uint64_t number, const cohi_failure *failure);

/* The number of the last recording, if there is one and it was submitted. */
coh_status cohi_event_awaitable(const char *call, coh_event *event, uint64_t *number);

/* Waits for that recording or a later one; its failure, if it failed. */
coh_status cohi_event_await(coh_event *event, uint64_t number);

#endif
