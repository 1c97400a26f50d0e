/* config.h - a model's sizes, from the config.json beside its tensors. */
#ifndef LLAMA_CONFIG_H
#define LLAMA_CONFIG_H

#include <cohort-graph.h>

typedef struct llama_config {
    uint64_t vocabulary;
    uint64_t width;
    uint64_t inner;
    uint64_t layers;
    uint64_t heads;
    uint64_t groups;
    uint64_t head;
    uint64_t context;
    double eps;
    double theta;
    int tied; /* the embedding is the last product's matrix too */
} llama_config;

/* Reads "FOLDER/config.json" and checks that the sizes go together. Errors name file and value. */
coh_status llama_config_read(const char *folder, llama_config *config);

#endif
