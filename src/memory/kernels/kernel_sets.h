/* kernel_sets.h - the tables that the kernels_*.c export; a build has those of its architecture. */
#ifndef COHI_MEMORY_KERNELS_KERNEL_SETS_H
#define COHI_MEMORY_KERNELS_KERNEL_SETS_H

#include "memory/kernels/kernels.h"

extern const cohi_kernels cohi_kernels_avx512bf16;
extern const cohi_kernels cohi_kernels_avx512;
extern const cohi_kernels cohi_kernels_avx2;
extern const cohi_kernels cohi_kernels_neon;
extern const cohi_kernels cohi_kernels_portable;

#endif
