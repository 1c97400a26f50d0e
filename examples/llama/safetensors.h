/*
 * safetensors.h - tensors by name in files of the safetensors format.
 *
 * A file is eight bytes with the length of a header, the header (JSON: name, type, shape, first and
 * last byte of each tensor), and the bytes. Everything in the header is checked against the file
 * before it is believed. A checkpoint in several files has an index beside them.
 */
#ifndef LLAMA_SAFETENSORS_H
#define LLAMA_SAFETENSORS_H

#include <cohort-graph.h>

typedef struct st_tensor {
    char *name;
    coh_dtype dtype;
    coh_shape shape;
    coh_file *file;
    uint64_t offset; /* of its first byte in the file */
} st_tensor;

typedef struct st_archive st_archive;

/* Opens "FOLDER/model.safetensors", or the files that "FOLDER/model.safetensors.index.json" names.
 * Errors name the file and what is wrong in it. */
coh_status st_open(const char *folder, st_archive **archive);

/* Opens one file. */
coh_status st_open_file(const char *path, st_archive **archive);

void st_close(st_archive *archive);

/* The tensor; COH_INVALID_ARGUMENT naming it when there is none. */
coh_status st_find(const st_archive *archive, const char *name, const st_tensor **tensor);

/* How many there are, and one of them. */
size_t st_count(const st_archive *archive);
const st_tensor *st_at(const st_archive *archive, size_t index);

/* Reads a header of `bytes` of text for a file with `data_bytes` behind it, as st_open_file does;
 * the tensors get `file` and offsets from `data_at` on. For the fuzzer. */
coh_status st_parse(st_archive *archive, const char *text, size_t bytes, uint64_t data_at,
                    uint64_t data_bytes, coh_file *file, const char *path);
st_archive *st_new(void);

#endif
