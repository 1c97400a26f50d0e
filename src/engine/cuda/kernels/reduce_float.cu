/* reduce_float.cu - reductions of f32 and f64. */
#include "collective.cuh"

COHI_CUDA_KERNEL(f32_sum, f32, SUM)
COHI_CUDA_KERNEL(f32, f32, ANY)
COHI_CUDA_KERNEL(f64, f64, ANY)
COHI_CUDA_FEW_KERNELS(f32_sum, f32, SUM)
