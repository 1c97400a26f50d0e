/*
 * stream.c - an ordered queue and the worker that empties it.
 *
 * Operations have numbers from 0. `done` <= `submitted` <= `enqueued`: those below `done` have run,
 * those from there to `submitted` are the worker's, the rest wait to be submitted. They lie in a
 * ring whose size is a power of two, at their number modulo that. Everything is under the lock;
 * `done` and `submitted` are atomic as well, so that a waiter can look before it sleeps.
 */
#include "device/stream.h"

#include "device/fork.h"
#include "device/options.h"
#include "device/pause.h"
#include "device/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 32, USUAL_DEPTH = 64, MOST_DEPTH = 1 << 24 };

struct coh_stream {
    coh_device *device;
    char name[NAME_BYTES];
    unsigned forks; /* when it was made */
    bool synchronous;
    bool stopping;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is something to do, or the end has come */
    pthread_cond_t idle; /* `done` has reached `submitted` */
    cohi_operation *ring;
    uint64_t room;
    atomic_uint_least64_t done;
    atomic_uint_least64_t submitted;
    uint64_t enqueued;
    cohi_failure failure; /* the first since it was told */
};

/* A stream that this process can use. */
static coh_status check_stream(const char *call, const coh_stream *stream)
{
    coh_status status = cohi_not_null(call, "stream", stream);
    return status == COH_OK ? cohi_fork_check(call, "stream", stream->forks) : status;
}

/* ---- running ---- */

/* The calling thread's last error becomes the stream's failure. */
static void keep_failure(coh_stream *stream, const cohi_operation *operation, uint64_t number,
                         coh_status status)
{
    char what[160];
    cohi_failure cause;
    cohi_failure_keep(&cause, status);
    cohi_operation_describe(operation, what, sizeof what);
    coh_fail(status, "stream '%s': operation %llu, %s, failed: %s", stream->name,
             (unsigned long long)number + 1, what, cause.text);
    cohi_failure_keep(&stream->failure, status);
}

/* Only the runner sets the failure; a waiter clears it, with the lock, when nothing runs. */
static void run_one(coh_stream *stream, const cohi_operation *operation, uint64_t number)
{
    if (stream->failure.status != COH_OK) {
        cohi_operation_skip(operation, &stream->failure);
        return;
    }
    coh_status status = cohi_operation_run(operation, stream);
    if (status != COH_OK)
        keep_failure(stream, operation, number, status);
}

/* Runs what is submitted; enters and leaves with the lock. */
static void run_submitted(coh_stream *stream)
{
    while (atomic_load(&stream->done) < atomic_load(&stream->submitted)) {
        uint64_t number = atomic_load(&stream->done);
        cohi_operation operation = stream->ring[number & (stream->room - 1)];
        pthread_mutex_unlock(&stream->lock);
        run_one(stream, &operation, number);
        pthread_mutex_lock(&stream->lock);
        atomic_store(&stream->done, number + 1);
    }
    pthread_cond_broadcast(&stream->idle);
}

static void *work(void *arg)
{
    coh_stream *stream = arg;
    uint64_t patience = COHI_PAUSE_SHORT_NS;
    pthread_mutex_lock(&stream->lock);
    while (!stream->stopping || atomic_load(&stream->done) < atomic_load(&stream->submitted)) {
        run_submitted(stream);
        uint64_t next = atomic_load(&stream->done) + 1, free_ns = cohi_now_ns();
        pthread_mutex_unlock(&stream->lock);
        cohi_pause_for(&stream->submitted, next, patience);
        pthread_mutex_lock(&stream->lock);
        while (!stream->stopping && atomic_load(&stream->submitted) < next)
            pthread_cond_wait(&stream->work, &stream->lock);
        patience = cohi_pause_after(cohi_now_ns() - free_ns);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* ---- life ---- */

static void free_stream(coh_stream *stream)
{
    pthread_cond_destroy(&stream->idle);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream->ring);
    free(stream);
}

static uint64_t power_from(uint32_t depth)
{
    uint64_t power = 1;
    while (power < depth)
        power *= 2;
    return power;
}

static coh_stream *make_stream(coh_device *device, const coh_stream_options *options)
{
    static atomic_uint count;
    coh_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = device;
    stream->forks = cohi_fork_count();
    stream->synchronous = options->synchronous != 0;
    stream->room = power_from(options->depth ? options->depth : USUAL_DEPTH);
    stream->ring = calloc(stream->room, sizeof *stream->ring);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->idle, NULL);
    unsigned number = atomic_fetch_add(&count, 1);
    if (options->name)
        snprintf(stream->name, sizeof stream->name, "%s", options->name);
    else
        snprintf(stream->name, sizeof stream->name, "stream %u", number);
    if (stream->ring)
        return stream;
    free_stream(stream);
    return NULL;
}

coh_status coh_stream_create(coh_device *device, const coh_stream_options *options,
                             coh_stream **stream)
{
    const char *call = "coh_stream_create";
    coh_stream_options chosen = COH_STREAM_OPTIONS_INIT;
    coh_status status = cohi_options_take(call, options, &chosen, sizeof chosen);
    if (status == COH_OK)
        status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = cohi_not_null(call, "stream", stream);
    if (status == COH_OK && chosen.depth > MOST_DEPTH)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: a depth of %u; give at most %d", call,
                          chosen.depth, MOST_DEPTH);
    if (status != COH_OK)
        return status;
    coh_stream *made = make_stream(device, &chosen);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    int error = made->synchronous ? 0 : cohi_worker_start("coh-stream", work, made, &made->worker);
    if (error) {
        free_stream(made);
        return cohi_fail_errno(error, "%s: starting the worker", call);
    }
    cohi_device_hold(device);
    *stream = made;
    return COH_OK;
}

/* From here on the recordings are sure to come, or to be skipped. */
static void tell_events(const coh_stream *stream)
{
    for (uint64_t i = atomic_load(&stream->submitted); i < stream->enqueued; i++) {
        const cohi_operation *operation = &stream->ring[i & (stream->room - 1)];
        if (operation->kind == COHI_OPERATION_RECORD)
            cohi_event_submitted(operation->as.event.event, operation->as.event.number);
    }
}

/* What was enqueued and not submitted will not run. */
static void forget_enqueued(coh_stream *stream)
{
    cohi_failure never = {.status = COH_INVALID_ARGUMENT};
    snprintf(never.text, sizeof never.text,
             "stream '%s' was destroyed before the event's recording was submitted", stream->name);
    tell_events(stream);
    for (uint64_t i = atomic_load(&stream->submitted); i < stream->enqueued; i++)
        cohi_operation_skip(&stream->ring[i & (stream->room - 1)], &never);
}

coh_status coh_stream_destroy(coh_stream *stream)
{
    if (!stream)
        return COH_OK;
    coh_status status = cohi_fork_check("coh_stream_destroy", "stream", stream->forks);
    if (status != COH_OK)
        return status;
    status = coh_stream_wait(stream);
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (!stream->synchronous)
        pthread_join(stream->worker, NULL);
    forget_enqueued(stream);
    cohi_device_release(stream->device);
    free_stream(stream);
    return status;
}

/* ---- enqueue, submit, wait ---- */

static bool grow(coh_stream *stream)
{
    cohi_operation *larger = calloc(stream->room * 2, sizeof *larger);
    if (!larger)
        return false;
    for (uint64_t i = atomic_load(&stream->done); i < stream->enqueued; i++)
        larger[i & (stream->room * 2 - 1)] = stream->ring[i & (stream->room - 1)];
    free(stream->ring);
    stream->ring = larger;
    stream->room *= 2;
    return true;
}

coh_status cohi_stream_enqueue(const char *call, coh_stream *stream,
                               const cohi_operation *operation)
{
    coh_status status = check_stream(call, stream);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&stream->lock);
    bool room = stream->enqueued - atomic_load(&stream->done) < stream->room || grow(stream);
    if (room)
        stream->ring[stream->enqueued++ & (stream->room - 1)] = *operation;
    pthread_mutex_unlock(&stream->lock);
    if (room)
        return COH_OK;
    return cohi_fail_errno(ENOMEM, "%s: stream '%s' has %llu operations, and cannot grow", call,
                           stream->name, (unsigned long long)stream->room);
}

coh_status coh_stream_submit(coh_stream *stream)
{
    coh_status status = check_stream("coh_stream_submit", stream);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&stream->lock);
    tell_events(stream);
    atomic_store(&stream->submitted, stream->enqueued);
    if (stream->synchronous)
        run_submitted(stream);
    else
        pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    return COH_OK;
}

/* Tells the failure, once. Enters and leaves with the lock. */
static coh_status take_failure(coh_stream *stream)
{
    coh_status status = cohi_failure_again(&stream->failure);
    stream->failure.status = COH_OK;
    return status;
}

coh_status coh_stream_wait(coh_stream *stream)
{
    coh_status status = check_stream("coh_stream_wait", stream);
    if (status != COH_OK)
        return status;
    cohi_pause_for(&stream->done, atomic_load(&stream->submitted), COHI_PAUSE_SHORT_NS);
    pthread_mutex_lock(&stream->lock);
    while (atomic_load(&stream->done) < atomic_load(&stream->submitted))
        pthread_cond_wait(&stream->idle, &stream->lock);
    status = take_failure(stream);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

coh_status coh_stream_submit_wait(coh_stream *stream)
{
    coh_status status = coh_stream_submit(stream);
    return status == COH_OK ? coh_stream_wait(stream) : status;
}

coh_status coh_stream_done(coh_stream *stream, int *done)
{
    const char *call = "coh_stream_done";
    coh_status status = check_stream(call, stream);
    if (status == COH_OK)
        status = cohi_not_null(call, "done", done);
    if (status == COH_OK)
        *done = atomic_load(&stream->done) >= atomic_load(&stream->submitted);
    return status;
}

coh_device *coh_stream_device(const coh_stream *stream)
{
    return stream ? stream->device : NULL;
}

void *coh_stream_native(const coh_stream *stream)
{
    (void)stream; /* the cpu has no streams of its own */
    return NULL;
}
