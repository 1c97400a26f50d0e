/* What calls that need no world refuse: arguments that are NULL, out of range, or past all memory. */
#include "unit.h"

static void assert_refused(coh_status got, coh_status wanted, const char *text)
{
    assert_int_equal(got, wanted);
    assert_says(text);
}

static void unique_ids_are_checked(void **state)
{
    coh_unique_id id, wrong;
    coh_world *world = NULL;
    (void)state;
    assert_refused(coh_unique_id_create(NULL), COH_INVALID_ARGUMENT, "id is NULL");
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    memset(&wrong, 0, sizeof wrong);
    assert_refused(coh_init_unique_id(NULL, 0, 1, NULL, &world), COH_INVALID_ARGUMENT,
                   "id is NULL");
    assert_refused(coh_init_unique_id(&id, 2, 2, NULL, &world), COH_UNKNOWN_RANK,
                   "rank 2 of 2; ranks are 0 to 1");
    assert_refused(coh_init_unique_id(&wrong, 0, 2, NULL, &world), COH_INVALID_ARGUMENT,
                   "is not one that coh_unique_id_create made");
    assert_null(world);
}

static void a_heap_has_a_limit(void **state)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *world = NULL;
    (void)state;
    options.heap = (UINT64_C(1) << 47) + 1;
    assert_refused(coh_init_threads(1, &options, &world), COH_INVALID_ARGUMENT, "options->heap is");
    assert_null(world);
}

static void parts_do_not_wrap(void **state)
{
    coh_view view = {.rank = 0, .offset = UINT64_MAX - 8, .length = 64}, part;
    coh_array array = {.dtype = COH_F64, .offset = 0, .count = UINT64_MAX}, some;
    (void)state;
    assert_refused(coh_view_part(view, 16, 8, &part), COH_OUT_OF_BOUNDS, "overflows");
    assert_refused(coh_array_part(array, UINT64_MAX / 8 + 1, 1, &some), COH_OUT_OF_BOUNDS,
                   "overflows");
}

static void strided_copies_need_both_ends(void **state)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *world;
    void *there;
    (void)state;
    options.heap = 1 << 20;
    assert_int_equal(coh_init_threads(1, &options, &world), COH_OK);
    assert_int_equal(coh_malloc(world, 64, &there), COH_OK);
    assert_refused(coh_put_strided(world, there, 1, NULL, 1, 8, 1, 0), COH_INVALID_ARGUMENT,
                   "source is NULL");
    assert_int_equal(coh_free(world, there), COH_OK);
    assert_int_equal(coh_finalize(world), COH_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unique_ids_are_checked),
        cmocka_unit_test(a_heap_has_a_limit),
        cmocka_unit_test(parts_do_not_wrap),
        cmocka_unit_test(strided_copies_need_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
