#include "engine/modules/events.h"

#include <stdlib.h>
#include <string.h>

void cohi_events_open(cohi_events *events, const cohi_upcalls *upcalls, void *world)
{
    *events = (cohi_events){.upcalls = upcalls, .world = world};
    pthread_mutex_init(&events->lock, NULL);
    pthread_mutex_init(&events->telling, NULL);
}

/* Room for long messages is kept: what the allocator gives back to the kernel has to be mapped again for the next. */
enum { LONG_FROM = 4096, LONG_BYTES = 64 << 10, SPARES = 64 };

static cohi_event *take_spare(cohi_events *events)
{
    pthread_mutex_lock(&events->lock);
    cohi_event *event = events->spare;
    if (event) {
        events->spare = event->next;
        events->spares--;
    }
    pthread_mutex_unlock(&events->lock);
    return event;
}

/* False: there are enough. */
static bool keep_spare(cohi_events *events, cohi_event *event)
{
    pthread_mutex_lock(&events->lock);
    bool kept = event->room == LONG_BYTES && events->spares < SPARES;
    if (kept) {
        event->next = events->spare;
        events->spare = event;
        events->spares++;
    }
    pthread_mutex_unlock(&events->lock);
    return kept;
}

cohi_event *cohi_event_new(cohi_events *events, cohi_event_kind kind, int rank, size_t count)
{
    bool is_long = count >= LONG_FROM && count <= LONG_BYTES;
    size_t room = is_long ? LONG_BYTES : count;
    cohi_event *event = is_long ? take_spare(events) : NULL;
    if (!event)
        event = malloc(sizeof *event + room);
    if (event)
        *event = (cohi_event){.kind = kind,
                              .rank = rank,
                              .count = count,
                              .room = room,
                              .message = cohi_event_bytes(event)};
    return event;
}

void cohi_events_add(cohi_events *events, cohi_event *event)
{
    if (!event)
        return;
    pthread_mutex_lock(&events->lock);
    if (events->last)
        events->last->next = event;
    else
        events->first = event;
    events->last = event;
    atomic_store(&events->pending, 1);
    pthread_mutex_unlock(&events->lock);
}

/* All behind the first `skipped` bytes. */
static void copy_from(const cohi_event_message *message, size_t skipped, char *place)
{
    size_t of_head = skipped < message->head_bytes ? message->head_bytes - skipped : 0;
    size_t at = skipped + of_head - message->head_bytes;
    memcpy(place, message->head + message->head_bytes - of_head, of_head);
    memcpy(place + of_head, message->body + at, message->body_bytes - at);
}

static bool claim_place(cohi_events *events, int rank, const cohi_event_message *message)
{
    const cohi_upcalls *upcalls = events->upcalls;
    size_t skipped = 0, count = message->head_bytes + message->body_bytes;
    const cohi_arriving arriving = {
        .bytes = message->head, .here = message->head_bytes, .count = count};
    uint64_t claim = upcalls->claim(events->world, rank, &arriving, &skipped);
    if (!claim)
        return false;
    char *place = upcalls->borrow(events->world, rank, claim, count - skipped);
    if (place) {
        copy_from(message, skipped, place);
        upcalls->give_back(events->world, rank, claim, count - skipped);
    }
    return true;
}

/* Nobody tells an event now, nor is one added until this has returned: so it is in order. */
bool cohi_events_place(cohi_events *events, int rank, const cohi_event_message *message)
{
    if (!events->upcalls->claim || atomic_load(&events->pending)
        || pthread_mutex_trylock(&events->telling) != 0)
        return false;
    bool placed = claim_place(events, rank, message);
    pthread_mutex_unlock(&events->telling);
    if (placed) {
        atomic_store_explicit(&events->rings, 1, memory_order_relaxed);
        atomic_store_explicit(&events->attends, 1, memory_order_relaxed);
    }
    return placed;
}

static cohi_event *take(cohi_events *events)
{
    pthread_mutex_lock(&events->lock);
    cohi_event *event = events->first;
    if (event)
        events->first = event->next;
    if (!events->first) {
        events->last = NULL;
        atomic_store(&events->pending, 0);
    }
    pthread_mutex_unlock(&events->lock);
    return event;
}

static void release(cohi_events *events, cohi_event *event)
{
    if (event->release)
        event->release(event);
    else if (!keep_spare(events, event))
        free(event);
}

static void tell_one(cohi_events *events, const cohi_event *event)
{
    const cohi_upcalls *upcalls = events->upcalls;
    switch (event->kind) {
    case COHI_EVENT_DELIVERED:
        upcalls->deliver(events->world, event->rank, event->message, event->count);
        atomic_store_explicit(&events->attends, 1, memory_order_relaxed);
        break;
    case COHI_EVENT_LEFT:
        upcalls->left(events->world, event->rank);
        break;
    case COHI_EVENT_LOST:
        upcalls->lost(events->world, event->rank, event->loss, 0);
        break;
    case COHI_EVENT_SILENT:
        upcalls->silent(events->world, event->rank, event->silent_ns);
        break;
    }
}

void cohi_events_note_write(cohi_events *events, unsigned segment)
{
    atomic_int *place = segment == COHI_SEGMENT_CONTROL ? &events->rings : &events->stores;
    atomic_store_explicit(place, 1, memory_order_relaxed);
}

static bool take_mark(atomic_int *mark)
{
    return atomic_load_explicit(mark, memory_order_relaxed) && atomic_exchange(mark, 0);
}

void cohi_events_ring(cohi_events *events)
{
    if (take_mark(&events->rings))
        events->upcalls->arrived(events->world);
    if (take_mark(&events->stores))
        events->upcalls->stored(events->world);
}

/* Whoever finds another at it leaves it to that one, which looks again after it has let go. */
void cohi_events_tell(cohi_events *events)
{
    cohi_event *event;
    while (atomic_load(&events->pending) && pthread_mutex_trylock(&events->telling) == 0) {
        while ((event = take(events))) {
            tell_one(events, event);
            release(events, event);
        }
        pthread_mutex_unlock(&events->telling);
    }
    cohi_events_ring(events);
}

void cohi_events_attend(cohi_events *events)
{
    if (!atomic_load_explicit(&events->attends, memory_order_relaxed))
        return;
    atomic_store_explicit(&events->attends, 0, memory_order_relaxed);
    events->upcalls->attend(events->world);
}

void cohi_events_close(cohi_events *events)
{
    for (cohi_event *event; (event = take(events));)
        release(events, event);
    for (cohi_event *event; (event = take_spare(events));)
        free(event);
    pthread_mutex_destroy(&events->lock);
    pthread_mutex_destroy(&events->telling);
}
