#include "memory/kernels/lanes_portable.h"

#include "memory/kernels/kernel_table.h"

const cohi_kernels cohi_kernels_portable = KERNEL_TABLE("portable");
