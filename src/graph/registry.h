/* registry.h - operations by name, with their kernels; the rows that are built in. */
#ifndef COHI_GRAPH_REGISTRY_H
#define COHI_GRAPH_REGISTRY_H

#include "graph/names.h"

enum {
#define COHI_COUNT_KIND(constant, value, name) +1
    COHI_DEVICE_KINDS = 0 COH_DEVICE_TABLE(COHI_COUNT_KIND)
#undef COHI_COUNT_KIND
};

/* An operation in a registry. What `op` points to belongs to this. */
typedef struct cohi_op {
    coh_op op;
    coh_op_kernel *kernels[COHI_DEVICE_KINDS];
    char name[COH_NAME_BYTES];
} cohi_op;

/* NULL when there is none of the name. */
const cohi_op *cohi_registry_find(const coh_registry *registry, const char *name);

/* ---- what is built in: one table a file ---- */

typedef struct cohi_builtin {
    coh_op op;
    coh_op_kernel *cpu; /* NULL: by op.range */
} cohi_builtin;

typedef struct cohi_builtins {
    const cohi_builtin *rows;
    size_t count;
} cohi_builtins;

extern const cohi_builtins cohi_elementwise_ops;
extern const cohi_builtins cohi_norm_ops;
extern const cohi_builtins cohi_matmul_ops;
extern const cohi_builtins cohi_layout_ops;
extern const cohi_builtins cohi_reduce_ops;
extern const cohi_builtins cohi_attention_ops;
extern const cohi_builtins cohi_lookup_ops;
extern const cohi_builtins cohi_collective_ops;

/* ops_collective.c: makes the collective that the node describes, if it does, without memory, so that
 * it is refused, and its place in the team's sequence is taken. Fails when it was not that which the
 * call ended with. */
coh_status cohi_collective_refuse(const coh_op_call *call);

#endif
