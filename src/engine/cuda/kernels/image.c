#include "engine/cuda/kernels/image.h"

#include "base/error.h"
#include "engine/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 32 };

struct cohi_cuda_image {
    int count;
    CUmodule modules[FILES_MAX];
};

/* All of them now: loading one later may wait for a kernel that waits for another rank. */
coh_status cohi_cuda_image_open(cohi_endpoint *endpoint)
{
    const cohi_cuda_library *library = endpoint->library;
    endpoint->image = calloc(1, sizeof *endpoint->image);
    if (!endpoint->image)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for the kernels");
    for (const cohi_cuda_image_file *file = cohi_cuda_image_files; file->name; file++) {
        CUmodule *module = &endpoint->image->modules[endpoint->image->count];
        CUresult result = endpoint->image->count < FILES_MAX
                              ? library->cuModuleLoadData(module, file->bytes)
                              : CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS) {
            coh_status status = cohi_cuda_fail(
                library, result,
                "the kernels of %s cannot be loaded on card %d, %s, of compute "
                "capability %d.%d",
                file->name, endpoint->device, endpoint->name, endpoint->major, endpoint->minor);
            cohi_cuda_image_close(endpoint);
            return status;
        }
        endpoint->image->count++;
    }
    return COH_OK;
}

void cohi_cuda_image_close(cohi_endpoint *endpoint)
{
    for (int i = 0; endpoint->image && i < endpoint->image->count; i++)
        (void)endpoint->library->cuModuleUnload(endpoint->image->modules[i]);
    free(endpoint->image);
    endpoint->image = NULL;
}

coh_status cohi_cuda_image_find(const cohi_endpoint *endpoint, const char *file, const char *name,
                                CUfunction *function)
{
    CUresult result = CUDA_ERROR_NOT_FOUND;
    for (int i = 0; i < endpoint->image->count; i++)
        if (strcmp(cohi_cuda_image_files[i].name, file) == 0)
            result =
                endpoint->library->cuModuleGetFunction(function, endpoint->image->modules[i], name);
    if (result == CUDA_SUCCESS)
        return COH_OK;
    return cohi_cuda_fail(endpoint->library, result, "there is no kernel %s in %s", name, file);
}
