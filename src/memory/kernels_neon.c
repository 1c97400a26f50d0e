#include "memory/lanes_neon.h"

#include "memory/kernel_table.h"

const cohi_kernels cohi_kernels_neon = KERNEL_TABLE("neon");
