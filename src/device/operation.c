#include "device/operation.h"

#include <stdio.h>

/* ---- functions ---- */

/* A function that fails and gives no reason must not be told with that of an older failure. */
static void forget_last_error(void)
{
    coh_fail(COH_OK, "%s", "");
}

static coh_status run_kernel(const cohi_operation *operation, coh_stream *stream)
{
    forget_last_error();
    return operation->as.function.kernel(stream, operation->as.function.arg);
}

static coh_status run_host(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    forget_last_error();
    return operation->as.function.call(operation->as.function.arg);
}

static void describe_kernel(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "kernel '%s'", operation->as.function.name);
}

static void describe_host(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "host function '%s'", operation->as.function.name);
}

/* ---- copies ---- */

static coh_status run_copy(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return cohi_buffer_move(operation->as.copy.device, operation->as.copy.target,
                            operation->as.copy.source, operation->as.copy.bytes);
}

static void describe_copy(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "copy of %llu bytes", (unsigned long long)operation->as.copy.bytes);
}

/* ---- one-sided ---- */

static coh_status run_put(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    if (operation->as.remote.signal)
        return coh_put_signal(operation->as.remote.world, operation->as.remote.target,
                              operation->as.remote.source, operation->as.remote.bytes,
                              operation->as.remote.signal, operation->as.remote.value,
                              operation->as.remote.op, operation->as.remote.rank);
    return coh_put(operation->as.remote.world, operation->as.remote.target,
                   operation->as.remote.source, operation->as.remote.bytes,
                   operation->as.remote.rank);
}

static coh_status run_get(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return coh_get(operation->as.remote.world, operation->as.remote.target,
                   operation->as.remote.source, operation->as.remote.bytes,
                   operation->as.remote.rank);
}

static coh_status run_signal(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return coh_signal(operation->as.remote.world, operation->as.remote.signal,
                      operation->as.remote.value, operation->as.remote.op,
                      operation->as.remote.rank);
}

static coh_status run_wait(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return coh_wait_until(operation->as.wait.world, COH_U64, operation->as.wait.word,
                          operation->as.wait.compare, &operation->as.wait.value,
                          operation->as.wait.from);
}

static coh_status run_quiet(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return coh_quiet(operation->as.remote.world);
}

static void describe_put(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "put of %zu bytes%s to rank %d", operation->as.remote.bytes,
             operation->as.remote.signal ? " with a signal" : "", operation->as.remote.rank);
}

static void describe_get(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "get of %zu bytes from rank %d", operation->as.remote.bytes,
             operation->as.remote.rank);
}

static void describe_signal(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "signal to rank %d", operation->as.remote.rank);
}

static void describe_wait(const cohi_operation *operation, char *text, size_t room)
{
    snprintf(text, room, "wait for a word to be compared with %llu",
             (unsigned long long)operation->as.wait.value);
}

static void describe_quiet(const cohi_operation *operation, char *text, size_t room)
{
    (void)operation;
    snprintf(text, room, "quiet");
}

/* ---- collectives ---- */

static coh_status run_collective(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return coh_collective_run(&operation->as.collective);
}

static void describe_collective(const cohi_operation *operation, char *text, size_t room)
{
    const coh_collective *collective = &operation->as.collective;
    const char *name = coh_collective_name(collective->kind);
    const char *dtype = coh_dtype_name(collective->dtype);
    if (collective->kind == COH_COLLECTIVE_BARRIER)
        snprintf(text, room, "%s", name);
    else if (collective->counts || collective->source_parts)
        snprintf(text, room, "%s of parts", name);
    else
        snprintf(text, room, "%s of %zu %s", name, collective->count,
                 dtype && !collective->how ? dtype : "elements");
}

/* ---- events ---- */

static coh_status run_record(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    cohi_event_happened(operation->as.event.event, operation->as.event.number, NULL);
    return COH_OK;
}

static coh_status run_await(const cohi_operation *operation, coh_stream *stream)
{
    (void)stream;
    return cohi_event_await(operation->as.event.event, operation->as.event.number);
}

static void describe_record(const cohi_operation *operation, char *text, size_t room)
{
    (void)operation;
    snprintf(text, room, "recording of an event");
}

static void describe_await(const cohi_operation *operation, char *text, size_t room)
{
    (void)operation;
    snprintf(text, room, "wait for an event of another stream");
}

/* ---- the rows ---- */

static const struct operation_row {
    coh_status (*run)(const cohi_operation *operation, coh_stream *stream);
    void (*describe)(const cohi_operation *operation, char *text, size_t room);
} operation_rows[] = {
    [COHI_OPERATION_KERNEL] = {run_kernel, describe_kernel},
    [COHI_OPERATION_HOST] = {run_host, describe_host},
    [COHI_OPERATION_COPY] = {run_copy, describe_copy},
    [COHI_OPERATION_PUT] = {run_put, describe_put},
    [COHI_OPERATION_GET] = {run_get, describe_get},
    [COHI_OPERATION_SIGNAL] = {run_signal, describe_signal},
    [COHI_OPERATION_WAIT] = {run_wait, describe_wait},
    [COHI_OPERATION_QUIET] = {run_quiet, describe_quiet},
    [COHI_OPERATION_COLLECTIVE] = {run_collective, describe_collective},
    [COHI_OPERATION_RECORD] = {run_record, describe_record},
    [COHI_OPERATION_AWAIT] = {run_await, describe_await},
};

coh_status cohi_operation_run(const cohi_operation *operation, coh_stream *stream)
{
    return operation_rows[operation->kind].run(operation, stream);
}

void cohi_operation_skip(const cohi_operation *operation, const cohi_failure *failure)
{
    if (operation->kind == COHI_OPERATION_RECORD)
        cohi_event_happened(operation->as.event.event, operation->as.event.number, failure);
}

void cohi_operation_describe(const cohi_operation *operation, char *text, size_t room)
{
    operation_rows[operation->kind].describe(operation, text, room);
}
