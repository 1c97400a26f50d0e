#include "core/team/past.h"

#include "core/team/await.h"
#include "core/team/posts.h"
#include "core/team/standing.h"

/* ---- comparing ---- */

/* Whether the member was in the same call as this rank in `epoch`, which both have entered; or the
 * call of one of them was refused. */
static bool agrees(uint64_t ours, uint64_t theirs, uint32_t epoch)
{
    bool refused = cohi_mark_refused(ours) || cohi_mark_refused(theirs);
    bool gone = cohi_mark_epoch(theirs) != epoch; /* it is far ahead, and has compared itself */
    return gone || theirs == ours || (refused && cohi_mark_op(theirs) == cohi_mark_op(ours));
}

static coh_status compare_with(coh_team *team, const char *call, int index)
{
    cohi_meet *meet = team->meets[index];
    for (uint32_t epoch = team->settled + 1; epoch != team->epoch + 1; epoch++) {
        uint64_t ours = cohi_team_own_mark(team, epoch);
        uint64_t theirs = cohi_meet_mark(meet, epoch);
        if (agrees(ours, theirs, epoch))
            continue;
        cohi_entry past = cohi_entry_of(team, call, cohi_mark_op(ours));
        return cohi_team_break(&past, index, theirs);
    }
    return COH_OK;
}

coh_status cohi_team_compare_past(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++)
        status = compare_with(team, entry->call, i);
    if (status == COH_OK)
        team->settled = team->epoch;
    return status;
}

/* ---- before the next call ---- */

static bool is_here(const coh_team *team, int index)
{
    return (int32_t)(cohi_meet_arrived(team->meets[index]) - team->epoch) >= 0;
}

static bool has_arrived(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                        coh_status *status)
{
    (void)wanted;
    (void)asleep;
    (void)status;
    return is_here(entry->team, index);
}

/* Compares with each as it comes: a member in another call may keep the next from coming. */
coh_status cohi_team_settle(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++) {
        if (!is_here(team, i))
            status = cohi_team_wait(entry, i, 1, has_arrived, NULL);
        if (status == COH_OK)
            status = compare_with(team, entry->call, i);
    }
    if (status == COH_OK)
        team->settled = team->epoch;
    return status;
}

/* ---- looking back ---- */

static bool made_alike(const coh_team *team, int index, uint32_t last)
{
    bool alike = true;
    for (uint32_t epoch = team->settled + 1; epoch != last + 1; epoch++)
        alike &= cohi_meet_mark(team->meets[index], epoch) == cohi_team_own_mark(team, epoch);
    return alike;
}

/* Every second time, so that the lines of two calls come at once. */
void cohi_team_look_back(coh_team *team)
{
    uint32_t last = team->epoch - 1;
    bool alike = last - team->settled >= COHI_POSTS - 2;
    for (int i = 0; i < team->size && alike; i++)
        alike = made_alike(team, i, last);
    if (alike)
        team->settled = last;
}

/* ---- the end of the world ---- */

/* The mark that a member posted in `epoch`; finalize's where it made fewer calls. */
static uint64_t last_mark(cohi_meet *meet, uint32_t epoch)
{
    uint64_t mark = cohi_meet_mark(meet, epoch);
    return cohi_mark_epoch(mark) == epoch ? mark : cohi_mark(epoch, COHI_OP_FINALIZE);
}

static coh_status conclude_with(coh_team *team, const char *call, int index)
{
    coh_status status = compare_with(team, call, index);
    int32_t ahead = (int32_t)(cohi_meet_arrived(team->meets[index]) - team->epoch);
    if (status != COH_OK || ahead == 0)
        return status;
    uint32_t epoch = team->epoch + 1 + (uint32_t)(ahead < 0 ? ahead : 0); /* one of them made it */
    cohi_entry last = cohi_entry_of(team, call, cohi_mark_op(last_mark(team->mine, epoch)));
    return cohi_team_break(&last, index, last_mark(team->meets[index], epoch));
}

/* Members that are not mapped have compared all their calls in meetings. */
static coh_status conclude(coh_team *team, const char *call)
{
    team->now = team->epoch + 1;
    coh_status status = cohi_team_standing(team, call);
    for (int i = 0; i < team->size && status == COH_OK; i++)
        if (i != team->index && team->meets[i])
            status = conclude_with(team, call, i);
    return status;
}

coh_status cohi_team_conclude_all(coh_world *world, const char *call)
{
    coh_status status = COH_OK;
    for (coh_team *team = world->teams; team && status == COH_OK; team = team->next)
        if (team->open && !team->told && team != world->team)
            status = conclude(team, call);
    return status;
}
