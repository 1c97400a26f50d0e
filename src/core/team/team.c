#include "core/team/team.h"

#include "core/team/levels.h"
#include "core/team/mark.h"
#include "core/team/posts.h"
#include "core/team/standing.h"
#include "core/world/world.h"

#include <stdlib.h>

/* ---- making ---- */

void cohi_team_free_gear(coh_team *team)
{
    cohi_gear *gear = atomic_exchange(&team->gear, NULL);
    if (gear)
        gear->free(gear);
    if (team->levels) {
        cohi_team_free_gear(team->levels->local);
        cohi_team_free_gear(team->levels->bridge);
    }
}

void cohi_team_release(coh_team *team)
{
    cohi_team_free_gear(team);
    cohi_levels_free(team);
    free(team->ranks);
    free(team->indices);
    free(team->meets);
    free(team->slots);
    team->ranks = team->indices = NULL;
    team->meets = NULL;
    team->slots = NULL;
}

coh_team *cohi_team_allocate(int size, int world_size)
{
    coh_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->ranks = calloc((size_t)size, sizeof *team->ranks);
    team->indices = calloc((size_t)world_size, sizeof *team->indices);
    team->meets = calloc((size_t)size, sizeof *team->meets);
    team->slots = calloc((size_t)size, sizeof *team->slots);
    for (int rank = 0; team->indices && rank < world_size; rank++)
        team->indices[rank] = -1;
    if (team->ranks && team->indices && team->meets && team->slots)
        return team;
    cohi_team_release(team);
    free(team);
    return NULL;
}

static void enrol(coh_team *team, int index, int rank)
{
    coh_world *world = team->world;
    team->ranks[index] = rank;
    team->indices[rank] = index;
    team->slots[index] = world->peers[rank].slot;
    if (team->slots[index])
        team->meets[index] = cohi_slot_meet(team->slots[index], world->size, team->number);
    else
        team->mapped = false;
}

/* What an earlier team of the same number left there; its epochs are all before `start`. */
static void clear_area(coh_team *team)
{
    team->mine = cohi_slot_meet(team->world->slot, team->world->size, team->number);
    atomic_store(&team->mine->mismatch, 0);
    atomic_store(&team->mine->ready.value, 0);
    atomic_store(&team->mine->done.value, 0);
    for (uint32_t post = 0; post < COHI_POSTS; post++)
        atomic_store(&team->mine->posts[post].mark, cohi_mark(team->start, COHI_OP_NONE));
}

/* ---- what a wait asks of a team ---- */

static coh_team *team_of(const cohi_party *party)
{
    return (coh_team *)party; /* its first member */
}

static int first_absent(const cohi_party *party)
{
    return cohi_team_first_absent(team_of(party));
}

static coh_status standing(cohi_party *party, const char *call)
{
    return cohi_team_standing(team_of(party), call);
}

static coh_status unreachable(cohi_party *party, const char *call, int rank)
{
    return cohi_team_unreachable_error(team_of(party), call, rank);
}

coh_status cohi_team_open(coh_world *world, int number, const int *ranks, int size, uint32_t start,
                          coh_team **team)
{
    coh_team *made = cohi_team_allocate(size, world->size);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "out of memory for a team of %d ranks", size);
    made->party = (cohi_party){first_absent, standing, unreachable};
    made->world = world;
    made->number = number;
    made->size = size;
    made->start = made->epoch = made->settled = made->heard = made->hinted = start;
    made->mapped = true;
    for (int i = 0; i < size; i++)
        enrol(made, i, ranks[i]);
    made->index = made->indices[world->rank];
    clear_area(made);
    coh_status status = made->mapped ? COH_OK : cohi_levels_make(made);
    if (status != COH_OK) {
        cohi_team_release(made);
        free(made);
        return status;
    }
    made->open = true;
    pthread_mutex_lock(&world->team_lock);
    made->next = world->teams;
    world->teams = made;
    pthread_mutex_unlock(&world->team_lock);
    *team = made;
    return COH_OK;
}

void cohi_team_close_all(coh_world *world)
{
    for (coh_team *team = world->teams; team; team = team->next) {
        team->open = false;
        cohi_team_release(team);
    }
}

void cohi_team_forget_all(coh_world *world)
{
    while (world->teams) {
        coh_team *next = world->teams->next;
        free(world->teams);
        world->teams = next;
    }
}

coh_status cohi_team_gate(const coh_team *team, const char *call)
{
    if (!team)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the team is NULL", call);
    coh_status status = cohi_world_enter(team->world, call);
    if (status == COH_OK && !team->open)
        return cohi_world_fail(team->world, call, COH_INVALID_ARGUMENT, "the team is destroyed");
    return status;
}
