#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_BYTES = 1 << 20, ROWS_AT_ONCE = 128, ALIGNED = 16 /* floats of a cache line */ };

coh_status weights_want(weights *all, const char *name, const char *tensor, const coh_shape *shape,
                        weight_split split, const coh_shard *shard)
{
    uint64_t part = 1;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        weight *moved = realloc(all->list, room * sizeof *moved);
        if (!moved)
            return coh_fail(COH_NO_MEMORY, "no memory for %zu weights", room);
        all->list = moved;
        all->room = room;
    }
    weight *one = &all->list[all->count];
    *one = (weight){.shape = *shape, .split = split, .count = coh_shape_count(shape)};
    snprintf(one->name, sizeof one->name, "%s", name);
    snprintf(one->tensor, sizeof one->tensor, "%s", tensor);
    coh_status status =
        split == SPLIT_NONE
            ? COH_OK
            : coh_shard_range(shard, name, shape->dim[split == SPLIT_COLUMNS], NULL, &part);
    if (status != COH_OK)
        return status;
    if (split != SPLIT_NONE)
        one->count = one->count / shape->dim[split == SPLIT_COLUMNS] * part;
    all->count++;
    return COH_OK;
}

/* ---- reading ---- */

/* What reading one weight needs. */
typedef struct reader {
    const st_tensor *tensor;
    coh_copier *copier;
    coh_pipeline *pipeline;
    float *target;
    size_t element; /* bytes, in the file */
    uint64_t bytes; /* read so far */
} reader;

static coh_status convert_tile(void *arg, size_t index, void *tile, size_t bytes)
{
    reader *from = arg;
    size_t count = bytes / from->element;
    (void)index;
    coh_status status = coh_convert(from->target, COH_F32, tile, from->tensor->dtype, count);
    from->target += count;
    return status;
}

/* A run of bytes, tile by tile: the next is read while this one is converted. */
static coh_status read_run(reader *from, uint64_t first, uint64_t count)
{
    coh_tiles tiles = COH_TILES_INIT;
    tiles.file = from->tensor->file;
    tiles.offset = from->tensor->offset + first * from->element;
    tiles.bytes = count * from->element;
    from->bytes += tiles.bytes;
    return coh_pipeline_run(from->pipeline, &tiles, convert_tile, from);
}

/* A part of each of some rows, all of them asked for at once. */
static coh_status read_rows(reader *from, char *staged, uint64_t row, uint64_t rows, uint64_t first,
                            uint64_t count)
{
    coh_token tokens[ROWS_AT_ONCE];
    uint64_t width = from->tensor->shape.dim[1], issued = 0;
    size_t bytes = count * from->element;
    coh_status status = COH_OK;
    for (; issued < rows && status == COH_OK; issued += status == COH_OK)
        status = coh_copier_issue_file(from->copier, staged + issued * bytes, from->tensor->file,
                                       from->tensor->offset
                                           + ((row + issued) * width + first) * from->element,
                                       bytes, &tokens[issued]);
    for (uint64_t i = 0; i < issued; i++) {
        coh_status waited = coh_copier_wait(from->copier, tokens[i]);
        status = status == COH_OK ? waited : status;
    }
    from->bytes += issued * bytes;
    if (status == COH_OK)
        status = coh_convert(from->target, COH_F32, staged, from->tensor->dtype, rows * count);
    from->target += rows * count;
    return status;
}

static coh_status read_columns(reader *from, uint64_t first, uint64_t count)
{
    uint64_t rows = from->tensor->shape.dim[0];
    char *staged = malloc(ROWS_AT_ONCE * count * from->element);
    if (!staged)
        return coh_fail(COH_NO_MEMORY, "no memory for rows of '%s'", from->tensor->name);
    coh_status status = COH_OK;
    for (uint64_t row = 0; row < rows && status == COH_OK; row += ROWS_AT_ONCE) {
        uint64_t now = rows - row < ROWS_AT_ONCE ? rows - row : ROWS_AT_ONCE;
        status = read_rows(from, staged, row, now, first, count);
    }
    free(staged);
    return status;
}

static coh_status check_shape(const weight *one, const st_tensor *tensor)
{
    if (one->shape.dims == tensor->shape.dims
        && memcmp(one->shape.dim, tensor->shape.dim,
                  (size_t)one->shape.dims * sizeof one->shape.dim[0])
               == 0)
        return COH_OK;
    return coh_fail(COH_LENGTH_MISMATCH,
                    "%s: tensor '%s' has %d dimensions of %llu and %llu; config.json says %llu and "
                    "%llu",
                    coh_file_path(tensor->file), tensor->name, tensor->shape.dims,
                    (unsigned long long)tensor->shape.dim[0],
                    (unsigned long long)tensor->shape.dim[1], (unsigned long long)one->shape.dim[0],
                    (unsigned long long)one->shape.dim[1]);
}

static coh_status read_weight(reader *from, const weight *one, const coh_shard *shard)
{
    uint64_t first = 0, count = 0;
    int axis = one->split == SPLIT_COLUMNS;
    coh_status status = check_shape(one, from->tensor);
    if (status == COH_OK && one->split != SPLIT_NONE)
        status = coh_shard_range(shard, one->name, one->shape.dim[axis], &first, &count);
    if (status != COH_OK)
        return status;
    from->target = one->data;
    from->element = coh_dtype_size(from->tensor->dtype);
    if (one->split == SPLIT_COLUMNS)
        return read_columns(from, first, count);
    uint64_t row = one->shape.dims == 2 ? one->shape.dim[1] : 1;
    return read_run(from, one->split == SPLIT_ROWS ? first * row : 0, one->count);
}

/* One block for all of them, each on a cache line of its own. */
static coh_status place(weights *all, coh_device *device)
{
    uint64_t total = 0;
    for (size_t i = 0; i < all->count; i++)
        total += (all->list[i].count + ALIGNED - 1) / ALIGNED * ALIGNED;
    coh_status status =
        coh_buffer_create(device, (total + ALIGNED) * sizeof(float), NULL, &all->buffer);
    float *at = status == COH_OK ? coh_buffer_pointer(all->buffer) : NULL;
    for (size_t i = 0; i < all->count && status == COH_OK; i++) {
        all->list[i].data = at;
        at += (all->list[i].count + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    return status;
}

coh_status weights_read(weights *all, const st_archive *archive, const coh_shard *shard,
                        coh_device *device)
{
    reader from = {0};
    coh_status status = place(all, device);
    if (status == COH_OK)
        status = coh_copier_create(NULL, &from.copier);
    if (status == COH_OK)
        status = coh_pipeline_create(from.copier, TILE_BYTES, NULL, &from.pipeline);
    for (size_t i = 0; i < all->count && status == COH_OK; i++) {
        status = st_find(archive, all->list[i].tensor, &from.tensor);
        if (status == COH_OK)
            status = read_weight(&from, &all->list[i], shard);
    }
    all->file_bytes = from.bytes;
    (void)coh_pipeline_destroy(from.pipeline);
    (void)coh_copier_destroy(from.copier);
    return status;
}

coh_status weights_bind(const weights *all, coh_program *program)
{
    coh_status status = COH_OK;
    for (size_t i = 0; i < all->count && status == COH_OK; i++)
        status = coh_program_bind(program, all->list[i].name, all->list[i].data,
                                  all->list[i].count * sizeof(float));
    return status;
}

void weights_free(weights *all)
{
    (void)coh_buffer_destroy(all->buffer);
    free(all->list);
    *all = (weights){0};
}
