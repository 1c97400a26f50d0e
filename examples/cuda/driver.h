/*
 * driver.h - what these examples need of CUDA beside cohort-cuda.h: a stream, kernels, a graph.
 *
 * A program that is compiled with CUDA includes its headers instead, and passes its own streams. This one
 * opens the driver when it runs, so that the examples build everywhere, and say what is missing where
 * there is no card.
 */
#ifndef EXAMPLES_CUDA_DRIVER_H
#define EXAMPLES_CUDA_DRIVER_H

#include <cohort-cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { NOT_HERE = 77 }; /* what the program exits with where it cannot run */

/* X(name here, the driver's name, arguments). Each returns 0, or the number of an error. */
#define CUDA_CALLS(X)                                                                     \
    X(init, "cuInit", (unsigned flags))                                                   \
    X(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                   \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                              \
    X(use, "cuCtxSetCurrent", (void *context))                                            \
    X(stream_create, "cuStreamCreate", (coh_cuda_stream * stream, unsigned flags))        \
    X(stream_destroy, "cuStreamDestroy_v2", (coh_cuda_stream stream))                     \
    X(synchronize, "cuStreamSynchronize", (coh_cuda_stream stream))                       \
    X(load, "cuModuleLoadData", (void **module, const void *text))                        \
    X(function, "cuModuleGetFunction", (void **function, void *module, const char *name)) \
    X(launch, "cuLaunchKernel",                                                           \
      (void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,           \
       unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,       \
       coh_cuda_stream stream, void **arguments, void **extra))                           \
    X(capture_begin, "cuStreamBeginCapture_v2", (coh_cuda_stream stream, int mode))       \
    X(capture_end, "cuStreamEndCapture", (coh_cuda_stream stream, void **graph))          \
    X(instantiate, "cuGraphInstantiateWithFlags",                                         \
      (void **program, void *graph, unsigned long long flags))                            \
    X(graph_launch, "cuGraphLaunch", (void *program, coh_cuda_stream stream))             \
    X(graph_free, "cuGraphDestroy", (void *graph))                                        \
    X(program_free, "cuGraphExecDestroy", (void *program))                                \
    X(describe, "cuGetErrorString", (int error, const char **text))

typedef struct cuda_driver {
    int device;
    coh_cuda_sharing sharing;
    coh_cuda_stream stream;
#define CUDA_FIELD(name, symbol, arguments) int(*name) arguments;
    CUDA_CALLS(CUDA_FIELD)
#undef CUDA_FIELD
} cuda_driver;

static cuda_driver cuda;

/* Ends the program when a call of Cohort failed. */
static inline void check(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "%s\n", coh_last_error());
    exit(1);
}

/* Ends the program when a call of the driver failed. */
static inline void check_cuda(int error, const char *call)
{
    const char *text = NULL;
    if (error == 0)
        return;
    if (cuda.describe)
        cuda.describe(error, &text);
    fprintf(stderr, "%s: error %d of CUDA, %s\n", call, error, text ? text : "without words");
    exit(1);
}

static inline void cuda_find_calls(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *address;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define CUDA_FIND(name, symbol, arguments)                            \
    if (!(address = dlsym(library, symbol))) {                        \
        fprintf(stderr, "libcuda.so.1 has no %s: too old\n", symbol); \
        exit(1);                                                      \
    }                                                                 \
    cuda.name = (int(*) arguments)address;
    CUDA_CALLS(CUDA_FIND)
#undef CUDA_FIND
}

/*
 * Makes a heap on the card that fits this rank, and a stream on the same card. Where there is no card, or no
 * driver, or Cohort was built without its module for it, all ranks say so and exit with NOT_HERE.
 */
static inline coh_heap *cuda_open(coh_world *world, uint64_t bytes)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    void *context;
    options.kind = COH_HEAP_CUDA;
    options.bytes = bytes;
    coh_status status = coh_heap_create(world, &options, &heap);
    if (status == COH_NOT_AVAILABLE || status == COH_UNSUPPORTED) {
        if (coh_rank(world) == 0)
            fprintf(stderr, "this example needs a card: %s\n", coh_last_error());
        (void)coh_finalize(world);
        exit(NOT_HERE);
    }
    check(status);
    check(coh_cuda_device(world, &cuda.device, &cuda.sharing));
    cuda_find_calls();
    check_cuda(cuda.init(0), "cuInit");
    check_cuda(cuda.retain(&context, cuda.device), "cuDevicePrimaryCtxRetain");
    check_cuda(cuda.use(context), "cuCtxSetCurrent");
    check_cuda(cuda.stream_create(&cuda.stream, 1), "cuStreamCreate"); /* 1: apart from NULL's */
    return heap;
}

static inline void cuda_close(void)
{
    check_cuda(cuda.stream_destroy(cuda.stream), "cuStreamDestroy");
    check_cuda(cuda.release(cuda.device), "cuDevicePrimaryCtxRelease");
}

/* Waits for all that was enqueued, and asks Cohort what became of it. */
static inline void cuda_finish(coh_world *world)
{
    check_cuda(cuda.synchronize(cuda.stream), "cuStreamSynchronize");
    check(coh_cuda_status(world));
}

/* A kernel from a text in PTX, which the driver compiles for the card at hand. */
static inline void *cuda_kernel(const char *text, const char *name)
{
    void *module, *function;
    check_cuda(cuda.load(&module, text), "cuModuleLoadData");
    check_cuda(cuda.function(&function, module, name), "cuModuleGetFunction");
    return function;
}

static inline void cuda_launch(void *function, unsigned blocks, unsigned threads, void **arguments)
{
    check_cuda(cuda.launch(function, blocks, 1, 1, threads, 1, 1, 0, cuda.stream, arguments, NULL),
               "cuLaunchKernel");
}

/* Begins to record what is enqueued, and ends it; the program can be launched many times. */
static inline void cuda_record(void)
{
    check_cuda(cuda.capture_begin(cuda.stream, 1), "cuStreamBeginCapture"); /* of this thread */
}

static inline void *cuda_recorded(void)
{
    void *graph, *program;
    check_cuda(cuda.capture_end(cuda.stream, &graph), "cuStreamEndCapture");
    check_cuda(cuda.instantiate(&program, graph, 0), "cuGraphInstantiate");
    check_cuda(cuda.graph_free(graph), "cuGraphDestroy");
    return program;
}

#endif
