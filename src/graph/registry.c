#include "graph/registry.h"

#include <stdlib.h>
#include <string.h>

struct coh_registry {
    cohi_graph_op **ops;
    int count;
    int room;
    cohi_names names;
};

enum { FIRST_ROOM = 64 };

static void free_op(cohi_graph_op *entry)
{
    for (int i = 0; entry->op.rules && i < entry->op.rule_count; i++) {
        free((char *)entry->op.rules[i].name);
        free((char *)entry->op.rules[i].fallback);
    }
    free((coh_attribute_rule *)entry->op.rules);
    free(entry);
}

static coh_status check_op(const coh_registry *registry, const coh_op *op)
{
    if (!registry || !op || op->size != sizeof *op)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_registry_add: a registry and an op that begins with its size, "
                        "sizeof(coh_op), are needed");
    size_t length = op->name ? strlen(op->name) : 0;
    if (!cohi_name_valid(op->name, length))
        return coh_fail(COH_INVALID_ARGUMENT, "coh_registry_add: '%.128s' is not a name",
                        op->name ? op->name : "");
    if (cohi_names_find(&registry->names, op->name, length) >= 0)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_registry_add: there is an operation '%s'",
                        op->name);
    if (!op->shape)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_registry_add: '%s' has no shape function",
                        op->name);
    if (op->least_inputs < 0 || op->most_inputs < op->least_inputs
        || op->most_inputs > COH_OP_INPUTS_MAX)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_registry_add: '%s' takes %d to %d inputs; 0 to %d are possible",
                        op->name, op->least_inputs, op->most_inputs, COH_OP_INPUTS_MAX);
    if (op->rule_count < 0 || (op->rule_count > 0 && !op->rules))
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_registry_add: '%s' has %d rules: less than 0, or rules is NULL",
                        op->name, op->rule_count);
    return COH_OK;
}

/* Copies what the op points to, so that the caller's may go. */
static coh_status copy_op(const coh_op *op, cohi_graph_op **entry)
{
    cohi_graph_op *made = calloc(1, sizeof *made);
    coh_attribute_rule *rules = calloc((size_t)op->rule_count + 1, sizeof *rules);
    int complete = made && rules;
    for (int i = 0; complete && i < op->rule_count; i++) {
        const coh_attribute_rule *rule = &op->rules[i];
        rules[i].kind = rule->kind;
        rules[i].name = strdup(rule->name ? rule->name : "");
        rules[i].fallback = rule->fallback ? strdup(rule->fallback) : NULL;
        complete = rules[i].name && (!rule->fallback || rules[i].fallback);
    }
    if (!made) {
        free(rules);
        return coh_fail(COH_NO_MEMORY, "coh_registry_add: no memory for '%s'", op->name);
    }
    made->op = *op;
    made->op.rules = rules;
    if (!complete) {
        free_op(made);
        return coh_fail(COH_NO_MEMORY, "coh_registry_add: no memory for '%s'", op->name);
    }
    strcpy(made->name, op->name);
    made->op.name = made->name;
    *entry = made;
    return COH_OK;
}

static coh_status make_room(coh_registry *registry)
{
    if (registry->count < registry->room)
        return COH_OK;
    int room = registry->room ? 2 * registry->room : FIRST_ROOM;
    cohi_graph_op **ops = realloc(registry->ops, (size_t)room * sizeof *ops);
    if (!ops)
        return coh_fail(COH_NO_MEMORY, "coh_registry_add: no memory for %d operations", room);
    registry->ops = ops;
    registry->room = room;
    return COH_OK;
}

coh_status coh_registry_add(coh_registry *registry, const coh_op *op)
{
    cohi_graph_op *entry = NULL;
    coh_status status = check_op(registry, op);
    if (status == COH_OK)
        status = make_room(registry);
    if (status == COH_OK)
        status = copy_op(op, &entry);
    if (status == COH_OK) {
        status = cohi_names_add(&registry->names, entry->name, registry->count);
        if (status != COH_OK)
            free_op(entry);
    }
    if (status == COH_OK)
        registry->ops[registry->count++] = entry;
    return status;
}

coh_status coh_registry_kernel(coh_registry *registry, const char *op, coh_device_kind kind,
                               coh_op_kernel *kernel)
{
    int index = registry && op ? cohi_names_find(&registry->names, op, strlen(op)) : -1;
    if (index < 0)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_registry_kernel: there is no operation '%.128s'",
                        op ? op : "");
    if (!coh_device_kind_name(kind))
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_registry_kernel: '%s': there is no kind of device %d", op, (int)kind);
    registry->ops[index]->kernels[kind] = kernel;
    return COH_OK;
}

const char *coh_registry_name(const coh_registry *registry, size_t index)
{
    return registry && index < (size_t)registry->count ? registry->ops[index]->name : NULL;
}

const cohi_graph_op *cohi_registry_find(const coh_registry *registry, const char *name)
{
    int index = cohi_names_find(&registry->names, name, strlen(name));
    return index < 0 ? NULL : registry->ops[index];
}

static coh_status add_builtins(coh_registry *registry, const cohi_builtins *table)
{
    coh_status status = COH_OK;
    for (size_t i = 0; i < table->count && status == COH_OK; i++) {
        const cohi_builtin *row = &table->rows[i];
        status = coh_registry_add(registry, &row->op);
        if (status == COH_OK)
            status = coh_registry_kernel(registry, row->op.name, COH_DEVICE_CPU, row->cpu);
    }
    return status;
}

coh_status coh_registry_create(coh_registry **registry)
{
    static const cohi_builtins *const tables[] = {
        &cohi_matmul_ops, &cohi_elementwise_ops, &cohi_norm_ops,   &cohi_attention_ops,
        &cohi_lookup_ops, &cohi_layout_ops,      &cohi_reduce_ops, &cohi_collective_ops,
    };
    if (!registry)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_registry_create: registry is NULL");
    coh_registry *made = calloc(1, sizeof *made);
    if (!made)
        return coh_fail(COH_NO_MEMORY, "coh_registry_create: no memory for a registry");
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == COH_OK; i++)
        status = add_builtins(made, tables[i]);
    if (status != COH_OK) {
        coh_registry_destroy(made);
        return status;
    }
    *registry = made;
    return COH_OK;
}

void coh_registry_destroy(coh_registry *registry)
{
    if (!registry)
        return;
    for (int i = 0; i < registry->count; i++)
        free_op(registry->ops[i]);
    free(registry->ops);
    cohi_names_free(&registry->names);
    free(registry);
}
