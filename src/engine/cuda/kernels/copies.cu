/* copies.cu - collectives that move elements as they are, and barriers. */
#include "collective.cuh"

COHI_CUDA_KERNEL(copy, bytes_only, ANY)
COHI_CUDA_FEW_KERNELS(copy, bytes_only, ANY)
