/* From names to numbers: which operations run, in which order, on what, with which shapes. */
#include "graph/attributes.h"
#include "graph/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* While names are resolved. */
typedef struct linker {
    coh_program *program;
    const coh_graph *graph;
    const coh_program_options *options;
    const coh_registry *registry;
    char *marks; /* [values]: 0 unseen, 1 on the way, 2 done */
    int *path;   /* [values]: the operations on the way */
    int *next;   /* [values]: which input of it is looked at */
} linker;

static const cohi_value *value_of(const linker *link, int index)
{
    return link->graph->values[index];
}

/* "node 'y' (matmul): ", then what the last error said. */
static coh_status blame(const cohi_value *value, coh_status status)
{
    return coh_fail(status, "coh_graph_compile: node '%s' (%s): %s", value->name, value->op,
                    coh_last_error());
}

/* ---- order ---- */

static int input_index(const linker *link, const cohi_value *value, int input)
{
    return cohi_names_find(&link->graph->value_names, value->inputs[input],
                           strlen(value->inputs[input]));
}

/* "c <- b <- a <- c"; where that does not fit, "c <- b <- ... <- c". */
static void describe_cycle(const linker *link, int first, int depth, char *text, size_t room)
{
    const char *again = value_of(link, link->path[first])->name;
    size_t at = 0, end = strlen("... <- ") + strlen(again) + 1;
    for (int i = first; i < depth; i++) {
        const char *name = value_of(link, link->path[i])->name;
        if (at + strlen(name) + strlen(" <- ") + end > room) {
            at += (size_t)snprintf(text + at, room - at, "... <- ");
            break;
        }
        at += (size_t)snprintf(text + at, room - at, "%s <- ", name);
    }
    snprintf(text + at, room - at, "%s", again);
}

static coh_status fail_cycle(const linker *link, int depth, int again)
{
    char text[512];
    int first = 0;
    while (link->path[first] != again)
        first++;
    describe_cycle(link, first, depth, text, sizeof text);
    const cohi_value *value = value_of(link, again);
    return coh_fail(COH_INVALID_ARGUMENT,
                    "coh_graph_compile: node '%s' (%s): it depends on itself: %s", value->name,
                    value->op, text);
}

static void append_node(linker *link, int index)
{
    cohi_node *node = &link->program->nodes[link->program->node_count++];
    node->value = index;
    node->chained = -1;
    node->scratch = COH_NO_NODE;
}

/* One step down from, or back to, the operation at the end of the path. */
static coh_status advance(linker *link, int *depth)
{
    int index = link->path[*depth - 1];
    const cohi_value *value = value_of(link, index);
    if (link->next[index] == value->input_count) {
        link->marks[index] = 2;
        append_node(link, index);
        (*depth)--;
        return COH_OK;
    }
    int input = link->next[index]++;
    int from = input_index(link, value, input);
    if (from < 0)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_graph_compile: node '%s' (%s): its input '%s' is not in the graph",
                        value->name, value->op, value->inputs[input]);
    if (value_of(link, from)->kind != COHI_NODE || link->marks[from] == 2)
        return COH_OK;
    if (link->marks[from] == 1)
        return fail_cycle(link, *depth, from);
    link->marks[from] = 1;
    link->path[(*depth)++] = from;
    return COH_OK;
}

/* Appends the operation after all that it needs. */
static coh_status visit(linker *link, int index)
{
    int depth = 1;
    coh_status status = COH_OK;
    if (link->marks[index] == 2 || value_of(link, index)->kind != COHI_NODE)
        return COH_OK;
    link->path[0] = index;
    link->marks[index] = 1;
    while (depth > 0 && status == COH_OK)
        status = advance(link, &depth);
    return status;
}

static bool changes_state(const linker *link, const cohi_value *value)
{
    const cohi_op *op =
        value->kind == COHI_NODE ? cohi_registry_find(link->registry, value->op) : NULL;
    return op && op->op.writes != 0;
}

/* Marks what outputs and states need, so that it can be appended in the order of adding. */
static coh_status mark_needed(linker *link, char *needed)
{
    const coh_graph *graph = link->graph;
    int depth = 0;
    for (int i = 0; i < graph->output_count; i++) {
        const cohi_output *output = graph->outputs[i];
        int index = cohi_names_find(&graph->value_names, output->value, strlen(output->value));
        if (index < 0)
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_compile: output '%s' is of '%s', which is not in the graph",
                            output->name, output->value);
        strcpy(link->program->outputs[i].name, output->name);
        link->program->outputs[i].value = index;
        if (!needed[index])
            link->path[depth++] = index;
        needed[index] = 1;
    }
    for (int i = 0; i < graph->value_count; i++)
        if (!needed[i] && changes_state(link, graph->values[i])) {
            needed[i] = 1;
            link->path[depth++] = i;
        }
    while (depth > 0) {
        const cohi_value *value = value_of(link, link->path[--depth]);
        for (int i = 0; i < value->input_count; i++) {
            int from = input_index(link, value, i);
            if (from >= 0 && !needed[from]) {
                needed[from] = 1;
                link->path[depth++] = from;
            }
        }
    }
    return COH_OK;
}

static coh_status order_nodes(linker *link)
{
    int count = link->graph->value_count;
    char *needed = calloc((size_t)count + 1, 1);
    coh_status status = needed ? mark_needed(link, needed)
                               : coh_fail(COH_NO_MEMORY, "coh_graph_compile: no memory");
    for (int i = 0; i < count && status == COH_OK; i++)
        if (needed[i])
            status = visit(link, i);
    free(needed);
    return status;
}

/* ---- each node ---- */

static coh_status find_team(const linker *link, const cohi_node *node, coh_team **team)
{
    const coh_op *op = &node->op->op;
    const coh_program_options *options = link->options;
    for (int i = 0; i < op->rule_count; i++) {
        if (strcmp(op->rules[i].name, "team") != 0)
            continue;
        const char *name = node->attributes[i].text;
        for (size_t t = 0; t < options->team_count; t++)
            if (strcmp(options->teams[t].name, name) == 0) {
                *team = options->teams[t].team;
                return COH_OK;
            }
        if (strcmp(name, "world") == 0 && options->world) {
            *team = coh_team_world(options->world);
            return COH_OK;
        }
        return coh_fail(COH_INVALID_ARGUMENT, "no team '%s' was given to coh_graph_compile", name);
    }
    return COH_OK;
}

static coh_status link_op(const linker *link, cohi_node *node, const cohi_value *value)
{
    node->op = cohi_registry_find(link->registry, value->op);
    if (!node->op)
        return coh_fail(COH_INVALID_ARGUMENT, "there is no such operation");
    const coh_op *op = &node->op->op;
    if (value->input_count < op->least_inputs || value->input_count > op->most_inputs)
        return coh_fail(COH_INVALID_ARGUMENT, "it takes %d to %d inputs, not %d", op->least_inputs,
                        op->most_inputs, value->input_count);
    node->kernel = node->op->kernels[link->program->kind];
    if (!node->kernel && (!op->range || link->program->kind != COH_DEVICE_CPU))
        return coh_fail(COH_UNSUPPORTED, "it has no kernel for %s",
                        coh_device_kind_name(link->program->kind));
    node->text = strdup(value->attributes);
    node->attributes = calloc((size_t)op->rule_count + 1, sizeof *node->attributes);
    if (!node->text || !node->attributes)
        return coh_fail(COH_NO_MEMORY, "no memory for its attributes");
    return cohi_attributes_parse(op, node->text, node->attributes);
}

static coh_status link_inputs(const linker *link, cohi_node *node, const cohi_value *value)
{
    for (int i = 0; i < value->input_count; i++) {
        node->from[i] = input_index(link, value, i);
        const cohi_slot_value *from = &link->program->values[node->from[i]];
        node->inputs[i] = (coh_tensor){from->dtype, from->shape, NULL};
        if (((node->op->op.writes >> i) & 1) && from->kind != COHI_STATE)
            return coh_fail(COH_INVALID_ARGUMENT, "it would change '%s', which is not a state",
                            from->name);
    }
    node->call = (coh_op_call){.size = sizeof node->call,
                               .op = node->op->name,
                               .inputs = node->inputs,
                               .input_count = value->input_count,
                               .attributes = node->attributes,
                               .alias = COH_NO_ALIAS,
                               .collective = COH_COLLECTIVE_INIT};
    return find_team(link, node, &node->call.team);
}

/* Takes over what the shape function found. */
static coh_status link_output(linker *link, cohi_node *node)
{
    cohi_slot_value *value = &link->program->values[node->value];
    const coh_op_call *call = &node->call;
    uint64_t bytes = coh_shape_bytes(&call->output.shape, call->output.dtype);
    char text[COHI_SHAPE_TEXT_BYTES];
    if (bytes == 0)
        return coh_fail(COH_INVALID_ARGUMENT, "its shape would be %s of type %s",
                        cohi_shape_text(&call->output.shape, text),
                        coh_dtype_name(call->output.dtype) ? coh_dtype_name(call->output.dtype)
                                                           : "unknown");
    value->dtype = call->output.dtype;
    value->shape = call->output.shape;
    value->bytes = bytes;
    if (call->alias == COH_NO_ALIAS)
        return COH_OK;
    if (call->alias < 0 || call->alias >= call->input_count)
        return coh_fail(COH_INVALID_ARGUMENT, "it has no input %d to lie in", call->alias);
    const cohi_slot_value *base = &link->program->values[node->from[call->alias]];
    if (call->alias_at > base->bytes || bytes > base->bytes - call->alias_at)
        return coh_fail(COH_OUT_OF_BOUNDS, "its %llu bytes from %llu on are not in '%s' of %llu",
                        (unsigned long long)bytes, (unsigned long long)call->alias_at, base->name,
                        (unsigned long long)base->bytes);
    value->base = base->base;
    value->base_at = base->base_at + call->alias_at;
    return COH_OK;
}

static coh_status link_node(linker *link, cohi_node *node)
{
    const cohi_value *value = value_of(link, node->value);
    coh_status status = link_op(link, node, value);
    if (status == COH_OK)
        status = link_inputs(link, node, value);
    node->call.node = link->program->values[node->value].name;
    if (status == COH_OK)
        status = node->op->op.shape(&node->call);
    if (status == COH_OK)
        status = link_output(link, node);
    return status == COH_OK ? COH_OK : blame(value, status);
}

/* ---- the whole ---- */

static coh_status copy_values(linker *link)
{
    coh_program *program = link->program;
    coh_status status = COH_OK;
    for (int i = 0; i < program->value_count && status == COH_OK; i++) {
        const cohi_value *from = value_of(link, i);
        cohi_slot_value *value = &program->values[i];
        value->kind = from->kind;
        strcpy(value->name, from->name);
        value->base = i;
        value->node = COH_NO_NODE;
        status = cohi_names_add(&program->value_names, value->name, i);
        if (from->kind == COHI_NODE)
            continue;
        value->dtype = from->dtype;
        value->shape = from->shape;
        value->bytes = coh_shape_bytes(&from->shape, from->dtype);
        program->input_count += from->kind == COHI_INPUT;
    }
    return status;
}

static coh_status make_tables(linker *link)
{
    coh_program *program = link->program;
    size_t values = (size_t)link->graph->value_count + 1;
    program->value_count = link->graph->value_count;
    program->output_count = link->graph->output_count;
    program->values = calloc(values, sizeof *program->values);
    program->nodes = calloc(values, sizeof *program->nodes);
    program->outputs = calloc((size_t)program->output_count + 1, sizeof *program->outputs);
    program->seen = calloc(values, sizeof *program->seen);
    link->marks = calloc(values, 1);
    link->path = calloc(values, sizeof *link->path);
    link->next = calloc(values, sizeof *link->next);
    if (!program->values || !program->nodes || !program->outputs || !program->seen || !link->marks
        || !link->path || !link->next)
        return coh_fail(COH_NO_MEMORY, "coh_graph_compile: no memory for %d values",
                        program->value_count);
    return COH_OK;
}

coh_status cohi_program_link(coh_program *program, const coh_graph *graph,
                             const coh_program_options *options)
{
    linker link = {.program = program,
                   .graph = graph,
                   .options = options,
                   .registry = options->registry ? options->registry : program->registry};
    coh_status status = make_tables(&link);
    if (status == COH_OK)
        status = copy_values(&link);
    if (status == COH_OK)
        status = order_nodes(&link);
    for (int i = 0; i < program->node_count && status == COH_OK; i++)
        status = link_node(&link, &program->nodes[i]);
    free(link.marks);
    free(link.path);
    free(link.next);
    return status;
}
