/* coh_convert's arguments, and coh_fail; the conversions themselves are tested with the kernels. */
#include "unit.h"

static void one_side_is_f32(void **state)
{
    const float from[3] = {1.5f, -2, 300};
    int8_t bytes[3];
    double wide[3];
    (void)state;
    assert_int_equal(coh_convert(bytes, COH_I8, from, COH_F32, 3), COH_OK);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], -2);
    assert_int_equal(bytes[2], 127);
    assert_int_equal(coh_convert(wide, COH_F64, from, COH_F32, 3), COH_OK);
    assert_true(wide[2] == 300);
    assert_int_equal(coh_convert(wide, COH_F64, bytes, COH_I8, 3), COH_UNSUPPORTED);
    assert_says("from i8 to f64");
    assert_true(wide[2] == 300);
}

static void equal_types_are_copied(void **state)
{
    const uint16_t from[2] = {0x7c01, 3}; /* a signalling NaN of f16 stays what it is */
    uint16_t to[2];
    (void)state;
    assert_int_equal(coh_convert(to, COH_F16, from, COH_F16, 2), COH_OK);
    assert_memory_equal(to, from, sizeof from);
}

static void arguments_are_checked(void **state)
{
    _Alignas(8) char bytes[16] = "unchanged";
    float from = 1;
    (void)state;
    assert_int_equal(coh_convert(bytes, (coh_dtype)0, &from, COH_F32, 1), COH_INVALID_ARGUMENT);
    assert_says("target: 0 is not a type");
    assert_int_equal(coh_convert(bytes, COH_F32, &from, (coh_dtype)99, 1), COH_INVALID_ARGUMENT);
    assert_says("source: 99 is not a type");
    assert_int_equal(coh_convert(NULL, COH_F32, &from, COH_F32, 1), COH_INVALID_ARGUMENT);
    assert_says("target is NULL");
    assert_int_equal(coh_convert(bytes + 1, COH_F64, &from, COH_F32, 1), COH_BAD_ALIGNMENT);
    assert_says("8 bytes");
    assert_int_equal(coh_convert(bytes, COH_F64, &from, COH_F32, SIZE_MAX), COH_INVALID_ARGUMENT);
    assert_says("more than memory can have");
    assert_int_equal(coh_convert(NULL, COH_F64, NULL, COH_F32, 0), COH_OK);
    assert_string_equal(bytes, "unchanged");
}

static void a_caller_of_cohort_can_fail_as_it_does(void **state)
{
    char longest[3000];
    (void)state;
    assert_int_equal(coh_fail(COH_LIMIT, "kernel %d: %s", 7, "too hot"), COH_LIMIT);
    assert_string_equal(coh_last_error(), "kernel 7: too hot");
    assert_int_equal(coh_fail(COH_SYSTEM, "again: %s", coh_last_error()), COH_SYSTEM);
    assert_string_equal(coh_last_error(), "again: kernel 7: too hot");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(coh_fail(COH_SYSTEM, "%s", longest), COH_SYSTEM);
    assert_int_equal(strlen(coh_last_error()), 1023);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_side_is_f32),
        cmocka_unit_test(equal_types_are_copied),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_caller_of_cohort_can_fail_as_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
