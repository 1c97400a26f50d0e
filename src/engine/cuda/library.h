/*
 * library.h - libcuda, the driver's own library, opened at run time.
 *
 * The module is built with CUDA's header and links none of its libraries: where there is no driver the
 * engine is not available, with the loader's reason, and nothing else changes. Each function is asked for by
 * the version of the driver interface that its prototype here is of.
 */
#ifndef COHI_ENGINE_CUDA_LIBRARY_H
#define COHI_ENGINE_CUDA_LIBRARY_H

#include <cohort.h>
#include <cuda.h>
#include <stdbool.h>

/* X(name, version): every function that is called, and the release of CUDA whose form of it cuda.h
 * declares. */
#define COHI_CUDA_FUNCTIONS(X)                           \
    X(cuCtxGetCurrent, 4000)                             \
    X(cuCtxGetDevice, 2000)                              \
    X(cuCtxPopCurrent, 4000)                             \
    X(cuCtxPushCurrent, 4000)                            \
    X(cuDeviceGet, 2000)                                 \
    X(cuDeviceGetAttribute, 2000)                        \
    X(cuDeviceGetCount, 2000)                            \
    X(cuDeviceGetName, 2000)                             \
    X(cuDeviceGetUuid, 11040)                            \
    X(cuDevicePrimaryCtxRelease, 11000)                  \
    X(cuDevicePrimaryCtxRetain, 7000)                    \
    X(cuDeviceTotalMem, 3020)                            \
    X(cuEventCreate, 2000)                               \
    X(cuEventDestroy, 4000)                              \
    X(cuEventQuery, 2000)                                \
    X(cuEventRecord, 2000)                               \
    X(cuEventSynchronize, 2000)                          \
    X(cuFuncGetAttribute, 2020)                          \
    X(cuFuncSetAttribute, 9000)                          \
    X(cuGetErrorName, 6000)                              \
    X(cuGetErrorString, 6000)                            \
    X(cuInit, 2000)                                      \
    X(cuLaunchKernel, 4000)                              \
    X(cuLaunchKernelEx, 11060)                           \
    X(cuMemAddressFree, 10020)                           \
    X(cuMemAddressReserve, 10020)                        \
    X(cuMemAlloc, 3020)                                  \
    X(cuMemCreate, 10020)                                \
    X(cuMemExportToShareableHandle, 10020)               \
    X(cuMemFree, 3020)                                   \
    X(cuMemFreeHost, 2000)                               \
    X(cuMemGetAllocationGranularity, 10020)              \
    X(cuMemGetInfo, 3020)                                \
    X(cuMemHostAlloc, 2020)                              \
    X(cuMemHostGetDevicePointer, 3020)                   \
    X(cuMemImportFromShareableHandle, 10020)             \
    X(cuMemMap, 10020)                                   \
    X(cuMemRelease, 10020)                               \
    X(cuMemSetAccess, 10020)                             \
    X(cuMemUnmap, 10020)                                 \
    X(cuMemcpy2DAsync, 3020)                             \
    X(cuMemcpyAsync, 4000)                               \
    X(cuMemcpyDtoDAsync, 3020)                           \
    X(cuMemcpyDtoHAsync, 3020)                           \
    X(cuMemcpyHtoDAsync, 3020)                           \
    X(cuMemsetD8Async, 3020)                             \
    X(cuModuleGetFunction, 2000)                         \
    X(cuModuleLoadData, 2000)                            \
    X(cuModuleUnload, 2000)                              \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
    X(cuPointerGetAttribute, 4000)                       \
    X(cuPointerGetAttributes, 7000)                      \
    X(cuStreamBatchMemOp, 11070)                         \
    X(cuStreamCreateWithPriority, 5050)                  \
    X(cuStreamDestroy, 4000)                             \
    X(cuStreamGetCtx, 9020)                              \
    X(cuStreamGetId, 12000)                              \
    X(cuStreamIsCapturing, 10000)                        \
    X(cuStreamQuery, 2000)                               \
    X(cuStreamSynchronize, 2000)                         \
    X(cuStreamWaitEvent, 3020)                           \
    X(cuStreamWaitValue64, 11070)                        \
    X(cuStreamWriteValue64, 11070)                       \
    X(cuThreadExchangeStreamCaptureMode, 10010)

typedef struct cohi_cuda_library {
    int version; /* of the driver's interface: 12080 is 12.8 */
#define COHI_CUDA_MEMBER(name, since) __typeof__(name) *name;
    COHI_CUDA_FUNCTIONS(COHI_CUDA_MEMBER)
#undef COHI_CUDA_MEMBER
} cohi_cuda_library;

/* Opens it and starts the driver, once a process; it stays open. COH_NOT_AVAILABLE with the reason: no
 * driver, one that is too old, no card. A process that was forked from one which had opened it is told
 * so: CUDA does not work in it. */
coh_status cohi_cuda_library_open(const cohi_cuda_library **library);

/* Fails with `what` and the driver's words for `result`: COH_NO_MEMORY where the card is full,
 * COH_NOT_AVAILABLE where the driver cannot do it, else COH_TRANSPORT. */
coh_status cohi_cuda_fail(const cohi_cuda_library *library, CUresult result, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#endif
