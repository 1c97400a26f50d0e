#include "core/team/rounds.h"

#include "core/team/apart.h"
#include "core/team/await.h"
#include "core/team/levels.h"
#include "core/team/posts.h"
#include "core/team/standing.h"

static coh_status tell(coh_team *team, int index, size_t parity, size_t round, uint64_t mark)
{
    cohi_meet *meet = team->meets[index];
    if (COHI_LIKELY(meet != NULL)) {
        atomic_store_explicit(&meet->flags[parity][round].mark, mark, memory_order_release);
        cohi_control_wake(team->world, team->slots[index]);
        return COH_OK;
    }
    size_t offset = cohi_slot_meet_offset(team->world->size, team->number)
                    + offsetof(cohi_meet, flags)
                    + (parity * COHI_ROUNDS + round) * sizeof(cohi_flag);
    return cohi_control_put(team->world, team->ranks[index], offset, &mark, sizeof mark);
}

static bool is_told(cohi_flag *flag, uint32_t epoch)
{
    return cohi_mark_is_of(atomic_load_explicit(&flag->mark, memory_order_acquire), epoch);
}

static bool has_told(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                     coh_status *status)
{
    (void)index;
    if (is_told((cohi_flag *)wanted, entry->team->epoch))
        return true;
    if (asleep)
        *status = cohi_team_compare(entry);
    return false;
}

static inline coh_status wait_for_flag(const cohi_entry *entry, int from, cohi_flag *flag)
{
    for (unsigned pauses = cohi_world_spins(entry->team->world);; pauses--) {
        if (is_told(flag, entry->team->epoch))
            return COH_OK;
        if (pauses == 0)
            return cohi_team_wait(entry, from, 1, has_told, flag);
        cohi_cpu_relax(); /* measured faster than a bare loop, also where two cores share silicon */
    }
}

/* ---- by levels ---- */

static uint64_t refused_mark(const cohi_entry *entry)
{
    return cohi_mark(entry->team->epoch, cohi_print(entry->op, COHI_PRINT_HASH));
}

/* One round of the leaders' dissemination. */
static coh_status meet_leaders(const cohi_entry *entry, size_t round, int to, int from,
                               bool *refused)
{
    coh_team *team = entry->team;
    size_t parity = team->epoch & 1;
    uint64_t mark = cohi_mark(team->epoch, entry->print);
    cohi_flag *flag = &team->mine->flags[parity][round];
    coh_status status = tell(team, to, parity, round, *refused ? refused_mark(entry) : mark);
    if (status == COH_PEER_LOST)
        return cohi_team_unreachable_error(team, entry->call, team->ranks[to]);
    if (status == COH_OK)
        status = wait_for_flag(entry, from, flag);
    if (status != COH_OK)
        return status;
    uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
    *refused = *refused || cohi_mark_refused(came);
    bool alike = came == mark || (*refused && cohi_mark_op(came) == entry->op);
    return alike ? COH_OK : cohi_apart_break(entry, from, came);
}

coh_status cohi_apart_meet(const cohi_entry *entry, bool *refused)
{
    const coh_team *team = entry->team;
    const cohi_levels *levels = team->levels;
    coh_status status = COH_OK;
    size_t round = 0;
    if (!cohi_levels_leads(team))
        return COH_OK;
    for (int far = 1; far < levels->hosts && status == COH_OK; far *= 2, round++) {
        int next = (levels->host + far) % levels->hosts;
        int before = (levels->host - far + levels->hosts) % levels->hosts;
        status = meet_leaders(entry, round, cohi_levels_leader(levels, next),
                              cohi_levels_leader(levels, before), refused);
    }
    return status;
}

/* Only leaders take part in rounds, so that the flags of the others are free for this. */
coh_status cohi_apart_release(const cohi_entry *entry, bool *refused)
{
    coh_team *team = entry->team;
    const coh_team *local = team->levels->local;
    size_t parity = team->epoch & 1;
    uint64_t mark = *refused ? refused_mark(entry) : cohi_mark(team->epoch, entry->print);
    cohi_flag *flag = &team->mine->flags[parity][0];
    if (local->index > 0) {
        coh_status status = wait_for_flag(entry, team->indices[local->ranks[0]], flag);
        uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
        *refused = status == COH_OK && cohi_mark_refused(came);
        return status;
    }
    for (int i = 1; i < local->size; i++)
        (void)tell(team, team->indices[local->ranks[i]], parity, 0, mark);
    return COH_OK;
}

static coh_status meet_by_levels(const cohi_entry *entry)
{
    bool refused = false;
    (void)cohi_team_post(entry);
    coh_status status = cohi_apart_gather(entry, &refused);
    if (status == COH_OK)
        status = cohi_apart_meet(entry, &refused);
    if (status == COH_OK)
        status = cohi_apart_release(entry, &refused);
    if (status == COH_OK)
        entry->team->settled = entry->team->epoch;
    return status;
}

/* ---- a meeting ---- */

coh_status cohi_team_meet(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    if (COHI_UNLIKELY(team->levels != NULL))
        return meet_by_levels(entry);
    uint64_t mark = cohi_team_post(entry);
    size_t parity = team->epoch & 1, round = 0;
    for (int distance = 1; distance < team->size; distance *= 2, round++) {
        int to = (team->index + distance) % team->size;
        int from = (team->index - distance + team->size) % team->size;
        cohi_flag *flag = &team->mine->flags[parity][round];
        coh_status status = tell(team, to, parity, round, mark);
        if (COHI_UNLIKELY(status == COH_PEER_LOST))
            return cohi_team_unreachable_error(team, entry->call, team->ranks[to]);
        if (status == COH_OK)
            status = wait_for_flag(entry, from, flag);
        if (COHI_UNLIKELY(status != COH_OK))
            return status;
        uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
        if (COHI_UNLIKELY(came != mark))
            return cohi_team_break(entry, from, came);
    }
    team->settled = team->epoch;
    return COH_OK;
}

/*
 * Whether members look at the posts of all others, instead of telling one another in rounds: one
 * wait instead of one a round, but more lines to fetch, and more sleepers to wake. Barriers one
 * after the other on 16 cores, ns in rounds (looking): 3 ranks 590 (470), 4 506 (444), 8 800 (590),
 * 16 1400 (1010). More ranks than cores, us: 4 on 2 cores 2.7 (2.2), 8 on 2 12 (6), 8 on 4 6.7
 * (3.7), 16 on 8 11 (5.1), 32 on 16 13 (9), 64 on 2 194 (135), 128 on 2 605 (650). Where they come
 * up to 6 ms apart and sleep, on 2 cores: as long, and with 8, 16 and 64 ranks 0.6, 0.65 and 1.0 of
 * the CPU time.
 */
static bool should_look_around(const coh_team *team)
{
    enum { MOST = 16, MOST_CROWDED = 64 };
    return team->mapped && team->size > 2
           && team->size <= (team->world->crowded ? MOST_CROWDED : MOST);
}

coh_status cohi_team_line_up(const cohi_entry *entry)
{
    bool looks = should_look_around(entry->team);
    return looks ? cohi_team_look_around(entry) : cohi_team_meet(entry);
}
