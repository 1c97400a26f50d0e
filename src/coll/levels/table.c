/*
 * table.c - the rows of the algorithms on two levels, and what they should take.
 *
 * What a part takes depends on how many members each host has, which a row is not told: here a call is
 * its messages between hosts, as many as there are doublings of them at most, and two meetings inside.
 * Where they apply they are the only ones to choose from, so that costs are compared among them alone.
 */
#include "coll/levels/levels.h"

static double between(const cohi_model *model, int ranks, double bytes)
{
    int steps = 0;
    for (int reach = 1; reach < ranks; reach *= 2)
        steps++;
    return steps * cohi_model_message(model, bytes);
}

static double inside(const cohi_model *model, int ranks, double bytes)
{
    return model->call + 2 * model->line * (1 + ranks / 8.0) + 2 * cohi_model_copy(model, bytes);
}

static double one_cost(const cohi_model *model, int ranks, double bytes)
{
    return inside(model, ranks, bytes) + between(model, ranks, bytes);
}

static double reduction_cost(const cohi_model *model, int ranks, double bytes)
{
    return one_cost(model, ranks, bytes) + 2 * cohi_model_reduce(model, bytes);
}

/* All that all members have goes everywhere. */
static double all_cost(const cohi_model *model, int ranks, double bytes)
{
    return one_cost(model, ranks, ranks * bytes);
}

static double ordered_cost(const cohi_model *model, int ranks, double bytes)
{
    return all_cost(model, ranks, bytes) + cohi_model_reduce(model, ranks * bytes);
}

enum { LEVELS = COHI_BY_LEVELS, IN_ORDER = COHI_BY_LEVELS | COHI_RANK_ORDER };

/* Name, kind, traits, applies, workspace, cost, run. */
const cohi_algorithm cohi_level_algorithms[] = {
    {"two-level", COH_COLLECTIVE_ALL_REDUCE, LEVELS, cohi_levels_apply,
     cohi_levels_all_reduce_workspace, reduction_cost, cohi_levels_all_reduce},
    {"two-level-ordered", COH_COLLECTIVE_ALL_REDUCE, IN_ORDER, cohi_levels_apply,
     cohi_ordered_workspace, ordered_cost, cohi_ordered_all_reduce},
    {"two-level", COH_COLLECTIVE_REDUCE, LEVELS, cohi_levels_apply, cohi_levels_reduce_workspace,
     reduction_cost, cohi_levels_reduce},
    {"two-level-ordered", COH_COLLECTIVE_REDUCE, IN_ORDER, cohi_levels_apply,
     cohi_ordered_workspace, ordered_cost, cohi_ordered_reduce},
    {"two-level", COH_COLLECTIVE_REDUCE_SCATTER, LEVELS, cohi_levels_apply,
     cohi_levels_reduce_scatter_workspace, reduction_cost, cohi_levels_reduce_scatter},
    {"two-level-ordered", COH_COLLECTIVE_REDUCE_SCATTER, IN_ORDER, cohi_levels_apply,
     cohi_ordered_reduce_scatter_workspace, ordered_cost, cohi_ordered_reduce_scatter},
    {"two-level", COH_COLLECTIVE_ALL_GATHER, IN_ORDER, cohi_levels_apply,
     cohi_levels_all_gather_workspace, all_cost, cohi_levels_all_gather},
    {"two-level", COH_COLLECTIVE_GATHER, IN_ORDER, cohi_levels_apply, cohi_levels_gather_workspace,
     all_cost, cohi_levels_gather},
    {"two-level", COH_COLLECTIVE_SCATTER, IN_ORDER, cohi_levels_apply,
     cohi_levels_scatter_workspace, all_cost, cohi_levels_scatter},
    {"two-level", COH_COLLECTIVE_BROADCAST, IN_ORDER, cohi_levels_apply,
     cohi_levels_broadcast_workspace, one_cost, cohi_levels_broadcast},
    {"two-level", COH_COLLECTIVE_ALL_TO_ALL, IN_ORDER, cohi_levels_apply,
     cohi_levels_all_to_all_workspace, one_cost, cohi_levels_all_to_all},
    {"two-level", COH_COLLECTIVE_SCAN, IN_ORDER, cohi_levels_apply, cohi_ordered_workspace,
     ordered_cost, cohi_ordered_scan},
    {0},
};
