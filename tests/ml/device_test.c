/* Devices, buffers and named handles. */
#include "ml.h"

static void the_table_says_what_is_there(void **state)
{
    int count = -1;
    (void)state;
    assert_string_equal(coh_device_kind_name(COH_DEVICE_CPU), "cpu");
    assert_string_equal(coh_device_kind_name(COH_DEVICE_CUDA), "cuda");
    assert_null(coh_device_kind_name((coh_device_kind)99));
    assert_ok(coh_device_available(COH_DEVICE_CPU));
    assert_ok(coh_device_count(COH_DEVICE_CPU, &count));
    assert_int_equal(count, 1);
    assert_fails(coh_device_available(COH_DEVICE_CUDA), COH_NOT_AVAILABLE,
                 "cuda: not available: this build has no CUDA module");
    assert_ok(coh_device_count(COH_DEVICE_CUDA, &count));
    assert_int_equal(count, 0);
    assert_fails(coh_device_available((coh_device_kind)99), COH_INVALID_ARGUMENT, "99");
    assert_fails(coh_device_count((coh_device_kind)99, &count), COH_INVALID_ARGUMENT, "99");
}

static void opening_is_checked(void **state)
{
    coh_device *device = NULL;
    (void)state;
    assert_fails(coh_device_open(COH_DEVICE_CUDA, 0, &device), COH_NOT_AVAILABLE, "cuda");
    assert_fails(coh_device_open(COH_DEVICE_CPU, 1, &device), COH_INVALID_ARGUMENT, "no cpu 1");
    assert_fails(coh_device_open(COH_DEVICE_CPU, -1, &device), COH_INVALID_ARGUMENT, "-1");
    assert_fails(coh_device_open(COH_DEVICE_CPU, 0, NULL), COH_INVALID_ARGUMENT, "NULL");
    assert_null(device);
    assert_ok(coh_device_close(NULL));
}

static void a_device_tells_its_facts(void **state)
{
    coh_device_info info = {.size = sizeof info};
    coh_device *device = open_cpu();
    (void)state;
    assert_ok(coh_device_query(device, &info));
    assert_int_equal(info.kind, COH_DEVICE_CPU);
    assert_true(info.cores >= 1);
    assert_true(info.memory > 1 << 20);
    assert_int_equal(info.alignment, 64);
    assert_int_equal(info.held, 0);
    info.size = 3;
    assert_fails(coh_device_query(device, &info), COH_INVALID_ARGUMENT, "size is 3");
    assert_ok(coh_device_close(device));
}

static void a_device_in_use_stays_open(void **state)
{
    coh_buffer *buffer;
    coh_event *event;
    coh_stream *stream;
    coh_device *device = open_cpu();
    (void)state;
    assert_ok(coh_buffer_create(device, 10, NULL, &buffer));
    assert_fails(coh_device_close(device), COH_BUSY, "1 buffers");
    assert_ok(coh_buffer_destroy(buffer));
    assert_ok(coh_event_create(device, &event));
    assert_fails(coh_device_close(device), COH_BUSY, "left");
    assert_ok(coh_event_destroy(event));
    assert_ok(coh_stream_create(device, NULL, &stream));
    assert_fails(coh_device_close(device), COH_BUSY, "left");
    assert_ok(coh_stream_destroy(stream));
    assert_ok(coh_device_close(device));
}

static void a_buffer_knows_where_it_lives(void **state)
{
    char mine[32] = "mine";
    coh_buffer *buffer;
    coh_buffer_info info = {.size = sizeof info};
    coh_buffer_options options = COH_BUFFER_OPTIONS_INIT;
    coh_device_info facts = {.size = sizeof facts};
    coh_device *device = open_cpu();
    (void)state;
    options.alignment = 4096;
    assert_ok(coh_buffer_create(device, 100, &options, &buffer));
    assert_ok(coh_buffer_query(buffer, &info));
    assert_int_equal(info.place, COH_PLACE_DEVICE);
    assert_int_equal(info.bytes, 100);
    assert_int_equal((uintptr_t)info.pointer % 4096, 0);
    assert_ptr_equal(info.pointer, coh_buffer_pointer(buffer));
    assert_ptr_equal(info.pointer, info.mapped);
    assert_null(info.world);
    for (int i = 0; i < 100; i++)
        assert_int_equal(((char *)info.pointer)[i], 0);
    assert_ok(coh_device_query(device, &facts));
    assert_int_equal(facts.held, 100);
    assert_ok(coh_buffer_destroy(buffer));

    options.memory = mine;
    assert_ok(coh_buffer_create(device, sizeof mine, &options, &buffer));
    assert_ok(coh_buffer_query(buffer, &info));
    assert_int_equal(info.place, COH_PLACE_BORROWED);
    assert_ptr_equal(info.pointer, mine);
    assert_ok(coh_buffer_destroy(buffer));
    assert_string_equal(mine, "mine");
    assert_ok(coh_device_query(device, &facts));
    assert_int_equal(facts.held, 0);
    assert_ok(coh_device_close(device));
}

static void making_a_buffer_is_checked(void **state)
{
    char mine[8];
    coh_buffer *buffer = NULL;
    coh_world *world;
    coh_buffer_options options = COH_BUFFER_OPTIONS_INIT;
    coh_device *device = open_cpu();
    (void)state;
    assert_fails(coh_buffer_create(device, 0, NULL, &buffer), COH_INVALID_ARGUMENT, "0 bytes");
    assert_fails(coh_buffer_create(NULL, 1, NULL, &buffer), COH_INVALID_ARGUMENT, "device");
    assert_fails(coh_buffer_create(device, UINT64_MAX, NULL, &buffer), COH_NO_MEMORY, "allocating");
    options.alignment = 48;
    assert_fails(coh_buffer_create(device, 1, &options, &buffer), COH_BAD_ALIGNMENT, "48");
    options.alignment = 4 << 20;
    assert_fails(coh_buffer_create(device, 1, &options, &buffer), COH_BAD_ALIGNMENT, "4194304");
    assert_ok(coh_init(NULL, &world));
    options = (coh_buffer_options){sizeof options, 0, world, mine};
    assert_fails(coh_buffer_create(device, 8, &options, &buffer), COH_INVALID_ARGUMENT, "both");
    options.size--;
    assert_fails(coh_buffer_create(device, 8, &options, &buffer), COH_INVALID_ARGUMENT, "INIT");
    assert_null(buffer);
    assert_ok(coh_finalize(world));
    assert_ok(coh_device_close(device));
}

static void transfers_stay_inside(void **state)
{
    const uint64_t bad[][2] = {{0, 65}, {64, 1}, {65, 0}, {UINT64_MAX, 2}, {1, UINT64_MAX}};
    char host[64], back[64];
    coh_buffer *buffer, *other;
    coh_device_info before = {.size = sizeof before}, after = {.size = sizeof after};
    coh_device *device = open_cpu();
    (void)state;
    memset(host, 7, sizeof host);
    assert_ok(coh_buffer_create(device, 64, NULL, &buffer));
    assert_ok(coh_buffer_create(device, 64, NULL, &other));
    assert_ok(coh_device_query(device, &before));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t at = bad[i][0], bytes = bad[i][1];
        assert_fails(coh_buffer_write(buffer, at, host, bytes), COH_OUT_OF_BOUNDS, "which has 64");
        assert_fails(coh_buffer_read(buffer, at, back, bytes), COH_OUT_OF_BOUNDS, "which has 64");
        assert_fails(coh_buffer_copy(other, at, buffer, 0, bytes), COH_OUT_OF_BOUNDS, "64");
        assert_fails(coh_buffer_copy(other, 0, buffer, at, bytes), COH_OUT_OF_BOUNDS, "64");
    }
    assert_ok(coh_device_query(device, &after));
    assert_int_equal(after.moved, before.moved);
    assert_ok(coh_buffer_write(buffer, 60, host, 4));
    assert_ok(coh_buffer_copy(other, 0, buffer, 58, 6));
    assert_ok(coh_buffer_read(other, 0, back, 8));
    assert_memory_equal(back, "\0\0\7\7\7\7\0\0", 8);
    assert_ok(coh_buffer_copy(other, 1, other, 0, 63)); /* it may overlap */
    assert_ok(coh_buffer_read(other, 0, back, 8));
    assert_memory_equal(back, "\0\0\0\7\7\7\7\0", 8);
    assert_ok(coh_device_query(device, &after));
    assert_int_equal(after.moved - before.moved, 4 + 6 + 8 + 63 + 8);
    assert_ok(coh_buffer_destroy(other));
    assert_ok(coh_buffer_destroy(buffer));
    assert_ok(coh_device_close(device));
}

static const char *put_to_the_right(coh_world *world, coh_device *device)
{
    coh_buffer_options options = {sizeof options, 4096, world, NULL};
    coh_buffer_info info = {.size = sizeof info};
    coh_buffer *buffer;
    int rank = coh_rank(world), size = coh_size(world), got;
    if (coh_buffer_create(device, sizeof rank, &options, &buffer) != COH_OK)
        return "create";
    if (coh_buffer_query(buffer, &info) != COH_OK || info.place != COH_PLACE_SYMMETRIC
        || info.world != world || (uintptr_t)info.pointer % 4096 != 0)
        return "query";
    if (coh_put(world, info.pointer, &rank, sizeof rank, (rank + 1) % size) != COH_OK
        || coh_barrier(world) != COH_OK)
        return "put";
    if (coh_buffer_read(buffer, 0, &got, sizeof got) != COH_OK || got != (rank + size - 1) % size)
        return "what the left neighbour put is not there";
    return coh_buffer_destroy(buffer) == COH_OK ? NULL : "destroy";
}

static void a_symmetric_buffer_is_reached_by_others(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, put_to_the_right);
}

static void a_handle_keeps_its_contents(void **state)
{
    coh_handle *first, *second;
    coh_handle_info info = {.size = sizeof info};
    float values[4] = {1, 2, 3, 4}, back[4];
    coh_device *device = open_cpu();
    (void)state;
    assert_ok(coh_handle_open(device, "cache.0", COH_BF16, 4, NULL, &first));
    assert_ok(coh_handle_query(first, &info));
    assert_string_equal(info.name, "cache.0");
    assert_int_equal(info.dtype, COH_BF16);
    assert_int_equal(info.count, 4);
    assert_int_equal(info.openings, 1);
    assert_ok(coh_buffer_load(info.buffer, 0, COH_BF16, back, 4));
    for (int i = 0; i < 4; i++)
        assert_true(back[i] == 0);
    assert_ok(coh_buffer_store(info.buffer, 0, COH_BF16, values, 4));
    assert_ok(coh_handle_close(first));
    assert_ok(coh_handle_open(device, "cache.0", COH_BF16, 4, NULL, &second));
    assert_ok(coh_handle_find(device, "cache.0", &first));
    assert_ok(coh_handle_query(second, &info));
    assert_int_equal(info.openings, 2);
    assert_ok(coh_buffer_load(info.buffer, 0, COH_BF16, back, 4));
    assert_memory_equal(back, values, sizeof values);
    assert_fails(coh_handle_drop(device, "cache.0"), COH_BUSY, "2 times");
    assert_fails(coh_device_close(device), COH_BUSY, "left");
    assert_ok(coh_handle_close(first));
    assert_ok(coh_handle_close(second));
    assert_fails(coh_handle_close(second), COH_INVALID_ARGUMENT, "not open");
    assert_ok(coh_device_close(device)); /* and the memory with it */
}

static void handles_are_checked(void **state)
{
    char longest[COH_HANDLE_NAME_BYTES + 1];
    coh_handle *handle = NULL, *other = NULL;
    coh_world *world;
    coh_device *device = open_cpu();
    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_ok(coh_init(NULL, &world));
    assert_fails(coh_handle_find(device, "m", &handle), COH_INVALID_ARGUMENT, "no 'm'");
    assert_fails(coh_handle_drop(device, "m"), COH_INVALID_ARGUMENT, "no 'm'");
    assert_fails(coh_handle_open(device, "", COH_F32, 4, NULL, &handle), COH_INVALID_ARGUMENT,
                 "name");
    assert_fails(coh_handle_open(device, longest, COH_F32, 4, NULL, &handle), COH_INVALID_ARGUMENT,
                 "127");
    assert_fails(coh_handle_open(device, "m", (coh_dtype)77, 4, NULL, &handle),
                 COH_INVALID_ARGUMENT, "77");
    assert_fails(coh_handle_open(device, "m", COH_F32, 0, NULL, &handle), COH_INVALID_ARGUMENT,
                 "0 elements");
    assert_fails(coh_handle_open(device, "m", COH_F32, SIZE_MAX / 2, NULL, &handle),
                 COH_INVALID_ARGUMENT, "cannot");
    assert_ok(coh_handle_open(device, "m", COH_F32, 4, world, &handle));
    assert_fails(coh_handle_open(device, "m", COH_F16, 4, world, &other), COH_INVALID_ARGUMENT,
                 "is of f32, and was asked for as f16");
    assert_fails(coh_handle_open(device, "m", COH_F32, 5, world, &other), COH_LENGTH_MISMATCH,
                 "has 4 elements, and was asked for as 5");
    assert_fails(coh_handle_open(device, "m", COH_F32, 4, NULL, &other), COH_INVALID_ARGUMENT,
                 "symmetric heap");
    assert_null(other);
    assert_ok(coh_handle_open(device, "v", COH_F32, 4, NULL, &other));
    assert_string_equal(coh_handle_name(device, 0), "m");
    assert_string_equal(coh_handle_name(device, 1), "v");
    assert_null(coh_handle_name(device, 2));
    assert_ok(coh_handle_close(other));
    assert_ok(coh_handle_close(handle));
    assert_fails(coh_device_close(device), COH_BUSY, "drop it first");
    assert_ok(coh_handle_drop(device, "m"));
    assert_ok(coh_device_close(device));
    assert_ok(coh_finalize(world));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_is_there),
        cmocka_unit_test(opening_is_checked),
        cmocka_unit_test(a_device_tells_its_facts),
        cmocka_unit_test(a_device_in_use_stays_open),
        cmocka_unit_test(a_buffer_knows_where_it_lives),
        cmocka_unit_test(making_a_buffer_is_checked),
        cmocka_unit_test(transfers_stay_inside),
        cmocka_unit_test(a_symmetric_buffer_is_reached_by_others),
        cmocka_unit_test(a_handle_keeps_its_contents),
        cmocka_unit_test(handles_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
