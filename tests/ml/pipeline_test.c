/* Double buffers and deeper ones: every tile is what it should be, from its first byte to its last,
 * for as long as it is current: docs/semantics.md S51. */
#include "ml.h"
#include "scratch.h"

#include <sched.h>

enum { TILE = 40000, TILES = 53, TAIL = 123, TOTAL = TILE * (TILES - 1) + TAIL };

/* A tile that a copier does in several pieces, the last of them short. */
enum { LONG_TILE = 400 * 1000 + TAIL };

static const size_t tile_sizes[] = {TILE, LONG_TILE};
static const uint32_t worker_counts[] = {1, 3};

static unsigned char data[TOTAL];

static void fill_data(void)
{
    uint64_t seed = 99;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)random_next(&seed);
}

static coh_copier *make_copier(int synchronous, uint32_t workers)
{
    coh_copier *copier = NULL;
    coh_copier_options options = {sizeof options, synchronous, workers, 0};
    assert_ok(coh_copier_create(&options, &copier));
    return copier;
}

static coh_pipeline *make_pipeline(coh_copier *copier, size_t tile, uint32_t depth,
                                   coh_device *device)
{
    coh_pipeline *pipeline = NULL;
    coh_pipeline_options options = {sizeof options, depth, device};
    assert_ok(coh_pipeline_create(copier, tile, &options, &pipeline));
    return pipeline;
}

/* How many tiles of that size the data is, and how long one of them is. */
static size_t tile_count(size_t size)
{
    return (TOTAL + size - 1) / size;
}

static size_t bytes_of(size_t size, size_t index)
{
    return index == tile_count(size) - 1 ? TOTAL - index * size : size;
}

/* Looks at the tile for a while: the copier has all the time that it needs to do harm. Then marks
 * it, so that a tile that comes back without being loaded is noticed. */
static const char *look_at(size_t size, size_t index, unsigned char *tile, size_t bytes)
{
    if (bytes != bytes_of(size, index))
        return "its length is wrong";
    for (int look = 0; look < 6; look++) {
        if (memcmp(tile, data + index * size, bytes) != 0)
            return look ? "it changed while it was current" : "it is not what was loaded";
        sched_yield();
    }
    memset(tile, 0xee, bytes);
    return NULL;
}

typedef struct watcher {
    size_t size; /* of a tile */
    size_t seen;
    size_t fail_at;
} watcher;

static coh_status watch(void *arg, size_t index, void *tile, size_t bytes)
{
    watcher *self = arg;
    if (index != self->seen++)
        return coh_fail(COH_SYSTEM, "tile %zu out of order", index);
    if (index == self->fail_at)
        return coh_fail(COH_LIMIT, "enough");
    const char *wrong = look_at(self->size, index, tile, bytes);
    return wrong ? coh_fail(COH_SYSTEM, "tile %zu: %s", index, wrong) : COH_OK;
}

/* The loop of the header, by hand. */
static void documented_loop(coh_copier *copier, size_t size)
{
    void *tile;
    size_t bytes, count = tile_count(size);
    coh_pipeline *p = make_pipeline(copier, size, 0, NULL);
    assert_ok(coh_pipeline_load(p, data, bytes_of(size, 0)));
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count)
            assert_ok(coh_pipeline_load(p, data + (i + 1) * size, bytes_of(size, i + 1)));
        assert_ok(coh_pipeline_current(p, &tile, &bytes));
        const char *wrong = look_at(size, i, tile, bytes);
        if (wrong)
            fail_msg("tile %zu: %s", i, wrong);
        assert_ok(coh_pipeline_swap(p));
    }
    assert_ok(coh_pipeline_destroy(p));
}

static void the_documented_loop_never_overwrites(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        coh_copier *copier = make_copier(kind & 1, worker_counts[kind >> 1 & 1]);
        for (int round = 0; round < 10; round++)
            documented_loop(copier, tile_sizes[kind >> 2]);
        assert_ok(coh_copier_destroy(copier));
    }
}

/* From memory and from a file, into memory of the host and of the device. */
static void whole_loop(int kind, size_t size, uint32_t workers, coh_file *file, coh_device *device)
{
    coh_copier *copier = make_copier(kind & 1, workers);
    coh_pipeline *pipeline =
        make_pipeline(copier, size, 2 + ((unsigned)kind >> 2), kind & 4 ? device : NULL);
    coh_tiles tiles = COH_TILES_INIT;
    tiles.memory = kind & 2 ? NULL : data;
    tiles.file = kind & 2 ? file : NULL;
    tiles.bytes = TOTAL;
    for (int round = 0; round < 3; round++) {
        watcher self = {size, 0, SIZE_MAX};
        assert_ok(coh_pipeline_run(pipeline, &tiles, watch, &self));
        assert_int_equal(self.seen, tile_count(size));
    }
    assert_ok(coh_pipeline_destroy(pipeline));
    assert_ok(coh_copier_destroy(copier));
}

static void whole_loops_see_every_tile(void **state)
{
    coh_file *file;
    coh_device *device = open_cpu();
    scratch made = scratch_make(data, sizeof data);
    (void)state;
    assert_ok(coh_file_open(made.path, &file));
    for (int kind = 0; kind < 16; kind++)
        for (int way = 0; way < 4; way++)
            whole_loop(kind, tile_sizes[way & 1], worker_counts[way >> 1], file, device);
    coh_file_close(file);
    scratch_remove(&made);
    assert_ok(coh_device_close(device));
}

static coh_status count_bytes(void *arg, size_t index, void *tile, size_t bytes)
{
    size_t *total = arg;
    (void)index, (void)tile;
    *total += bytes;
    return COH_OK;
}

static void smaller_tiles_and_offsets_and_nothing(void **state)
{
    size_t total = 0;
    coh_copier *copier = make_copier(0, 0);
    coh_pipeline *pipeline = make_pipeline(copier, TILE, 3, NULL);
    coh_tiles tiles = COH_TILES_INIT;
    (void)state;
    tiles.memory = data;
    tiles.offset = 17;
    tiles.bytes = 1000;
    tiles.tile_bytes = 7;
    assert_ok(coh_pipeline_run(pipeline, &tiles, count_bytes, &total));
    assert_int_equal(total, 1000);
    tiles.bytes = 0;
    assert_ok(coh_pipeline_run(pipeline, &tiles, count_bytes, &total));
    assert_int_equal(total, 1000);
    assert_ok(coh_pipeline_destroy(pipeline));
    assert_ok(coh_copier_destroy(copier));
}

static void a_failing_computation_ends_the_loop(void **state)
{
    coh_copier *copier = make_copier(0, 0);
    coh_pipeline *pipeline = make_pipeline(copier, TILE, 4, NULL);
    coh_tiles tiles = COH_TILES_INIT;
    watcher self = {TILE, 0, 7};
    (void)state;
    tiles.memory = data;
    tiles.bytes = TOTAL;
    assert_fails(coh_pipeline_run(pipeline, &tiles, watch, &self), COH_LIMIT,
                 "tile 7 of 53: enough");
    assert_int_equal(self.seen, 8);
    self = (watcher){TILE, 0, SIZE_MAX}; /* the pipeline is empty, and can be used again */
    assert_ok(coh_pipeline_run(pipeline, &tiles, watch, &self));
    assert_ok(coh_pipeline_destroy(pipeline));
    assert_ok(coh_copier_destroy(copier));
}

static void a_failing_copy_is_told_with_its_tile(void **state)
{
    void *tile;
    size_t total = 0;
    coh_file *file;
    coh_copier *copier = make_copier(0, 0);
    coh_pipeline *pipeline = make_pipeline(copier, TILE, 3, NULL);
    coh_tiles tiles = COH_TILES_INIT;
    scratch made = scratch_make(data, 5 * TILE);
    (void)state;
    assert_ok(coh_file_open(made.path, &file));
    assert_int_equal(ftruncate(made.fd, 2 * TILE + 10), 0);
    tiles.file = file;
    tiles.bytes = 5 * TILE;
    assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_LENGTH_MISMATCH,
                 "tile 2 of 5");
    assert_says(made.path);
    assert_int_equal(total, 2 * TILE);
    /* By hand the swap goes past it. */
    assert_ok(coh_pipeline_load_file(pipeline, file, 4 * TILE, 5));
    assert_ok(coh_pipeline_load(pipeline, "next", 5));
    assert_fails(coh_pipeline_current(pipeline, &tile, NULL), COH_LENGTH_MISMATCH, made.path);
    assert_fails(coh_pipeline_current(pipeline, &tile, NULL), COH_LENGTH_MISMATCH, made.path);
    assert_ok(coh_pipeline_swap(pipeline));
    assert_ok(coh_pipeline_current(pipeline, &tile, NULL));
    assert_string_equal((char *)tile, "next");
    assert_ok(coh_pipeline_destroy(pipeline)); /* with a tile in it */
    tiles.bytes++;
    pipeline = make_pipeline(copier, TILE, 3, NULL);
    assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_OUT_OF_BOUNDS,
                 "200001 bytes");
    assert_int_equal(total, 2 * TILE); /* nothing was computed on */
    assert_ok(coh_pipeline_destroy(pipeline));
    coh_file_close(file);
    scratch_remove(&made);
    assert_ok(coh_copier_destroy(copier));
}

/* The file ends inside the second piece of a tile: those around it go well, the tile does not. */
static void a_failing_piece_ends_the_loop(void **state)
{
    enum { WHOLE = 2, COUNT = 5 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t total = 0;
        coh_file *file;
        coh_copier *copier = make_copier(0, worker_counts[i]);
        coh_pipeline *pipeline = make_pipeline(copier, LONG_TILE, 3, NULL);
        coh_tiles tiles = COH_TILES_INIT;
        scratch made = scratch_make(data, COUNT * LONG_TILE);
        watcher self = {LONG_TILE, 0, SIZE_MAX};
        assert_ok(coh_file_open(made.path, &file));
        assert_int_equal(ftruncate(made.fd, WHOLE * LONG_TILE + LONG_TILE / 2), 0);
        tiles.file = file;
        tiles.bytes = COUNT * LONG_TILE;
        assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_LENGTH_MISMATCH,
                     "tile 2 of 5");
        assert_says(made.path);
        assert_int_equal(total, WHOLE * LONG_TILE);
        tiles.file = NULL; /* the pipeline is empty, and can be used again */
        tiles.memory = data;
        tiles.bytes = TOTAL;
        assert_ok(coh_pipeline_run(pipeline, &tiles, watch, &self));
        assert_ok(coh_pipeline_destroy(pipeline));
        assert_ok(coh_copier_destroy(copier));
        coh_file_close(file);
        scratch_remove(&made);
    }
}

static void misuse_is_refused(void **state)
{
    void *tile = NULL, *again;
    size_t bytes = 0, total = 0;
    coh_copier *copier = make_copier(0, 0);
    coh_pipeline *pipeline = NULL;
    coh_pipeline_options options = {sizeof options, 1, NULL};
    coh_tiles tiles = COH_TILES_INIT;
    (void)state;
    assert_fails(coh_pipeline_create(copier, TILE, &options, &pipeline), COH_INVALID_ARGUMENT,
                 "depth of 1");
    assert_fails(coh_pipeline_create(copier, 0, NULL, &pipeline), COH_INVALID_ARGUMENT, "0 bytes");
    assert_fails(coh_pipeline_create(NULL, 1, NULL, &pipeline), COH_INVALID_ARGUMENT, "copier");
    assert_null(pipeline);
    pipeline = make_pipeline(copier, TILE, 2, NULL);
    assert_fails(coh_pipeline_current(pipeline, &tile, &bytes), COH_INVALID_ARGUMENT, "no tile");
    assert_fails(coh_pipeline_swap(pipeline), COH_INVALID_ARGUMENT, "no tile");
    assert_fails(coh_pipeline_load(pipeline, data, TILE + 1), COH_LENGTH_MISMATCH, "40001 bytes");
    assert_ok(coh_pipeline_load(pipeline, data, TILE));
    assert_ok(coh_pipeline_next(pipeline, &tile));
    memcpy(tile, "mine", 5); /* filled by the caller */
    assert_ok(coh_pipeline_filled(pipeline, 5));
    assert_fails(coh_pipeline_next(pipeline, &again), COH_BUSY, "all 2 tiles");
    assert_fails(coh_pipeline_load(pipeline, data, TILE), COH_BUSY, "swap first");
    assert_fails(coh_pipeline_filled(pipeline, 1), COH_BUSY, "swap first");
    tiles.memory = data;
    tiles.bytes = TOTAL;
    assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_BUSY, "2 tiles");
    assert_ok(coh_pipeline_swap(pipeline));
    assert_ok(coh_pipeline_current(pipeline, &again, &bytes));
    assert_ptr_equal(again, tile);
    assert_int_equal(bytes, 5);
    assert_ok(coh_pipeline_swap(pipeline));
    tiles.tile_bytes = TILE + 1;
    assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_LENGTH_MISMATCH,
                 "40001");
    tiles.tile_bytes = 0;
    assert_fails(coh_pipeline_run(pipeline, &tiles, NULL, &total), COH_INVALID_ARGUMENT, "compute");
    tiles.memory = NULL;
    assert_fails(coh_pipeline_run(pipeline, &tiles, count_bytes, &total), COH_INVALID_ARGUMENT,
                 "neither");
    assert_int_equal(total, 0);
    assert_ok(coh_pipeline_destroy(pipeline));
    assert_ok(coh_pipeline_destroy(NULL));
    assert_ok(coh_copier_destroy(copier));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_loop_never_overwrites),
        cmocka_unit_test(whole_loops_see_every_tile),
        cmocka_unit_test(smaller_tiles_and_offsets_and_nothing),
        cmocka_unit_test(a_failing_computation_ends_the_loop),
        cmocka_unit_test(a_failing_copy_is_told_with_its_tile),
        cmocka_unit_test(a_failing_piece_ends_the_loop),
        cmocka_unit_test(misuse_is_refused),
    };
    fill_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
