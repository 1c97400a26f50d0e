/* Where each value's bytes are: the lives of values become a plan, the plan an arena. */
#include "device/failure.h"
#include "graph/cpu/vector.h"
#include "graph/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* ---- lives ---- */

static cohi_slot_value *base_of(coh_program *program, int value)
{
    return &program->values[program->values[value].base];
}

static void read_at(coh_program *program, int value, int step)
{
    cohi_slot_value *base = base_of(program, value);
    if (step > base->last)
        base->last = step;
}

/* Inputs are written at step 0, the first operation runs at step 1. */
static void find_lives(coh_program *program)
{
    for (int n = 0; n < program->node_count; n++) {
        const cohi_program_node *node = &program->nodes[n];
        if (node->inner)
            continue;
        int step = ++program->step_count;
        cohi_slot_value *value = &program->values[node->value];
        value->first = step;
        read_at(program, node->value, step);
        for (; node; node = node->chained < 0 ? NULL : &program->nodes[node->chained])
            for (int i = 0; i < node->call.input_count; i++)
                read_at(program, node->from[i], step);
    }
    for (int i = 0; i < program->output_count; i++)
        read_at(program, program->outputs[i].value, program->step_count + 1);
}

static void find_places(coh_program *program)
{
    static const cohi_value_place places[] = {[COHI_INPUT] = COHI_PLACE_ARENA,
                                              [COHI_PARAMETER] = COHI_PLACE_BOUND,
                                              [COHI_CONSTANT] = COHI_PLACE_CONSTANTS,
                                              [COHI_STATE] = COHI_PLACE_STATE,
                                              [COHI_NODE] = COHI_PLACE_NOWHERE};
    for (int v = 0; v < program->value_count; v++)
        program->values[v].place = places[program->values[v].kind];
    for (int n = 0; n < program->node_count; n++) {
        cohi_slot_value *value = &program->values[program->nodes[n].value];
        if (!program->nodes[n].inner)
            value->place = value->base == program->nodes[n].value
                               ? COHI_PLACE_ARENA
                               : base_of(program, program->nodes[n].value)->place;
    }
}

/* A parameter is wherever the caller has it, which only the cpu is sure to be able to copy from. */
static coh_status check_outputs(coh_program *program)
{
    for (int i = 0; i < program->output_count && program->kind != COH_DEVICE_CPU; i++) {
        const cohi_slot_value *base = base_of(program, program->outputs[i].value);
        if (base->place == COHI_PLACE_BOUND)
            return coh_fail(COH_UNSUPPORTED,
                            "coh_graph_compile: output '%s' is bytes of the parameter '%s', which "
                            "the caller has",
                            program->outputs[i].name, base->name);
    }
    return COH_OK;
}

/* ---- the plan ---- */

/* Whether another input of the step lies in the same bytes under another shape. */
static bool seen_otherwise(coh_program *program, const cohi_program_node *node, int value)
{
    for (; node; node = node->chained < 0 ? NULL : &program->nodes[node->chained])
        for (int i = 0; i < node->call.input_count; i++)
            if (node->from[i] != value && program->values[node->from[i]].base == value)
                return true;
    return false;
}

/* The plan's node that the step's value may overwrite. */
static int overwritten(coh_program *program, const cohi_program_node *last)
{
    const cohi_slot_value *value = &program->values[last->value];
    for (const cohi_program_node *node = last; node;
         node = node->chained < 0 ? NULL : &program->nodes[node->chained])
        for (int i = 0; i < node->call.input_count; i++) {
            const cohi_slot_value *from = &program->values[node->from[i]];
            if (((node->op->op.in_place >> i) & 1) && from->place == COHI_PLACE_ARENA
                && from->base == node->from[i] && from->node != COH_NO_NODE
                && from->last == value->first && from->bytes == value->bytes
                && !seen_otherwise(program, last, node->from[i]))
                return from->node;
        }
    return COH_NO_NODE;
}

static coh_status plan_value(coh_plan *plan, cohi_slot_value *value, int in_place)
{
    coh_plan_value row = COH_PLAN_VALUE_INIT;
    row.name = value->name;
    row.bytes = value->bytes;
    row.alignment = ALIGNMENT;
    row.first = value->first;
    row.last = value->last;
    row.in_place = in_place;
    return coh_plan_add(plan, &row, &value->node);
}

/* What an operation asks for while the step runs: it is neither chained nor streamed then. Else, by
 * range, a block for what is between the members of a chain, and one for what is streamed out. */
static coh_status plan_scratch(coh_plan *plan, cohi_program_node *node,
                               const cohi_slot_value *value)
{
    uint64_t bytes = node->call.scratch_bytes, count = coh_shape_count(&value->shape);
    uint64_t block =
        (count < COHI_CHAIN_ELEMENTS ? count : COHI_CHAIN_ELEMENTS) * COHI_ELEMENT_BYTES_MAX;
    node->streams = !node->kernel && bytes == 0 && value->bytes >= COHI_STREAMED_VALUE_BYTES;
    if (node->chained >= 0)
        bytes = block;
    if (node->streams)
        bytes = 2 * block;
    node->scratch = COH_NO_NODE;
    if (bytes == 0)
        return COH_OK;
    coh_plan_value row = COH_PLAN_VALUE_INIT;
    row.name = "scratch";
    row.bytes = bytes;
    row.alignment = ALIGNMENT;
    row.first = row.last = value->first;
    return coh_plan_add(plan, &row, &node->scratch);
}

/* Alone at a step of its own behind all others, so that the whole has at least `floor` bytes. */
static coh_status plan_floor(coh_plan *plan, int step, uint64_t floor)
{
    coh_plan_value row = COH_PLAN_VALUE_INIT;
    row.name = "largest arena of all ranks";
    row.bytes = floor;
    row.first = row.last = step;
    int node;
    return floor > 0 ? coh_plan_add(plan, &row, &node) : COH_OK;
}

static coh_status fill_plan(coh_program *program, coh_plan *plan, uint64_t floor)
{
    coh_status status = COH_OK;
    for (int v = 0; v < program->value_count && status == COH_OK; v++)
        if (program->values[v].kind == COHI_INPUT)
            status = plan_value(plan, &program->values[v], COH_NO_NODE);
    for (int n = 0; n < program->node_count && status == COH_OK; n++) {
        cohi_program_node *node = &program->nodes[n];
        cohi_slot_value *value = &program->values[node->value];
        if (node->inner)
            continue;
        status = plan_scratch(plan, node, value);
        if (status == COH_OK && value->base == node->value)
            status = plan_value(plan, value, overwritten(program, node));
    }
    if (status == COH_OK)
        status = plan_floor(plan, program->step_count + 2, floor);
    return status == COH_OK ? coh_plan_solve(plan) : status;
}

static coh_status make_plan(coh_program *program, uint64_t floor, uint64_t *total)
{
    coh_plan_info info = {.size = sizeof info};
    coh_plan_destroy(program->plan);
    program->plan = NULL;
    coh_status status = coh_plan_create(&program->plan);
    if (status == COH_OK)
        status = fill_plan(program, program->plan, floor);
    if (status == COH_OK)
        status = coh_plan_query(program->plan, &info);
    if (status == COH_OK)
        *total = info.total;
    return status;
}

/* ---- memory ---- */

/* What ranks tell each other, so that the largest of each word is what all need. */
enum { SIZE, FAILED, WORDS };

/* In the heap, where every algorithm of all_reduce that a user may ask for can do it. */
static coh_status find_most(coh_world *world, const uint64_t mine[WORDS], uint64_t most[WORDS])
{
    uint64_t *words;
    coh_status status = coh_malloc(world, 2 * WORDS * sizeof *words, (void **)&words);
    if (status != COH_OK)
        return status;
    memcpy(words, mine, WORDS * sizeof *words);
    status = coh_all_reduce(coh_team_world(world), COH_U64, COH_MAX, words, words + WORDS, WORDS);
    if (status != COH_OK)
        return status; /* the team is broken, and nothing of it can be freed */
    memcpy(most, words + WORDS, WORDS * sizeof *words);
    return coh_free(world, words);
}

/*
 * Arenas in a symmetric heap have one size, that of the largest. A rank that could not get so far
 * says so here, since the others would wait for it; the first one is named.
 */
static coh_status agree_on_size(coh_program *program, coh_status status, uint64_t *total)
{
    uint64_t mine[WORDS] = {[SIZE] = *total}, most[WORDS];
    cohi_failure kept;
    if (!program->world)
        return status;
    cohi_failure_keep(&kept, status);
    if (status != COH_OK)
        mine[FAILED] = UINT64_MAX - (uint64_t)coh_rank(program->world);
    coh_status met = find_most(program->world, mine, most);
    if (status != COH_OK)
        return cohi_failure_again(&kept);
    if (met != COH_OK)
        return met;
    if (most[FAILED] > 0)
        return coh_fail(COH_MISMATCH,
                        "coh_graph_compile: the graph of rank %llu cannot be compiled",
                        (unsigned long long)(UINT64_MAX - most[FAILED]));
    *total = most[SIZE];
    return COH_OK;
}

static coh_status make_arena(coh_program *program, coh_status status)
{
    uint64_t own = 0, total;
    if (status == COH_OK)
        status = make_plan(program, 0, &own);
    total = own;
    status = agree_on_size(program, status, &total);
    if (status == COH_OK && total > own)
        status = make_plan(program, total, &own);
    if (status != COH_OK)
        return status;
    coh_arena_options options = COH_ARENA_OPTIONS_INIT;
    options.world = program->world;
    return coh_arena_create(program->device, program->plan, &options, &program->arena);
}

static uint64_t place_constants(coh_program *program)
{
    uint64_t at = 0;
    for (int v = 0; v < program->value_count; v++)
        if (program->values[v].place == COHI_PLACE_CONSTANTS
            && program->values[v].kind == COHI_CONSTANT) {
            program->values[v].at = at;
            at += (program->values[v].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    return at;
}

static coh_status make_constants(coh_program *program, const coh_graph *graph)
{
    uint64_t bytes = place_constants(program);
    if (bytes == 0)
        return COH_OK;
    coh_status status = coh_buffer_create(program->device, bytes, NULL, &program->constants);
    for (int v = 0; v < program->value_count && status == COH_OK; v++)
        if (program->values[v].kind == COHI_CONSTANT)
            status = coh_buffer_write(program->constants, program->values[v].at,
                                      graph->values[v]->data, program->values[v].bytes);
    return status;
}

static coh_status open_states(coh_program *program, const char *prefix)
{
    coh_status status = COH_OK;
    for (int v = 0; v < program->value_count && status == COH_OK; v++) {
        cohi_slot_value *value = &program->values[v];
        char name[COH_HANDLE_NAME_BYTES];
        if (value->kind != COHI_STATE)
            continue;
        int length = snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", value->name);
        if (length >= (int)sizeof name)
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_compile: state '%s': with its prefix the name is longer "
                            "than %d bytes",
                            value->name, COH_HANDLE_NAME_BYTES - 1);
        status = coh_handle_open(program->device, name, value->dtype,
                                 coh_shape_count(&value->shape), NULL, &value->state);
        if (status != COH_OK)
            coh_fail(status, "coh_graph_compile: state '%s': %s", value->name, coh_last_error());
    }
    return status;
}

coh_status cohi_program_lay_out(coh_program *program, const coh_graph *graph,
                                const coh_program_options *options, coh_status status)
{
    if (status == COH_OK) {
        find_lives(program);
        find_places(program);
        status = check_outputs(program);
    }
    if (status == COH_OK)
        status = make_constants(program, graph);
    if (status == COH_OK)
        status = open_states(program, options->prefix);
    return make_arena(program, status);
}

/* ---- addresses ---- */

static coh_status resolve_value(coh_program *program, cohi_slot_value *value)
{
    coh_handle_info info = {.size = sizeof info};
    uint64_t bytes;
    coh_status status = COH_OK;
    switch (value->place) {
    case COHI_PLACE_ARENA:
        return coh_arena_pointer(program->arena, value->node, &value->data, &bytes);
    case COHI_PLACE_CONSTANTS:
        value->data = (char *)coh_buffer_pointer(program->constants) + value->at;
        return COH_OK;
    case COHI_PLACE_STATE:
        status = coh_handle_query(value->state, &info);
        if (status == COH_OK)
            value->data = coh_buffer_pointer(info.buffer);
        return status;
    case COHI_PLACE_BOUND:
        return value->data ? COH_OK
                           : coh_fail(COH_INVALID_ARGUMENT,
                                      "parameter '%s' is not bound: coh_program_bind", value->name);
    case COHI_PLACE_NOWHERE:
        break;
    }
    return COH_OK;
}

static void resolve_alias(coh_program *program, cohi_slot_value *value)
{
    char *base = program->values[value->base].data;
    value->data = base ? base + value->base_at : NULL;
}

static coh_status resolve_node(coh_program *program, cohi_program_node *node)
{
    for (int i = 0; i < node->call.input_count; i++)
        node->inputs[i].data = program->values[node->from[i]].data;
    node->call.output.data = program->values[node->value].data;
    node->call.scratch = NULL;
    uint64_t bytes;
    return node->scratch == COH_NO_NODE
               ? COH_OK
               : coh_arena_pointer(program->arena, node->scratch, &node->call.scratch, &bytes);
}

coh_status cohi_program_resolve(coh_program *program)
{
    coh_status status = COH_OK;
    if (program->resolved)
        return COH_OK;
    for (int v = 0; v < program->value_count && status == COH_OK; v++)
        if (program->values[v].base == v)
            status = resolve_value(program, &program->values[v]);
    for (int v = 0; v < program->value_count && status == COH_OK; v++)
        if (program->values[v].base != v)
            resolve_alias(program, &program->values[v]);
    for (int n = 0; n < program->node_count && status == COH_OK; n++)
        status = resolve_node(program, &program->nodes[n]);
    program->resolved = status == COH_OK;
    return status;
}
