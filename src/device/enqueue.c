/* enqueue.c - the calls that add an operation to a stream. */
#include "device/options.h"
#include "device/stream.h"

/* ---- functions ---- */

coh_status coh_stream_kernel(coh_stream *stream, const char *name, coh_kernel *kernel, void *arg)
{
    const char *call = "coh_stream_kernel";
    cohi_operation operation = {COHI_OPERATION_KERNEL,
                                {.function = {name ? name : "unnamed", kernel, NULL, arg}}};
    if (!kernel)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the kernel is NULL", call);
    return cohi_stream_enqueue(call, stream, &operation);
}

coh_status coh_stream_host(coh_stream *stream, const char *name, coh_host_call *function, void *arg)
{
    const char *call = "coh_stream_host";
    cohi_operation operation = {COHI_OPERATION_HOST,
                                {.function = {name ? name : "unnamed", NULL, function, arg}}};
    if (!function)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the function is NULL", call);
    return cohi_stream_enqueue(call, stream, &operation);
}

/* ---- copies ---- */

static coh_status enqueue_copy(const char *call, coh_stream *stream, coh_device *device,
                               void *target, const void *source, uint64_t bytes)
{
    cohi_operation operation = {COHI_OPERATION_COPY, {.copy = {device, target, source, bytes}}};
    coh_status status = COH_OK;
    if (bytes > 0)
        status = cohi_not_null(call, "the host's memory", target && source ? target : NULL);
    return status == COH_OK ? cohi_stream_enqueue(call, stream, &operation) : status;
}

coh_status coh_stream_write(coh_stream *stream, coh_buffer *buffer, uint64_t offset,
                            const void *source, uint64_t bytes)
{
    const char *call = "coh_stream_write";
    coh_status status = cohi_buffer_range(call, buffer, offset, bytes);
    if (status != COH_OK)
        return status;
    return enqueue_copy(call, stream, buffer->device, cohi_buffer_at(buffer, offset), source,
                        bytes);
}

coh_status coh_stream_read(coh_stream *stream, const coh_buffer *buffer, uint64_t offset,
                           void *target, uint64_t bytes)
{
    const char *call = "coh_stream_read";
    coh_status status = cohi_buffer_range(call, buffer, offset, bytes);
    if (status != COH_OK)
        return status;
    return enqueue_copy(call, stream, buffer->device, target, cohi_buffer_at(buffer, offset),
                        bytes);
}

coh_status coh_stream_copy(coh_stream *stream, coh_buffer *target, uint64_t target_offset,
                           const coh_buffer *source, uint64_t source_offset, uint64_t bytes)
{
    const char *call = "coh_stream_copy";
    coh_status status = cohi_buffer_range(call, target, target_offset, bytes);
    if (status == COH_OK)
        status = cohi_buffer_range(call, source, source_offset, bytes);
    if (status != COH_OK)
        return status;
    return enqueue_copy(call, stream, target->device, cohi_buffer_at(target, target_offset),
                        cohi_buffer_at(source, source_offset), bytes);
}

/* ---- one-sided ---- */

coh_status coh_stream_put(coh_stream *stream, coh_world *world, void *target, const void *source,
                          size_t bytes, int rank)
{
    cohi_operation operation = {
        COHI_OPERATION_PUT,
        {.remote = {world, target, source, bytes, NULL, 0, COH_SIGNAL_SET, rank}}};
    return cohi_stream_enqueue("coh_stream_put", stream, &operation);
}

coh_status coh_stream_get(coh_stream *stream, coh_world *world, void *target, const void *source,
                          size_t bytes, int rank)
{
    cohi_operation operation = {
        COHI_OPERATION_GET,
        {.remote = {world, target, source, bytes, NULL, 0, COH_SIGNAL_SET, rank}}};
    return cohi_stream_enqueue("coh_stream_get", stream, &operation);
}

coh_status coh_stream_put_signal(coh_stream *stream, coh_world *world, void *target,
                                 const void *source, size_t bytes, uint64_t *signal, uint64_t value,
                                 coh_signal_op op, int rank)
{
    const char *call = "coh_stream_put_signal";
    cohi_operation operation = {
        COHI_OPERATION_PUT, {.remote = {world, target, source, bytes, signal, value, op, rank}}};
    coh_status status = cohi_not_null(call, "signal", signal);
    return status == COH_OK ? cohi_stream_enqueue(call, stream, &operation) : status;
}

coh_status coh_stream_signal(coh_stream *stream, coh_world *world, uint64_t *signal, uint64_t value,
                             coh_signal_op op, int rank)
{
    cohi_operation operation = {COHI_OPERATION_SIGNAL,
                                {.remote = {world, NULL, NULL, 0, signal, value, op, rank}}};
    return cohi_stream_enqueue("coh_stream_signal", stream, &operation);
}

coh_status coh_stream_wait_until(coh_stream *stream, coh_world *world, const uint64_t *word,
                                 coh_compare compare, uint64_t value, int from)
{
    cohi_operation operation = {COHI_OPERATION_WAIT, {.wait = {world, word, compare, value, from}}};
    return cohi_stream_enqueue("coh_stream_wait_until", stream, &operation);
}

coh_status coh_stream_quiet(coh_stream *stream, coh_world *world)
{
    cohi_operation operation = {COHI_OPERATION_QUIET, {.remote = {.world = world}}};
    return cohi_stream_enqueue("coh_stream_quiet", stream, &operation);
}

/* ---- collectives ---- */

/* It must name a collective and a team; the rest is checked when it runs. */
static coh_status check_collective(const char *call, const coh_collective *collective)
{
    if (!coh_collective_name(collective->kind))
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %d is not a collective", call,
                        (int)collective->kind);
    return cohi_not_null(call, "the collective's team", collective->team);
}

coh_status coh_stream_collective(coh_stream *stream, const coh_collective *collective)
{
    const char *call = "coh_stream_collective";
    cohi_operation operation = {COHI_OPERATION_COLLECTIVE, {.collective = COH_COLLECTIVE_INIT}};
    coh_status status = cohi_not_null(call, "the collective", collective);
    if (status == COH_OK)
        status = cohi_options_take(call, collective, &operation.as.collective,
                                   sizeof operation.as.collective);
    if (status == COH_OK)
        status = check_collective(call, &operation.as.collective);
    return status == COH_OK ? cohi_stream_enqueue(call, stream, &operation) : status;
}

/* ---- events ---- */

coh_status coh_stream_record(coh_stream *stream, coh_event *event)
{
    const char *call = "coh_stream_record";
    coh_status status = cohi_not_null(call, "stream", stream);
    if (status == COH_OK)
        status = cohi_event_check(call, event);
    if (status != COH_OK)
        return status;
    cohi_operation operation = {COHI_OPERATION_RECORD,
                                {.event = {event, cohi_event_enqueued(event)}}};
    status = cohi_stream_enqueue(call, stream, &operation);
    if (status != COH_OK) {
        cohi_failure failure;
        cohi_failure_keep(&failure, status);
        cohi_event_submitted(event, operation.as.event.number);
        cohi_operation_skip(&operation, &failure);
    }
    return status;
}

coh_status coh_stream_await(coh_stream *stream, coh_event *event)
{
    const char *call = "coh_stream_await";
    cohi_operation operation = {COHI_OPERATION_AWAIT, {.event = {event, 0}}};
    coh_status status = cohi_event_awaitable(call, event, &operation.as.event.number);
    return status == COH_OK ? cohi_stream_enqueue(call, stream, &operation) : status;
}
