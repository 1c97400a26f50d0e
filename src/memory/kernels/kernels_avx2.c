#include "memory/kernels/lanes_avx2.h"

#include "memory/kernels/kernel_table.h"

const cohi_kernels cohi_kernels_avx2 = KERNEL_TABLE("avx2");
