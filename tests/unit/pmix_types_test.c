/* The declarations of rendezvous/pmix.h are those of PMIx's own headers, where they are installed. */
#include "unit.h"

#include "rendezvous/pmix.h"

#if __has_include(<pmix.h>)
#include <pmix.h>

#define SAME_TYPE(returns, name, parameters)                                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), returns(*) parameters), \
                   #name " has another type");
COHI_PMIX_TABLE(SAME_TYPE, pmix_proc_t, pmix_value_t, pmix_info_t)

#define SAME_PLACE(ours, our_field, theirs, their_field)                                 \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), "place"); \
    _Static_assert(sizeof((ours *)0)->our_field == sizeof((theirs *)0)->their_field, "size");
SAME_PLACE(cohi_pmix_rank, space, pmix_proc_t, nspace)
SAME_PLACE(cohi_pmix_rank, rank, pmix_proc_t, rank)
SAME_PLACE(cohi_pmix_value, type, pmix_value_t, type)
SAME_PLACE(cohi_pmix_value, data, pmix_value_t, data)
SAME_PLACE(cohi_pmix_value, data.string, pmix_value_t, data.string)
SAME_PLACE(cohi_pmix_value, data.integer, pmix_value_t, data.integer)
SAME_PLACE(cohi_pmix_value, data.uint32, pmix_value_t, data.uint32)
SAME_PLACE(cohi_pmix_info, key, pmix_info_t, key)
SAME_PLACE(cohi_pmix_info, flags, pmix_info_t, flags)
SAME_PLACE(cohi_pmix_info, value, pmix_info_t, value)
_Static_assert(sizeof(cohi_pmix_info) == sizeof(pmix_info_t), "size");

_Static_assert(PMIX_SUCCESS == COHI_PMIX_SUCCESS, "constant");
_Static_assert(PMIX_ERR_TIMEOUT == COHI_PMIX_ERR_TIMEOUT, "constant");
_Static_assert(PMIX_ERR_NOT_FOUND == COHI_PMIX_ERR_NOT_FOUND, "constant");
_Static_assert(PMIX_STRING == COHI_PMIX_STRING, "constant");
_Static_assert(PMIX_INT == COHI_PMIX_INT, "constant");
_Static_assert(PMIX_UINT32 == COHI_PMIX_UINT32, "constant");
_Static_assert(PMIX_GLOBAL == COHI_PMIX_GLOBAL, "constant");
_Static_assert(PMIX_RANK_WILDCARD == COHI_PMIX_ALL_RANKS, "constant");

static void keys_are_the_same(void **state)
{
    (void)state;
    assert_string_equal(PMIX_JOB_SIZE, COHI_PMIX_JOB_SIZE);
    assert_string_equal(PMIX_LOCAL_SIZE, COHI_PMIX_LOCAL_SIZE);
    assert_string_equal(PMIX_TIMEOUT, COHI_PMIX_TIMEOUT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77;
}
#endif
