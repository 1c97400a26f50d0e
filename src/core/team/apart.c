#include "core/team/apart.h"

#include "core/health/wait.h"
#include "core/team/agree.h"
#include "core/team/await.h"
#include "core/team/levels.h"
#include "core/team/posts.h"
#include "core/team/standing.h"
#include "core/team/terms.h"

#include <string.h>

/* ---- records ---- */

/* What this rank called in `epoch`, as its own post has it. */
static cohi_record own_record(const coh_team *team, uint32_t epoch)
{
    uint64_t mark = cohi_team_own_mark(team, epoch);
    const cohi_terms *terms = cohi_meet_terms(team->mine, epoch);
    cohi_record record = {.op = cohi_mark_op(mark), .epoch = epoch};
    if (!cohi_terms_on_data(record.op))
        return record;
    record.status = terms->status;
    memcpy(record.argument, terms->argument, sizeof record.argument);
    return record;
}

/* Operation and epoch are one word, which comes last, and after what an earlier call put there; a put
 * of more than a word may come in parts. */
static coh_status put_record(coh_team *team, int to, int of, const cohi_record *record)
{
    enum { HEAD = sizeof(uint64_t) };
    coh_world *world = team->world;
    size_t at = cohi_slot_record_offset(world->size, team->number, record->epoch, of);
    coh_status status = cohi_control_fence(world);
    if (status == COH_OK)
        status = cohi_control_put(world, team->ranks[to], at + HEAD, (const char *)record + HEAD,
                                  sizeof *record - HEAD);
    if (status == COH_OK)
        status = cohi_control_fence(world);
    return status == COH_OK ? cohi_control_put(world, team->ranks[to], at, record, HEAD) : status;
}

/* A refusal is told over what a hint of the same call has shown, from which it differs in one word:
 * whichever of the two is read is right. */
__attribute__((no_sanitize("thread"))) static void copy_record(const cohi_record *record,
                                                               cohi_record *copy)
{
    const volatile uint64_t *from = (const volatile void *)record;
    uint64_t words[sizeof *record / sizeof *from];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = from[i];
    memcpy(copy, words, sizeof words);
}

bool cohi_apart_read(const coh_team *team, int index, uint32_t epoch, cohi_record *copy)
{
    coh_world *world = team->world;
    const cohi_record *record =
        cohi_slot_record(world->slot, world->size, team->number, epoch, index);
    uint64_t word = __atomic_load_n((const uint64_t *)(const void *)record, __ATOMIC_ACQUIRE);
    cohi_record head;
    memcpy(&head, &word, sizeof word);
    if (head.op == COHI_OP_NONE || head.epoch != epoch)
        return false;
    copy_record(record, copy);
    return true;
}

/* Of a call that is not on data the operation says enough, and its record may be an agreement's. */
static void tell_call_of(coh_team *team, int index, const cohi_record *record)
{
    const int *host_of = team->levels->host_of; /* those of one host see each other's posts */
    for (int i = 0; i < team->size; i++)
        if (host_of[i] != host_of[index] && cohi_terms_on_data(record->op))
            (void)put_record(team, i, index, record);
}

/* What a member called in `epoch`, as far as this rank can see: its post, or what it has put here. */
static cohi_record record_of(const coh_team *team, int index, uint32_t epoch)
{
    cohi_record record = {.op = COHI_OP_NONE};
    cohi_meet *meet = team->meets[index];
    if (index == team->index)
        return own_record(team, epoch);
    if (!meet) {
        (void)cohi_apart_read(team, index, epoch, &record);
        return record;
    }
    uint64_t mark = cohi_meet_mark(meet, epoch);
    if (cohi_mark_epoch(mark) != epoch)
        return record;
    const cohi_terms *terms = cohi_meet_terms(meet, epoch);
    record = (cohi_record){.op = cohi_mark_op(mark), .epoch = epoch, .status = terms->status};
    memcpy(record.argument, terms->argument, sizeof record.argument);
    return record;
}

void cohi_apart_tell_calls(coh_team *team, int first, int second, uint32_t epoch)
{
    const cohi_record one = record_of(team, first, epoch), other = record_of(team, second, epoch);
    tell_call_of(team, first, &one);
    tell_call_of(team, second, &other);
}

/* ---- comparing ---- */

static bool is_refused(const cohi_record *record)
{
    return cohi_terms_on_data(record->op) && record->status != COH_OK;
}

/* Whether two members are in different calls of one epoch. What was refused cannot be compared. */
static bool marks_differ(uint64_t ours, uint64_t theirs)
{
    bool refused = cohi_mark_refused(ours) || cohi_mark_refused(theirs);
    return refused ? cohi_mark_op(ours) != cohi_mark_op(theirs) : ours != theirs;
}

static bool records_differ(const cohi_record *ours, const cohi_record *theirs)
{
    bool refused = is_refused(ours) || is_refused(theirs);
    return ours->op != theirs->op
           || (cohi_terms_on_data(ours->op) && !refused
               && memcmp(ours->argument, theirs->argument, sizeof ours->argument) != 0);
}

/*
 * A leader that sleeps, once a call. Not in the team's last one: the next leader may have left it by
 * the time that the word comes, and the number be that of another team with other members, whose
 * records it would destroy. Where the calls of leaders differ, some leader that is not in the last
 * call has one behind it that is, and that one is told. The fence is for the same reason: the next leader
 * leaves the last call when it has this one's flag, which must not overtake the word.
 */
static void hint_next(coh_team *team, const cohi_record *mine)
{
    const cohi_levels *levels = team->levels;
    if (!cohi_levels_leads(team) || team->hinted == team->epoch || mine->op == COHI_OP_DESTROY)
        return;
    team->hinted = team->epoch;
    int next = cohi_levels_leader(levels, (levels->host + 1) % levels->hosts);
    if (!team->meets[next] && put_record(team, next, team->index, mine) == COH_OK)
        (void)cohi_control_fence(team->world);
}

static coh_status compare_with(const cohi_entry *entry, int index, const cohi_record *mine)
{
    coh_team *team = entry->team;
    uint32_t epoch = team->epoch;
    if (team->meets[index]) {
        uint64_t mark = cohi_meet_mark(team->meets[index], epoch);
        bool here = cohi_mark_is_of(mark, epoch);
        return here && marks_differ(cohi_team_own_mark(team, epoch), mark)
                   ? cohi_team_break(entry, index, mark)
                   : COH_OK;
    }
    cohi_record record;
    if (!cohi_apart_read(team, index, epoch, &record) || !records_differ(mine, &record))
        return COH_OK;
    uint32_t print = cohi_terms_on_data(record.op) ? cohi_print(record.op, 0) : record.op;
    return cohi_team_break(entry, index, cohi_mark(epoch, print));
}

coh_status cohi_apart_compare(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    const cohi_record mine = own_record(team, team->epoch);
    coh_status status = COH_OK;
    hint_next(team, &mine);
    for (int i = 0; i < team->size && status == COH_OK; i++)
        if (i != team->index)
            status = compare_with(entry, i, &mine);
    return status;
}

static bool has_told_call(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                          coh_status *status)
{
    (void)wanted;
    cohi_record told;
    if (cohi_apart_read(entry->team, index, entry->team->epoch, &told))
        return true;
    if (asleep)
        *status = cohi_apart_compare(entry);
    return false;
}

/* The other one is in the meeting too, and comes to the same, or has told all meanwhile. */
coh_status cohi_apart_break(const cohi_entry *entry, int index, uint64_t mark)
{
    coh_team *team = entry->team;
    const cohi_record mine = own_record(team, team->epoch);
    bool data = cohi_terms_on_data(mine.op) || cohi_terms_on_data(cohi_mark_op(mark));
    if (!data || team->meets[index])
        return cohi_team_break(entry, index, mark);
    coh_status status = put_record(team, index, team->index, &mine);
    if (status == COH_OK)
        status = cohi_team_wait(entry, index, 1, has_told_call, NULL);
    return status == COH_OK ? cohi_team_break(entry, index, mark) : status;
}

/* ---- refusals ---- */

coh_status cohi_apart_tell_refusal(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    const cohi_record mine = own_record(team, team->epoch);
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++)
        if (!team->meets[i])
            status = put_record(team, i, team->index, &mine);
    if (status == COH_PEER_LOST)
        return cohi_team_standing(team, entry->call);
    return status == COH_OK ? cohi_agree_quiet(entry) : status;
}

/* What the member was refused in, or NULL. */
static bool find_refusal_of(const coh_team *team, int index, cohi_terms *refused)
{
    uint32_t epoch = team->epoch;
    if (team->meets[index]) {
        uint64_t mark = cohi_meet_mark(team->meets[index], epoch);
        *refused = *cohi_meet_terms(team->meets[index], epoch);
        return cohi_mark_epoch(mark) == epoch && cohi_mark_refused(mark);
    }
    cohi_record record;
    if (!cohi_apart_read(team, index, epoch, &record) || !is_refused(&record))
        return false;
    *refused = (cohi_terms){.op = record.op, .status = record.status};
    memcpy(refused->argument, record.argument, sizeof refused->argument);
    return true;
}

static int find_refusal(const coh_team *team, cohi_terms *refused)
{
    for (int i = 0; i < team->size; i++)
        if (i != team->index && find_refusal_of(team, i, refused))
            return i;
    return -1;
}

static coh_status fail_refused(const coh_team *team, const char *call, int index,
                               const cohi_terms *refused)
{
    char what[128];
    coh_status status = (coh_status)refused->status;
    cohi_terms_describe(refused->op, refused->argument, what, sizeof what);
    (void)cohi_world_fail(team->world, call, status, "rank %d was refused in %s: %s",
                          team->ranks[index], what, coh_status_text(status));
    return cohi_fail_peer(status, team->ranks[index]);
}

static bool has_told_refusal(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                             coh_status *status)
{
    (void)index;
    (void)wanted;
    (void)asleep;
    (void)status;
    cohi_terms refused;
    return find_refusal(entry->team, &refused) >= 0;
}

coh_status cohi_apart_explain_refusal(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    cohi_terms refused;
    coh_status status = cohi_team_wait(entry, team->index, 1, has_told_refusal, NULL);
    int index = status == COH_OK ? find_refusal(team, &refused) : -1;
    return index >= 0 ? fail_refused(team, entry->call, index, &refused) : status;
}

coh_status cohi_apart_look(coh_team *team, const char *call)
{
    team = team->whole ? team->whole : team;
    if (!team->levels)
        return COH_OK;
    cohi_entry entry =
        cohi_entry_of(team, call, cohi_mark_op(cohi_team_own_mark(team, team->epoch)));
    cohi_terms refused;
    coh_status status = cohi_apart_compare(&entry);
    if (status != COH_OK)
        return status;
    int index = find_refusal(team, &refused);
    if (index < 0)
        return COH_OK;
    team->heard = team->epoch;
    return fail_refused(team, call, index, &refused);
}

/* ---- the members of this host ---- */

/* Whether the leader of this host has let this member go, which is not the leader: then all were seen to
 * come. The team may have ended for some of them, and their posts be those of a later team. */
static bool is_released(const coh_team *team)
{
    cohi_flag *flag = &team->mine->flags[team->epoch & 1][0];
    uint64_t mark = atomic_load_explicit(&flag->mark, memory_order_acquire);
    return !cohi_levels_leads(team) && cohi_mark_is_of(mark, team->epoch);
}

/* The entry's team is the local level; what is looked at are the posts of the whole team. */
static bool has_come(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                     coh_status *status)
{
    (void)wanted;
    coh_team *team = entry->team->whole;
    int member = team->indices[entry->team->ranks[index]];
    uint64_t mark = cohi_meet_mark(team->meets[member], team->epoch);
    const cohi_entry whole = {team, entry->call, entry->op, entry->print};
    bool here = cohi_mark_is_of(mark, team->epoch);
    if (!here && is_released(team))
        return true;
    if (here && marks_differ(cohi_team_own_mark(team, team->epoch), mark))
        *status = cohi_team_break(&whole, member, mark);
    else if (!here && asleep)
        *status = cohi_apart_compare(&whole);
    return here && *status == COH_OK;
}

/* Whether a member of this host was refused in the present call. */
static bool some_refused(const coh_team *team)
{
    const coh_team *local = team->levels->local;
    bool refused = false;
    for (int i = 0; i < local->size; i++) {
        int member = team->indices[local->ranks[i]];
        refused |= member != team->index
                   && cohi_mark_refused(cohi_meet_mark(team->meets[member], team->epoch));
    }
    return refused;
}

coh_status cohi_apart_gather(const cohi_entry *entry, bool *refused)
{
    coh_team *team = entry->team, *local = team->levels->local;
    const cohi_entry here = {local, entry->call, entry->op, entry->print};
    coh_status status = COH_OK;
    cohi_team_wake(local);
    unsigned pauses = cohi_world_spins(team->world);
    int come = 0;
    while (come < local->size && status == COH_OK && pauses > 0) {
        if (has_come(&here, come, NULL, false, &status)) {
            come++;
            continue;
        }
        cohi_cpu_relax();
        pauses--;
    }
    if (status == COH_OK && come < local->size)
        status = cohi_team_wait(&here, come, local->size - come, has_come, NULL);
    *refused = status == COH_OK && some_refused(team);
    return status;
}
