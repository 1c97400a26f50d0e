#include "unit.h"

#include "base/opcode.h"

static void names_go_both_ways(void **state)
{
    (void)state;
#define ROW(constant, value, name)                         \
    assert_string_equal(cohi_opcode_name(constant), name); \
    assert_int_equal(cohi_opcode_named(name, strlen(name)), constant);
    COHI_OPCODE_TABLE(ROW)
#undef ROW
}

static void only_whole_names_count(void **state)
{
    (void)state;
    assert_int_equal(cohi_opcode_named("barrier:3", 7), COHI_OP_BARRIER);
    assert_int_equal(cohi_opcode_named("barrier", 6), COHI_OP_NONE);
    assert_int_equal(cohi_opcode_named("barriers", 8), COHI_OP_NONE);
    assert_int_equal(cohi_opcode_named("", 0), COHI_OP_NONE);
    assert_int_equal(cohi_opcode_named("Barrier", 7), COHI_OP_NONE);
}

static void another_versions_opcode_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(cohi_opcode_name(4711), "an unknown operation");
    assert_string_equal(cohi_opcode_name(UINT32_MAX), "an unknown operation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(only_whole_names_count),
        cmocka_unit_test(another_versions_opcode_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
