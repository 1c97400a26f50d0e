/* Arenas and typed transfers: what is stored, what is refused, and that nothing else changes:
 * docs/semantics.md S49 and S50. */
#include "ml.h"

#include <math.h>
#include <stdio.h>

#define ROW(constant, value, name, bytes) constant,
static const coh_dtype dtypes[] = {COH_DTYPE_TABLE(ROW)};
#undef ROW

enum { DTYPES = sizeof dtypes / sizeof *dtypes, COUNT = 37, GUARD = 64 };

/* Three values side by side, all alive at once: the middle one is written to, the others watch. */
typedef struct rig {
    coh_device *device;
    coh_plan *plan;
    coh_arena *arena;
    int before, middle, after, outside;
} rig;

static int add(coh_plan *plan, const char *name, uint64_t bytes, int outside)
{
    int node = -1;
    coh_plan_value value = COH_PLAN_VALUE_INIT;
    value.name = name;
    value.bytes = bytes;
    value.outside = outside;
    assert_ok(coh_plan_add(plan, &value, &node));
    return node;
}

static rig make_rig(uint64_t bytes, coh_world *world)
{
    rig made = {.device = open_cpu()};
    coh_arena_options options = COH_ARENA_OPTIONS_INIT;
    options.world = world;
    assert_ok(coh_plan_create(&made.plan));
    made.before = add(made.plan, "before", GUARD, 0);
    made.middle = add(made.plan, "middle", bytes, 0);
    made.after = add(made.plan, "after", GUARD, 0);
    made.outside = add(made.plan, "weight", 4096, 1);
    assert_ok(coh_plan_solve(made.plan));
    assert_ok(coh_arena_create(made.device, made.plan, &options, &made.arena));
    return made;
}

static void free_rig(rig *made)
{
    assert_ok(coh_arena_destroy(made->arena));
    coh_plan_destroy(made->plan);
    assert_ok(coh_device_close(made->device));
}

static unsigned char *pointer_of(const rig *made, int node)
{
    void *pointer;
    assert_ok(coh_arena_pointer(made->arena, node, &pointer, NULL));
    return pointer;
}

/* Values that every type can hold. */
static float sample(coh_dtype dtype, int i)
{
    return dtype == COH_BOOL ? (float)(i & 1) : (float)(i % 8);
}

static void every_type_is_stored_and_read_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < DTYPES; t++) {
        rig made = make_rig(COUNT * coh_dtype_size(dtypes[t]), NULL);
        float values[COUNT], back[COUNT];
        unsigned char *bytes = pointer_of(&made, made.middle), direct[COUNT * 8];
        for (int i = 0; i < COUNT; i++)
            values[i] = sample(dtypes[t], i);
        assert_ok(coh_arena_write(made.arena, made.middle, dtypes[t], values, COUNT));
        assert_ok(coh_convert(direct, dtypes[t], values, COH_F32, COUNT));
        assert_memory_equal(bytes, direct, COUNT * coh_dtype_size(dtypes[t]));
        assert_ok(coh_arena_read(made.arena, made.middle, dtypes[t], back, COUNT));
        assert_memory_equal(back, values, sizeof values);
        free_rig(&made);
    }
}

/* The bytes that a few values have, from the formats' definitions. */
static void the_formats_are_the_known_ones(void **state)
{
    const float values[] = {1.0f, -2.0f, 0.5f};
    static const struct {
        coh_dtype dtype;
        unsigned char bytes[24];
    } rows[] = {
        {COH_F16, {0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38}},
        {COH_BF16, {0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f}},
        {COH_F8E4M3, {0x38, 0xc0, 0x30}},
        {COH_F8E5M2, {0x3c, 0xc0, 0x38}},
        {COH_I8, {1, 0xfe, 0}},
        {COH_I32, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0}},
        {COH_BOOL, {1, 1, 1}},
        {COH_F64,
         {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f}},
    };
    rig made = make_rig(24, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(coh_arena_write(made.arena, made.middle, rows[i].dtype, values, 3));
        assert_memory_equal(pointer_of(&made, made.middle), rows[i].bytes,
                            3 * coh_dtype_size(rows[i].dtype));
    }
    free_rig(&made);
}

static void too_long_names_both_and_writes_nothing(void **state)
{
    float values[COUNT + 1] = {0};
    (void)state;
    for (int i = 0; i <= COUNT; i++)
        values[i] = 1;
    for (size_t t = 0; t < DTYPES; t++) {
        size_t each = coh_dtype_size(dtypes[t]), room = COUNT * each;
        rig made = make_rig(room, NULL);
        unsigned char *whole = coh_buffer_pointer(coh_arena_buffer(made.arena));
        coh_plan_info info = {.size = sizeof info};
        assert_ok(coh_plan_query(made.plan, &info));
        memset(whole, 0xa5, info.total);
        const size_t counts[] = {COUNT + 1, SIZE_MAX, SIZE_MAX / each + (each > 1)};
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            char both[96];
            snprintf(both, sizeof both, "%zu elements of %s (%zu bytes each) into %zu bytes",
                     counts[i], coh_dtype_name(dtypes[t]), each, room);
            assert_fails(coh_arena_write(made.arena, made.middle, dtypes[t], values, counts[i]),
                         COH_LENGTH_MISMATCH, both);
            assert_fails(coh_arena_read(made.arena, made.middle, dtypes[t], values, counts[i]),
                         COH_LENGTH_MISMATCH, both);
        }
        for (uint64_t i = 0; i < info.total; i++)
            assert_int_equal(whole[i], 0xa5);
        /* And a full one touches its slot alone. */
        assert_ok(coh_arena_write(made.arena, made.middle, dtypes[t], values, COUNT));
        for (int i = 0; i < GUARD; i++) {
            assert_int_equal(pointer_of(&made, made.before)[i], 0xa5);
            assert_int_equal(pointer_of(&made, made.after)[i], 0xa5);
        }
        for (uint64_t i = room; i % 64 != 0; i++)
            assert_int_equal(pointer_of(&made, made.middle)[i], 0xa5);
        free_rig(&made);
    }
}

static void an_unknown_type_writes_nothing(void **state)
{
    const int unknown[] = {0, -1, 16, 1000, INT32_MAX};
    float value = 1;
    rig made = make_rig(64, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        coh_dtype dtype = (coh_dtype)unknown[i];
        char text[32];
        snprintf(text, sizeof text, "%d is not a type", unknown[i]);
        assert_fails(coh_arena_write(made.arena, made.middle, dtype, &value, 1),
                     COH_INVALID_ARGUMENT, text);
        assert_fails(coh_arena_read(made.arena, made.middle, dtype, &value, 1),
                     COH_INVALID_ARGUMENT, text);
        assert_fails(coh_buffer_store(coh_arena_buffer(made.arena), 0, dtype, &value, 1),
                     COH_INVALID_ARGUMENT, text);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(pointer_of(&made, made.middle)[i], 0);
    assert_true(value == 1);
    free_rig(&made);
}

static void a_node_without_a_slot_says_so(void **state)
{
    float value = 1;
    void *pointer = &value;
    rig made = make_rig(64, NULL);
    (void)state;
    assert_fails(coh_arena_write(made.arena, made.outside, COH_F32, &value, 1),
                 COH_INVALID_ARGUMENT, "('weight') has no slot");
    assert_fails(coh_arena_read(made.arena, made.outside, COH_F32, &value, 1), COH_INVALID_ARGUMENT,
                 "('weight') has no slot");
    assert_fails(coh_arena_pointer(made.arena, made.outside, &pointer, NULL), COH_INVALID_ARGUMENT,
                 "('weight') has no slot");
    assert_fails(coh_arena_pointer(made.arena, 99, &pointer, NULL), COH_INVALID_ARGUMENT,
                 "no node 99");
    assert_ptr_equal(pointer, &value);
    free_rig(&made);
}

static void reading_before_writing_is_zero(void **state)
{
    (void)state;
    for (size_t t = 0; t < DTYPES; t++) {
        float back[COUNT];
        rig made = make_rig(COUNT * coh_dtype_size(dtypes[t]), NULL);
        memset(back, 0x7f, sizeof back);
        assert_ok(coh_arena_read(made.arena, made.middle, dtypes[t], back, COUNT));
        for (int i = 0; i < COUNT; i++)
            assert_true(back[i] == 0 && !signbit(back[i]));
        free_rig(&made);
    }
}

static void typed_ranges_of_buffers_are_checked(void **state)
{
    float values[4] = {1, 2, 3, 4}, back[4];
    coh_buffer *buffer;
    coh_device *device = open_cpu();
    (void)state;
    assert_ok(coh_buffer_create(device, 16, NULL, &buffer));
    assert_fails(coh_buffer_store(buffer, 0, COH_F64, values, 3), COH_OUT_OF_BOUNDS,
                 "3 elements of f64 (8 bytes each) into 16 bytes");
    assert_fails(coh_buffer_store(buffer, 8, COH_F32, values, 3), COH_OUT_OF_BOUNDS, "8 bytes");
    assert_fails(coh_buffer_store(buffer, 17, COH_I8, values, 0), COH_OUT_OF_BOUNDS, "17");
    assert_fails(coh_buffer_store(buffer, 1, COH_F16, values, 1), COH_BAD_ALIGNMENT, "byte 1");
    assert_fails(coh_buffer_store(buffer, 0, COH_F16, NULL, 1), COH_INVALID_ARGUMENT, "NULL");
    assert_ok(coh_buffer_store(buffer, 8, COH_F16, values, 4));
    assert_ok(coh_buffer_load(buffer, 8, COH_F16, back, 4));
    assert_memory_equal(back, values, sizeof values);
    assert_ok(coh_buffer_store(buffer, 16, COH_F16, NULL, 0));
    assert_ok(coh_buffer_destroy(buffer));
    assert_ok(coh_device_close(device));
}

static void an_arena_of_no_slots_has_no_memory(void **state)
{
    coh_plan *plan;
    coh_arena *arena = NULL;
    coh_device *device = open_cpu();
    (void)state;
    assert_ok(coh_plan_create(&plan));
    assert_fails(coh_arena_create(device, plan, NULL, &arena), COH_INVALID_ARGUMENT, "not solved");
    assert_ok(coh_plan_solve(plan));
    assert_ok(coh_arena_create(device, plan, NULL, &arena));
    assert_null(coh_arena_buffer(arena));
    assert_ptr_equal(coh_arena_plan(arena), plan);
    assert_ok(coh_arena_destroy(arena));
    coh_plan_destroy(plan);
    assert_ok(coh_device_close(device));
}

/* The values of all ranks are at the same symmetric address. */
static const char *read_my_neighbour(coh_world *world, coh_device *device)
{
    coh_plan *plan;
    coh_arena *arena;
    coh_arena_options options = {sizeof options, world};
    coh_plan_value value = COH_PLAN_VALUE_INIT;
    int node, rank = coh_rank(world), right = (rank + 1) % coh_size(world);
    float mine = (float)rank, theirs = -1;
    void *pointer;
    value.bytes = sizeof mine;
    value.alignment = 1024;
    if (coh_plan_create(&plan) != COH_OK || coh_plan_add(plan, &value, &node) != COH_OK
        || coh_plan_solve(plan) != COH_OK
        || coh_arena_create(device, plan, &options, &arena) != COH_OK)
        return "arena";
    if (coh_arena_write(arena, node, COH_F32, &mine, 1) != COH_OK || coh_barrier(world) != COH_OK
        || coh_arena_pointer(arena, node, &pointer, NULL) != COH_OK
        || coh_get(world, &theirs, pointer, sizeof theirs, right) != COH_OK)
        return "get";
    if (theirs != (float)right || coh_barrier(world) != COH_OK)
        return "the neighbour's value is not at the same address";
    if (coh_arena_destroy(arena) != COH_OK)
        return "destroy";
    coh_plan_destroy(plan);
    return NULL;
}

static void an_arena_in_the_heap_is_reached_by_others(void **state)
{
    (void)state;
    run_ranks(3, read_my_neighbour);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_stored_and_read_back),
        cmocka_unit_test(the_formats_are_the_known_ones),
        cmocka_unit_test(too_long_names_both_and_writes_nothing),
        cmocka_unit_test(an_unknown_type_writes_nothing),
        cmocka_unit_test(a_node_without_a_slot_says_so),
        cmocka_unit_test(reading_before_writing_is_zero),
        cmocka_unit_test(typed_ranges_of_buffers_are_checked),
        cmocka_unit_test(an_arena_of_no_slots_has_no_memory),
        cmocka_unit_test(an_arena_in_the_heap_is_reached_by_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
