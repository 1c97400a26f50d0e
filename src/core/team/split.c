/* split.c - making teams out of teams, and asking them who is in them. */
#include "core/team/agree.h"
#include "core/health/order.h"
#include "core/team/enter.h"
#include "core/team/rounds.h"
#include "core/world/world.h"

#include <stdlib.h>
#include <string.h>

/* ---- asking ---- */

static bool is_team(const coh_team *team)
{
    return team && team->open;
}

int coh_team_index(const coh_team *team)
{
    return is_team(team) ? team->index : -1;
}

int coh_team_size(const coh_team *team)
{
    return is_team(team) ? team->size : -1;
}

int coh_team_rank(const coh_team *team, int index)
{
    return is_team(team) && index >= 0 && index < team->size ? team->ranks[index] : -1;
}

int coh_team_translate(const coh_team *from, int index, const coh_team *to)
{
    int rank = coh_team_rank(from, index);
    return rank >= 0 && is_team(to) && to->world == from->world ? to->indices[rank] : -1;
}

static coh_team *predefined(coh_world *world, const char *call, coh_team *(*which)(coh_world *))
{
    return cohi_world_enter(world, call) == COH_OK ? which(world) : NULL;
}

static coh_team *team_of_world(coh_world *world)
{
    return world->team;
}

static coh_team *team_of_host(coh_world *world)
{
    return world->host_team;
}

coh_team *coh_team_world(coh_world *world)
{
    return predefined(world, "coh_team_world", team_of_world);
}

coh_team *coh_team_host(coh_world *world)
{
    return predefined(world, "coh_team_host", team_of_host);
}

/* ---- numbers ---- */

/* A later epoch, where epochs wrap. */
static uint32_t later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0 ? a : b;
}

/* For a team that starts at `start`. False: another thread has the number; or had it since it was
 * offered, and its team came to later epochs, whose marks the new one would take for its own. */
static bool claim_number(coh_world *world, int number, uint32_t start)
{
    uint64_t bit = UINT64_C(1) << number;
    pthread_mutex_lock(&world->team_lock);
    bool is_free = world->free_teams & bit && later(world->team_ends[number], start) == start;
    if (is_free)
        world->free_teams &= ~bit;
    pthread_mutex_unlock(&world->team_lock);
    return is_free;
}

static void release_number(coh_world *world, int number, uint32_t epoch)
{
    pthread_mutex_lock(&world->team_lock);
    world->free_teams |= UINT64_C(1) << number;
    world->team_epoch = later(world->team_epoch, epoch);
    world->team_ends[number] = later(world->team_ends[number], epoch);
    pthread_mutex_unlock(&world->team_lock);
}

static void write_offer(coh_world *world, cohi_record *record)
{
    pthread_mutex_lock(&world->team_lock);
    record->offer[0] = world->free_teams;
    record->offer[1] = world->team_epoch;
    pthread_mutex_unlock(&world->team_lock);
}

/* ---- making ---- */

/* A team about to be: `members` are indices in the parent, `count` 0 where this rank is in none. */
struct plan {
    int *members;
    int count;
    int number; /* free on all members; -1: none is */
    uint32_t start;
};

/* Every member finds the same number and epoch, since all have the same records. */
static void choose(const coh_team *parent, const cohi_record *mine, struct plan *plan)
{
    uint64_t common = UINT64_MAX;
    plan->start = COHI_EPOCH_START;
    for (int i = 0; i < plan->count; i++) {
        const cohi_record *record = cohi_agree_record(parent, mine, plan->members[i]);
        common &= record->offer[0];
        plan->start = later(plan->start, (uint32_t)record->offer[1]);
    }
    plan->number = common ? __builtin_ctzll(common) : -1;
}

static coh_status fail_number(const coh_world *world, const char *call)
{
    return cohi_world_fail(world, call, COH_LIMIT,
                           "no team can be made: a rank can be in %d at once", COHI_TEAMS);
}

static coh_status open_team(coh_team *parent, const char *call, const struct plan *plan,
                            coh_team **team)
{
    coh_world *world = parent->world;
    int *ranks = calloc((size_t)plan->count, sizeof *ranks);
    if (!ranks)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for a team of %d ranks",
                               plan->count);
    for (int i = 0; i < plan->count; i++)
        ranks[i] = parent->ranks[plan->members[i]];
    coh_status status = cohi_board_commit(world->board, world->rank, plan->number);
    if (status == COH_OK)
        status = cohi_team_open(world, plan->number, ranks, plan->count, plan->start, team);
    free(ranks);
    return status == COH_OK ? status : cohi_world_fail(world, call, status, "%s", coh_last_error());
}

static void withdraw(coh_team *team, const struct plan *plan, coh_world *world, bool claimed)
{
    if (team)
        team->open = false;
    if (claimed)
        release_number(world, plan->number, plan->start);
}

/* One attempt: COH_BUSY when another thread's split took the number on some member meanwhile. */
static coh_status attempt(const cohi_entry *entry, cohi_record *record, struct plan *plan,
                          coh_team **team)
{
    coh_team *parent = entry->team;
    coh_world *world = parent->world;
    bool claimed = false;
    coh_team *made = NULL;
    record->status = COH_OK;
    if (plan->count > 0) {
        choose(parent, record, plan);
        claimed = plan->number >= 0 && claim_number(world, plan->number, plan->start);
        if (plan->number < 0)
            record->status = (int32_t)fail_number(world, entry->call);
        else if (!claimed)
            record->status = COH_BUSY;
        else
            record->status = (int32_t)open_team(parent, entry->call, plan, &made);
    }
    coh_status status = cohi_agree(entry, record);
    if (status != COH_OK)
        withdraw(made, plan, world, claimed);
    else
        *team = made;
    return status;
}

/* The first agreement decides who is in the team; `pick` computes it. */
static coh_status make_team(const cohi_entry *entry, cohi_record *record,
                            coh_status (*pick)(const coh_team *parent, const char *call,
                                               const cohi_record *record, const void *arg,
                                               struct plan *plan),
                            const void *arg, coh_team **team)
{
    coh_team *parent = entry->team;
    struct plan plan = {.members = calloc((size_t)parent->size, sizeof *plan.members)};
    if (!plan.members)
        record->status =
            (int32_t)cohi_world_fail(parent->world, entry->call, COH_NO_MEMORY,
                                     "out of memory for a list of %d members", parent->size);
    coh_status status;
    do {
        write_offer(parent->world, record);
        status = cohi_agree(entry, record);
        if (status == COH_OK)
            status = pick(parent, entry->call, record, arg, &plan);
        if (status == COH_OK)
            status = attempt(entry, record, &plan, team);
        if (status == COH_BUSY)
            record->status = COH_OK; /* once more, with what is free now */
    } while (status == COH_BUSY);
    free(plan.members);
    return status;
}

static coh_status begin(const cohi_entry *entry, coh_team **team)
{
    coh_status status = cohi_team_gate(entry->team, entry->call);
    if (status == COH_OK && !team)
        status = cohi_world_fail(entry->team->world, entry->call, COH_INVALID_ARGUMENT,
                                 "the place for the team is NULL");
    return status == COH_OK ? cohi_team_enter_waiting(entry) : status;
}

/* ---- by stride ---- */

struct stride {
    int start, stride, size;
};

static coh_status pick_strided(const coh_team *parent, const char *call, const cohi_record *record,
                               const void *arg, struct plan *plan)
{
    (void)call;
    (void)record;
    const struct stride *by = arg;
    bool member = false;
    for (int i = 0; i < by->size; i++) {
        plan->members[i] = by->start + i * by->stride;
        member = member || plan->members[i] == parent->index;
    }
    plan->count = member ? by->size : 0;
    return COH_OK;
}

static coh_status check_stride(const coh_team *parent, const char *call, const struct stride *by)
{
    int64_t last = by->start + (int64_t)by->stride * ((int64_t)by->size - 1);
    if (by->size < 1 || by->size > parent->size)
        return cohi_world_fail(parent->world, call, COH_INVALID_ARGUMENT,
                               "a team cannot have %d members; the parent has %d", by->size,
                               parent->size);
    if (by->stride == 0 && by->size != 1)
        return cohi_world_fail(parent->world, call, COH_INVALID_ARGUMENT,
                               "a stride of 0 for %d members; it is allowed for one member only",
                               by->size);
    if (by->start < 0 || by->start >= parent->size || last < 0 || last >= parent->size)
        return cohi_world_fail(parent->world, call, COH_INVALID_ARGUMENT,
                               "members %d to %lld by %d leave the parent, which has 0 to %d",
                               by->start, (long long)last, by->stride, parent->size - 1);
    return COH_OK;
}

coh_status coh_team_split_strided(coh_team *parent, int start, int stride, int size,
                                  coh_team **team)
{
    static const char call[] = "coh_team_split_strided";
    struct stride by = {start, stride, size};
    cohi_entry entry = cohi_entry_of(parent, call, COHI_OP_SPLIT);
    coh_status status = begin(&entry, team);
    if (status != COH_OK)
        return status;
    cohi_record record = {.argument = {(uint64_t)start, (uint64_t)stride, (uint64_t)size}};
    record.status = (int32_t)check_stride(parent, call, &by);
    return cohi_team_leave(parent, make_team(&entry, &record, pick_strided, &by, team));
}

/* ---- from a list ---- */

struct list {
    const int *indices;
    int count;
};

static coh_status pick_list(const coh_team *parent, const char *call, const cohi_record *record,
                            const void *arg, struct plan *plan)
{
    (void)call;
    (void)record;
    const struct list *list = arg;
    bool member = false;
    for (int i = 0; i < list->count; i++) {
        plan->members[i] = list->indices[i];
        member = member || list->indices[i] == parent->index;
    }
    plan->count = member ? list->count : 0;
    return COH_OK;
}

static coh_status check_list(const coh_team *parent, const char *call, const struct list *list)
{
    const coh_world *world = parent->world;
    if (list->count < 1 || list->count > parent->size || !list->indices)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "a list cannot have %d entries; the parent has %d members",
                               list->count, parent->size);
    for (int i = 0; i < list->count; i++) {
        int index = list->indices[i];
        if (index < 0 || index >= parent->size)
            return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                   "entry %d is %d; the parent has 0 to %d", i, index,
                                   parent->size - 1);
        for (int j = 0; j < i; j++)
            if (list->indices[j] == index)
                return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                       "entries %d and %d are both %d", j, i, index);
    }
    return COH_OK;
}

static uint64_t hash_list(const struct list *list)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a over whole entries */
    for (int i = 0; i < list->count; i++)
        hash = (hash ^ (uint32_t)list->indices[i]) * UINT64_C(0x100000001b3);
    return hash;
}

coh_status coh_team_from_list(coh_team *parent, const int *indices, int count, coh_team **team)
{
    static const char call[] = "coh_team_from_list";
    struct list list = {indices, count};
    cohi_entry entry = cohi_entry_of(parent, call, COHI_OP_FROM_LIST);
    coh_status status = begin(&entry, team);
    if (status != COH_OK)
        return status;
    cohi_record record = {.argument = {(uint64_t)count}};
    record.status = (int32_t)check_list(parent, call, &list);
    if (record.status == COH_OK)
        record.argument[1] = hash_list(&list);
    return cohi_team_leave(parent, make_team(&entry, &record, pick_list, &list, team));
}

/* ---- by colour ---- */

static int color_of(const cohi_record *record)
{
    return (int)(int64_t)record->argument[0];
}

static int key_of(const cohi_record *record)
{
    return (int)(int64_t)record->argument[1];
}

/* Inserts by key; members come in order of index, so equal keys stay in that order. */
static void insert_by_key(const coh_team *parent, const cohi_record *record, struct plan *plan,
                          int index)
{
    int key = key_of(cohi_agree_record(parent, record, index));
    int at = plan->count++;
    for (; at > 0; at--) {
        int before = plan->members[at - 1];
        if (key_of(cohi_agree_record(parent, record, before)) <= key)
            break;
        plan->members[at] = before;
    }
    plan->members[at] = index;
}

static coh_status pick_colour(const coh_team *parent, const char *call, const cohi_record *record,
                              const void *arg, struct plan *plan)
{
    (void)call;
    (void)arg;
    plan->count = 0;
    for (int i = 0; i < parent->size && color_of(record) >= 0; i++)
        if (color_of(cohi_agree_record(parent, record, i)) == color_of(record))
            insert_by_key(parent, record, plan, i);
    return COH_OK;
}

/* Between begin and leave. `width` is that of two dimensions, the same on all members, or 0. */
static coh_status split_color(const cohi_entry *entry, int color, int key, int width,
                              coh_team **team)
{
    cohi_record record = {
        .argument = {(uint64_t)(int64_t)color, (uint64_t)(int64_t)key, (uint64_t)width}};
    return make_team(entry, &record, pick_colour, NULL, team);
}

coh_status coh_team_split_color(coh_team *parent, int color, int key, coh_team **team)
{
    static const char call[] = "coh_team_split_color";
    cohi_entry entry = cohi_entry_of(parent, call, COHI_OP_SPLIT_COLOR);
    coh_status status = begin(&entry, team);
    if (status != COH_OK)
        return status;
    return cohi_team_leave(parent, split_color(&entry, color, key, 0, team));
}

/* ---- ending ---- */

/* Between enter and leave of the team itself. */
static void retire(coh_team *team)
{
    team->open = false;
    release_number(team->world, team->number, team->epoch);
}

coh_status coh_team_destroy(coh_team *team)
{
    static const char call[] = "coh_team_destroy";
    if (!team)
        return COH_OK;
    coh_status status = cohi_team_gate(team, call);
    if (status == COH_OK && team->number < COHI_TEAM_FIRST_FREE)
        status = cohi_world_fail(team->world, call, COH_INVALID_ARGUMENT,
                                 "the team of %s is predefined and cannot be destroyed",
                                 team->number == COHI_TEAM_WORLD ? "the world" : "the host");
    cohi_entry entry = cohi_entry_of(team, call, COHI_OP_DESTROY);
    if (status == COH_OK)
        status = cohi_team_enter_waiting(&entry);
    if (status != COH_OK)
        return status;
    status = cohi_team_meet(&entry);
    if (status == COH_OK)
        retire(team);
    (void)cohi_team_leave(team, status);
    if (status == COH_OK)
        cohi_team_free_gear(team);
    return status;
}

/* ---- two dimensions ---- */

coh_status coh_team_split_2d(coh_team *parent, int width, coh_team **row, coh_team **column)
{
    static const char call[] = "coh_team_split_2d";
    cohi_entry entry = cohi_entry_of(parent, call, COHI_OP_SPLIT_COLOR);
    coh_status status = begin(&entry, row);
    if (status != COH_OK)
        return status;
    if (!column || width < 1)
        return cohi_team_leave(parent, cohi_world_fail(parent->world, call, COH_INVALID_ARGUMENT,
                                                       !column ? "the place for the column is NULL"
                                                               : "rows of %d members",
                                                       width));
    coh_team *across = NULL, *down = NULL;
    status = split_color(&entry, parent->index / width, parent->index, width, &across);
    if (status == COH_OK)
        status = split_color(&entry, parent->index % width, parent->index, width, &down);
    if (status != COH_OK && across)
        retire(across);
    if (status == COH_OK) {
        *row = across;
        *column = down;
    }
    return cohi_team_leave(parent, status);
}

/* ---- meeting ---- */

coh_status coh_team_sync(coh_team *team)
{
    static const char call[] = "coh_team_sync";
    cohi_entry entry = cohi_entry_of(team, call, COHI_OP_TEAM_SYNC);
    coh_status status = cohi_team_gate(team, call);
    if (status == COH_OK)
        status = cohi_team_enter_waiting(&entry);
    return status == COH_OK ? cohi_team_leave(team, cohi_team_line_up(&entry)) : status;
}

coh_status coh_team_barrier(coh_team *team)
{
    static const char call[] = "coh_team_barrier";
    cohi_entry entry = cohi_entry_of(team, call, COHI_OP_TEAM_BARRIER);
    coh_status status = cohi_team_gate(team, call);
    if (status == COH_OK)
        status = cohi_team_enter_waiting(&entry);
    if (status != COH_OK)
        return status;
    status = cohi_order_quiet(team->world, call, COHI_OP_TEAM_BARRIER);
    if (status == COH_OK)
        status = cohi_team_line_up(&entry);
    return cohi_team_leave(team, status);
}
