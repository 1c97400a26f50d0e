/*
 * Element-wise operations that feed only each other become one step: a block of elements goes
 * through all of them while it is in the cache, and what is between them needs no memory.
 */
#include "graph/program.h"

#include <stdlib.h>

enum { LONGEST = 64 }; /* members; the executor recurses over them */

/* What the search needs to know of the values. */
typedef struct uses {
    int *count;  /* [values]: by operations and outputs */
    int *maker;  /* [values]: the node that makes it, or -1 */
    int *length; /* [nodes]: of the chain that ends here */
} uses;

static void count_uses(const coh_program *program, uses *use)
{
    for (int v = 0; v < program->value_count; v++)
        use->maker[v] = -1;
    for (int n = 0; n < program->node_count; n++) {
        const cohi_program_node *node = &program->nodes[n];
        use->maker[node->value] = n;
        for (int i = 0; i < node->call.input_count; i++)
            use->count[node->from[i]]++;
    }
    for (int i = 0; i < program->output_count; i++)
        use->count[program->outputs[i].value]++;
}

/* By range, with its own bytes; no state, whose changes it might miss when it runs later; and no
 * scratch memory, since the step's is the block between its members. */
static bool can_chain(const coh_program *program, const cohi_program_node *node)
{
    if (node->kernel || !node->op->op.range || program->values[node->value].base != node->value
        || node->call.scratch_bytes > 0)
        return false;
    for (int i = 0; i < node->call.input_count; i++)
        if (program->values[program->values[node->from[i]].base].kind == COHI_STATE)
            return false;
    return true;
}

static bool can_follow(const coh_program *program, const uses *use, const cohi_program_node *node,
                       int input)
{
    int before = use->maker[node->from[input]];
    return before >= 0 && use->count[node->from[input]] == 1 && use->length[before] < LONGEST
           && can_chain(program, &program->nodes[before])
           && cohi_shape_equal(&node->inputs[input].shape, &node->call.output.shape);
}

static void join(coh_program *program, const uses *use, int n)
{
    cohi_program_node *node = &program->nodes[n];
    use->length[n] = 1;
    if (!can_chain(program, node))
        return;
    for (int i = 0; i < node->call.input_count; i++)
        if (can_follow(program, use, node, i)) {
            node->chained = use->maker[node->from[i]];
            node->chain_input = i;
            program->nodes[node->chained].inner = true;
            use->length[n] = use->length[node->chained] + 1;
            return;
        }
}

/* Without memory for the search the program is only slower. */
void cohi_program_chain(coh_program *program)
{
    size_t values = (size_t)program->value_count + 1, nodes = (size_t)program->node_count + 1;
    uses use = {calloc(values, sizeof(int)), calloc(values, sizeof(int)),
                calloc(nodes, sizeof(int))};
    if (use.count && use.maker && use.length) {
        count_uses(program, &use);
        for (int n = 0; n < program->node_count; n++)
            join(program, &use, n);
    }
    free(use.count);
    free(use.maker);
    free(use.length);
}
