#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEAM "tensor"

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- graph ---- */

static coh_status add_first(const llama_model *model, coh_graph *graph, uint64_t rows)
{
    const coh_shape ids = {1, {rows}};
    const coh_shape table = {2, {model->config.vocabulary, model->config.width}};
    coh_status status = coh_graph_input(graph, "ids", COH_I32, &ids);
    if (status == COH_OK)
        status = coh_graph_parameter(graph, "model.embed_tokens.weight", COH_F32, &table);
    if (status == COH_OK)
        status = coh_graph_op(graph, "hidden", "embedding", "model.embed_tokens.weight ids", NULL);
    return status;
}

/* The last row alone becomes logits: each rank has some of them, all are gathered. */
static coh_status add_last(const llama_model *model, coh_graph *graph, const char *hidden,
                           uint64_t rows)
{
    const coh_shape width = {1, {model->config.width}};
    char text[COH_NAME_BYTES + 32];
    uint64_t part = 0;
    const coh_linear head = {"lm_head", "normed", model->config.width, model->config.vocabulary};
    snprintf(text, sizeof text, "begin=%llu end=%llu", (unsigned long long)(rows - 1),
             (unsigned long long)rows);
    coh_status status = coh_graph_op(graph, "row", "slice", hidden, text);
    if (status == COH_OK)
        status = coh_graph_parameter(graph, "model.norm.weight", COH_F32, &width);
    snprintf(text, sizeof text, "eps=%.9g", model->config.eps);
    if (status == COH_OK)
        status = coh_graph_op(graph, "normed", "rms_norm", "row model.norm.weight", text);
    if (status == COH_OK)
        status = coh_graph_linear_column(graph, &head, &model->shard);
    if (status == COH_OK)
        status =
            coh_shard_range(&model->shard, "vocab_size", model->config.vocabulary, NULL, &part);
    snprintf(text, sizeof text, "shape=%llu", (unsigned long long)part);
    if (status == COH_OK)
        status = coh_graph_op(graph, "part", "reshape", "lm_head", text);
    if (status == COH_OK)
        status = coh_graph_op(graph, "all", "collective.all_gather", "part", "team=" TEAM);
    return status == COH_OK ? coh_graph_output(graph, "logits", "all") : status;
}

static coh_status add_block(const llama_model *model, coh_graph *graph, int layer,
                            char hidden[COH_NAME_BYTES])
{
    const llama_config *config = &model->config;
    char name[48], input[COH_NAME_BYTES];
    snprintf(name, sizeof name, "model.layers.%d", layer);
    snprintf(input, sizeof input, "%s", hidden);
    const coh_block block = {.size = sizeof block,
                             .name = name,
                             .input = input,
                             .position = "position",
                             .width = config->width,
                             .inner = config->inner,
                             .heads = config->heads,
                             .groups = config->groups,
                             .head = config->head,
                             .context = config->context,
                             .eps = config->eps,
                             .theta = config->theta};
    snprintf(hidden, COH_NAME_BYTES, "%s.out", name);
    return coh_graph_block(graph, &block, &model->shard);
}

/* This stage's layers, for `rows` tokens at a time. */
static coh_status build(const llama_model *model, coh_graph *graph, uint64_t rows)
{
    const coh_shape one = {1, {1}}, hidden_shape = {2, {rows, model->config.width}};
    char hidden[COH_NAME_BYTES] = "hidden";
    coh_status status = coh_graph_input(graph, "position", COH_I32, &one);
    if (status == COH_OK)
        status = llama_is_first(model) ? add_first(model, graph, rows)
                                       : coh_graph_input(graph, hidden, COH_F32, &hidden_shape);
    for (int layer = model->first; layer < model->last && status == COH_OK; layer++)
        status = add_block(model, graph, layer, hidden);
    if (status != COH_OK)
        return status;
    return llama_is_last(model) ? add_last(model, graph, hidden, rows)
                                : coh_graph_output(graph, "hidden", hidden);
}

/* Collective. A rank that fails ends its process, which tells the others. */
static coh_status compile(llama_model *model, uint64_t rows, coh_program **program)
{
    const coh_team_binding teams[] = {{TEAM, model->row}};
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_graph *graph;
    options.world = model->world;
    options.teams = teams;
    options.team_count = 1;
    options.timed = 1;
    coh_status status = coh_graph_create(&graph);
    if (status == COH_OK)
        status = build(model, graph, rows);
    if (status == COH_OK)
        status = coh_graph_compile(graph, model->device, &options, program);
    coh_graph_destroy(graph);
    if (status == COH_OK)
        status = weights_bind(&model->weights, *program);
    return status;
}

/* ---- weights ---- */

static coh_status want(llama_model *model, const char *name, uint64_t rows, uint64_t columns,
                       weight_split split)
{
    const coh_shape shape = {columns ? 2 : 1, {rows, columns}};
    return weights_want(&model->weights, name, name, &shape, split, &model->shard);
}

static coh_status want_layer(llama_model *model, int layer)
{
    const llama_config *config = &model->config;
    uint64_t queries = config->heads * config->head, keys = config->groups * config->head;
    const struct {
        const char *name;
        uint64_t rows, columns;
        weight_split split;
    } rows[] = {
        {"input_layernorm", config->width, 0, SPLIT_NONE},
        {"self_attn.q_proj", queries, config->width, SPLIT_ROWS},
        {"self_attn.k_proj", keys, config->width, SPLIT_ROWS},
        {"self_attn.v_proj", keys, config->width, SPLIT_ROWS},
        {"self_attn.o_proj", config->width, queries, SPLIT_COLUMNS},
        {"post_attention_layernorm", config->width, 0, SPLIT_NONE},
        {"mlp.gate_proj", config->inner, config->width, SPLIT_ROWS},
        {"mlp.up_proj", config->inner, config->width, SPLIT_ROWS},
        {"mlp.down_proj", config->width, config->inner, SPLIT_COLUMNS},
    };
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == COH_OK; i++) {
        char name[COH_NAME_BYTES];
        snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, rows[i].name);
        status = want(model, name, rows[i].rows, rows[i].columns, rows[i].split);
    }
    return status;
}

static coh_status want_all(llama_model *model)
{
    const llama_config *config = &model->config;
    const coh_shape table = {2, {config->vocabulary, config->width}};
    const char *embedding = "model.embed_tokens.weight", *head = "lm_head.weight";
    coh_status status = COH_OK;
    if (llama_is_first(model))
        status = want(model, embedding, config->vocabulary, config->width, SPLIT_NONE);
    for (int layer = model->first; layer < model->last && status == COH_OK; layer++)
        status = want_layer(model, layer);
    if (status != COH_OK || !llama_is_last(model))
        return status;
    status = want(model, "model.norm.weight", config->width, 0, SPLIT_NONE);
    if (status == COH_OK)
        status = weights_want(&model->weights, head, config->tied ? embedding : head, &table,
                              SPLIT_ROWS, &model->shard);
    return status;
}

static coh_status read_weights(llama_model *model, const char *folder)
{
    st_archive *archive;
    coh_status status = st_open(folder, &archive);
    if (status != COH_OK)
        return status;
    status = want_all(model);
    if (status == COH_OK)
        status = weights_read(&model->weights, archive, &model->shard, model->device);
    st_close(archive);
    return status;
}

/* ---- open and close ---- */

/* Layers cost alike; the last stage has the product with the vocabulary besides. */
static coh_status take_layers(llama_model *model)
{
    const llama_config *config = &model->config;
    int layers = (int)config->layers;
    double *costs = malloc((size_t)layers * sizeof *costs);
    int *first = malloc(((size_t)model->pipeline + 1) * sizeof *first);
    coh_status status = costs && first ? COH_OK : coh_fail(COH_NO_MEMORY, "no memory for layers");
    if (status == COH_OK) {
        double width = (double)config->width, keys = (double)(config->groups * config->head);
        double layer = width * (2 * width + 2 * keys + 3 * (double)config->inner);
        for (int i = 0; i < layers; i++)
            costs[i] = layer;
        costs[layers - 1] += width * (double)config->vocabulary;
        status = coh_partition(costs, layers, model->pipeline, first);
    }
    if (status == COH_OK) {
        model->first = first[model->stage];
        model->last = first[model->stage + 1];
    }
    free(costs);
    free(first);
    return status;
}

static coh_status join_grid(llama_model *model)
{
    int size = coh_size(model->world), rank = coh_rank(model->world);
    if (model->tensor < 1 || model->pipeline < 1 || model->tensor * model->pipeline != size)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%d ranks cannot be %d tensor-parallel times %d stages", size,
                        model->tensor, model->pipeline);
    model->stage = rank / model->tensor;
    model->shard = (coh_shard){TEAM, rank % model->tensor, model->tensor};
    return coh_team_split_2d(coh_team_world(model->world), model->tensor, &model->row,
                             &model->column);
}

static coh_status prepare(llama_model *model, const char *folder)
{
    coh_status status = llama_config_read(folder, &model->config);
    if (status == COH_OK)
        status = join_grid(model);
    if (status == COH_OK)
        status = take_layers(model);
    if (status == COH_OK)
        status = coh_device_open(COH_DEVICE_CPU, 0, &model->device);
    if (status == COH_OK)
        status = read_weights(model, folder);
    return status;
}

coh_status llama_open(llama_model *model, coh_world *world, const char *folder, int tensor,
                      int pipeline)
{
    *model = (llama_model){.world = world, .tensor = tensor, .pipeline = pipeline};
    coh_status status = prepare(model, folder);
    if (status == COH_OK)
        status = compile(model, MODEL_CHUNK, &model->chunk);
    if (status == COH_OK)
        status = compile(model, 1, &model->single);
    if (status == COH_OK)
        status = coh_relay_create(model->column, MODEL_CHUNK * model->config.width * sizeof(float),
                                  &model->relay);
    model->logits = status == COH_OK ? calloc(model->config.vocabulary, sizeof(float)) : NULL;
    if (status == COH_OK && !model->logits)
        status = coh_fail(COH_NO_MEMORY, "no memory for the logits");
    return status;
}

void llama_close(llama_model *model)
{
    coh_relay_destroy(model->relay);
    (void)coh_program_destroy(model->single);
    (void)coh_program_destroy(model->chunk);
    weights_free(&model->weights);
    (void)coh_device_close(model->device);
    (void)coh_team_destroy(model->row);
    (void)coh_team_destroy(model->column);
    free(model->logits);
}

/* ---- steps ---- */

/* Tokens on their way through this stage. */
typedef struct walk {
    llama_model *model;
    coh_program *program;
    const int32_t *tokens;
    int rows;
    int position;
} walk;

static coh_status run_stage(void *arg, int index, const void *in, void *out)
{
    walk *step = arg;
    llama_model *model = step->model;
    int32_t position = step->position + index * step->rows;
    size_t hidden = (size_t)step->rows * model->config.width * sizeof(float);
    const coh_binding inputs[] = {
        {"position", &position, sizeof position},
        in ? (coh_binding){"hidden", (void *)in, hidden}
           : (coh_binding){"ids", (void *)(step->tokens + index * step->rows),
                           (size_t)step->rows * sizeof *step->tokens},
    };
    const coh_binding output =
        out ? (coh_binding){"hidden", out, hidden}
            : (coh_binding){"logits", model->logits, model->config.vocabulary * sizeof(float)};
    return coh_program_run(step->program, inputs, 2, &output, 1);
}

static coh_status walk_tokens(walk *step, int count)
{
    uint64_t bytes = (uint64_t)step->rows * step->model->config.width * sizeof(float);
    return count > 0 ? coh_relay_run(step->model->relay, count, bytes, run_stage, step) : COH_OK;
}

coh_status llama_feed(llama_model *model, const int32_t *tokens, int count, int position)
{
    int chunks = count / MODEL_CHUNK, rest = count % MODEL_CHUNK;
    walk step = {model, model->chunk, tokens, MODEL_CHUNK, position};
    coh_status status = walk_tokens(&step, chunks);
    if (status != COH_OK)
        return status;
    step = (walk){model, model->single, tokens + chunks * MODEL_CHUNK, 1,
                  position + chunks * MODEL_CHUNK};
    return walk_tokens(&step, rest);
}

coh_status llama_share(llama_model *model, int32_t *token)
{
    uint64_t begun = now_ns();
    int root = (model->pipeline - 1) * model->tensor;
    coh_status status = coh_broadcast(coh_team_world(model->world), COH_I32, token, token, 1, root);
    model->broadcast_ns += now_ns() - begun;
    return status;
}

/* ---- figures ---- */

uint64_t llama_communication_ns(const llama_model *model)
{
    uint64_t total = model->broadcast_ns + coh_relay_waited(model->relay);
    const coh_program *programs[] = {model->chunk, model->single};
    for (int i = 0; i < 2; i++) {
        coh_program_info info = {.size = sizeof info};
        if (coh_program_query(programs[i], &info) == COH_OK)
            total += info.communication_ns;
    }
    return total;
}

coh_status llama_arena(const llama_model *model, uint64_t *bytes, uint64_t *least)
{
    coh_program_info info = {.size = sizeof info};
    coh_status status = coh_program_query(model->chunk, &info);
    *bytes = info.arena;
    *least = info.least;
    return status;
}
