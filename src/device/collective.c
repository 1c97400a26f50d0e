/* collective.c - the collectives of cohort.h by number, so that a stream can carry them out. */
#include "device/collective.h"

#include "device/options.h"

static coh_status run_barrier(const coh_collective *c)
{
    return coh_team_barrier(c->team);
}

static coh_status run_all_reduce(const coh_collective *c)
{
    return coh_all_reduce(c->team, c->dtype, c->op, c->source, c->target, c->count);
}

static coh_status run_reduce(const coh_collective *c)
{
    return coh_reduce(c->team, c->dtype, c->op, c->source, c->target, c->count, c->root);
}

static coh_status run_reduce_scatter(const coh_collective *c)
{
    return coh_reduce_scatter(c->team, c->dtype, c->op, c->source, c->target, c->count);
}

static coh_status run_all_gather(const coh_collective *c)
{
    return coh_all_gather(c->team, c->dtype, c->source, c->target, c->count);
}

static coh_status run_gather(const coh_collective *c)
{
    return coh_gather(c->team, c->dtype, c->source, c->target, c->count, c->root);
}

static coh_status run_scatter(const coh_collective *c)
{
    return coh_scatter(c->team, c->dtype, c->source, c->target, c->count, c->root);
}

static coh_status run_broadcast(const coh_collective *c)
{
    return coh_broadcast(c->team, c->dtype, c->source, c->target, c->count, c->root);
}

static coh_status run_all_to_all(const coh_collective *c)
{
    return coh_all_to_all(c->team, c->dtype, c->source, c->target, c->count);
}

static coh_status run_scan(const coh_collective *c)
{
    return coh_scan(c->team, c->dtype, c->op, c->source, c->target, c->count);
}

static coh_status run_scan_exclusive(const coh_collective *c)
{
    return coh_scan_exclusive(c->team, c->dtype, c->op, c->source, c->target, c->count);
}

static const struct collective_row {
    const char *name;
    coh_status (*run)(const coh_collective *collective);
} collective_rows[] = {
    [COH_COLLECTIVE_BARRIER] = {"barrier", run_barrier},
    [COH_COLLECTIVE_ALL_REDUCE] = {"all_reduce", run_all_reduce},
    [COH_COLLECTIVE_REDUCE] = {"reduce", run_reduce},
    [COH_COLLECTIVE_REDUCE_SCATTER] = {"reduce_scatter", run_reduce_scatter},
    [COH_COLLECTIVE_ALL_GATHER] = {"all_gather", run_all_gather},
    [COH_COLLECTIVE_GATHER] = {"gather", run_gather},
    [COH_COLLECTIVE_SCATTER] = {"scatter", run_scatter},
    [COH_COLLECTIVE_BROADCAST] = {"broadcast", run_broadcast},
    [COH_COLLECTIVE_ALL_TO_ALL] = {"all_to_all", run_all_to_all},
    [COH_COLLECTIVE_SCAN] = {"scan", run_scan},
    [COH_COLLECTIVE_SCAN_EXCLUSIVE] = {"scan_exclusive", run_scan_exclusive},
};

static const struct collective_row *find_collective(coh_collective_kind kind)
{
    size_t index = (size_t)kind;
    size_t count = sizeof collective_rows / sizeof *collective_rows;
    return index < count ? &collective_rows[index] : NULL;
}

const char *coh_collective_name(coh_collective_kind kind)
{
    const struct collective_row *row = find_collective(kind);
    return row ? row->name : NULL;
}

coh_status cohi_collective_check(const char *call, const coh_collective *collective)
{
    if (!find_collective(collective->kind))
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %d is not a collective", call,
                        (int)collective->kind);
    return cohi_not_null(call, "the collective's team", collective->team);
}

coh_status cohi_collective_run(const coh_collective *collective)
{
    return collective_rows[collective->kind].run(collective);
}
