/* What large jobs cost stays within the bounds that docs/architecture.md states. */
#include "unit.h"

#include "start/scale.h"

enum { MIB = 1 << 20 };

static void a_thousand_ranks_on_sixteen_hosts(void **state)
{
    (void)state;
    cohi_scale scale = cohi_scale_of(1000, 16);
    assert_int_equal(scale.locals, 63);
    assert_true(scale.peers_bytes < MIB);
    assert_true(scale.root_bytes < (uint64_t)16 * MIB);
    assert_true(scale.board_bytes < (uint64_t)16 * MIB);
    assert_int_equal(scale.root_sockets, 62 + 15);
    assert_int_equal(scale.member_sockets, 1);
}

/* Twice the ranks on twice the hosts: what one rank needs doubles and no more, and so does what goes to
 * one host through the root. */
static void nothing_goes_by_the_square(void **state)
{
    (void)state;
    cohi_scale one = cohi_scale_of(1000, 16), two = cohi_scale_of(2000, 32);
    assert_true(two.peers_bytes <= 2 * one.peers_bytes);
    assert_true(two.joining_bytes <= 2 * one.joining_bytes);
    assert_true(two.board_bytes <= 2 * one.board_bytes + 65536);
    assert_true(two.root_bytes / 32 <= 21 * (one.root_bytes / 16) / 10);
}

static void a_world_of_one(void **state)
{
    (void)state;
    cohi_scale scale = cohi_scale_of(1, 1);
    assert_int_equal(scale.locals, 1);
    assert_int_equal(scale.root_sockets + scale.leader_sockets + scale.member_sockets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_ranks_on_sixteen_hosts),
        cmocka_unit_test(nothing_goes_by_the_square),
        cmocka_unit_test(a_world_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
