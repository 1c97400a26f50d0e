/* A transformer block in the Llama layout, from the linear layers. */
#include "parallel/shard.h"

#include <stdio.h>

/* While one block is added; the first failure ends it, and later calls do nothing. */
typedef struct builder {
    coh_graph *graph;
    const coh_block *block;
    const coh_shard *shard;
    uint64_t heads, groups, inner; /* of this rank */
    coh_status status;
} builder;

/* A text that holds up to two names of the block's and some words. */
enum { TEXT_BYTES = 4 * COH_NAME_BYTES };

/* Writes `format` with each '@' replaced by "NAME.". */
static void expand(const builder *build, char text[TEXT_BYTES], const char *format)
{
    size_t at = 0;
    for (; *format && at + 1 < TEXT_BYTES; format++)
        if (*format == '@')
            at += (size_t)snprintf(text + at, TEXT_BYTES - at, "%s.", build->block->name);
        else
            text[at++] = *format;
    text[at < TEXT_BYTES ? at : TEXT_BYTES - 1] = '\0';
}

static void add_op(builder *build, const char *name, const char *op, const char *inputs,
                   const char *attributes)
{
    char full[TEXT_BYTES], names[TEXT_BYTES];
    if (build->status != COH_OK)
        return;
    expand(build, full, name);
    expand(build, names, inputs);
    build->status = coh_graph_op(build->graph, full, op, names, attributes);
}

static void add_linear(builder *build, const char *name, const char *input, uint64_t in,
                       uint64_t out,
                       coh_status (*add)(coh_graph *, const coh_linear *, const coh_shard *))
{
    char full[TEXT_BYTES], from[TEXT_BYTES];
    if (build->status != COH_OK)
        return;
    expand(build, full, name);
    expand(build, from, input);
    const coh_linear linear = {full, from, in, out};
    build->status = add(build->graph, &linear, build->shard);
}

static void add_norm(builder *build, const char *name, const char *input)
{
    const coh_shape width = {1, {build->block->width}};
    char weight[TEXT_BYTES], inputs[TEXT_BYTES], eps[48];
    if (build->status != COH_OK)
        return;
    snprintf(inputs, sizeof inputs, "%s.weight", name);
    expand(build, weight, inputs);
    build->status = coh_graph_parameter(build->graph, weight, COH_F32, &width);
    snprintf(eps, sizeof eps, "eps=%.9g", build->block->eps);
    snprintf(inputs, sizeof inputs, "%s %s.weight", input, name);
    add_op(build, name, "rms_norm", inputs, eps);
}

static void add_state(builder *build, const char *name)
{
    const coh_block *block = build->block;
    const coh_shape shape = {2, {block->context, build->groups * block->head}};
    char full[TEXT_BYTES];
    if (build->status != COH_OK)
        return;
    expand(build, full, name);
    build->status = coh_graph_state(build->graph, full, COH_F32, &shape);
}

/* `format` with the name of the position behind it. */
static const char *with_position(const builder *build, char text[TEXT_BYTES], const char *names)
{
    snprintf(text, TEXT_BYTES, "%s %s", names, build->block->position);
    return text;
}

static void add_attention(builder *build)
{
    const coh_block *block = build->block;
    uint64_t queries = block->heads * block->head, keys = block->groups * block->head;
    char head[32], turn[96], text[TEXT_BYTES];
    snprintf(head, sizeof head, "head=%llu", (unsigned long long)block->head);
    snprintf(turn, sizeof turn, "%s theta=%.9g", head, block->theta);
    add_norm(build, "@input_layernorm", block->input);
    add_linear(build, "@self_attn.q_proj", "@input_layernorm", block->width, queries,
               coh_graph_linear_column);
    add_linear(build, "@self_attn.k_proj", "@input_layernorm", block->width, keys,
               coh_graph_linear_column);
    add_linear(build, "@self_attn.v_proj", "@input_layernorm", block->width, keys,
               coh_graph_linear_column);
    add_op(build, "@q", "rotary", with_position(build, text, "@self_attn.q_proj"), turn);
    add_op(build, "@k_row", "rotary", with_position(build, text, "@self_attn.k_proj"), turn);
    add_state(build, "@k");
    add_state(build, "@v");
    add_op(build, "@k_all", "cache_write", with_position(build, text, "@k @k_row"), NULL);
    add_op(build, "@v_all", "cache_write", with_position(build, text, "@v @self_attn.v_proj"),
           NULL);
    add_op(build, "@mixed", "attention", with_position(build, text, "@q @k_all @v_all"), head);
    add_linear(build, "@self_attn.o_proj", "@mixed", queries, block->width, coh_graph_linear_row);
    snprintf(text, sizeof text, "%s @self_attn.o_proj", block->input);
    add_op(build, "@attended", "add", text, NULL);
}

static void add_feed_forward(builder *build)
{
    const coh_block *block = build->block;
    add_norm(build, "@post_attention_layernorm", "@attended");
    add_linear(build, "@mlp.gate_proj", "@post_attention_layernorm", block->width, block->inner,
               coh_graph_linear_column);
    add_linear(build, "@mlp.up_proj", "@post_attention_layernorm", block->width, block->inner,
               coh_graph_linear_column);
    add_op(build, "@gate", "silu", "@mlp.gate_proj", NULL);
    add_op(build, "@inner", "mul", "@gate @mlp.up_proj", NULL);
    add_linear(build, "@mlp.down_proj", "@inner", block->inner, block->width, coh_graph_linear_row);
    add_op(build, "@out", "add", "@attended @mlp.down_proj", NULL);
}

static coh_status check_block(coh_graph *graph, const coh_block *block)
{
    if (!graph || !block || block->size != sizeof *block || !block->name || !block->input
        || !block->position)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_graph_block: a graph, and a block with its size, name, input and "
                        "position, are needed");
    if (block->groups == 0 || block->heads % block->groups != 0)
        return coh_fail(COH_LENGTH_MISMATCH,
                        "coh_graph_block: '%s': %llu heads cannot be divided among %llu groups",
                        block->name, (unsigned long long)block->heads,
                        (unsigned long long)block->groups);
    return COH_OK;
}

static coh_status divide(const builder *build, const char *what, uint64_t total, uint64_t *part)
{
    char text[COH_NAME_BYTES + 64];
    snprintf(text, sizeof text, "coh_graph_block: '%s': %s", build->block->name, what);
    return coh_shard_range(build->shard, text, total, NULL, part);
}

coh_status coh_graph_block(coh_graph *graph, const coh_block *block, const coh_shard *shard)
{
    builder build = {.graph = graph, .block = block, .shard = shard};
    build.status = check_block(graph, block);
    if (build.status == COH_OK)
        build.status = cohi_shard_check("coh_graph_block", shard);
    if (build.status == COH_OK)
        build.status = divide(&build, "heads", block->heads, &build.heads);
    if (build.status == COH_OK)
        build.status = divide(&build, "groups", block->groups, &build.groups);
    if (build.status == COH_OK)
        build.status = divide(&build, "inner", block->inner, &build.inner);
    if (build.status != COH_OK)
        return build.status;
    add_attention(&build);
    add_feed_forward(&build);
    return build.status;
}
