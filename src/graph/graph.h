/*
 * Room: graph.
 *
 * Graphs: building, text, the registry of operations, compiling, layout, running.
 * Uses cohort-ml.h, the clock of base, device/failure.h, graph/ops and graph/cpu.
 * Hides how values share memory and which operations are joined.
 */
/*
 * graph.h - a graph as it is built: values by name, nothing resolved.
 *
 * Values and outputs are in the order in which they were added, which is also the order of the
 * text.
 */
#ifndef COHI_GRAPH_GRAPH_H
#define COHI_GRAPH_GRAPH_H

#include "graph/names.h"

typedef enum cohi_value_kind {
    COHI_INPUT,
    COHI_PARAMETER,
    COHI_CONSTANT,
    COHI_STATE,
    COHI_NODE /* an operation's */
} cohi_value_kind;

/* "input", "op": the first word of the value's line. */
const char *cohi_value_kind_name(cohi_value_kind kind);

typedef struct cohi_value {
    cohi_value_kind kind;
    char name[COH_NAME_BYTES];
    coh_dtype dtype; /* of all but nodes, as is the shape */
    coh_shape shape;
    void *data; /* a constant's */
    char op[COH_NAME_BYTES];
    char (*inputs)[COH_NAME_BYTES];
    int input_count;
    char *attributes; /* words with single blanks between; may be empty */
} cohi_value;

typedef struct cohi_graph_output {
    char name[COH_NAME_BYTES];
    char value[COH_NAME_BYTES];
} cohi_graph_output;

struct coh_graph {
    cohi_value **values; /* each by itself, so that names stay where they are */
    int value_count;
    int value_room;
    cohi_names value_names;
    cohi_graph_output **outputs;
    int output_count;
    int output_room;
    cohi_names output_names;
};

/* Writes "[4,128]" into `text`, for errors. */
enum { COHI_SHAPE_TEXT_BYTES = COH_DIMS_MAX * 21 + 3 };
const char *cohi_shape_text(const coh_shape *shape, char text[COHI_SHAPE_TEXT_BYTES]);

int cohi_shape_equal(const coh_shape *left, const coh_shape *right);

#endif
