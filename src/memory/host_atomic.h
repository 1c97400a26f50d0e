/*
 * host_atomic.h - read-modify-writes on host memory, for every type and operation that has them.
 */
#ifndef COHI_MEMORY_HOST_ATOMIC_H
#define COHI_MEMORY_HOST_ATOMIC_H

#include <cohort.h>

/* Applies to the aligned word at `target`; the old value goes to `result`. `compare` is for
 * COMPARE_SWAP, `operand` for all but FETCH. */
typedef void cohi_host_atomic(void *target, const void *operand, const void *compare, void *result);

/* NULL where the type does not have the operation. */
cohi_host_atomic *cohi_host_atomic_find(coh_atomic_op op, coh_dtype dtype);

#endif
