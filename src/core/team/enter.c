#include "core/team/enter.h"

#include "core/health/order.h"
#include "core/health/wait.h"
#include "core/team/past.h"
#include "core/team/standing.h"
#include "core/world/fault.h"

static void publish(const coh_team *team, cohi_opcode op)
{
    cohi_slot *slot = team->world->slot;
    atomic_store_explicit(&slot->team, team->number, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, cohi_team_sequence(team, team->epoch + 1),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->op, op, memory_order_relaxed);
}

coh_status cohi_team_refuse_driven(const coh_world *world, const char *call)
{
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "this world is driven in turn with the %d others of its process by a "
                           "single thread (options.driven), so nobody could arrive",
                           world->size - 1);
}

static coh_status refuse_busy(const cohi_entry *entry)
{
    const coh_world *world = entry->team->world;
    return cohi_world_fail(world, entry->call, COH_BUSY,
                           "another thread of this rank is in a collective (%s) of the same team",
                           cohi_opcode_name(atomic_load(&world->slot->op)));
}

_Thread_local bool cohi_team_worker;

static bool is_drained(const coh_team *team)
{
    return atomic_load_explicit(&((coh_team *)team)->queued, memory_order_acquire) == 0;
}

static coh_status drain(const cohi_entry *entry)
{
    coh_world *world = entry->team->world;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, entry->call, entry->op, NULL, world->rank);
    while (!is_drained(entry->team) && status == COH_OK)
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

coh_status cohi_team_drain_all(coh_world *world, const char *call, cohi_opcode op)
{
    coh_status status = COH_OK;
    for (coh_team *team = world->teams; team; team = team->next) {
        cohi_entry entry = cohi_entry_of(team, call, op);
        coh_status drained = drain(&entry);
        status = status == COH_OK ? drained : status;
    }
    return status;
}

static inline bool take_turn(coh_team *team)
{
    return !atomic_exchange_explicit(&team->busy, 1, memory_order_acquire);
}

/* A started call that comes while another thread is in one is the next after it. */
static coh_status await_turn(const cohi_entry *entry)
{
    coh_world *world = entry->team->world;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, entry->call, entry->op, NULL, world->rank);
    while (status == COH_OK && !take_turn(entry->team))
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

/* A meeting of members that are not mapped compares by itself. It did not come to that: a word to
 * one of them could not be sent, and what it waits for will not come. */
static coh_status refuse_out_of_step(const cohi_entry *entry)
{
    const coh_team *team = entry->team;
    return cohi_world_fail(team->world, entry->call, COH_TRANSPORT,
                           "collective #%llu of this team failed on this rank, which is out of "
                           "step with the others since",
                           (unsigned long long)cohi_team_sequence(team, team->epoch));
}

/* The turn is held. */
static __attribute__((noinline)) coh_status enter_checked(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    coh_status status = cohi_fault_strike(team->world->fault, entry->op);
    if (status == COH_OK)
        status = cohi_team_standing(team, entry->call);
    if (status == COH_OK && !cohi_team_is_settled(team, entry->op))
        status = team->mapped ? cohi_team_settle(entry) : refuse_out_of_step(entry);
    return status == COH_OK ? status : cohi_team_leave(team, status);
}

static inline coh_status begin_call(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    team->now = team->epoch + 1;
    publish(team, entry->op);
    if (COHI_LIKELY(cohi_world_plain(team->world) && cohi_team_is_settled(team, entry->op)))
        return COH_OK;
    return enter_checked(entry);
}

/* Started calls come first, and another thread may be in one. */
static __attribute__((noinline)) coh_status enter_in_turn(const cohi_entry *entry)
{
    coh_status status = is_drained(entry->team) || cohi_team_worker ? COH_OK : drain(entry);
    if (status != COH_OK)
        return status;
    if (!take_turn(entry->team)) {
        status = cohi_team_worker ? await_turn(entry) : refuse_busy(entry);
        if (status != COH_OK)
            return status;
    }
    return begin_call(entry);
}

coh_status cohi_team_enter(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    if (COHI_UNLIKELY(!is_drained(team) || !take_turn(team)))
        return enter_in_turn(entry);
    return begin_call(entry);
}

coh_status cohi_team_enter_waiting(const cohi_entry *entry)
{
    const coh_team *team = entry->team;
    if (COHI_UNLIKELY(team->world->driven && team->size > 1))
        return cohi_team_refuse_driven(team->world, entry->call);
    return cohi_team_enter(entry);
}

/* Which call it was. */
static __attribute__((noinline)) coh_status tell_call(const coh_team *team, coh_status status)
{
    const coh_world *world = team->world;
    char text[128];
    cohi_team_describe_call(team, world->rank, team->now, atomic_load(&world->slot->op), text,
                            sizeof text);
    return cohi_fail_add(status, "it was call #%llu of %s, %s",
                         (unsigned long long)atomic_load(&world->slot->sequence),
                         team->number == COHI_TEAM_WORLD ? "the world" : "its team", text);
}

coh_status cohi_team_leave(coh_team *team, coh_status status)
{
    if (COHI_UNLIKELY(status != COH_OK))
        status = tell_call(team, status);
    cohi_order_met(team->world, team);
    atomic_store_explicit(&team->world->slot->op, COHI_OP_NONE, memory_order_relaxed);
    atomic_store_explicit(&team->busy, 0, memory_order_release);
    return status;
}
