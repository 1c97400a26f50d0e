/* choice.c - telling which algorithm a call would use. */
#include "coll/check.h"
#include "coll/describe.h"
#include "coll/mapped/buffers.h"
#include "coll/select.h"

#include "core/team/team.h"

#include <stdlib.h>

static const char call_name[] = "coh_collective_choice";

/* Whether the row can work on buffers that all members have where this one has its. */
static bool reaches_buffers(const cohi_call *call)
{
    unsigned traits = call->algorithm->traits;
    bool source = cohi_place_own(call, COHI_SOURCE), target = cohi_place_own(call, COHI_TARGET);
    if (traits & COHI_NEEDS_A_SIDE)
        return source || target;
    return (source || !(traits & COHI_NEEDS_SOURCES)) && (target || !(traits & COHI_NEEDS_TARGETS));
}

static const cohi_algorithm *staged_row(coh_collective_kind kind)
{
    unsigned i = 0;
    while (cohi_algorithm_at(i)->kind != kind || !(cohi_algorithm_at(i)->traits & COHI_STAGED))
        i++;
    return cohi_algorithm_at(i);
}

/* What a row that finds the buffers private goes on as. */
static coh_status heed_buffers(cohi_call *call)
{
    if (!(call->algorithm->traits & COHI_NEEDS_BUFFERS) || reaches_buffers(call))
        return COH_OK;
    if (call->forced)
        return cohi_place_refuse(
            call, cohi_place_own(call, COHI_SOURCE) ? COHI_TARGET : COHI_SOURCE, call->team->index);
    call->algorithm = staged_row(call->kind);
    return COH_OK;
}

static coh_status choose(cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    size_t *firsts = calloc(2 * size, sizeof *firsts);
    if (!firsts)
        return cohi_world_fail(call->team->world, call_name, COH_NO_MEMORY,
                               "out of memory for the counts of %zu members", size);
    coh_status status = cohi_check_form(call, (size_t *[]){firsts, firsts + size});
    if (status == COH_OK)
        status = cohi_select_anew(call);
    if (status == COH_OK)
        status = heed_buffers(call);
    free(firsts);
    return status;
}

coh_status coh_collective_choice(const coh_collective *collective, const char **name,
                                 double *predicted_ns)
{
    coh_status status = cohi_describe_check(call_name, collective);
    if (status == COH_OK)
        status = cohi_team_gate(collective->team, call_name);
    if (status != COH_OK)
        return status;
    coh_team *team = collective->team;
    if (!name)
        return cohi_world_fail(team->world, call_name, COH_INVALID_ARGUMENT, "name is NULL");
    if (collective->kind == COH_COLLECTIVE_BARRIER)
        return cohi_world_fail(team->world, call_name, COH_INVALID_ARGUMENT,
                               "a barrier has no choice of algorithms");
    cohi_call call = cohi_describe(call_name, collective);
    status = choose(&call);
    if (status != COH_OK)
        return status;
    *name = call.algorithm->name;
    cohi_model model = cohi_select_model(team);
    if (predicted_ns)
        *predicted_ns = call.algorithm->cost(&model, team->size, (double)call.bytes);
    return COH_OK;
}
