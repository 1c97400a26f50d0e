#include "coll/call/gear.h"

#include "core/world/fault.h"
#include "core/team/team.h"

#include <stdlib.h>

enum { WORKSPACE_ALIGNMENT = 64 };

static void free_gear(cohi_gear *base)
{
    cohi_coll_gear *gear = (cohi_coll_gear *)base;
    if (gear->worker)
        gear->stop(gear->worker);
    if (gear->native)
        gear->close_native(gear->endpoint, gear->native);
    free(gear->sources);
    free(gear->targets);
    free(gear->firsts[0]);
    free(gear->firsts[1]);
    free(gear->stagings);
    free(gear->workspace);
    free(gear);
}

static void find_stagings(const coh_team *team, cohi_staging **stagings)
{
    for (int i = 0; i < team->size; i++)
        if (team->slots[i])
            stagings[i] = cohi_slot_staging(team->slots[i], team->world->size, team->number);
}

static cohi_coll_gear *make_gear(const coh_team *team)
{
    int size = team->size;
    cohi_coll_gear *gear = calloc(1, sizeof *gear);
    if (!gear)
        return NULL;
    gear->base.free = free_gear;
    gear->stagings = calloc((size_t)size, sizeof *gear->stagings);
    gear->sources = calloc((size_t)size, sizeof *gear->sources);
    gear->targets = calloc((size_t)size + 1, sizeof *gear->targets); /* a second one in any team */
    for (int i = 0; i < 2; i++)
        gear->firsts[i] = calloc((size_t)size, sizeof *gear->firsts[i]);
    if (gear->sources && gear->targets && gear->firsts[0] && gear->firsts[1] && gear->stagings) {
        find_stagings(team, gear->stagings);
        return gear;
    }
    free_gear(&gear->base);
    return NULL;
}

/* Two threads may come at once: one in a call, one that starts the next. */
static cohi_gear *install(coh_team *team)
{
    pthread_mutex_lock(&team->world->team_lock);
    cohi_gear *gear = atomic_load(&team->gear);
    if (!gear) {
        cohi_coll_gear *made = make_gear(team);
        gear = made ? &made->base : NULL;
        atomic_store_explicit(&team->gear, gear, memory_order_release);
    }
    pthread_mutex_unlock(&team->world->team_lock);
    return gear;
}

coh_status cohi_gear_of(coh_team *team, const char *call, cohi_coll_gear **gear)
{
    cohi_gear *there = atomic_load_explicit(&team->gear, memory_order_acquire);
    if (COHI_UNLIKELY(!there))
        there = install(team);
    *gear = (cohi_coll_gear *)there;
    if (there)
        return COH_OK;
    return cohi_world_fail(team->world, call, COH_NO_MEMORY,
                           "out of memory for the collectives of a team of %d", team->size);
}

coh_status cohi_gear_workspace(cohi_call *call, size_t bytes)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    if (bytes > gear->workspace_bytes) {
        size_t rounded =
            (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
        char *larger = rounded >= bytes ? aligned_alloc(WORKSPACE_ALIGNMENT, rounded) : NULL;
        if (!larger)
            return cohi_world_fail(call->team->world, call->name, COH_NO_MEMORY,
                                   "out of memory for the %zu bytes that algorithm %s works in",
                                   bytes, call->algorithm->name);
        free(gear->workspace);
        gear->workspace = larger;
        gear->workspace_bytes = rounded;
    }
    call->workspace = gear->workspace;
    return COH_OK;
}

/* What a member stages is written by itself, so it backs its own alone. */
static coh_status back(cohi_call *call, coh_status (*commit)(cohi_board *board, int rank, int team),
                       bool *backed)
{
    coh_world *world = call->team->world;
    if (*backed)
        return COH_OK;
    coh_status status = cohi_fault_strike(world->fault, COHI_OP_COMMIT);
    if (status == COH_OK)
        status = commit(world->board, world->rank, call->team->number);
    *backed = status == COH_OK;
    return *backed ? status : cohi_world_fail(world, call->name, status, "%s", coh_last_error());
}

coh_status cohi_gear_scratch(cohi_call *call)
{
    return back(call, cohi_board_commit_scratch, &cohi_team_gear(call->team)->scratch);
}

coh_status cohi_gear_stages(cohi_call *call)
{
    return back(call, cohi_board_commit_stages, &cohi_team_gear(call->team)->stages);
}
