/*
 * weights.h - one rank's part of the tensors, read and turned into f32.
 *
 * Only the bytes of the rank's own part are read. Files are read ahead by a copier while what came
 * before is converted.
 */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H

#include "safetensors.h"

/* Which part of a matrix [rows, columns] a rank has. */
typedef enum weight_split { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS } weight_split;

typedef struct weight {
    char name[COH_NAME_BYTES];   /* of the graph's parameter */
    char tensor[COH_NAME_BYTES]; /* of the file's tensor */
    coh_shape shape;             /* of the whole tensor */
    weight_split split;
    float *data; /* in `buffer` */
    uint64_t count;
} weight;

typedef struct weights {
    weight *list;
    size_t count, room;
    coh_buffer *buffer;
    uint64_t file_bytes; /* that were read */
} weights;

/* Notes a weight to be read. */
coh_status weights_want(weights *all, const char *name, const char *tensor, const coh_shape *shape,
                        weight_split split, const coh_shard *shard);

/* Reads all that were noted. */
coh_status weights_read(weights *all, const st_archive *archive, const coh_shard *shard,
                        coh_device *device);

/* Binds them to a program's parameters. */
coh_status weights_bind(const weights *all, coh_program *program);

void weights_free(weights *all);

#endif
