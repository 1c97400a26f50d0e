#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 32 };

const char *cohi_value_kind_name(cohi_value_kind kind)
{
    static const char *const names[] = {[COHI_INPUT] = "input",
                                        [COHI_PARAMETER] = "parameter",
                                        [COHI_CONSTANT] = "constant",
                                        [COHI_STATE] = "state",
                                        [COHI_NODE] = "op"};
    return names[kind];
}

uint64_t coh_shape_count(const coh_shape *shape)
{
    uint64_t count = 1;
    if (!shape || shape->dims < 0 || shape->dims > COH_DIMS_MAX)
        return 0;
    for (int i = 0; i < shape->dims; i++)
        if (__builtin_mul_overflow(count, shape->dim[i], &count))
            return 0;
    return count;
}

uint64_t coh_shape_bytes(const coh_shape *shape, coh_dtype dtype)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(coh_shape_count(shape), coh_dtype_size(dtype), &bytes)
        || bytes > (uint64_t)INT64_MAX)
        return 0;
    return bytes;
}

const char *cohi_shape_text(const coh_shape *shape, char text[COHI_SHAPE_TEXT_BYTES])
{
    size_t at = 0;
    text[at++] = '[';
    for (int i = 0; i < shape->dims; i++)
        at += (size_t)snprintf(text + at, COHI_SHAPE_TEXT_BYTES - at, "%s%llu", i ? "," : "",
                               (unsigned long long)shape->dim[i]);
    text[at++] = ']';
    text[at] = '\0';
    return text;
}

int cohi_shape_equal(const coh_shape *left, const coh_shape *right)
{
    return left->dims == right->dims
           && memcmp(left->dim, right->dim, (size_t)left->dims * sizeof left->dim[0]) == 0;
}

coh_status coh_graph_create(coh_graph **graph)
{
    if (!graph)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_create: graph is NULL");
    coh_graph *made = calloc(1, sizeof *made);
    if (!made)
        return coh_fail(COH_NO_MEMORY, "coh_graph_create: no memory for a graph");
    *graph = made;
    return COH_OK;
}

static void free_value(cohi_value *value)
{
    free(value->data);
    free(value->inputs);
    free(value->attributes);
    free(value);
}

void coh_graph_destroy(coh_graph *graph)
{
    if (!graph)
        return;
    for (int i = 0; i < graph->value_count; i++)
        free_value(graph->values[i]);
    for (int i = 0; i < graph->output_count; i++)
        free(graph->outputs[i]);
    free(graph->values);
    free(graph->outputs);
    cohi_names_free(&graph->value_names);
    cohi_names_free(&graph->output_names);
    free(graph);
}

/* Makes room for one more pointer at *list. */
static coh_status make_room(void ***list, int count, int *room)
{
    if (count < *room)
        return COH_OK;
    int larger = *room ? 2 * *room : FIRST_ROOM;
    void **moved = realloc(*list, (size_t)larger * sizeof **list);
    if (!moved)
        return coh_fail(COH_NO_MEMORY, "no memory for %d values of a graph", larger);
    *list = moved;
    *room = larger;
    return COH_OK;
}

static coh_status check_name(const cohi_names *taken, const char *call, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (!cohi_name_valid(name, length))
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: '%.128s' is not a name: it takes 1 to %d letters, digits and ._/:-, "
                        "and not a lone -",
                        call, name ? name : "", COH_NAME_BYTES - 1);
    if (cohi_names_find(taken, name, length) >= 0)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the name '%s' is taken", call, name);
    return COH_OK;
}

static coh_status new_value(coh_graph *graph, const char *call, cohi_value_kind kind,
                            const char *name, cohi_value **value)
{
    if (!graph)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: graph is NULL", call);
    coh_status status = check_name(&graph->value_names, call, name);
    if (status != COH_OK)
        return status;
    cohi_value *made = calloc(1, sizeof *made);
    if (!made)
        return coh_fail(COH_NO_MEMORY, "%s: no memory for '%s'", call, name);
    made->kind = kind;
    strcpy(made->name, name);
    *value = made;
    return COH_OK;
}

/* Takes the value over, or frees it. */
static coh_status keep_value(coh_graph *graph, cohi_value *value)
{
    void **list = (void **)graph->values;
    coh_status status = make_room(&list, graph->value_count, &graph->value_room);
    graph->values = (cohi_value **)list;
    if (status == COH_OK)
        status = cohi_names_add(&graph->value_names, value->name, graph->value_count);
    if (status != COH_OK) {
        free_value(value);
        return status;
    }
    graph->values[graph->value_count++] = value;
    return COH_OK;
}

static coh_status check_kind(const char *call, const char *name, coh_dtype dtype,
                             const coh_shape *shape)
{
    if (!coh_dtype_name(dtype))
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' has the unknown type %d", call, name,
                        (int)dtype);
    if (!shape || shape->dims < 0 || shape->dims > COH_DIMS_MAX)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' has %d dimensions; it may have 0 to %d",
                        call, name, shape ? shape->dims : -1, COH_DIMS_MAX);
    if (coh_shape_bytes(shape, dtype) == 0) {
        char text[COHI_SHAPE_TEXT_BYTES];
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' cannot have the shape %s", call, name,
                        cohi_shape_text(shape, text));
    }
    return COH_OK;
}

/* An input, parameter or state; a constant when there is data. */
static coh_status add_plain(coh_graph *graph, const char *call, cohi_value_kind kind,
                            const char *name, coh_dtype dtype, const coh_shape *shape,
                            const void *data)
{
    cohi_value *value = NULL;
    coh_status status = new_value(graph, call, kind, name, &value);
    if (status != COH_OK)
        return status;
    status = check_kind(call, name, dtype, shape);
    if (status == COH_OK && kind == COHI_CONSTANT) {
        size_t bytes = coh_shape_bytes(shape, dtype);
        value->data = data ? malloc(bytes) : NULL;
        if (value->data)
            memcpy(value->data, data, bytes);
        else
            status = coh_fail(data ? COH_NO_MEMORY : COH_INVALID_ARGUMENT,
                              "%s: no %s for '%s' of %zu bytes", call, data ? "memory" : "data",
                              name, bytes);
    }
    if (status != COH_OK) {
        free_value(value);
        return status;
    }
    value->dtype = dtype;
    value->shape = *shape;
    return keep_value(graph, value);
}

coh_status coh_graph_input(coh_graph *graph, const char *name, coh_dtype dtype,
                           const coh_shape *shape)
{
    return add_plain(graph, "coh_graph_input", COHI_INPUT, name, dtype, shape, NULL);
}

coh_status coh_graph_parameter(coh_graph *graph, const char *name, coh_dtype dtype,
                               const coh_shape *shape)
{
    return add_plain(graph, "coh_graph_parameter", COHI_PARAMETER, name, dtype, shape, NULL);
}

coh_status coh_graph_constant(coh_graph *graph, const char *name, coh_dtype dtype,
                              const coh_shape *shape, const void *data)
{
    return add_plain(graph, "coh_graph_constant", COHI_CONSTANT, name, dtype, shape, data);
}

coh_status coh_graph_state(coh_graph *graph, const char *name, coh_dtype dtype,
                           const coh_shape *shape)
{
    return add_plain(graph, "coh_graph_state", COHI_STATE, name, dtype, shape, NULL);
}

/* The next word of *text: its start and length; 0 at the end. */
static size_t next_word(const char **text)
{
    *text += strspn(*text, " \t");
    return strcspn(*text, " \t");
}

static int count_words(const char *text)
{
    int count = 0;
    for (size_t length; (length = next_word(&text)) > 0; text += length)
        count++;
    return count;
}

static coh_status set_inputs(cohi_value *value, const char *inputs)
{
    int count = count_words(inputs);
    if (count > COH_OP_INPUTS_MAX)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_op: '%s' has %d inputs; most are %d",
                        value->name, count, COH_OP_INPUTS_MAX);
    value->inputs = calloc((size_t)count + 1, sizeof *value->inputs);
    if (!value->inputs)
        return coh_fail(COH_NO_MEMORY, "coh_graph_op: no memory for '%s'", value->name);
    for (size_t length; (length = next_word(&inputs)) > 0; inputs += length) {
        if (!cohi_name_valid(inputs, length))
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_op: '%s' has the input '%.*s', "
                            "which is not a name",
                            value->name, (int)(length < 128 ? length : 128), inputs);
        memcpy(value->inputs[value->input_count++], inputs, length);
    }
    return COH_OK;
}

/* Keeps the words with one blank between them; each must be name=value. */
static coh_status set_attributes(cohi_value *value, const char *attributes)
{
    value->attributes = calloc(1, strlen(attributes) + 1);
    if (!value->attributes)
        return coh_fail(COH_NO_MEMORY, "coh_graph_op: no memory for '%s'", value->name);
    char *end = value->attributes;
    for (size_t length; (length = next_word(&attributes)) > 0; attributes += length) {
        size_t name = strcspn(attributes, "= \t");
        if (name >= length || !cohi_name_valid(attributes, name) || memchr(attributes, '\n', length)
            || memchr(attributes, '\r', length))
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_op: '%s' has the attribute '%.*s', which is not name=value",
                            value->name, (int)(length < 128 ? length : 128), attributes);
        if (end > value->attributes)
            *end++ = ' ';
        memcpy(end, attributes, length);
        end += length;
    }
    return COH_OK;
}

coh_status coh_graph_op(coh_graph *graph, const char *name, const char *op, const char *inputs,
                        const char *attributes)
{
    cohi_value *value = NULL;
    coh_status status = new_value(graph, "coh_graph_op", COHI_NODE, name, &value);
    if (status != COH_OK)
        return status;
    if (!cohi_name_valid(op, op ? strlen(op) : 0))
        status = coh_fail(COH_INVALID_ARGUMENT,
                          "coh_graph_op: '%s' has the operation '%.128s', which is not a name",
                          name, op ? op : "");
    else
        strcpy(value->op, op);
    if (status == COH_OK)
        status = set_inputs(value, inputs ? inputs : "");
    if (status == COH_OK)
        status = set_attributes(value, attributes ? attributes : "");
    if (status != COH_OK) {
        free_value(value);
        return status;
    }
    return keep_value(graph, value);
}

coh_status coh_graph_output(coh_graph *graph, const char *name, const char *value)
{
    if (!graph)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_output: graph is NULL");
    coh_status status = check_name(&graph->output_names, "coh_graph_output", name);
    if (status != COH_OK)
        return status;
    if (!cohi_name_valid(value, value ? strlen(value) : 0))
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_graph_output: '%s' is of '%.128s', which is not a name", name,
                        value ? value : "");
    void **list = (void **)graph->outputs;
    status = make_room(&list, graph->output_count, &graph->output_room);
    graph->outputs = (cohi_graph_output **)list;
    cohi_graph_output *output = status == COH_OK ? calloc(1, sizeof *output) : NULL;
    if (!output)
        return coh_fail(COH_NO_MEMORY, "coh_graph_output: no memory for '%s'", name);
    strcpy(output->name, name);
    strcpy(output->value, value);
    status = cohi_names_add(&graph->output_names, output->name, graph->output_count);
    if (status != COH_OK) {
        free(output);
        return status;
    }
    graph->outputs[graph->output_count++] = output;
    return COH_OK;
}
