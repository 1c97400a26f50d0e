/* reduce_integer.cu - reductions of integers and bool. */
#include "collective.cuh"

COHI_CUDA_KERNEL(i8, i8, ANY)
COHI_CUDA_KERNEL(i16, i16, ANY)
COHI_CUDA_KERNEL(i32, i32, ANY)
COHI_CUDA_KERNEL(i64, i64, ANY)
COHI_CUDA_KERNEL(u8, u8, ANY)
COHI_CUDA_KERNEL(u16, u16, ANY)
COHI_CUDA_KERNEL(u32, u32, ANY)
COHI_CUDA_KERNEL(u64, u64, ANY)
COHI_CUDA_KERNEL(bool, boolean, ANY)
