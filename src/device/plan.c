#include "device/plan.h"

#include "device/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_ALIGNMENT = 64, FIRST_ROOM = 64 };

#define MOST_BYTES (UINT64_C(1) << 56) /* of a value, so that sums of them cannot overflow soon */

coh_status coh_plan_create(coh_plan **plan)
{
    coh_status status = cohi_not_null("coh_plan_create", "plan", plan);
    if (status != COH_OK)
        return status;
    coh_plan *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail_errno(ENOMEM, "coh_plan_create");
    *plan = made;
    return COH_OK;
}

void coh_plan_destroy(coh_plan *plan)
{
    if (!plan)
        return;
    free(plan->nodes);
    free(plan);
}

/* ---- adding ---- */

static const char *name_of(const coh_plan_value *value)
{
    return value->name ? value->name : "";
}

static coh_status check_value(const char *call, const coh_plan_value *value)
{
    if (value->first < 0 || value->last < value->first || value->last == INT_MAX)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: '%s' is written at step %d and read last at step %d; steps count from "
                        "0, and it cannot be read before it is written",
                        call, name_of(value), value->first, value->last);
    if (value->bytes > MOST_BYTES)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' has %llu bytes; at most %llu", call,
                        name_of(value), (unsigned long long)value->bytes,
                        (unsigned long long)MOST_BYTES);
    return COH_OK;
}

static coh_status check_named(const char *call, const coh_plan *plan, const coh_plan_value *value,
                              const char *what, int node)
{
    if (node == COH_NO_NODE || (node >= 0 && node < plan->count))
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' is %s node %d, and there are %d so far", call,
                    name_of(value), what, node, plan->count);
}

static coh_status check_alias(const char *call, const coh_plan *plan, const coh_plan_value *value)
{
    if (value->alias_of == COH_NO_NODE)
        return COH_OK;
    const cohi_plan_node *other = &plan->nodes[value->alias_of];
    if (value->first < other->value.first)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: '%s' lies in '%s', and is written at step %d, before it (step %d)",
                        call, name_of(value), other->name, value->first, other->value.first);
    if (value->alias_at <= other->value.bytes
        && value->bytes <= other->value.bytes - value->alias_at)
        return COH_OK;
    return coh_fail(
        COH_OUT_OF_BOUNDS, "%s: '%s', %llu bytes from byte %llu on, leaves '%s' of %llu", call,
        name_of(value), (unsigned long long)value->bytes, (unsigned long long)value->alias_at,
        other->name, (unsigned long long)other->value.bytes);
}

static coh_status check_add(const char *call, const coh_plan *plan, const coh_plan_value *value)
{
    coh_status status = COH_OK;
    if (plan->solved || plan->count == INT_MAX)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the plan is solved; nothing can be added", call);
    status = check_value(call, value);
    if (status == COH_OK)
        status = check_named(call, plan, value, "in place of", value->in_place);
    if (status == COH_OK)
        status = check_named(call, plan, value, "an alias of", value->alias_of);
    return status == COH_OK ? check_alias(call, plan, value) : status;
}

static bool make_room(coh_plan *plan)
{
    if (plan->count < plan->room)
        return true;
    int room = plan->room ? plan->room * 2 : FIRST_ROOM;
    cohi_plan_node *nodes = realloc(plan->nodes, (size_t)room * sizeof *nodes);
    if (!nodes)
        return false;
    plan->nodes = nodes;
    plan->room = room;
    return true;
}

static void append(coh_plan *plan, const coh_plan_value *value)
{
    int index = plan->count++;
    cohi_plan_node *node = &plan->nodes[index];
    *node = (cohi_plan_node){.value = *value, .root = index, .last = value->last, .unit = index};
    snprintf(node->name, sizeof node->name, "%s", name_of(value));
    if (value->alias_of != COH_NO_NODE) {
        const cohi_plan_node *other = &plan->nodes[value->alias_of];
        node->root = other->root;
        node->at = other->at + value->alias_at;
    }
    cohi_plan_node *root = &plan->nodes[node->root];
    if (root->last < value->last)
        root->last = value->last;
    node->room = cohi_round_up(value->bytes, value->alignment);
}

coh_status coh_plan_add(coh_plan *plan, const coh_plan_value *value, int *node)
{
    const char *call = "coh_plan_add";
    coh_plan_value chosen = COH_PLAN_VALUE_INIT;
    coh_status status = cohi_not_null(call, "plan", plan);
    if (status == COH_OK)
        status = cohi_not_null(call, "value", value);
    if (status == COH_OK)
        status = cohi_options_take(call, value, &chosen, sizeof chosen);
    if (status == COH_OK)
        status = cohi_alignment_take(call, chosen.alignment, VALUE_ALIGNMENT, &chosen.alignment);
    if (status == COH_OK)
        status = check_add(call, plan, &chosen);
    if (status != COH_OK)
        return status;
    if (!make_room(plan))
        return cohi_fail_errno(ENOMEM, "%s: '%s'", call, name_of(&chosen));
    append(plan, &chosen);
    if (node)
        *node = plan->count - 1;
    return COH_OK;
}

/* ---- asking ---- */

bool cohi_plan_in_block(const coh_plan *plan, int node)
{
    const cohi_plan_node *root = &plan->nodes[plan->nodes[node].root];
    return plan->nodes[node].value.bytes > 0 && !plan->nodes[node].value.outside
           && root->value.bytes > 0 && !root->value.outside;
}

coh_status coh_plan_query(const coh_plan *plan, coh_plan_info *info)
{
    const char *call = "coh_plan_query";
    coh_status status = cohi_not_null(call, "plan", plan);
    if (status == COH_OK)
        status = cohi_options_check(call, info, sizeof *info);
    if (status == COH_OK && !plan->solved)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: the plan is not solved", call);
    if (status == COH_OK)
        *info = plan->info;
    return status;
}

int coh_plan_has_slot(const coh_plan *plan, int node)
{
    return plan && plan->solved && node >= 0 && node < plan->count
           && cohi_plan_in_block(plan, node);
}

/* Why a node that is there has no slot. */
static const char *why_none(const coh_plan *plan, int node)
{
    const cohi_plan_node *self = &plan->nodes[node];
    if (self->value.outside)
        return "its bytes are outside";
    if (self->value.bytes == 0)
        return "it has no bytes";
    return "it lies in a value whose bytes are outside";
}

coh_status coh_plan_slot(const coh_plan *plan, int node, uint64_t *offset, uint64_t *bytes)
{
    const char *call = "coh_plan_slot";
    coh_status status = cohi_not_null(call, "plan", plan);
    if (status != COH_OK)
        return status;
    if (!plan->solved)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the plan is not solved", call);
    if (node < 0 || node >= plan->count)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: there is no node %d; there are %d", call, node,
                        plan->count);
    const cohi_plan_node *self = &plan->nodes[node];
    if (!cohi_plan_in_block(plan, node))
        return coh_fail(COH_INVALID_ARGUMENT, "%s: node %d ('%s') has no slot: %s", call, node,
                        self->name, why_none(plan, node));
    if (offset)
        *offset = self->offset;
    if (bytes)
        *bytes = self->value.bytes;
    return COH_OK;
}
