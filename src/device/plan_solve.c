/*
 * plan_solve.c - offsets for all values of a plan.
 *
 * Units are placed one after the other, each into the smallest gap that is free while it lives. How
 * well that packs depends on the order, so a few orders are tried, with values written in place and
 * without, and the smallest block is taken; then what lies at the top of it is placed earlier, as
 * long as there is hope. All of it is deterministic: equal plans give equal offsets, which is what
 * lets ranks share them.
 */
#include "device/options.h"
#include "device/plan_units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 64 }; /* for each order, to place better what reached the top */

/* Pairs of values that may be compared in all: some tenths of a second. */
#define MOST_PAIRS UINT64_C(200000000)

/* Offsets at which a unit cannot start, because of a value that is placed. */
typedef struct range {
    uint64_t from;
    uint64_t to;
} range;

typedef struct ranked {
    uint64_t key;
    uint64_t bytes;
    int index;
} ranked;

typedef struct solver {
    cohi_units units;
    ranked *order; /* indices of units, as they are placed */
    int *placed;   /* roots that have an offset */
    range *ranges; /* scratch, one for each of them */
    uint64_t *best;
    uint64_t best_total;
    uint64_t least;
    uint64_t pairs; /* compared so far */
} solver;

/* ---- placing ---- */

/*
 * Where the unit cannot start because of a placed root: from where its members that meet it would
 * touch it, to where they no longer do. False when none meets it.
 */
static bool forbid(const solver *s, const cohi_unit *unit, int placed, range *found)
{
    const cohi_plan_node *nodes = s->units.plan->nodes, *other = &nodes[placed];
    uint64_t nearest = UINT64_MAX, farthest = 0;
    for (int i = 0; i < unit->member_count; i++) {
        const cohi_plan_node *node = &nodes[s->units.members[unit->member_first + i]];
        if (!cohi_plan_meet(node, other))
            continue;
        nearest = node->distance < nearest ? node->distance : nearest;
        if (node->distance + node->room > farthest)
            farthest = node->distance + node->room;
    }
    uint64_t start = s->units.units[s->units.unit_of[placed]].offset + other->distance;
    if (farthest == 0 || start + other->room <= nearest)
        return false;
    found->from = start < farthest ? 0 : start - farthest + 1;
    found->to = start + other->room - nearest;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const range *left = a, *right = b;
    return left->from < right->from ? -1 : left->from > right->from;
}

/* The start in the gap that leaves least over; behind all ranges where there is none. */
static uint64_t best_start(range *ranges, size_t count, uint64_t alignment)
{
    uint64_t end = 0, best = UINT64_MAX, best_slack = UINT64_MAX;
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        uint64_t start = cohi_round_up(end, alignment);
        if (start < ranges[i].from && ranges[i].from - end < best_slack) {
            best = start;
            best_slack = ranges[i].from - end;
        }
        end = ranges[i].to > end ? ranges[i].to : end;
    }
    return best != UINT64_MAX ? best : cohi_round_up(end, alignment);
}

/* Places all units in the order; the bytes that it takes. */
static uint64_t place_all(solver *s)
{
    uint64_t total = 0;
    int placed = 0;
    for (int i = 0; i < s->units.count; i++) {
        cohi_unit *unit = &s->units.units[s->order[i].index];
        size_t count = 0;
        for (int k = 0; k < placed; k++)
            count += forbid(s, unit, s->placed[k], &s->ranges[count]);
        unit->offset = best_start(s->ranges, count, unit->alignment);
        total = unit->offset + unit->bytes > total ? unit->offset + unit->bytes : total;
        s->pairs += (uint64_t)placed * (uint64_t)unit->member_count;
        for (int k = 0; k < unit->member_count; k++)
            s->placed[placed++] = s->units.members[unit->member_first + k];
    }
    return total;
}

/* Keeps the offsets when they are the best so far. */
static void keep_better(solver *s, uint64_t total)
{
    if (total >= s->best_total)
        return;
    s->best_total = total;
    for (int i = 0; i < s->units.root_count; i++) {
        int root = s->units.roots[i];
        s->best[root] =
            s->units.units[s->units.unit_of[root]].offset + s->units.plan->nodes[root].distance;
    }
}

/* ---- orders ---- */

static uint64_t by_bytes(const cohi_unit *unit)
{
    return unit->bytes;
}

static uint64_t by_area(const cohi_unit *unit)
{
    return unit->bytes * (uint64_t)(unit->last - unit->first + 1);
}

static uint64_t by_life(const cohi_unit *unit)
{
    return (uint64_t)(unit->last - unit->first);
}

static uint64_t by_start(const cohi_unit *unit)
{
    return UINT64_MAX - (uint64_t)unit->first;
}

static uint64_t (*const orders[])(const cohi_unit *unit) = {by_bytes, by_area, by_life, by_start};

/* The largest key first; then the largest unit, then as they were added. */
static int compare_ranked(const void *a, const void *b)
{
    const ranked *left = a, *right = b;
    if (left->key != right->key)
        return left->key > right->key ? -1 : 1;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

static void sort_units(solver *s, uint64_t (*key)(const cohi_unit *unit))
{
    for (int i = 0; i < s->units.count; i++) {
        const cohi_unit *unit = &s->units.units[i];
        s->order[i] = (ranked){key(unit), unit->bytes, i};
    }
    qsort(s->order, (size_t)s->units.count, sizeof *s->order, compare_ranked);
}

/* Moves the unit that reaches the top to the front of the order. */
static void advance_highest(solver *s)
{
    int at = 0;
    uint64_t top = 0;
    for (int i = 0; i < s->units.count; i++) {
        const cohi_unit *unit = &s->units.units[s->order[i].index];
        if (unit->offset + unit->bytes > top) {
            top = unit->offset + unit->bytes;
            at = i;
        }
    }
    ranked highest = s->order[at];
    memmove(&s->order[1], &s->order[0], (size_t)at * sizeof *s->order);
    s->order[0] = highest;
}

static void try_order(solver *s, uint64_t (*key)(const cohi_unit *unit))
{
    if (s->best_total <= s->least)
        return;
    sort_units(s, key);
    keep_better(s, place_all(s));
    for (int i = 0; i < ATTEMPTS && s->best_total > s->least && s->pairs < MOST_PAIRS; i++) {
        advance_highest(s);
        keep_better(s, place_all(s));
    }
}

/* ---- the whole ---- */

static bool make_solver(solver *s, coh_plan *plan)
{
    size_t count = (size_t)plan->count + 1;
    *s = (solver){.order = calloc(count, sizeof *s->order),
                  .placed = calloc(count, sizeof *s->placed),
                  .ranges = calloc(count, sizeof *s->ranges),
                  .best = calloc(count, sizeof *s->best),
                  .best_total = UINT64_MAX};
    return cohi_units_make(&s->units, plan) && s->order && s->placed && s->ranges && s->best;
}

static void free_solver(solver *s)
{
    cohi_units_free(&s->units);
    free(s->order);
    free(s->placed);
    free(s->ranges);
    free(s->best);
}

static void measure(const cohi_units *units, coh_plan_info *info)
{
    const coh_plan *plan = units->plan;
    for (int i = 0; i < plan->count; i++) {
        const cohi_plan_node *node = &plan->nodes[i];
        info->slots += cohi_plan_in_block(plan, i);
        info->steps = node->value.last >= info->steps ? node->value.last + 1 : info->steps;
    }
    for (int i = 0; i < units->root_count; i++) {
        const cohi_plan_node *node = &plan->nodes[units->roots[i]];
        info->apart = cohi_round_up(info->apart, node->value.alignment) + node->room;
        if (node->value.alignment > info->alignment)
            info->alignment = node->value.alignment;
    }
}

/* With values in place first: on a tie that is better for the caches. */
static bool search(solver *s, int steps)
{
    if (!cohi_units_join(&s->units, true) || !cohi_units_least(&s->units, steps, &s->least))
        return false;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        try_order(s, orders[i]);
    if (!cohi_units_join(&s->units, false))
        return false;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        try_order(s, orders[i]);
    return true;
}

coh_status coh_plan_solve(coh_plan *plan)
{
    const char *call = "coh_plan_solve";
    solver s;
    coh_status status = cohi_not_null(call, "plan", plan);
    if (status != COH_OK)
        return status;
    if (plan->solved)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the plan is solved already", call);
    coh_plan_info info = {.size = sizeof info, .nodes = plan->count, .alignment = 1};
    bool found = make_solver(&s, plan);
    if (found) {
        measure(&s.units, &info);
        found = search(&s, info.steps);
    }
    for (int i = 0; found && i < plan->count; i++)
        plan->nodes[i].offset = s.best[plan->nodes[i].root] + plan->nodes[i].at;
    info.total = s.best_total;
    info.least = s.least;
    free_solver(&s);
    if (!found)
        return cohi_fail_errno(ENOMEM, "%s: %d values", call, plan->count);
    plan->info = info;
    plan->solved = true;
    return COH_OK;
}
