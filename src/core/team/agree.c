#include "core/team/agree.h"

#include "core/health/control.h"
#include "core/health/order.h"
#include "core/team/apart.h"
#include "core/team/await.h"
#include "core/team/levels.h"
#include "core/team/posts.h"
#include "core/team/rounds.h"
#include "core/team/standing.h"
#include "core/team/terms.h"
#include "core/health/wait.h"

#include <stdio.h>
#include <string.h>

/* Whether the operation failed for a rank that the team does not have. */
static bool is_of_another(const coh_team *team, const cohi_op *op)
{
    bool known = op->rank >= 0 && op->rank < team->world->size;
    return op->status == COH_PEER_LOST && known && team->indices[op->rank] < 0;
}

/* Bytes of a record. */
typedef struct cohi_part_range {
    size_t from, to;
} cohi_part_range;

static const cohi_part_range whole_record = {0, sizeof(cohi_record)};
static const cohi_part_range record_head = {0, sizeof(uint64_t)}; /* operation and epoch */
static const cohi_part_range record_body = {sizeof(uint64_t), sizeof(cohi_record)};

/* What was written before to a rank outside the team, and did not reach it, is not this call's. */
coh_status cohi_agree_quiet(const cohi_entry *entry)
{
    coh_world *world = entry->team->world;
    if (!world->remote || !world->engine->rma)
        return COH_OK;
    cohi_op done = COHI_NEW_OP;
    coh_status status = world->engine->rma->quiet(world->endpoint, COHI_CONTEXT_CONTROL, &done);
    if (status == COH_OK)
        status = cohi_wait_op(world, entry->call, entry->op, -1, &done);
    return is_of_another(entry->team, &done) ? COH_OK : status;
}

/* Bytes `from` up to `to` of the record of member `of`, to member `i`. */
static coh_status put_part(const cohi_entry *entry, const cohi_record *record, int of, int i,
                           cohi_part_range part)
{
    coh_team *team = entry->team;
    coh_world *world = team->world;
    size_t offset = cohi_slot_record_offset(world->size, team->number, record->epoch, of);
    coh_status status = cohi_control_put(world, team->ranks[i], offset + part.from,
                                         (const char *)record + part.from, part.to - part.from);
    return status == COH_PEER_LOST ? cohi_team_unreachable_error(team, entry->call, team->ranks[i])
                                   : status;
}

static coh_status send_records(const cohi_entry *entry, const cohi_record *mine)
{
    const coh_team *team = entry->team;
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++)
        status = put_part(entry, mine, team->index, i, whole_record);
    return status == COH_OK ? cohi_agree_quiet(entry) : status;
}

const cohi_record *cohi_agree_record(const coh_team *team, const cohi_record *mine, int index)
{
    coh_world *world = team->world;
    return cohi_slot_record(world->slot, world->size, team->number, mine->epoch, index);
}

/* Operation and epoch are one word, which comes last. A slot that was never written has no
 * operation, and looks like epoch 0 otherwise. */
static bool has_record(const cohi_entry *entry, int index, const void *mine, bool asleep,
                       coh_status *status)
{
    (void)asleep;
    (void)status;
    const cohi_record *record = cohi_agree_record(entry->team, mine, index);
    uint64_t word = __atomic_load_n((const uint64_t *)(const void *)record, __ATOMIC_ACQUIRE);
    cohi_record head;
    memcpy(&head, &word, sizeof word);
    return head.op != COHI_OP_NONE && head.epoch == ((const cohi_record *)mine)->epoch;
}

/* After the meeting the records are there, except that a channel may still be carrying some. */
static coh_status await_records(const cohi_entry *entry, const cohi_record *mine)
{
    return cohi_team_wait(entry, 0, entry->team->size, has_record, mine);
}

static void describe(const cohi_record *record, char *text, size_t room)
{
    cohi_terms_describe(record->op, record->argument, text, room);
    size_t used = strlen(text);
    if (record->heap > 0)
        snprintf(text + used, room - used, " of heap %u", record->heap);
}

/* Calls whose first two arguments are the caller's, and the others where the block came to lie. */
static bool is_placing(const cohi_record *record)
{
    return record->op == COHI_OP_MALLOC || record->op == COHI_OP_CALLOC
           || record->op == COHI_OP_ALIGN || record->op == COHI_OP_REALLOC
           || record->op == COHI_OP_REGISTER;
}

/* The colour and the key, the first two arguments of that call, are each member's own. A block that
 * was not placed lies nowhere. */
static bool same_call(const cohi_record *a, const cohi_record *b)
{
    bool failed = a->status != COH_OK || b->status != COH_OK;
    size_t first = a->op == COHI_OP_SPLIT_COLOR ? 2 : 0;
    size_t end = failed && is_placing(a) ? 2 : sizeof a->argument / sizeof *a->argument;
    return a->op == b->op && a->heap == b->heap
           && memcmp(a->argument + first, b->argument + first, (end - first) * sizeof *a->argument)
                  == 0;
}

/* What was refused cannot be compared, and its refusal says more. */
static bool is_refused(const cohi_record *record)
{
    return cohi_terms_on_data(record->op) && record->status != COH_OK;
}

/* Every member looks at the same records in the same order, so all come to the same answer. */
static coh_status compare(const cohi_entry *entry, const cohi_record *mine)
{
    const coh_team *team = entry->team;
    const cohi_record *first = cohi_agree_record(team, mine, 0);
    for (int i = 1; i < team->size; i++) {
        const cohi_record *other = cohi_agree_record(team, mine, i);
        bool refused = first->op == other->op && (is_refused(first) || is_refused(other));
        if (refused || same_call(first, other))
            continue;
        char ours[128], theirs[128];
        describe(first, ours, sizeof ours);
        describe(other, theirs, sizeof theirs);
        (void)cohi_world_fail(team->world, entry->call, COH_MISMATCH,
                              "rank %d called %s, rank %d called %s", team->ranks[0], ours,
                              team->ranks[i], theirs);
        return cohi_fail_peer(COH_MISMATCH, team->ranks[i == team->index ? 0 : i]);
    }
    return COH_OK;
}

static coh_status first_failure(const cohi_entry *entry, const cohi_record *mine)
{
    const coh_team *team = entry->team;
    for (int i = 0; i < team->size; i++) {
        coh_status status = (coh_status)cohi_agree_record(team, mine, i)->status;
        if (status == COH_OK)
            continue;
        if (i == team->index)
            return status; /* its error message is set */
        char what[128];
        describe(cohi_agree_record(team, mine, i), what, sizeof what);
        (void)cohi_world_fail(team->world, entry->call, status, "rank %d failed in %s: %s",
                              team->ranks[i], what, coh_status_text(status));
        return cohi_fail_peer(status, team->ranks[i]);
    }
    return COH_OK;
}

/* What stands against the team says more than the operation that it made fail. */
static coh_status explain(const cohi_entry *entry, coh_status status)
{
    cohi_error kept;
    cohi_error_keep(&kept);
    coh_status standing = cohi_team_standing(entry->team, entry->call);
    if (standing != COH_OK)
        return standing;
    (void)cohi_fail_again(&kept);
    return status;
}

static coh_status meet(const cohi_entry *entry, const cohi_record *mine)
{
    coh_status status = send_records(entry, mine);
    return status == COH_OK ? cohi_team_meet(entry) : status;
}

/* ---- by levels: the leaders exchange the records of their hosts ---- */

/* To the members of this host: all have left the call whose place it takes, as this one left a later
 * one, which those of a host enter together (apart.h). */
static coh_status show_here(const cohi_entry *entry, const cohi_record *record, int of)
{
    const coh_team *team = entry->team, *local = team->levels->local;
    coh_status status = COH_OK;
    for (int i = 0; i < local->size && status == COH_OK; i++)
        status = put_part(entry, record, of, team->indices[local->ranks[i]], whole_record);
    return status;
}

/* A part of each record of this host, to the leaders of all others. */
static coh_status send_host(const cohi_entry *entry, const cohi_record *mine, cohi_part_range part)
{
    const cohi_levels *levels = entry->team->levels;
    coh_status status = COH_OK;
    for (int host = 0; host < levels->hosts; host++)
        for (int at = 0; host != levels->host && at < levels->local->size; at++) {
            int of = cohi_levels_member(levels, levels->host, at);
            const cohi_record *record = cohi_agree_record(entry->team, mine, of);
            if (status == COH_OK)
                status = put_part(entry, record, of, cohi_levels_leader(levels, host), part);
        }
    return status == COH_OK ? cohi_control_fence(entry->team->world) : status;
}

/* A leader that sleeps looks at records before the meeting, and a put of more than a word may come in
 * parts: so the word with operation and epoch goes last. The first fence is for what an earlier call
 * may have put there. */
static coh_status send_to_leaders(const cohi_entry *entry, const cohi_record *mine)
{
    coh_status status = cohi_control_fence(entry->team->world);
    if (status == COH_OK)
        status = send_host(entry, mine, record_body);
    if (status == COH_OK)
        status = send_host(entry, mine, record_head);
    return status == COH_OK ? cohi_agree_quiet(entry) : status;
}

/* What came from the other hosts. */
static coh_status hand_on(const cohi_entry *entry, const cohi_record *mine)
{
    const coh_team *team = entry->team;
    coh_status status = await_records(entry, mine);
    for (int i = 0; i < team->size && status == COH_OK; i++)
        if (!team->meets[i])
            status = show_here(entry, cohi_agree_record(team, mine, i), i);
    return status;
}

static coh_status meet_apart(const cohi_entry *entry, const cohi_record *mine)
{
    bool refused = false, leads = cohi_levels_leads(entry->team);
    coh_status status = show_here(entry, mine, entry->team->index);
    (void)cohi_team_post(entry);
    if (status == COH_OK)
        status = cohi_apart_gather(entry, &refused);
    if (status == COH_OK && leads)
        status = send_to_leaders(entry, mine);
    if (status == COH_OK)
        status = cohi_apart_meet(entry, &refused);
    if (status == COH_OK && leads)
        status = hand_on(entry, mine);
    if (status == COH_OK)
        status = cohi_apart_release(entry, &refused);
    if (status == COH_OK)
        entry->team->settled = entry->team->epoch;
    return status;
}

coh_status cohi_agree(const cohi_entry *entry, cohi_record *mine)
{
    coh_team *team = entry->team;
    mine->op = entry->op;
    mine->epoch = team->epoch + 1;
    team->hinted = mine->epoch; /* its record says what it called, and more than a hint would */
    cohi_error kept;            /* this rank's own failure, while the meeting may set another */
    cohi_error_keep(&kept);
    coh_status status = team->levels ? meet_apart(entry, mine) : meet(entry, mine);
    if (status == COH_OK)
        status = await_records(entry, mine);
    cohi_order_met(team->world, team); /* the caller may be about to move or free what was put */
    if (status != COH_OK)
        return explain(entry, status);
    status = compare(entry, mine);
    if (status == COH_OK)
        status = first_failure(entry, mine);
    if (status != COH_OK && status == (coh_status)mine->status)
        (void)cohi_fail_again(&kept);
    return status;
}
