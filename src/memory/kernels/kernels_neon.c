#include "memory/kernels/lanes_neon.h"

#include "memory/kernels/kernel_table.h"

const cohi_kernels cohi_kernels_neon = KERNEL_TABLE("neon");
