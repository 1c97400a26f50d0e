/* stream.h - the queue, as the calls that enqueue see it. */
#ifndef COHI_DEVICE_STREAM_H
#define COHI_DEVICE_STREAM_H

#include "device/operation.h"

/* Adds an operation behind those that were enqueued. COH_NO_MEMORY when the queue cannot grow. */
coh_status cohi_stream_enqueue(const char *call, coh_stream *stream,
                               const cohi_operation *operation);

#endif
