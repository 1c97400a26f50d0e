/*
 * card.h - CUDA's driver for the tool and the tests: a stream, memory, events, graphs, kernels from text.
 *
 * The driver is opened at run time, and its functions are declared here, so that both build without CUDA. Cohort's
 * own use of it is its module's (src/engine/cuda).
 */
#ifndef COHI_TOOLS_CARD_H
#define COHI_TOOLS_CARD_H

#include <cohort-cuda.h>
#include <stddef.h>
#include <stdint.h>

typedef void cohi_card_function(void *user);

/* X(name here, the driver's name, arguments). Each returns 0, or the number of an error. */
#define COHI_CARD_CALLS(X)                                                                \
    X(init, "cuInit", (unsigned flags))                                                   \
    X(count, "cuDeviceGetCount", (int *count))                                            \
    X(reaches, "cuDeviceCanAccessPeer", (int *reaches, int device, int peer))             \
    X(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                   \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                              \
    X(use, "cuCtxSetCurrent", (void *context))                                            \
    X(context_create, "cuCtxCreate_v2", (void **context, unsigned flags, int device))     \
    X(context_destroy, "cuCtxDestroy_v2", (void *context))                                \
    X(stream_create, "cuStreamCreate", (coh_cuda_stream * stream, unsigned flags))        \
    X(stream_destroy, "cuStreamDestroy_v2", (coh_cuda_stream stream))                     \
    X(synchronize, "cuStreamSynchronize", (coh_cuda_stream stream))                       \
    X(query, "cuStreamQuery", (coh_cuda_stream stream))                                   \
    X(host_function, "cuLaunchHostFunc",                                                  \
      (coh_cuda_stream stream, cohi_card_function * function, void *user))                \
    X(allocate, "cuMemAlloc_v2", (void **memory, size_t bytes))                           \
    X(free, "cuMemFree_v2", (void *memory))                                               \
    X(free_bytes, "cuMemGetInfo_v2", (size_t * free, size_t * total))                     \
    X(allocate_pinned, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))   \
    X(free_pinned, "cuMemFreeHost", (void *memory))                                       \
    X(copy, "cuMemcpy", (void *target, const void *source, size_t bytes))                 \
    X(copy_on, "cuMemcpyAsync",                                                           \
      (void *target, const void *source, size_t bytes, coh_cuda_stream stream))           \
    X(fill, "cuMemsetD8_v2", (void *memory, unsigned char byte, size_t bytes))            \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                      \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                  \
    X(event_record, "cuEventRecord", (void *event, coh_cuda_stream stream))               \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, void *from, void *to))   \
    X(capture_begin, "cuStreamBeginCapture_v2", (coh_cuda_stream stream, int mode))       \
    X(capture_end, "cuStreamEndCapture", (coh_cuda_stream stream, void **graph))          \
    X(instantiate, "cuGraphInstantiateWithFlags",                                         \
      (void **program, void *graph, unsigned long long flags))                            \
    X(graph_launch, "cuGraphLaunch", (void *program, coh_cuda_stream stream))             \
    X(graph_free, "cuGraphDestroy", (void *graph))                                        \
    X(program_free, "cuGraphExecDestroy", (void *program))                                \
    X(load, "cuModuleLoadData", (void **module, const void *text))                        \
    X(function, "cuModuleGetFunction", (void **function, void *module, const char *name)) \
    X(launch, "cuLaunchKernel",                                                           \
      (void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,           \
       unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,       \
       coh_cuda_stream stream, void **arguments, void **extra))                           \
    X(describe, "cuGetErrorString", (int error, const char **text))

typedef struct cohi_card_driver {
#define COHI_CARD_FIELD(name, symbol, arguments) int(*name) arguments;
    COHI_CARD_CALLS(COHI_CARD_FIELD)
#undef COHI_CARD_FIELD
} cohi_card_driver;

/* The driver, opened and initialized by the first call; NULL with the reason in coh_last_error(). */
const cohi_card_driver *cohi_card_open(void);

/* Makes the primary context of `device` the calling thread's; the driver must be open. It is retained once for
 * each call. */
coh_status cohi_card_use(int device);

/* COH_OK for 0; else COH_TRANSPORT with the driver's words, and `what` was tried. */
coh_status cohi_card_status(int error, const char *what);

/* Ends the capture on a stream and makes a program of it. */
coh_status cohi_card_captured(coh_cuda_stream stream, void **program);

#endif
