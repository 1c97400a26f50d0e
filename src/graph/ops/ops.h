/*
 * Room: graph/ops.
 *
 * The operations that are built in, one table a file: their rules, shapes and kernels for the
 * CPU.
 * Uses cohort-graph.h, the registry's rows (graph/registry.h) and graph/cpu.
 * Hides each operation behind its row: nothing else asks which operation it is.
 */
/* ops.h - what the shape functions of built-in operations have in common. */
#ifndef COHI_GRAPH_OPS_OPS_H
#define COHI_GRAPH_OPS_OPS_H

#include "graph/graph.h"
#include "graph/registry.h"

/* A row of a table: COHI_OP("add", 2, 2, rules or NULL, ...fields by name). */
#define COHI_OP(op_name, least, most, ...) \
    .op = {.size = sizeof(coh_op),         \
           .name = op_name,                \
           .least_inputs = least,          \
           .most_inputs = most,            \
           __VA_ARGS__}

#define COHI_RULES(list) .rules = list, .rule_count = (int)(sizeof(list) / sizeof *(list))

#define COHI_TABLE(list)                    \
    {                                       \
        list, sizeof(list) / sizeof *(list) \
    }

/* COH_INVALID_ARGUMENT naming the input, its type and the wanted one. */
coh_status cohi_need_dtype(const coh_op_call *call, int input, coh_dtype dtype);

/* All inputs of that type. */
coh_status cohi_need_dtypes(const coh_op_call *call, coh_dtype dtype);

/* COH_LENGTH_MISMATCH naming the input, its shape and what was wanted. */
coh_status cohi_fail_shape(const coh_op_call *call, int input, const char *wanted);

/* At least one dimension. */
coh_status cohi_need_dims(const coh_op_call *call, int input, int least);

/* A vector of `length`. */
coh_status cohi_need_vector(const coh_op_call *call, int input, uint64_t length);

/* The length of the last dimension, and how many rows there are of it. */
static inline uint64_t cohi_last(const coh_shape *shape)
{
    return shape->dims > 0 ? shape->dim[shape->dims - 1] : 1;
}

static inline uint64_t cohi_rows(const coh_shape *shape)
{
    return coh_shape_count(shape) / cohi_last(shape);
}

/* Sets the output to the first input's type and shape. */
static inline void cohi_like_first(coh_op_call *call)
{
    call->output.dtype = call->inputs[0].dtype;
    call->output.shape = call->inputs[0].shape;
}

/* A dimension, counted from the end when negative; -1 when there is none. */
static inline int cohi_axis(const coh_shape *shape, int64_t axis)
{
    if (axis < 0)
        axis += shape->dims;
    return axis >= 0 && axis < shape->dims ? (int)axis : -1;
}

#endif
