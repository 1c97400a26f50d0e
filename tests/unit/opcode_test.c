#include "unit.h"

#include "base/opcode.h"

#include <cohort.h>

static void names_go_both_ways(void **state)
{
    (void)state;
#define ROW(constant, value, name)                         \
    assert_string_equal(cohi_opcode_name(constant), name); \
    assert_int_equal(cohi_opcode_named(name, strlen(name)), constant);
    COHI_OPCODE_TABLE(ROW)
#undef ROW
}

/* The operation of a collective is found by adding its kind. */
static void collectives_are_in_the_order_of_their_table(void **state)
{
    (void)state;
    assert_int_equal(COHI_OP_COLLECTIVE + COH_COLLECTIVE_BARRIER, COHI_OP_TEAM_BARRIER);
#define ROW(constant, value, name, reduces, root, source, target) \
    if (constant != COH_COLLECTIVE_BARRIER)                       \
        assert_string_equal(cohi_opcode_name(COHI_OP_COLLECTIVE + constant), name);
    COH_COLLECTIVE_TABLE(ROW)
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
        cmocka_unit_test(collectives_are_in_the_order_of_their_table),
        cmocka_unit_test(only_whole_names_count),
        cmocka_unit_test(another_versions_opcode_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
