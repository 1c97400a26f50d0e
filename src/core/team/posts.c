#include "core/team/posts.h"

#include "core/team/apart.h"
#include "core/team/await.h"
#include "core/team/past.h"
#include "core/team/standing.h"
#include "core/team/terms.h"

/* ---- one member ---- */

/* Its mark is of this epoch and differs from this rank's: it was refused, or is in another call. */
static coh_status explain(const cohi_entry *entry, int index, uint64_t mark)
{
    const coh_team *team = entry->team;
    const cohi_terms *terms = cohi_meet_terms(team->meets[index], team->epoch);
    if (!cohi_mark_refused(mark) || cohi_mark_op(mark) != entry->op)
        return cohi_team_break(entry, index, mark);
    char what[128];
    cohi_terms_describe(terms->op, terms->argument, what, sizeof what);
    coh_status status = cohi_world_fail(team->world, entry->call, (coh_status)terms->status,
                                        "rank %d was refused in %s: %s", team->ranks[index], what,
                                        coh_status_text((coh_status)terms->status));
    return cohi_fail_peer(status, team->ranks[index]);
}

static bool has_posted(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                       coh_status *status)
{
    (void)wanted;
    uint32_t epoch = entry->team->epoch;
    uint64_t mark = cohi_meet_mark(entry->team->meets[index], epoch);
    if (mark == cohi_mark(epoch, entry->print))
        return true;
    if (cohi_mark_is_of(mark, epoch))
        *status = explain(entry, index, mark);
    else if (asleep)
        *status = cohi_team_compare(entry);
    return false;
}

/* ---- some of them ---- */

/* How many of `count` members from *index on have yet to post the mark by the time that this rank
 * would yield its core; *index is then the first of them. */
static inline int look_for_posts(const cohi_entry *entry, int *index, int count)
{
    const coh_team *team = entry->team;
    cohi_meet **meets = team->meets;
    uint32_t epoch = team->epoch;
    uint64_t mark = cohi_mark(epoch, entry->print);
    unsigned pauses = cohi_world_spins(team->world);
    while (count != 0) {
        if (cohi_meet_mark(meets[*index], epoch) == mark) {
            *index = cohi_team_next(team, *index);
            count--;
            continue;
        }
        if (pauses-- == 0)
            break;
        cohi_cpu_relax();
    }
    return count;
}

static inline coh_status settle_present(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    if (COHI_UNLIKELY(team->epoch - team->settled > 1))
        return cohi_team_compare_past(entry);
    team->settled = team->epoch;
    return COH_OK;
}

static __attribute__((noinline)) coh_status wait_for_all(const cohi_entry *entry, int index,
                                                         int count)
{
    coh_status status = cohi_team_wait(entry, index, count, has_posted, NULL);
    return status == COH_OK ? settle_present(entry) : status;
}

/* The next member first, so that not all look at the same one. */
static inline coh_status await_others(const cohi_entry *entry)
{
    const coh_team *team = entry->team;
    int index = cohi_team_next(team, team->index);
    int count = look_for_posts(entry, &index, team->size - 1);
    return COHI_LIKELY(count == 0) ? settle_present(entry) : wait_for_all(entry, index, count);
}

coh_status cohi_team_await_all(const cohi_entry *entry)
{
    return entry->team->size == 1 ? settle_present(entry) : await_others(entry);
}

coh_status cohi_team_look_around(const cohi_entry *entry)
{
    (void)cohi_team_post(entry);
    cohi_team_wake(entry->team);
    return await_others(entry);
}

/* Of two members the other one is all. */
coh_status cohi_team_await(const cohi_entry *entry, int index)
{
    const coh_team *team = entry->team;
    if (team->size == 2 && index != team->index)
        return cohi_team_await_all(entry);
    int count = look_for_posts(entry, &index, 1);
    return COHI_LIKELY(count == 0) ? COH_OK : cohi_team_wait(entry, index, count, has_posted, NULL);
}

/* ---- all of them, as far as can be seen ---- */

coh_status cohi_team_compare(const cohi_entry *entry)
{
    const coh_team *team = entry->team;
    if (team->whole)
        return cohi_apart_look(entry->team, entry->call);
    if (team->levels)
        return cohi_apart_compare(entry);
    uint64_t mine = cohi_team_own_mark(team, team->epoch);
    for (int i = 0; i < team->size; i++) {
        if (!team->meets[i])
            continue;
        uint64_t mark = cohi_meet_mark(team->meets[i], team->epoch);
        if (cohi_mark_is_of(mark, team->epoch) && mark != mine && cohi_mark_op(mark) != entry->op)
            return cohi_team_break(entry, i, mark);
    }
    return COH_OK;
}

uint32_t cohi_meet_arrived(cohi_meet *meet)
{
    uint32_t last = 0;
    for (uint32_t post = 0; post < COHI_POSTS; post++) {
        uint32_t epoch = cohi_mark_epoch(cohi_meet_mark(meet, post));
        if (post == 0 || (int32_t)(epoch - last) > 0)
            last = epoch;
    }
    return last;
}

int cohi_team_first_absent(const coh_team *team)
{
    for (int i = 0; i < team->size; i++) {
        if (i == team->index || !team->meets[i])
            continue;
        if ((int32_t)(cohi_meet_arrived(team->meets[i]) - team->epoch) < 0)
            return team->ranks[i];
    }
    return -1;
}
