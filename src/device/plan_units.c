#include "device/plan_units.h"

#include <stdlib.h>

bool cohi_units_make(cohi_units *units, coh_plan *plan)
{
    size_t count = (size_t)plan->count + 1;
    *units = (cohi_units){.plan = plan,
                          .roots = calloc(count, sizeof *units->roots),
                          .units = calloc(count, sizeof *units->units),
                          .members = calloc(count, sizeof *units->members),
                          .unit_of = calloc(count, sizeof *units->unit_of)};
    if (!units->roots || !units->units || !units->members || !units->unit_of)
        return false;
    for (int i = 0; i < plan->count; i++)
        if (plan->nodes[i].root == i && cohi_plan_in_block(plan, i))
            units->roots[units->root_count++] = i;
    return true;
}

void cohi_units_free(cohi_units *units)
{
    free(units->roots);
    free(units->units);
    free(units->members);
    free(units->unit_of);
}

/* ---- in place ---- */

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Whether the step that overwrites `old` reads the same bytes under another name too. */
static bool read_by_another_name(const coh_plan *plan, const cohi_plan_node *old, int step)
{
    for (int i = 0; i < plan->count; i++) {
        const cohi_plan_node *other = &plan->nodes[i];
        if (other != old && other->root == old->root && other->value.last >= step
            && overlap(old->at, old->value.bytes, other->at, other->value.bytes))
            return true;
    }
    return false;
}

/* Whether a root can be written over what it asks for: that dies at this very step, is large enough
 * and aligned for it, and nobody else has taken it. */
static bool can_replace(const coh_plan *plan, const cohi_plan_node *node, const bool *replaced)
{
    if (node->value.in_place == COH_NO_NODE || !cohi_plan_in_block(plan, node->value.in_place))
        return false;
    const cohi_plan_node *old = &plan->nodes[node->value.in_place];
    const cohi_plan_node *root = &plan->nodes[old->root];
    return root->last == node->value.first && root->value.first < node->value.first
           && !replaced[old->root] && node->value.bytes <= old->value.bytes
           && (root->distance + old->at) % node->value.alignment == 0
           && !read_by_another_name(plan, old, node->value.first);
}

/* Gives every root the head of its unit and its distance from there. What it is written in place of
 * was added before it, so it has its own already. */
static void choose_heads(cohi_units *units, bool in_place, bool *replaced)
{
    coh_plan *plan = units->plan;
    for (int i = 0; i < units->root_count; i++) {
        cohi_plan_node *node = &plan->nodes[units->roots[i]];
        node->unit = units->roots[i];
        node->distance = 0;
        if (!in_place || !can_replace(plan, node, replaced))
            continue;
        const cohi_plan_node *old = &plan->nodes[node->value.in_place];
        const cohi_plan_node *root = &plan->nodes[old->root];
        replaced[old->root] = true;
        node->unit = root->unit;
        node->distance = root->distance + old->at;
    }
}

/* ---- units ---- */

static void extend(cohi_unit *unit, const cohi_plan_node *node)
{
    uint64_t end = node->distance + node->room;
    unit->member_count++;
    unit->bytes = end > unit->bytes ? end : unit->bytes;
    unit->last = node->last > unit->last ? node->last : unit->last;
    if (node->value.alignment > unit->alignment)
        unit->alignment = node->value.alignment;
}

static void count_members(cohi_units *units)
{
    units->count = 0;
    for (int i = 0; i < units->root_count; i++) {
        int root = units->roots[i];
        const cohi_plan_node *node = &units->plan->nodes[root];
        if (node->unit == root) {
            units->units[units->count] =
                (cohi_unit){.alignment = 1, .first = node->value.first, .last = node->last};
            units->unit_of[root] = units->count++;
        } else {
            units->unit_of[root] = units->unit_of[node->unit];
        }
        extend(&units->units[units->unit_of[root]], node);
    }
}

static void list_members(cohi_units *units)
{
    int at = 0;
    for (int i = 0; i < units->count; i++) {
        units->units[i].member_first = at;
        at += units->units[i].member_count;
        units->units[i].member_count = 0;
    }
    for (int i = 0; i < units->root_count; i++) {
        cohi_unit *unit = &units->units[units->unit_of[units->roots[i]]];
        units->members[unit->member_first + unit->member_count++] = units->roots[i];
    }
}

bool cohi_units_join(cohi_units *units, bool in_place)
{
    bool *replaced = calloc((size_t)units->plan->count + 1, sizeof *replaced);
    if (!replaced)
        return false;
    choose_heads(units, in_place, replaced);
    free(replaced);
    count_members(units);
    list_members(units);
    return true;
}

/* ---- the bound ---- */

/* What the number of bytes alive changes by at each step; sums wrap, and wrap back. */
static void mark_lives(const cohi_units *units, uint64_t *change)
{
    for (int i = 0; i < units->root_count; i++) {
        const cohi_plan_node *node = &units->plan->nodes[units->roots[i]];
        change[node->value.first] += node->room;
        change[node->last + 1] -= node->room;
        if (node->unit != units->roots[i]) {
            /* At its first step it shares the bytes of the one that it overwrites. */
            change[node->value.first] -= node->room;
            change[node->value.first + 1] += node->room;
        }
    }
}

bool cohi_units_least(const cohi_units *units, int steps, uint64_t *least)
{
    uint64_t now = 0, *change = calloc((size_t)steps + 2, sizeof *change);
    if (!change)
        return false;
    mark_lives(units, change);
    *least = 0;
    for (int step = 0; step < steps; step++) {
        now += change[step];
        *least = now > *least ? now : *least;
    }
    free(change);
    return true;
}
