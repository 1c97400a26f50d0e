/*
 * model.h - a decoder-only language model in the Llama layout, split over the ranks of a world.
 *
 * The world is a grid: `tensor` ranks share the layers of a stage, `pipeline` stages follow each
 * other. Rank r is number r mod tensor of stage r / tensor.
 */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H

#include "config.h"
#include "weights.h"

enum { MODEL_CHUNK = 16 }; /* tokens of a prompt that go through the layers together */

typedef struct llama_model {
    llama_config config;
    coh_world *world;
    coh_device *device;
    int tensor, pipeline;
    int stage;
    coh_shard shard;
    coh_team *row, *column; /* the ranks of this stage; those of this part, over the stages */
    int first, last;        /* layers, the last not included */
    weights weights;
    coh_program *chunk, *single; /* for MODEL_CHUNK tokens, and for one */
    coh_relay *relay;
    float *logits; /* [vocabulary], on the last stage, after a step */
    uint64_t broadcast_ns;
} llama_model;

/* Joins the ranks into the grid, reads this rank's weights from `folder`, compiles. Collective. */
coh_status llama_open(llama_model *model, coh_world *world, const char *folder, int tensor,
                      int pipeline);

/* Collective. */
void llama_close(llama_model *model);

/* Puts `count` tokens behind the `position` that are in the cache already; model->logits are those
 * that follow the last one. Collective. */
coh_status llama_feed(llama_model *model, const int32_t *tokens, int count, int position);

/* Tells all ranks the token that the last stage chose. Collective. */
coh_status llama_share(llama_model *model, int32_t *token);

/* Nanoseconds that this rank has spent in communication since it was opened. */
uint64_t llama_communication_ns(const llama_model *model);

/* The larger program's arena, and the lower bound of its plan. */
coh_status llama_arena(const llama_model *model, uint64_t *bytes, uint64_t *least);

static inline int llama_is_first(const llama_model *model)
{
    return model->stage == 0;
}

static inline int llama_is_last(const llama_model *model)
{
    return model->stage == model->pipeline - 1;
}

#endif
