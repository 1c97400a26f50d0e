#include "memory/kernels/lanes_avx512.h"

#include "memory/kernels/kernel_table.h"

const cohi_kernels cohi_kernels_avx512 = KERNEL_TABLE("avx512");
