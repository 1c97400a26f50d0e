/*
 * program.h - a graph after compiling.
 *
 * Values keep the numbers that they had in the graph. Where a value's bytes are is decided in
 * layout.c and resolved to addresses before a run (parameters may have been bound anew). A step is
 * what the executor calls: one operation, or a chain of element-wise ones, of which the last
 * member's value is the step's.
 */
#ifndef COHI_GRAPH_PROGRAM_H
#define COHI_GRAPH_PROGRAM_H

#include "graph/graph.h"
#include "graph/registry.h"

#include <stdbool.h>

/* Where a value's bytes are. */
typedef enum cohi_value_place {
    COHI_PLACE_NOWHERE = 0, /* nobody needs it, or it stays inside a chain */
    COHI_PLACE_ARENA,
    COHI_PLACE_BOUND, /* the caller's: a parameter */
    COHI_PLACE_CONSTANTS,
    COHI_PLACE_STATE
} cohi_value_place;

typedef struct cohi_slot_value {
    cohi_value_kind kind;
    char name[COH_NAME_BYTES];
    coh_dtype dtype;
    coh_shape shape;
    uint64_t bytes;
    cohi_value_place place;
    int base;          /* the value in whose bytes it lies; itself when it has its own */
    uint64_t base_at;  /* from that byte on */
    uint64_t at;       /* in the constants' buffer */
    int node;          /* of the plan */
    int first, last;   /* steps: written, read last */
    void *data;        /* resolved */
    coh_handle *state; /* opened */
} cohi_slot_value;

typedef struct cohi_program_node {
    int value;
    const cohi_graph_op *op;
    coh_op_kernel *kernel; /* NULL: by range */
    coh_op_call call;
    coh_tensor inputs[COH_OP_INPUTS_MAX];
    int from[COH_OP_INPUTS_MAX]; /* values */
    char *text;                  /* that the attributes point into */
    coh_attribute *attributes;
    int chained;     /* the node before it in its chain, or -1 */
    int chain_input; /* which input that is */
    bool inner;      /* it is not the last of its chain, so no step of its own */
    bool streams;    /* by range, and so large that it is written past the caches */
    int scratch;     /* plan's node, or COH_NO_NODE; blocks of a chain too */
} cohi_program_node;

typedef struct cohi_port {
    char name[COH_NAME_BYTES];
    int value;
} cohi_port;

struct coh_program {
    coh_device *device;
    coh_device_kind kind;
    coh_registry *registry; /* its own, where the caller gave none */
    coh_world *world;
    cohi_slot_value *values;
    int value_count;
    cohi_names value_names;
    cohi_program_node *nodes; /* in the order of running */
    int node_count;
    int step_count;
    cohi_port *outputs;
    int output_count;
    int input_count;
    coh_plan *plan;
    coh_arena *arena;
    coh_buffer *constants;
    coh_stream *stream; /* to launch on; NULL on the cpu */
    bool resolved;
    bool timed;
    bool *seen; /* [value_count]: inputs of a run */
    uint64_t runs, run_ns, communication_ns;
};

/* Elements of a chain that are computed at a time: a block of f32 in and one out stay in the first
 * level cache. Measured: see docs/performance.md. */
enum {
    COHI_CHAIN_ELEMENTS = 2048,
    COHI_ELEMENT_BYTES_MAX = 8,
    COHI_CHAIN_BYTES = COHI_CHAIN_ELEMENTS * COHI_ELEMENT_BYTES_MAX
};

/* compile.c: resolves names and shapes; fills values, nodes in order, outputs. */
coh_status cohi_program_link(coh_program *program, const coh_graph *graph,
                             const coh_program_options *options);

/* chain.c: joins element-wise operations. */
void cohi_program_chain(coh_program *program);

/* layout.c: gives every value its place and makes the arena. `graph` has the constants. `status` is
 * how compiling went so far: with a world, a failure is told to the other ranks here. */
coh_status cohi_program_lay_out(coh_program *program, const coh_graph *graph,
                                const coh_program_options *options, coh_status status);

/* layout.c: addresses, before a run. COH_INVALID_ARGUMENT naming a parameter that is not bound. */
coh_status cohi_program_resolve(coh_program *program);

/* execute.c: the run has failed with `status` before its node `first`. Makes the collectives from
 * there on as calls that are refused. Returns `status`, with its own error message. */
coh_status cohi_program_give_up(const coh_program *program, int first, coh_status status);

/* execute.c: all steps; `stream` may be NULL. Where one fails the rest is given up. */
coh_status cohi_program_steps(coh_program *program, coh_stream *stream);

#endif
