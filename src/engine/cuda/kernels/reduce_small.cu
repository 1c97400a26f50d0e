/* reduce_small.cu - reductions of floats of 16 and 8 bits. */
#include "collective.cuh"

COHI_CUDA_KERNEL(bf16_sum, bf16, SUM)
COHI_CUDA_KERNEL(f16_sum, f16, SUM)
COHI_CUDA_KERNEL(bf16, bf16, ANY)
COHI_CUDA_KERNEL(f16, f16, ANY)
COHI_CUDA_KERNEL(f8e4m3, f8e4m3, ANY)
COHI_CUDA_KERNEL(f8e5m2, f8e5m2, ANY)
COHI_CUDA_FEW_KERNELS(bf16_sum, bf16, SUM)
COHI_CUDA_FEW_KERNELS(f16_sum, f16, SUM)
