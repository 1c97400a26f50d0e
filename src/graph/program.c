#include "graph/program.h"

#include "device/failure.h"

#include <stdlib.h>
#include <string.h>

/* ---- compile and destroy ---- */

static coh_status check_compile(const coh_graph *graph, coh_device *device,
                                const coh_program_options *options, coh_program **program)
{
    if (!graph || !device || !program)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_compile: %s is NULL",
                        !graph    ? "graph"
                        : !device ? "device"
                                  : "program");
    if (options && options->size != sizeof *options)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_graph_compile: options.size is %zu, not sizeof(coh_program_options)",
                        options->size);
    for (size_t i = 0; options && i < options->team_count; i++)
        if (!options->teams || !options->teams[i].name || coh_team_size(options->teams[i].team) < 0)
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_compile: team %zu has no name, or is not a team", i);
    return COH_OK;
}

static coh_status open_device(coh_program *program, coh_device *device)
{
    coh_device_info info = {.size = sizeof info};
    coh_status status = coh_device_query(device, &info);
    if (status != COH_OK)
        return status;
    program->device = device;
    program->kind = info.kind;
    return info.kind == COH_DEVICE_CPU ? COH_OK : coh_stream_create(device, NULL, &program->stream);
}

coh_status coh_graph_compile(const coh_graph *graph, coh_device *device,
                             const coh_program_options *options, coh_program **program)
{
    static const coh_program_options plain = COH_PROGRAM_OPTIONS_INIT;
    coh_status status = check_compile(graph, device, options, program);
    if (status != COH_OK)
        return status;
    if (!options)
        options = &plain;
    coh_program *made = calloc(1, sizeof *made);
    if (!made)
        return coh_fail(COH_NO_MEMORY, "coh_graph_compile: no memory for a program");
    made->world = options->world;
    made->timed = options->timed != 0;
    status = open_device(made, device);
    if (status == COH_OK && !options->registry)
        status = coh_registry_create(&made->registry);
    if (status == COH_OK)
        status = cohi_program_link(made, graph, options);
    if (status == COH_OK && !options->separate)
        cohi_program_chain(made);
    status = cohi_program_lay_out(made, graph, options, status);
    if (status != COH_OK) {
        cohi_failure kept;
        cohi_failure_keep(&kept, status);
        (void)coh_program_destroy(made);
        return cohi_failure_again(&kept);
    }
    *program = made;
    return COH_OK;
}

coh_status coh_program_destroy(coh_program *program)
{
    if (!program)
        return COH_OK;
    coh_status status = coh_arena_destroy(program->arena);
    coh_plan_destroy(program->plan);
    (void)coh_buffer_destroy(program->constants);
    (void)coh_stream_destroy(program->stream);
    for (int v = 0; program->values && v < program->value_count; v++)
        (void)coh_handle_close(program->values[v].state);
    for (int n = 0; program->nodes && n < program->node_count; n++) {
        free(program->nodes[n].text);
        free(program->nodes[n].attributes);
    }
    cohi_names_free(&program->value_names);
    coh_registry_destroy(program->registry);
    free(program->values);
    free(program->nodes);
    free(program->outputs);
    free(program->seen);
    free(program);
    return status;
}

/* ---- by name ---- */

static coh_status check_bytes(const char *call, const cohi_slot_value *value, const void *data,
                              uint64_t bytes)
{
    char text[COHI_SHAPE_TEXT_BYTES];
    if (!data)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the memory for '%s' is NULL", call, value->name);
    if (bytes != value->bytes)
        return coh_fail(COH_LENGTH_MISMATCH, "%s: '%s' is %s %s, %llu bytes, and %llu are given",
                        call, value->name, coh_dtype_name(value->dtype),
                        cohi_shape_text(&value->shape, text), (unsigned long long)value->bytes,
                        (unsigned long long)bytes);
    return COH_OK;
}

coh_status coh_program_bind(coh_program *program, const char *name, void *data, uint64_t bytes)
{
    int index = program && name ? cohi_names_find(&program->value_names, name, strlen(name)) : -1;
    if (index < 0 || program->values[index].kind != COHI_PARAMETER)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_program_bind: there is no parameter '%.128s'",
                        name ? name : "");
    cohi_slot_value *value = &program->values[index];
    coh_status status = check_bytes("coh_program_bind", value, data, bytes);
    if (status != COH_OK)
        return status;
    if ((uintptr_t)data % coh_dtype_size(value->dtype) != 0)
        return coh_fail(COH_BAD_ALIGNMENT, "coh_program_bind: '%s' is not aligned to its type, %s",
                        name, coh_dtype_name(value->dtype));
    value->data = data;
    program->resolved = false;
    return COH_OK;
}

static int find_output(const coh_program *program, const char *name)
{
    for (int i = 0; name && i < program->output_count; i++)
        if (strcmp(program->outputs[i].name, name) == 0)
            return program->outputs[i].value;
    return -1;
}

static int find_input(const coh_program *program, const char *name)
{
    int index = name ? cohi_names_find(&program->value_names, name, strlen(name)) : -1;
    return index >= 0 && program->values[index].kind == COHI_INPUT ? index : -1;
}

coh_status coh_program_pointer(coh_program *program, const char *name, void **data, uint64_t *bytes)
{
    if (!program || !data)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_program_pointer: %s is NULL",
                        program ? "data" : "program");
    int index = find_output(program, name);
    if (index < 0)
        index = find_input(program, name);
    if (index < 0)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_program_pointer: there is no input or output '%.128s'",
                        name ? name : "");
    coh_status status = cohi_program_resolve(program);
    if (status != COH_OK)
        return status;
    *data = program->values[index].data;
    if (bytes)
        *bytes = program->values[index].bytes;
    return COH_OK;
}

/* ---- run ---- */

static coh_status check_inputs(coh_program *program, const coh_binding *inputs, size_t count)
{
    memset(program->seen, 0, (size_t)program->value_count * sizeof *program->seen);
    for (size_t i = 0; i < count; i++) {
        int index = find_input(program, inputs[i].name);
        if (index < 0 || program->seen[index])
            return coh_fail(COH_INVALID_ARGUMENT, "coh_program_run: %s input '%.128s'",
                            index < 0 ? "there is no" : "twice the",
                            inputs[i].name ? inputs[i].name : "");
        coh_status status = check_bytes("coh_program_run", &program->values[index], inputs[i].data,
                                        inputs[i].bytes);
        if (status != COH_OK)
            return status;
        program->seen[index] = true;
    }
    for (int v = 0; v < program->value_count; v++)
        if (program->values[v].kind == COHI_INPUT && !program->seen[v])
            return coh_fail(COH_INVALID_ARGUMENT, "coh_program_run: input '%s' is missing",
                            program->values[v].name);
    return COH_OK;
}

static coh_status check_outputs(const coh_program *program, const coh_binding *outputs,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int index = find_output(program, outputs[i].name);
        if (index < 0)
            return coh_fail(COH_INVALID_ARGUMENT, "coh_program_run: there is no output '%.128s'",
                            outputs[i].name ? outputs[i].name : "");
        coh_status status = check_bytes("coh_program_run", &program->values[index], outputs[i].data,
                                        outputs[i].bytes);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* Inputs lie in the arena, at the offset that the plan gave them. */
static coh_status write_input(coh_program *program, const coh_binding *input)
{
    const cohi_slot_value *value = &program->values[find_input(program, input->name)];
    uint64_t offset, bytes;
    coh_status status = coh_plan_slot(program->plan, value->node, &offset, &bytes);
    return status == COH_OK ? coh_buffer_write(coh_arena_buffer(program->arena), offset,
                                               input->data, value->bytes)
                            : status;
}

/* An output may be any value. A parameter is memory of the host: compiling saw to that. */
static coh_status read_output(coh_program *program, const coh_binding *output)
{
    const cohi_slot_value *value = &program->values[find_output(program, output->name)];
    const cohi_slot_value *base = &program->values[value->base];
    coh_handle_info info = {.size = sizeof info};
    uint64_t offset = 0, bytes;
    coh_status status = COH_OK;
    switch (base->place) {
    case COHI_PLACE_ARENA:
        status = coh_plan_slot(program->plan, base->node, &offset, &bytes);
        return status == COH_OK
                   ? coh_buffer_read(coh_arena_buffer(program->arena), offset + value->base_at,
                                     output->data, value->bytes)
                   : status;
    case COHI_PLACE_CONSTANTS:
        return coh_buffer_read(program->constants, base->at + value->base_at, output->data,
                               value->bytes);
    case COHI_PLACE_STATE:
        status = coh_handle_query(base->state, &info);
        return status == COH_OK
                   ? coh_buffer_read(info.buffer, value->base_at, output->data, value->bytes)
                   : status;
    default: /* bound */
        memmove(output->data, value->data, value->bytes);
        return COH_OK;
    }
}

coh_status coh_program_execute(coh_program *program)
{
    if (!program)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_program_execute: program is NULL");
    coh_status status = cohi_program_steps(program, program->stream);
    if (status == COH_OK && program->stream)
        status = coh_stream_submit_wait(program->stream);
    return status;
}

/* All that comes before the first step. */
static coh_status prepare(coh_program *program, const coh_binding *inputs, size_t input_count,
                          const coh_binding *outputs, size_t output_count)
{
    if ((!inputs && input_count > 0) || (!outputs && output_count > 0))
        return coh_fail(COH_INVALID_ARGUMENT, "coh_program_run: a list of bindings is NULL");
    coh_status status = check_inputs(program, inputs, input_count);
    if (status == COH_OK)
        status = check_outputs(program, outputs, output_count);
    if (status == COH_OK)
        status = cohi_program_resolve(program);
    for (size_t i = 0; i < input_count && status == COH_OK; i++)
        status = write_input(program, &inputs[i]);
    return status;
}

coh_status coh_program_run(coh_program *program, const coh_binding *inputs, size_t input_count,
                           const coh_binding *outputs, size_t output_count)
{
    if (!program)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_program_run: program is NULL");
    coh_status status = prepare(program, inputs, input_count, outputs, output_count);
    if (status != COH_OK)
        return cohi_program_give_up(program, 0, status);
    status = coh_program_execute(program);
    for (size_t i = 0; i < output_count && status == COH_OK; i++)
        status = read_output(program, &outputs[i]);
    return status;
}

static coh_status launch(coh_stream *stream, void *arg)
{
    return cohi_program_steps(arg, stream);
}

coh_status coh_program_enqueue(coh_program *program, coh_stream *stream)
{
    if (!program || !stream || coh_stream_device(stream) != program->device)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_program_enqueue: a program and a stream of its device are needed");
    coh_status status = cohi_program_resolve(program);
    return status == COH_OK ? coh_stream_kernel(stream, "graph", launch, program) : status;
}

/* ---- query ---- */

coh_status coh_program_query(const coh_program *program, coh_program_info *info)
{
    coh_plan_info plan = {.size = sizeof plan};
    if (!program || !info || info->size != sizeof *info)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_program_query: a program, and info with its size set, are needed");
    coh_status status = coh_plan_query(program->plan, &plan);
    if (status != COH_OK)
        return status;
    *info = (coh_program_info){.size = sizeof *info,
                               .nodes = program->node_count,
                               .steps = program->step_count,
                               .inputs = program->input_count,
                               .outputs = program->output_count,
                               .arena = plan.total,
                               .least = plan.least,
                               .runs = program->runs,
                               .run_ns = program->run_ns,
                               .communication_ns = program->communication_ns};
    for (int v = 0; v < program->value_count; v++) {
        info->parameters += program->values[v].kind == COHI_PARAMETER;
        info->states += program->values[v].kind == COHI_STATE;
    }
    return COH_OK;
}
