#include "core/team/levels.h"

#include "core/team/mark.h"
#include "core/world/world.h"

#include <stdlib.h>

/* ---- who is on which host ---- */

/* On one host members that are not mapped have an engine that maps nobody. */
static bool on_one_host(const coh_team *team, int a, int b)
{
    const coh_world *world = team->world;
    int one = team->ranks[a], other = team->ranks[b];
    return a == b || (world->hosts > 1 && world->host_of[one] == world->host_of[other]);
}

static void number_hosts(const coh_team *team, cohi_levels *levels)
{
    for (int i = 0; i < team->size; i++) {
        int first = 0;
        while (!on_one_host(team, first, i))
            first++;
        levels->host_of[i] = first == i ? levels->hosts++ : levels->host_of[first];
    }
    levels->host = levels->host_of[team->index];
}

static void order_members(const coh_team *team, cohi_levels *levels)
{
    int at = 0;
    for (int host = 0; host < levels->hosts; host++) {
        levels->first[host] = at;
        for (int i = 0; i < team->size; i++)
            if (levels->host_of[i] == host)
                levels->order[at++] = i;
    }
    levels->first[levels->hosts] = at;
}

int cohi_levels_narrowest(const cohi_levels *levels)
{
    int least = cohi_levels_size(levels, 0);
    for (int host = 1; host < levels->hosts; host++) {
        int size = cohi_levels_size(levels, host);
        least = size < least ? size : least;
    }
    return least;
}

bool cohi_levels_are_runs(const coh_team *team)
{
    bool runs = true;
    for (int i = 0; i < team->size; i++)
        runs = runs && team->levels->order[i] == i;
    return runs;
}

/* ---- what a wait on a level asks ---- */

static coh_team *whole_of(const cohi_party *party)
{
    return ((coh_team *)party)->whole; /* its first member */
}

static coh_status standing(cohi_party *party, const char *call)
{
    cohi_party *whole = &whole_of(party)->party;
    return whole->standing(whole, call);
}

static coh_status unreachable(cohi_party *party, const char *call, int rank)
{
    cohi_party *whole = &whole_of(party)->party;
    return whole->unreachable(whole, call, rank);
}

static int nobody_seen(const cohi_party *party)
{
    (void)party;
    return -1;
}

/* ---- the levels as teams ---- */

static coh_team *make_level(coh_team *whole, int size, bool mapped)
{
    coh_team *level = cohi_team_allocate(size, whole->world->size);
    if (!level)
        return NULL;
    level->party = whole->party;
    level->party.standing = standing;
    level->party.unreachable = unreachable;
    level->world = whole->world;
    level->number = whole->number;
    level->size = size;
    level->start = level->epoch = level->settled = whole->start;
    level->mapped = mapped;
    level->open = true;
    level->whole = whole;
    return level;
}

static cohi_meet *level_meet(const coh_team *whole, cohi_slot *slot)
{
    return &cohi_slot_staging(slot, whole->world->size, whole->number)->level;
}

/* What an earlier team of the same number left there has earlier epochs. */
static void clear_area(coh_team *local)
{
    atomic_store(&local->mine->ready.value, 0);
    atomic_store(&local->mine->done.value, 0);
    for (uint32_t post = 0; post < COHI_POSTS; post++)
        atomic_store(&local->mine->posts[post].mark, cohi_mark(local->start, COHI_OP_NONE));
}

static coh_team *make_local(coh_team *whole, const cohi_levels *levels)
{
    int size = cohi_levels_size(levels, levels->host);
    coh_team *local = make_level(whole, size, true);
    for (int i = 0; local && i < size; i++) {
        int member = cohi_levels_member(levels, levels->host, i), rank = whole->ranks[member];
        local->ranks[i] = rank;
        local->indices[rank] = i;
        local->slots[i] = whole->slots[member];
        local->meets[i] = level_meet(whole, local->slots[i]);
    }
    if (!local)
        return NULL;
    local->index = local->indices[whole->world->rank];
    local->mine = local->meets[local->index];
    clear_area(local);
    return local;
}

static coh_team *make_bridge(coh_team *whole, const cohi_levels *levels)
{
    coh_team *bridge = make_level(whole, levels->hosts, false);
    if (!bridge)
        return NULL;
    bridge->party.first_absent = nobody_seen;
    bridge->index = levels->host;
    return bridge;
}

static void free_level(coh_team *level)
{
    if (level)
        cohi_team_release(level);
    free(level);
}

void cohi_levels_free(coh_team *team)
{
    cohi_levels *levels = team->levels;
    team->levels = NULL;
    if (!levels)
        return;
    free_level(levels->local);
    free_level(levels->bridge);
    free(levels->host_of);
    free(levels->order);
    free(levels->first);
    free(levels->scratch);
    free(levels);
}

static coh_status fail_memory(const coh_team *team)
{
    return cohi_fail(COH_NO_MEMORY, "out of memory for the levels of a team of %d ranks",
                     team->size);
}

coh_status cohi_levels_make(coh_team *team)
{
    size_t size = (size_t)team->size;
    coh_world *world = team->world;
    coh_status status = cohi_board_commit_level(world->board, world->rank, team->number);
    if (status != COH_OK)
        return status;
    cohi_levels *levels = team->levels = calloc(1, sizeof *levels);
    if (!levels)
        return fail_memory(team);
    levels->host_of = calloc(size, sizeof *levels->host_of);
    levels->order = calloc(size, sizeof *levels->order);
    levels->first = calloc(size + 1, sizeof *levels->first);
    levels->scratch = calloc(4 * size, sizeof *levels->scratch);
    if (levels->host_of && levels->order && levels->first && levels->scratch) {
        number_hosts(team, levels);
        order_members(team, levels);
        levels->local = make_local(team, levels);
        levels->bridge = make_bridge(team, levels);
    }
    if (levels->local && levels->bridge)
        return COH_OK;
    cohi_levels_free(team);
    return fail_memory(team);
}

/* ---- for one call ---- */

void cohi_levels_begin(coh_team *team, uint32_t epoch)
{
    coh_team *local = team->levels->local, *bridge = team->levels->bridge;
    local->epoch = local->settled = local->now = epoch;
    bridge->epoch = bridge->settled = bridge->now = team->epoch;
}

void cohi_levels_bridge(coh_team *team, int at, int root)
{
    const cohi_levels *levels = team->levels;
    coh_team *bridge = levels->bridge;
    for (int host = 0; host < levels->hosts; host++)
        bridge->indices[bridge->ranks[host]] = -1;
    for (int host = 0; host < levels->hosts; host++) {
        bool roots = root >= 0 && levels->host_of[root] == host;
        int rank = team->ranks[roots ? root : cohi_levels_member(levels, host, at)];
        bridge->ranks[host] = rank;
        bridge->indices[rank] = host;
    }
}
