#include "engine/ucx/ucx.h"

#include <stdlib.h>

cohi_ucx_event *cohi_ucx_event_new(cohi_ucx_happening kind, int rank, size_t count)
{
    cohi_ucx_event *event = malloc(sizeof *event + count);
    if (event)
        *event = (cohi_ucx_event){.kind = kind, .rank = rank, .count = count};
    return event;
}

void cohi_ucx_event_add(cohi_endpoint *endpoint, cohi_ucx_event *event)
{
    if (!event) /* silence is told again, and the end of a rank is found by whoever needs it */
        return;
    if (endpoint->last_event)
        endpoint->last_event->next = event;
    else
        endpoint->first_event = event;
    endpoint->last_event = event;
    atomic_store(&endpoint->events, 1);
}

static cohi_ucx_event *take(cohi_endpoint *endpoint)
{
    cohi_ucx_lock(endpoint);
    cohi_ucx_event *event = endpoint->first_event;
    if (event)
        endpoint->first_event = event->next;
    if (!endpoint->first_event) {
        endpoint->last_event = NULL;
        atomic_store(&endpoint->events, 0);
    }
    cohi_ucx_unlock(endpoint);
    return event;
}

static void tell_one(cohi_endpoint *endpoint, const cohi_ucx_event *event)
{
    const cohi_upcalls *upcalls = endpoint->upcalls;
    switch (event->kind) {
    case COHI_UCX_DELIVERED:
        upcalls->deliver(endpoint->world, event->rank, event->bytes, event->count);
        atomic_store_explicit(&endpoint->attends, 1, memory_order_relaxed);
        break;
    case COHI_UCX_HAS_LEFT:
        upcalls->left(endpoint->world, event->rank);
        break;
    case COHI_UCX_IS_LOST:
        upcalls->lost(endpoint->world, event->rank, event->loss, 0);
        break;
    case COHI_UCX_IS_SILENT:
        upcalls->silent(endpoint->world, event->rank, event->silent_ns);
        break;
    }
}

void cohi_ucx_ring(cohi_endpoint *endpoint)
{
    if (atomic_load_explicit(&endpoint->rings, memory_order_relaxed)
        && atomic_exchange(&endpoint->rings, 0))
        endpoint->upcalls->arrived(endpoint->world);
}

/* Whoever finds another at it leaves it to that one, which looks again after it has let go. */
void cohi_ucx_tell(cohi_endpoint *endpoint)
{
    cohi_ucx_event *event;
    while (atomic_load(&endpoint->events) && pthread_mutex_trylock(&endpoint->telling) == 0) {
        while ((event = take(endpoint))) {
            tell_one(endpoint, event);
            free(event);
        }
        pthread_mutex_unlock(&endpoint->telling);
    }
    cohi_ucx_ring(endpoint);
}

void cohi_ucx_events_free(cohi_endpoint *endpoint)
{
    while (endpoint->first_event) {
        cohi_ucx_event *next = endpoint->first_event->next;
        free(endpoint->first_event);
        endpoint->first_event = next;
    }
}
