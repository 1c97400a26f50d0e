/* cuda.c - the place of CUDA devices in the table; they come with a module of their own. */
#include "device/kind.h"

static const char *cuda_probe(void)
{
    return "this build has no CUDA module";
}

const cohi_device_kind cohi_device_kind_cuda = {.probe = cuda_probe};
