#include "memory/lanes_portable.h"

#include "memory/kernel_table.h"

const cohi_kernels cohi_kernels_portable = KERNEL_TABLE("portable");
