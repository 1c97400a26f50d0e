#include "engine/cuda/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libcuda.so.1"

/* Descriptors of device memory, values on streams and graphs that are captured: all of it is in 12.0. */
enum { LEAST_VERSION = 12000 };

typedef __typeof__(cuGetProcAddress) get_address;
typedef __typeof__(cuDriverGetVersion) get_version;

static coh_status find_functions(get_address *address, cohi_cuda_library *library)
{
    static const struct {
        const char *name;
        int version;
        size_t at;
    } rows[] = {
#define ROW(name, version) {#name, version, offsetof(cohi_cuda_library, name)},
        COHI_CUDA_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = NULL;
        CUresult result =
            address(rows[i].name, &function, rows[i].version, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
        if (result != CUDA_SUCCESS || !function)
            return cohi_fail(COH_NOT_AVAILABLE,
                             "cuda: " FILE_NAME " has no function %s of CUDA %d.%d", rows[i].name,
                             rows[i].version / 1000, rows[i].version % 1000 / 10);
        memcpy((char *)library + rows[i].at, &function, sizeof function);
    }
    return COH_OK;
}

/* A driver that is there, new enough, and lets itself be started; it also counts the cards. */
static coh_status start(cohi_cuda_library *library)
{
    int cards = 0;
    CUresult result = library->cuInit(0);
    if (result == CUDA_SUCCESS)
        result = library->cuDeviceGetCount(&cards);
    if (result != CUDA_SUCCESS) {
        const char *words = NULL;
        library->cuGetErrorString(result, &words);
        return cohi_fail(COH_NOT_AVAILABLE, "cuda: the driver cannot be started: %s",
                         words ? words : "it does not say why");
    }
    if (cards == 0)
        return cohi_fail(COH_NOT_AVAILABLE, "cuda: the driver knows of no card");
    return COH_OK;
}

static coh_status open_library(cohi_cuda_library *library)
{
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return cohi_fail(COH_NOT_AVAILABLE, "cuda: the driver cannot be loaded: %s", dlerror());
    get_version *version;
    get_address *address;
    *(void **)&version = dlsym(handle, "cuDriverGetVersion");
    *(void **)&address = dlsym(handle, "cuGetProcAddress_v2");
    if (version && version(&library->version) == CUDA_SUCCESS
        && (library->version < LEAST_VERSION || !address))
        return cohi_fail(
            COH_NOT_AVAILABLE, "cuda: the driver is of CUDA %d.%d; it must be of %d.0 or later",
            library->version / 1000, library->version % 1000 / 10, LEAST_VERSION / 1000);
    if (!version || !address)
        return cohi_fail(COH_NOT_AVAILABLE, "cuda: " FILE_NAME " is not a driver's library: it has "
                                            "no function cuGetProcAddress_v2");
    coh_status status = find_functions(address, library);
    return status == COH_OK ? start(library) : status;
}

coh_status cohi_cuda_library_open(const cohi_cuda_library **library)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cohi_cuda_library opened;
    static pid_t opener; /* 0: it is not open */
    coh_status status = COH_OK;
    pthread_mutex_lock(&lock);
    if (opener == 0)
        status = open_library(&opened);
    else if (opener != getpid())
        status = cohi_fail(COH_NOT_AVAILABLE,
                           "cuda: this process was forked from one (%d) that uses the card, and "
                           "CUDA does not work in such a child; exec a program first",
                           (int)opener);
    if (status == COH_OK)
        opener = getpid();
    pthread_mutex_unlock(&lock);
    *library = &opened;
    return status;
}

static coh_status status_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return COH_NO_MEMORY;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
        return COH_NOT_AVAILABLE;
    default:
        return COH_TRANSPORT;
    }
}

coh_status cohi_cuda_fail(const cohi_cuda_library *library, CUresult result, const char *what, ...)
{
    char text[512];
    const char *name = NULL, *words = NULL;
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    library->cuGetErrorName(result, &name);
    library->cuGetErrorString(result, &words);
    return cohi_fail(status_of(result), "cuda: %s: %s (%s)", text, words ? words : "unknown error",
                     name ? name : "no name");
}
