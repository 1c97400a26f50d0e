/*
 * events.h - what an engine has to tell core, kept until no lock of the engine's is held.
 *
 * Whoever moves bytes adds events with its locks held; cohi_events_tell makes the upcalls, by one thread
 * at a time and in order. `rings` says that an op is done or memory has changed, `stores` that memory of a heap has,
 * `attends` that core may go on with its messages.
 */
#ifndef COHI_ENGINE_MODULES_EVENTS_H
#define COHI_ENGINE_MODULES_EVENTS_H

#include "engine/engine.h"

#include <pthread.h>

typedef enum cohi_event_kind {
    COHI_EVENT_DELIVERED,
    COHI_EVENT_LEFT,
    COHI_EVENT_LOST,
    COHI_EVENT_SILENT
} cohi_event_kind;

typedef struct cohi_event {
    struct cohi_event *next;
    cohi_event_kind kind;
    int rank;
    cohi_loss loss;
    uint64_t silent_ns;
    size_t count;
    size_t room;         /* after the event itself */
    const void *message; /* its bytes */
    void *owner;         /* for `release` */
    void (*release)(
        struct cohi_event *event); /* when it was told; no lock held. NULL: it is freed */
} cohi_event;

/* A message as it came: its head and its body are apart. */
typedef struct cohi_event_message {
    const char *head;
    size_t head_bytes;
    const char *body;
    size_t body_bytes;
} cohi_event_message;

typedef struct cohi_events {
    const cohi_upcalls *upcalls;
    void *world;
    pthread_mutex_t lock; /* of the list; no other is taken inside */
    cohi_event *first, *last;
    cohi_event *spare; /* with room for a long message each */
    int spares;
    atomic_int pending;
    pthread_mutex_t telling; /* held by the one that tells them */
    atomic_int rings;
    atomic_int stores;
    atomic_int attends;
} cohi_events;

void cohi_events_open(cohi_events *events, const cohi_upcalls *upcalls, void *world);
void cohi_events_close(cohi_events *events);

/* A new event with room for so many bytes, which are its message; NULL: no memory. */
cohi_event *cohi_event_new(cohi_events *events, cohi_event_kind kind, int rank, size_t count);

/* The room of an event that was made so. */
static inline void *cohi_event_bytes(cohi_event *event)
{
    return event + 1;
}

/* Takes the event. NULL is ignored: silence is told again, and the end of a rank is found by whoever
 * needs it. */
void cohi_events_add(cohi_events *events, cohi_event *event);

/*
 * A message that need not be kept: where core has a buffer for what follows its head, and nothing is to be told before
 * it, the body is copied there. False: it is to be added as an event. Whoever adds events holds a lock of the engine's,
 * and so does the caller: the same. Core's upcalls claim, borrow and give_back are made with it held.
 */
bool cohi_events_place(cohi_events *events, int rank, const cohi_event_message *message);

/* Whether something has happened that a caller may wait for. */
static inline bool cohi_events_are_there(cohi_events *events)
{
    return atomic_load_explicit(&events->pending, memory_order_relaxed) != 0
           || atomic_load_explicit(&events->rings, memory_order_relaxed) != 0
           || atomic_load_explicit(&events->stores, memory_order_relaxed) != 0;
}

/* A peer has written into that segment: core is to be told. */
void cohi_events_note_write(cohi_events *events, unsigned segment);

/* Core is told that an op is done or memory has changed, if so. No lock held. */
void cohi_events_ring(cohi_events *events);

/* Core is told of all events. No lock held, of core's neither. */
void cohi_events_tell(cohi_events *events);

/* Lets core move messages, if something came by which it may. From a thread of the engine. */
void cohi_events_attend(cohi_events *events);

#endif
