/* plan_text.c - a plan for people. */
#include "device/options.h"
#include "device/plan.h"

#include <stdarg.h>
#include <stdio.h>

/* Text that goes on past its room, to learn how long it is. */
typedef struct writer {
    char *text;
    size_t room;
    size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void print(writer *out, const char *format, ...)
{
    va_list arguments;
    size_t left = out->used < out->room ? out->room - out->used : 0;
    va_start(arguments, format);
    int count = vsnprintf(left ? out->text + out->used : NULL, left, format, arguments);
    va_end(arguments);
    out->used += count > 0 ? (size_t)count : 0;
}

static void print_node(writer *out, const coh_plan *plan, int index)
{
    const cohi_plan_node *node = &plan->nodes[index];
    const coh_plan_value *value = &node->value;
    print(out, "%5d  %-24s %12llu  %5d..%-5d ", index, node->name, (unsigned long long)value->bytes,
          value->first, value->last);
    if (!cohi_plan_in_block(plan, index)) {
        print(out, "%12s\n", "no slot");
        return;
    }
    print(out, "%12llu", (unsigned long long)node->offset);
    if (node->root != index)
        print(out, "  in %d", value->alias_of);
    else if (value->in_place != COH_NO_NODE && node->offset == plan->nodes[value->in_place].offset)
        print(out, "  in place of %d", value->in_place);
    print(out, "\n");
}

coh_status coh_plan_print(const coh_plan *plan, char *text, size_t room, size_t *needed)
{
    const char *call = "coh_plan_print";
    coh_status status = cohi_not_null(call, "plan", plan);
    if (status == COH_OK && room > 0)
        status = cohi_not_null(call, "text", text);
    if (status == COH_OK && !plan->solved)
        status = coh_fail(COH_INVALID_ARGUMENT, "%s: the plan is not solved", call);
    if (status != COH_OK)
        return status;
    writer out = {text, room, 0};
    const coh_plan_info *info = &plan->info;
    print(&out, "%5s  %-24s %12s  %-12s %12s\n", "node", "name", "bytes", "steps", "offset");
    for (int i = 0; i < plan->count; i++)
        print_node(&out, plan, i);
    print(&out, "%d values, %d with a slot, %d steps: %llu bytes; at least %llu, apart %llu\n",
          info->nodes, info->slots, info->steps, (unsigned long long)info->total,
          (unsigned long long)info->least, (unsigned long long)info->apart);
    if (needed)
        *needed = out.used + 1;
    return COH_OK;
}
