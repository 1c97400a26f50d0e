/* choice.c - telling which algorithm a call would use. */
#include "coll/select.h"

#include "core/team/team.h"

#include <string.h>

static bool find_kind(const char *name, cohi_kind *kind)
{
    for (*kind = 0; *kind < COHI_KINDS; (*kind)++)
        if (strcmp(cohi_kind_name(*kind), name) == 0)
            return true;
    return false;
}

/* A call of that kind and length, as far as the choice looks at it. */
static cohi_call imagine(coh_team *team, const char *name, cohi_kind kind, size_t bytes)
{
    bool divided = kind == COHI_REDUCE_SCATTER || kind == COHI_ALL_TO_ALL;
    size_t count = divided ? bytes / (size_t)team->size : bytes;
    return (cohi_call){.team = team,
                       .name = name,
                       .kind = kind,
                       .dtype = COH_U8,
                       .element = 1,
                       .count = count,
                       .from = {.count = count, .stride = 1},
                       .to = {.count = count, .stride = 1},
                       .source_bytes = bytes,
                       .target_bytes = bytes,
                       .bytes = bytes};
}

coh_status coh_collective_choice(coh_team *team, const char *collective, size_t bytes,
                                 const char **name, double *predicted_ns)
{
    static const char call_name[] = "coh_collective_choice";
    cohi_kind kind;
    coh_status status = cohi_team_gate(team, call_name);
    if (status != COH_OK)
        return status;
    if (!collective || !name)
        return cohi_world_fail(team->world, call_name, COH_INVALID_ARGUMENT, "%s is NULL",
                               name ? "collective" : "name");
    if (!find_kind(collective, &kind))
        return cohi_world_fail(team->world, call_name, COH_INVALID_ARGUMENT,
                               "there is no collective %s with a choice of algorithms", collective);
    cohi_call call = imagine(team, call_name, kind, bytes);
    status = cohi_select_anew(&call);
    if (status != COH_OK)
        return status;
    *name = call.algorithm->name;
    cohi_model model = cohi_select_model(team);
    if (predicted_ns)
        *predicted_ns = call.algorithm->cost(&model, team->size, (double)bytes);
    return COH_OK;
}
