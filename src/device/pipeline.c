/*
 * pipeline.c - a ring of tiles between a copier and a computation.
 *
 * `count` tiles from `head` on are taken: the first of them is the current one, the others are on
 * their way or there. A tile is free again only by the swap that ends its time as the current one,
 * so no copy is ever under way into what is being computed on.
 */
#include "device/event.h"
#include "device/file.h"
#include "device/options.h"

#include <errno.h>
#include <stdlib.h>

enum { USUAL_DEPTH = 2, MOST_DEPTH = 4096, TILE_ALIGNMENT = 4096 };

typedef struct tile {
    char *memory;
    coh_buffer *buffer; /* that the memory is of, or NULL */
    size_t bytes;       /* in it */
    bool copying;       /* its token was not waited for */
    coh_token token;
    cohi_failure failure; /* of its copy */
} tile;

struct coh_pipeline {
    coh_copier *copier;
    size_t tile_bytes;
    uint32_t depth;
    uint32_t head;
    uint32_t count;
    tile *tiles;
};

/* ---- life ---- */

static coh_status make_tile(coh_device *device, size_t bytes, tile *self)
{
    coh_buffer_options options = COH_BUFFER_OPTIONS_INIT;
    options.alignment = TILE_ALIGNMENT;
    if (!device) {
        self->memory = aligned_alloc(TILE_ALIGNMENT, cohi_round_up(bytes, TILE_ALIGNMENT));
        return self->memory
                   ? COH_OK
                   : cohi_fail_errno(ENOMEM, "coh_pipeline_create: a tile of %zu bytes", bytes);
    }
    coh_status status = coh_buffer_create(device, bytes, &options, &self->buffer);
    if (status == COH_OK)
        self->memory = coh_buffer_pointer(self->buffer);
    return status;
}

static void free_pipeline(coh_pipeline *pipeline)
{
    for (uint32_t i = 0; pipeline->tiles && i < pipeline->depth; i++) {
        if (pipeline->tiles[i].buffer)
            (void)coh_buffer_destroy(pipeline->tiles[i].buffer);
        else
            free(pipeline->tiles[i].memory);
    }
    free(pipeline->tiles);
    free(pipeline);
}

static coh_status check_create(const char *call, const coh_copier *copier, size_t tile_bytes,
                               uint32_t depth, coh_pipeline **pipeline)
{
    coh_status status = cohi_not_null(call, "copier", copier);
    if (status == COH_OK)
        status = cohi_not_null(call, "pipeline", pipeline);
    if (status != COH_OK)
        return status;
    if (tile_bytes == 0 || tile_bytes > SIZE_MAX / 2)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: a tile cannot have %zu bytes", call, tile_bytes);
    if (depth < 2 || depth > MOST_DEPTH)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: a depth of %u; give 2 to %d", call, depth,
                        MOST_DEPTH);
    return COH_OK;
}

coh_status coh_pipeline_create(coh_copier *copier, size_t tile_bytes,
                               const coh_pipeline_options *options, coh_pipeline **pipeline)
{
    const char *call = "coh_pipeline_create";
    coh_pipeline_options chosen = COH_PIPELINE_OPTIONS_INIT;
    coh_status status = cohi_options_take(call, options, &chosen, sizeof chosen);
    uint32_t depth = chosen.depth ? chosen.depth : USUAL_DEPTH;
    if (status == COH_OK)
        status = check_create(call, copier, tile_bytes, depth, pipeline);
    if (status != COH_OK)
        return status;
    coh_pipeline *made = calloc(1, sizeof *made);
    tile *tiles = calloc(depth, sizeof *tiles);
    if (!made || !tiles) {
        free(tiles);
        free(made);
        return cohi_fail_errno(ENOMEM, "%s", call);
    }
    *made = (coh_pipeline){copier, tile_bytes, depth, 0, 0, tiles};
    for (uint32_t i = 0; status == COH_OK && i < depth; i++)
        status = make_tile(chosen.device, tile_bytes, &tiles[i]);
    if (status != COH_OK) {
        free_pipeline(made);
        return status;
    }
    *pipeline = made;
    return COH_OK;
}

/* Waits for the tile's copy, if there is one, and keeps how it ended. */
static void settle(coh_pipeline *pipeline, tile *self)
{
    if (!self->copying)
        return;
    self->copying = false;
    coh_status status = coh_copier_wait(pipeline->copier, self->token);
    if (status != COH_OK)
        cohi_failure_keep(&self->failure, status);
}

static tile *current_of(coh_pipeline *pipeline)
{
    return &pipeline->tiles[pipeline->head];
}

static void give_back(coh_pipeline *pipeline)
{
    settle(pipeline, current_of(pipeline));
    pipeline->head = (pipeline->head + 1) % pipeline->depth;
    pipeline->count--;
}

coh_status coh_pipeline_destroy(coh_pipeline *pipeline)
{
    if (!pipeline)
        return COH_OK;
    while (pipeline->count > 0)
        give_back(pipeline);
    free_pipeline(pipeline);
    return COH_OK;
}

/* ---- filling ---- */

/* The tile that is filled next, with room for `bytes`. */
static coh_status find_next(const char *call, coh_pipeline *pipeline, size_t bytes, tile **next)
{
    coh_status status = cohi_not_null(call, "pipeline", pipeline);
    if (status != COH_OK)
        return status;
    if (pipeline->count == pipeline->depth)
        return coh_fail(COH_BUSY, "%s: all %u tiles are taken; swap first", call, pipeline->depth);
    if (bytes > pipeline->tile_bytes)
        return coh_fail(COH_LENGTH_MISMATCH, "%s: %zu bytes do not fit into a tile of %zu", call,
                        bytes, pipeline->tile_bytes);
    *next = &pipeline->tiles[(pipeline->head + pipeline->count) % pipeline->depth];
    return COH_OK;
}

static void take(coh_pipeline *pipeline, tile *next, size_t bytes, bool copying)
{
    next->bytes = bytes;
    next->copying = copying;
    next->failure.status = COH_OK;
    pipeline->count++;
}

coh_status coh_pipeline_next(coh_pipeline *pipeline, void **memory)
{
    const char *call = "coh_pipeline_next";
    tile *next = NULL;
    coh_status status = cohi_not_null(call, "tile", memory);
    if (status == COH_OK)
        status = find_next(call, pipeline, 0, &next);
    if (status == COH_OK)
        *memory = next->memory;
    return status;
}

coh_status coh_pipeline_load(coh_pipeline *pipeline, const void *source, size_t bytes)
{
    tile *next = NULL;
    coh_status status = find_next("coh_pipeline_load", pipeline, bytes, &next);
    if (status == COH_OK)
        status = coh_copier_issue(pipeline->copier, next->memory, source, bytes, &next->token);
    if (status == COH_OK)
        take(pipeline, next, bytes, true);
    return status;
}

coh_status coh_pipeline_load_file(coh_pipeline *pipeline, coh_file *file, uint64_t offset,
                                  size_t bytes)
{
    tile *next = NULL;
    coh_status status = find_next("coh_pipeline_load_file", pipeline, bytes, &next);
    if (status == COH_OK)
        status = coh_copier_issue_file(pipeline->copier, next->memory, file, offset, bytes,
                                       &next->token);
    if (status == COH_OK)
        take(pipeline, next, bytes, true);
    return status;
}

coh_status coh_pipeline_filled(coh_pipeline *pipeline, size_t bytes)
{
    tile *next = NULL;
    coh_status status = find_next("coh_pipeline_filled", pipeline, bytes, &next);
    if (status == COH_OK)
        take(pipeline, next, bytes, false);
    return status;
}

/* ---- using ---- */

static coh_status check_taken(const char *call, const coh_pipeline *pipeline)
{
    coh_status status = cohi_not_null(call, "pipeline", pipeline);
    if (status == COH_OK && pipeline->count == 0)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: no tile was loaded", call);
    return status;
}

coh_status coh_pipeline_current(coh_pipeline *pipeline, void **memory, size_t *bytes)
{
    const char *call = "coh_pipeline_current";
    coh_status status = check_taken(call, pipeline);
    if (status == COH_OK)
        status = cohi_not_null(call, "tile", memory);
    if (status != COH_OK)
        return status;
    tile *current = current_of(pipeline);
    settle(pipeline, current);
    if (current->failure.status != COH_OK)
        return coh_fail(current->failure.status, "%s: %s", call, current->failure.text);
    *memory = current->memory;
    if (bytes)
        *bytes = current->bytes;
    return COH_OK;
}

coh_status coh_pipeline_swap(coh_pipeline *pipeline)
{
    coh_status status = check_taken("coh_pipeline_swap", pipeline);
    if (status == COH_OK)
        give_back(pipeline);
    return status;
}

/* ---- the whole loop ---- */

static coh_status check_run(const char *call, const coh_pipeline *pipeline, const coh_tiles *tiles)
{
    coh_status status = cohi_not_null(call, "pipeline", pipeline);
    if (status != COH_OK)
        return status;
    if (pipeline->count > 0)
        return coh_fail(COH_BUSY, "%s: %u tiles are taken; swap them away first", call,
                        pipeline->count);
    if (!tiles->memory == !tiles->file)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: give memory or a file to load from, %s", call,
                        tiles->memory ? "not both" : "and neither is there");
    if (tiles->tile_bytes > pipeline->tile_bytes)
        return coh_fail(COH_LENGTH_MISMATCH,
                        "%s: tiles of %zu bytes do not fit into a pipeline for %zu", call,
                        tiles->tile_bytes, pipeline->tile_bytes);
    if (tiles->bytes > UINT64_MAX - tiles->offset)
        return coh_fail(COH_OUT_OF_BOUNDS, "%s: %llu bytes from byte %llu on overflow", call,
                        (unsigned long long)tiles->bytes, (unsigned long long)tiles->offset);
    return tiles->file ? cohi_file_range(call, tiles->file, tiles->offset, tiles->bytes) : COH_OK;
}

static size_t bytes_of_tile(const coh_tiles *tiles, uint64_t index)
{
    uint64_t left = tiles->bytes - index * tiles->tile_bytes;
    return left < tiles->tile_bytes ? (size_t)left : tiles->tile_bytes;
}

static coh_status load_tile(coh_pipeline *pipeline, const coh_tiles *tiles, uint64_t index)
{
    uint64_t at = tiles->offset + index * tiles->tile_bytes;
    size_t bytes = bytes_of_tile(tiles, index);
    if (tiles->file)
        return coh_pipeline_load_file(pipeline, tiles->file, at, bytes);
    return coh_pipeline_load(pipeline, (const char *)tiles->memory + at, bytes);
}

/* Loads ahead, then computes on one tile. */
static coh_status run_tile(coh_pipeline *pipeline, const coh_tiles *tiles, uint64_t index,
                           uint64_t count, coh_tile_compute *compute, void *arg)
{
    void *memory;
    size_t bytes;
    coh_status status = COH_OK;
    for (uint64_t next = index + pipeline->count;
         status == COH_OK && next < count && pipeline->count < pipeline->depth; next++)
        status = load_tile(pipeline, tiles, next);
    if (status == COH_OK)
        status = coh_pipeline_current(pipeline, &memory, &bytes);
    if (status != COH_OK)
        return status;
    coh_fail(COH_OK, "%s", ""); /* a reason that the function does not give is not an older one */
    return compute(arg, (size_t)index, memory, bytes);
}

/* The calling thread's last error, with the tile before it; the pipeline is emptied. */
static coh_status fail_run(coh_pipeline *pipeline, coh_status status, uint64_t index,
                           uint64_t count)
{
    cohi_failure kept;
    cohi_failure_keep(&kept, status);
    while (pipeline->count > 0)
        give_back(pipeline);
    return coh_fail(status, "coh_pipeline_run: tile %llu of %llu: %s", (unsigned long long)index,
                    (unsigned long long)count, kept.text);
}

static coh_status run_all(coh_pipeline *pipeline, const coh_tiles *tiles, coh_tile_compute *compute,
                          void *arg)
{
    uint64_t count = tiles->bytes / tiles->tile_bytes + (tiles->bytes % tiles->tile_bytes != 0);
    for (uint64_t index = 0; index < count; index++) {
        coh_status status = run_tile(pipeline, tiles, index, count, compute, arg);
        if (status != COH_OK)
            return fail_run(pipeline, status, index, count);
        give_back(pipeline);
    }
    return COH_OK;
}

coh_status coh_pipeline_run(coh_pipeline *pipeline, const coh_tiles *tiles,
                            coh_tile_compute *compute, void *arg)
{
    const char *call = "coh_pipeline_run";
    coh_tiles chosen = COH_TILES_INIT;
    coh_status status = cohi_not_null(call, "tiles", tiles);
    if (status == COH_OK)
        status = cohi_options_take(call, tiles, &chosen, sizeof chosen);
    if (status == COH_OK && !compute)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: the compute function is NULL", call);
    if (status == COH_OK)
        status = check_run(call, pipeline, &chosen);
    if (status != COH_OK)
        return status;
    if (chosen.tile_bytes == 0)
        chosen.tile_bytes = pipeline->tile_bytes;
    return run_all(pipeline, &chosen, compute, arg);
}
