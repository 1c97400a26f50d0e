#include "core/agree.h"

#include "core/control.h"
#include "core/wait.h"

#include <stdio.h>
#include <string.h>

static coh_status quiet_control(coh_world *world, const char *call, cohi_opcode op)
{
    if (!world->remote || !world->engine->rma)
        return COH_OK;
    cohi_op done = {.status = COH_OK};
    coh_status status = world->engine->rma->quiet(world->endpoint, COHI_CONTEXT_CONTROL, &done);
    return status == COH_OK ? cohi_wait_op(world, call, op, -1, &done) : status;
}

static coh_status send_records(coh_world *world, const char *call, const cohi_record *mine)
{
    for (int to = 0; to < world->size; to++) {
        size_t offset = cohi_slot_record_offset(world->size, mine->epoch, world->rank);
        coh_status status = cohi_control_put(world, to, offset, mine, sizeof *mine);
        if (status != COH_OK)
            return status;
    }
    return quiet_control(world, call, (cohi_opcode)mine->op);
}

/* Operation and epoch are one word, which comes last. A slot that was never written has no
 * operation, and looks like epoch 0 otherwise. */
static bool has_record(coh_world *world, int rank, uint32_t epoch)
{
    const cohi_record *record = cohi_slot_record(world->slot, world->size, epoch, rank);
    uint64_t word = __atomic_load_n((const uint64_t *)(const void *)record, __ATOMIC_ACQUIRE);
    cohi_record head;
    memcpy(&head, &word, sizeof word);
    return head.op != COHI_OP_NONE && head.epoch == epoch;
}

/* After the meeting the records are there, except that a channel may still be carrying some. */
static coh_status await_records(coh_world *world, const char *call, const cohi_record *mine)
{
    for (int rank = 0; rank < world->size; rank++) {
        coh_status status = COH_OK;
        cohi_wait wait;
        cohi_wait_begin(&wait, world, call, (cohi_opcode)mine->op, &world->team, rank);
        while (status == COH_OK && !has_record(world, rank, mine->epoch))
            status = cohi_wait_step(&wait);
        cohi_wait_end(&wait);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* What the arguments of each operation are called, for the sentence that shows two that differ. */
static const char *const argument_names[][4] = {
    [COHI_OP_MALLOC] = {"bytes"},
    [COHI_OP_CALLOC] = {"bytes"},
    [COHI_OP_ALIGN] = {"bytes", "alignment"},
    [COHI_OP_REALLOC] = {"bytes", NULL, "offset"},
    [COHI_OP_FREE] = {NULL, NULL, "offset"},
};

static void describe(const cohi_record *record, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s(", cohi_opcode_name(record->op));
    const char *separator = "";
    bool named = record->op < sizeof argument_names / sizeof *argument_names;
    for (int i = 0; named && i < 4 && used < room; i++) {
        const char *name = argument_names[record->op][i];
        if (!name)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %llu", separator, name,
                                 (unsigned long long)record->argument[i]);
        separator = ", ";
    }
    if (used < room)
        snprintf(text + used, room - used, ")");
}

static bool same_call(const cohi_record *a, const cohi_record *b)
{
    return a->op == b->op && memcmp(a->argument, b->argument, sizeof a->argument) == 0;
}

/* Every rank looks at the same records in the same order, so all come to the same answer. */
static coh_status compare(coh_world *world, const char *call, uint32_t epoch)
{
    const cohi_record *first = cohi_slot_record(world->slot, world->size, epoch, 0);
    for (int rank = 1; rank < world->size; rank++) {
        const cohi_record *other = cohi_slot_record(world->slot, world->size, epoch, rank);
        if (same_call(first, other))
            continue;
        char ours[128], theirs[128];
        describe(first, ours, sizeof ours);
        describe(other, theirs, sizeof theirs);
        return cohi_world_fail(world, call, COH_MISMATCH, "rank 0 called %s, rank %d called %s",
                               ours, rank, theirs);
    }
    return COH_OK;
}

static coh_status first_failure(coh_world *world, const char *call, uint32_t epoch)
{
    for (int rank = 0; rank < world->size; rank++) {
        const cohi_record *record = cohi_slot_record(world->slot, world->size, epoch, rank);
        if (record->status == COH_OK)
            continue;
        if (rank == world->rank)
            return (coh_status)record->status; /* its sentence is set */
        char what[128];
        describe(record, what, sizeof what);
        return cohi_world_fail(world, call, (coh_status)record->status, "rank %d failed in %s: %s",
                               rank, what, coh_status_text((coh_status)record->status));
    }
    return COH_OK;
}

/* What stands against the team says more than the operation that it made fail. */
static coh_status explain(coh_world *world, const char *call, coh_status status)
{
    char kept[COHI_SENTENCE_BYTES];
    snprintf(kept, sizeof kept, "%s", coh_last_error());
    coh_status standing = cohi_team_standing(&world->team, call);
    return standing != COH_OK ? standing : cohi_fail(status, "%s", kept);
}

coh_status cohi_agree(coh_world *world, const char *call, cohi_record *mine)
{
    mine->epoch = world->team.epoch + 1;
    char kept[COHI_SENTENCE_BYTES]; /* this rank's own failure, while the meeting may set another */
    snprintf(kept, sizeof kept, "%s", coh_last_error());
    coh_status status = send_records(world, call, mine);
    if (status == COH_OK)
        status = cohi_team_meet(&world->team, call, (cohi_opcode)mine->op);
    if (status == COH_OK)
        status = await_records(world, call, mine);
    if (status != COH_OK)
        return explain(world, call, status);
    status = compare(world, call, mine->epoch);
    if (status == COH_OK)
        status = first_failure(world, call, mine->epoch);
    if (status != COH_OK && status == (coh_status)mine->status)
        cohi_fail(status, "%s", kept);
    return status;
}
