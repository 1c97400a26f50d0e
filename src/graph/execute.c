/* Runs the steps of a program, one after the other. Nothing here allocates. */
#include "base/clock.h"
#include "graph/cpu/vector.h"
#include "graph/program.h"

#include <stdio.h>

/*
 * Computes `count` elements from `first` on of the chain that ends with `node`. What is between its
 * members goes through the step's block.
 */
static void run_range(const coh_program *program, const cohi_node *node, char *block, char *output,
                      uint64_t first, uint64_t count)
{
    const void *inputs[COH_OP_INPUTS_MAX];
    const coh_op_call *call = &node->call;
    if (node->chained >= 0)
        run_range(program, &program->nodes[node->chained], block, block, first, count);
    for (int i = 0; i < call->input_count; i++) {
        const coh_tensor *input = &node->inputs[i];
        uint64_t at = first * coh_dtype_size(input->dtype);
        if (node->chained >= 0 && node->chain_input == i)
            inputs[i] = block;
        else
            inputs[i] = (char *)input->data
                        + (cohi_shape_equal(&input->shape, &call->output.shape) ? at : 0);
    }
    node->op->op.range(call, inputs, output, first, count);
}

/* Where the chain that ends with `node` reads its element `first`, or NULL: of the input that it
 * begins with, when that has an element for each of the output. */
static const char *read_at(const coh_program *program, const cohi_node *node, uint64_t first)
{
    while (node->chained >= 0)
        node = &program->nodes[node->chained];
    const coh_tensor *input = &node->inputs[0];
    if (node->call.input_count == 0 || !cohi_shape_equal(&input->shape, &node->call.output.shape))
        return NULL;
    return (const char *)input->data + first * coh_dtype_size(input->dtype);
}

/* Whole, or in blocks; what is streamed is computed beside its place first. */
static void run_ranges(const coh_program *program, const cohi_node *node)
{
    const cohi_vector *vector = cohi_vector_best();
    uint64_t count = coh_shape_count(&node->call.output.shape);
    uint64_t part = node->chained >= 0 || node->streams ? COHI_CHAIN_ELEMENTS : count;
    size_t bytes = coh_dtype_size(node->call.output.dtype);
    char *output = node->call.output.data, *block = node->call.scratch;
    for (uint64_t first = 0; first < count; first += part) {
        uint64_t now = count - first < part ? count - first : part;
        bool streams = node->streams && now * bytes % COHI_STREAM_LINE == 0;
        char *target = output + first * bytes;
        run_range(program, node, block, streams ? block + COHI_CHAIN_BYTES : target, first, now);
        if (streams)
            vector->stream(block + COHI_CHAIN_BYTES, target, now * bytes,
                           read_at(program, node, first + now));
    }
    if (node->streams)
        vector->stream_end();
}

static coh_status run_step(coh_program *program, cohi_node *node, coh_stream *stream)
{
    if (!node->kernel) {
        run_ranges(program, node);
        return COH_OK;
    }
    node->call.stream = stream;
    uint64_t begun = program->timed && node->op->op.communicates ? cohi_now_ns() : 0;
    coh_status status = node->kernel(&node->call);
    if (begun)
        program->communication_ns += cohi_now_ns() - begun;
    if (status != COH_OK)
        return coh_fail(status, "node '%s' (%s): %s", node->call.node, node->call.op,
                        coh_last_error());
    return COH_OK;
}

static bool is_of_team(coh_status status)
{
    return status == COH_PEER_LOST || status == COH_STALLED || status == COH_TIMED_OUT
           || status == COH_MISMATCH;
}

/*
 * The other members of a team go on to their collectives, where they would wait for this rank, and
 * then be taken for those of its next run. A call that is refused takes its place in the team's
 * sequence: the others are told who was refused, and all stay in step. A team that has failed is
 * not waited for once more.
 */
coh_status cohi_program_give_up(const coh_program *program, int first, coh_status status)
{
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", coh_last_error());
    bool in_step = !is_of_team(status);
    for (int n = first; n < program->node_count && in_step; n++)
        in_step = cohi_collective_refuse(&program->nodes[n].call) == COH_OK;
    return coh_fail(status, "%s", sentence);
}

coh_status cohi_program_steps(coh_program *program, coh_stream *stream)
{
    coh_status status = cohi_program_resolve(program);
    uint64_t begun = program->timed ? cohi_now_ns() : 0;
    int n = 0;
    for (; n < program->node_count && status == COH_OK; n++)
        if (!program->nodes[n].inner)
            status = run_step(program, &program->nodes[n], stream);
    if (status != COH_OK)
        status = cohi_program_give_up(program, n, status);
    program->runs++;
    if (begun)
        program->run_ns += cohi_now_ns() - begun;
    return status;
}
