/* table.c - the algorithms between mapped members, a row each; messages_table.c has the others. */
#include "coll/algorithm.h"
#include "coll/direct.h"
#include "coll/one_shot.h"
#include "coll/staged.h"
#include "coll/two_shot.h"

enum { IN_ORDER = COHI_RANK_ORDER | COHI_MAPPED, POSTED = IN_ORDER | COHI_SHORT_IN_POST };

const cohi_algorithm cohi_mapped_algorithms[] = {
    {"one-shot", COHI_ALL_REDUCE, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_cost,
     cohi_one_shot_all_reduce},
    {"two-shot", COHI_ALL_REDUCE, IN_ORDER, cohi_mapped_applies, NULL, cohi_two_shot_cost,
     cohi_two_shot_all_reduce},
    {"staged", COHI_ALL_REDUCE, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_all_reduce_cost,
     cohi_staged},
    {"one-shot", COHI_REDUCE, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_to_root_cost,
     cohi_one_shot_reduce},
    {"two-shot", COHI_REDUCE, IN_ORDER, cohi_mapped_applies, NULL, cohi_two_shot_reduce_cost,
     cohi_two_shot_reduce},
    {"staged", COHI_REDUCE, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_all_reduce_cost,
     cohi_staged},
    {"one-shot", COHI_REDUCE_SCATTER, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_share_cost,
     cohi_one_shot_reduce_scatter},
    {"direct", COHI_REDUCE_SCATTER, IN_ORDER, cohi_mapped_applies, NULL,
     cohi_direct_reduce_scatter_cost, cohi_direct_reduce_scatter},
    {"staged", COHI_REDUCE_SCATTER, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost,
     cohi_staged},
    {"one-shot", COHI_ALL_GATHER, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_cost,
     cohi_one_shot_all_gather},
    {"direct", COHI_ALL_GATHER, IN_ORDER, cohi_mapped_applies, NULL, cohi_direct_all_gather_cost,
     cohi_direct_all_gather},
    {"staged", COHI_ALL_GATHER, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {"one-shot", COHI_GATHER, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_to_root_cost,
     cohi_one_shot_gather},
    {"direct", COHI_GATHER, IN_ORDER, cohi_mapped_applies, NULL, cohi_direct_cost,
     cohi_direct_gather},
    {"staged", COHI_GATHER, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {"one-shot", COHI_SCATTER, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_root_cost,
     cohi_one_shot_scatter},
    {"direct", COHI_SCATTER, IN_ORDER, cohi_mapped_applies, NULL, cohi_direct_cost,
     cohi_direct_scatter},
    {"staged", COHI_SCATTER, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {"one-shot", COHI_BROADCAST, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_root_cost,
     cohi_one_shot_broadcast},
    {"direct", COHI_BROADCAST, IN_ORDER, cohi_mapped_applies, NULL, cohi_direct_cost,
     cohi_direct_broadcast},
    {"staged", COHI_BROADCAST, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {"one-shot", COHI_ALL_TO_ALL, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_share_cost,
     cohi_one_shot_all_to_all},
    {"direct", COHI_ALL_TO_ALL, IN_ORDER, cohi_mapped_applies, NULL, cohi_direct_cost,
     cohi_direct_all_to_all},
    {"staged", COHI_ALL_TO_ALL, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {"one-shot", COHI_SCAN, POSTED, cohi_one_shot_applies, NULL, cohi_one_shot_cost,
     cohi_one_shot_scan},
    {"direct", COHI_SCAN, IN_ORDER, cohi_mapped_applies, NULL, cohi_two_shot_cost,
     cohi_direct_scan},
    {"staged", COHI_SCAN, IN_ORDER, cohi_mapped_applies, NULL, cohi_staged_cost, cohi_staged},
    {0},
};

static unsigned count_mapped(void)
{
    return sizeof cohi_mapped_algorithms / sizeof *cohi_mapped_algorithms - 1;
}

const cohi_algorithm *cohi_algorithm_at(unsigned number)
{
    if (number < count_mapped())
        return &cohi_mapped_algorithms[number];
    const cohi_algorithm *row = cohi_message_algorithms;
    for (number -= count_mapped(); row->name && number > 0; number--)
        row++;
    return row->name ? row : NULL;
}

unsigned cohi_algorithm_number(const cohi_algorithm *algorithm)
{
    if (algorithm->traits & COHI_MAPPED)
        return (unsigned)(algorithm - cohi_mapped_algorithms);
    return count_mapped() + (unsigned)(algorithm - cohi_message_algorithms);
}
