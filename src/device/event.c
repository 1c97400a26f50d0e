#include "device/event.h"

#include "device/fork.h"
#include "device/options.h"
#include "device/pause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct coh_event {
    coh_device *device;
    unsigned forks; /* when it was made */
    pthread_mutex_t lock;
    pthread_cond_t reached;
    uint64_t enqueued; /* the number of the last recording; likewise the next two */
    uint64_t submitted;
    atomic_uint_least64_t happened; /* written under the lock */
    uint64_t unsubmitted;           /* recordings on whatever stream that were not submitted yet */
    uint64_t under_way;             /* those that were, and have not happened */
    cohi_failure failure;           /* of the last that happened */
};

/* ---- life ---- */

coh_status coh_event_create(coh_device *device, coh_event **event)
{
    const char *call = "coh_event_create";
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = cohi_not_null(call, "event", event);
    if (status != COH_OK)
        return status;
    coh_event *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    made->device = device;
    made->forks = cohi_fork_count();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->reached, NULL);
    cohi_device_hold(device);
    *event = made;
    return COH_OK;
}

/* Recordings are counted, since one on a stream may still refer to the event when a later one on
 * another stream has happened. */
coh_status coh_event_destroy(coh_event *event)
{
    if (!event)
        return COH_OK;
    coh_status status = cohi_fork_check("coh_event_destroy", "event", event->forks);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&event->lock);
    bool submitted = event->unsubmitted == 0;
    while (submitted && event->under_way > 0)
        pthread_cond_wait(&event->reached, &event->lock);
    pthread_mutex_unlock(&event->lock);
    if (!submitted)
        return coh_fail(COH_BUSY,
                        "coh_event_destroy: a recording of the event was enqueued and not "
                        "submitted; submit or destroy its stream first");
    pthread_cond_destroy(&event->reached);
    pthread_mutex_destroy(&event->lock);
    cohi_device_release(event->device);
    free(event);
    return COH_OK;
}

coh_status cohi_event_check(const char *call, const coh_event *event)
{
    coh_status status = cohi_not_null(call, "event", event);
    return status == COH_OK ? cohi_fork_check(call, "event", event->forks) : status;
}

/* ---- recording ---- */

uint64_t cohi_event_enqueued(coh_event *event)
{
    pthread_mutex_lock(&event->lock);
    uint64_t number = ++event->enqueued;
    event->unsubmitted++;
    pthread_mutex_unlock(&event->lock);
    return number;
}

void cohi_event_submitted(coh_event *event, uint64_t number)
{
    pthread_mutex_lock(&event->lock);
    if (number > event->submitted)
        event->submitted = number;
    event->unsubmitted--;
    event->under_way++;
    pthread_mutex_unlock(&event->lock);
}

void cohi_event_happened(coh_event *event, uint64_t number, const cohi_failure *failure)
{
    pthread_mutex_lock(&event->lock);
    event->under_way--;
    if (number > atomic_load(&event->happened)) {
        if (failure)
            event->failure = *failure;
        else
            event->failure.status = COH_OK;
        atomic_store(&event->happened, number);
    }
    pthread_cond_broadcast(&event->reached);
    pthread_mutex_unlock(&event->lock);
}

/* ---- waiting ---- */

coh_status cohi_event_awaitable(const char *call, coh_event *event, uint64_t *number)
{
    coh_status status = cohi_event_check(call, event);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&event->lock);
    uint64_t enqueued = event->enqueued, submitted = event->submitted;
    pthread_mutex_unlock(&event->lock);
    if (enqueued == 0)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the event was never recorded", call);
    if (submitted != enqueued)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: the event's recording was not submitted; submit its stream first",
                        call);
    *number = submitted;
    return COH_OK;
}

coh_status cohi_event_await(coh_event *event, uint64_t number)
{
    cohi_pause_for(&event->happened, number, COHI_PAUSE_SHORT_NS);
    pthread_mutex_lock(&event->lock);
    while (atomic_load(&event->happened) < number)
        pthread_cond_wait(&event->reached, &event->lock);
    coh_status status = cohi_failure_again(&event->failure);
    pthread_mutex_unlock(&event->lock);
    return status;
}

coh_status coh_event_wait(coh_event *event)
{
    uint64_t number = 0;
    coh_status status = cohi_event_awaitable("coh_event_wait", event, &number);
    return status == COH_OK ? cohi_event_await(event, number) : status;
}

coh_status coh_event_done(coh_event *event, int *done)
{
    const char *call = "coh_event_done";
    coh_status status = cohi_event_check(call, event);
    if (status == COH_OK)
        status = cohi_not_null(call, "done", done);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&event->lock);
    *done = event->enqueued > 0 && atomic_load(&event->happened) >= event->enqueued;
    pthread_mutex_unlock(&event->lock);
    return COH_OK;
}
