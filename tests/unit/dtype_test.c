#include "unit.h"

static void the_table(void **state)
{
    static const struct {
        coh_dtype dtype;
        const char *name;
        size_t bytes;
    } rows[] = {
        {COH_I8, "i8", 1},         {COH_I16, "i16", 2},       {COH_I32, "i32", 4},
        {COH_I64, "i64", 8},       {COH_U8, "u8", 1},         {COH_U16, "u16", 2},
        {COH_U32, "u32", 4},       {COH_U64, "u64", 8},       {COH_F16, "f16", 2},
        {COH_BF16, "bf16", 2},     {COH_F32, "f32", 4},       {COH_F64, "f64", 8},
        {COH_F8E4M3, "f8e4m3", 1}, {COH_F8E5M2, "f8e5m2", 1}, {COH_BOOL, "bool", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(coh_dtype_name(rows[i].dtype), rows[i].name);
        assert_int_equal(coh_dtype_size(rows[i].dtype), rows[i].bytes);
    }
}

static void values_outside_the_table(void **state)
{
    static const int values[] = {0, 16, 17, -1, 1000000, -2147483647 - 1};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_null(coh_dtype_name((coh_dtype)values[i]));
        assert_int_equal(coh_dtype_size((coh_dtype)values[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),
        cmocka_unit_test(values_outside_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
