/*
 * operation.h - what a stream can carry out: one row a kind, with how it runs and how an error
 * tells of it.
 */
#ifndef COHI_DEVICE_OPERATION_H
#define COHI_DEVICE_OPERATION_H

#include "device/buffer.h"
#include "device/event.h"

typedef enum cohi_operation_kind {
    COHI_OPERATION_KERNEL,
    COHI_OPERATION_HOST,
    COHI_OPERATION_COPY,
    COHI_OPERATION_PUT,
    COHI_OPERATION_GET,
    COHI_OPERATION_SIGNAL,
    COHI_OPERATION_WAIT,
    COHI_OPERATION_QUIET,
    COHI_OPERATION_COLLECTIVE,
    COHI_OPERATION_RECORD,
    COHI_OPERATION_AWAIT,
} cohi_operation_kind;

typedef struct cohi_operation {
    cohi_operation_kind kind;
    union {
        struct {
            const char *name;
            coh_kernel *kernel;
            coh_host_call *call;
            void *arg;
        } function;
        struct {
            coh_device *device;
            void *target;
            const void *source;
            uint64_t bytes;
        } copy;
        struct {
            coh_world *world;
            void *target;
            const void *source;
            size_t bytes;
            uint64_t *signal; /* NULL: a plain put */
            uint64_t value;
            coh_signal_op op;
            int rank;
        } remote;
        struct {
            coh_world *world;
            const uint64_t *word;
            coh_compare compare;
            uint64_t value;
            int from;
        } wait;
        coh_collective collective;
        struct {
            coh_event *event;
            uint64_t number;
        } event;
    } as;
} cohi_operation;

/* Carries it out on the calling thread. */
coh_status cohi_operation_run(const cohi_operation *operation, coh_stream *stream);

/* It will not run, because of a failure before it: tells those that wait for it. */
void cohi_operation_skip(const cohi_operation *operation, const cohi_failure *failure);

/* A phrase for errors, "all_reduce of 16 f32". */
void cohi_operation_describe(const cohi_operation *operation, char *text, size_t room);

#endif
