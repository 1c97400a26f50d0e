#include "parallel/shard.h"

#include <stdio.h>
#include <string.h>

coh_status cohi_shard_check(const char *call, const coh_shard *shard)
{
    if (shard && shard->size >= 1 && shard->index >= 0 && shard->index < shard->size
        && (shard->team || shard->size == 1))
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT,
                    "%s: a shard needs an index below its size, and a team: got %d of %d", call,
                    shard ? shard->index : -1, shard ? shard->size : -1);
}

coh_status cohi_join_name(char joined[COH_NAME_BYTES], const char *name, const char *suffix)
{
    int length = snprintf(joined, COH_NAME_BYTES, "%s.%s", name, suffix);
    if (length < COH_NAME_BYTES)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "the name '%.64s...' with '%s' is longer than %d bytes",
                    name, suffix, COH_NAME_BYTES - 1);
}

coh_status coh_shard_range(const coh_shard *shard, const char *what, uint64_t total,
                           uint64_t *first, uint64_t *count)
{
    coh_status status = cohi_shard_check("coh_shard_range", shard);
    if (status != COH_OK)
        return status;
    uint64_t size = (uint64_t)shard->size;
    if (total % size != 0)
        return coh_fail(COH_LENGTH_MISMATCH, "%s is %llu, which cannot be divided among %d ranks",
                        what, (unsigned long long)total, shard->size);
    if (first)
        *first = total / size * (uint64_t)shard->index;
    if (count)
        *count = total / size;
    return COH_OK;
}

static coh_status check_linear(const char *call, coh_graph *graph, const coh_linear *linear,
                               const coh_shard *shard)
{
    if (!graph || !linear || !linear->name || !linear->input)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: a graph, and a layer with a name and an input, are needed", call);
    return cohi_shard_check(call, shard);
}

/* "NAME.weight", and NODE = input times its transpose. */
static coh_status add_product(coh_graph *graph, const coh_linear *linear, const char *node,
                              uint64_t out, uint64_t in)
{
    char weight[COH_NAME_BYTES], inputs[2 * COH_NAME_BYTES];
    const coh_shape shape = {2, {out, in}};
    coh_status status = cohi_join_name(weight, linear->name, "weight");
    if (status == COH_OK)
        status = coh_graph_parameter(graph, weight, COH_F32, &shape);
    if (status != COH_OK)
        return status;
    snprintf(inputs, sizeof inputs, "%s %s", linear->input, weight);
    return coh_graph_op(graph, node, "matmul", inputs, "transpose_b=1");
}

coh_status coh_graph_linear_column(coh_graph *graph, const coh_linear *linear,
                                   const coh_shard *shard)
{
    char what[COH_NAME_BYTES + 32];
    uint64_t out;
    coh_status status = check_linear("coh_graph_linear_column", graph, linear, shard);
    if (status != COH_OK)
        return status;
    snprintf(what, sizeof what, "'%s': the output", linear->name);
    status = coh_shard_range(shard, what, linear->out, NULL, &out);
    return status == COH_OK ? add_product(graph, linear, linear->name, out, linear->in) : status;
}

coh_status coh_graph_linear_row(coh_graph *graph, const coh_linear *linear, const coh_shard *shard)
{
    char what[COH_NAME_BYTES + 32], part[COH_NAME_BYTES], attributes[COH_NAME_BYTES + 16];
    uint64_t in;
    coh_status status = check_linear("coh_graph_linear_row", graph, linear, shard);
    if (status != COH_OK)
        return status;
    snprintf(what, sizeof what, "'%s': the input", linear->name);
    status = coh_shard_range(shard, what, linear->in, NULL, &in);
    if (status != COH_OK || shard->size == 1)
        return status == COH_OK ? add_product(graph, linear, linear->name, linear->out, in)
                                : status;
    status = cohi_join_name(part, linear->name, "part");
    if (status == COH_OK)
        status = add_product(graph, linear, part, linear->out, in);
    if (status != COH_OK)
        return status;
    snprintf(attributes, sizeof attributes, "team=%s", shard->team);
    return coh_graph_op(graph, linear->name, "collective.all_reduce", part, attributes);
}
