/* own.h - reductions by a function of the program. */
#ifndef COHI_MEMORY_OWN_H
#define COHI_MEMORY_OWN_H

#include <cohort.h>

/* The function, as a call was given it. */
typedef struct cohi_own {
    coh_reduce_function *function;
    size_t element; /* bytes, 1 to COH_OWN_ELEMENT_MAX */
    void *user;
} cohi_own;

/*
 * As cohi_reduce and cohi_scan (reduce.h), with elements and an operation of the program's own:
 * operands are combined in the order of the sources, and targets may be sources in the same way.
 * The function is given memory that is aligned for any type, whatever the pointers here are.
 */
void cohi_own_reduce(const cohi_own *own, void *const *targets, int target_count,
                     const void *const *sources, int source_count, size_t count);
void cohi_own_scan(const cohi_own *own, void *const *targets, const void *const *sources,
                   int members, size_t count);

#endif
