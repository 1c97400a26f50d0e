#include "coll/mapped/sent.h"

#include "core/team/team.h"

/* What a member sends to one other: its entry in the table in the sender's scratch. */
struct entry {
    uint64_t count;
    uint64_t first;
};

_Static_assert(COHI_RANKS_MAX * sizeof(struct entry) <= COHI_SCRATCH_BYTES,
               "a table for all ranks fits");

static const struct entry *entry_from(const cohi_call *call, int index)
{
    const struct entry *table =
        (const void *)cohi_call_staging(call, index)->scratch[call->team->epoch % COHI_POSTS];
    return &table[call->team->index];
}

static uint64_t write_table(const cohi_call *call)
{
    coh_team *team = call->team;
    struct entry *table =
        (void *)cohi_call_staging(call, team->index)->scratch[(team->epoch + 1) % COHI_POSTS];
    uint64_t most = 0;
    for (int i = 0; i < team->size; i++) {
        table[i] =
            (struct entry){cohi_block_count(&call->from, i), cohi_block_first(&call->from, i)};
        most = table[i].count > most ? table[i].count : most;
    }
    return most;
}

/* This member's error message has the counts. */
static coh_status refuse(cohi_call *call, int index, uint64_t sent, uint64_t expected)
{
    const coh_team *team = call->team;
    cohi_post_break(call, index);
    (void)cohi_world_fail(team->world, call->name, COH_MISMATCH,
                          "rank %d sends %llu elements where rank %d expects %llu",
                          team->ranks[index], (unsigned long long)sent, team->world->rank,
                          (unsigned long long)expected);
    cohi_fail_range(COH_MISMATCH, COH_NO_FACT, sent, expected);
    return cohi_fail_peer(COH_MISMATCH, team->ranks[index]);
}

coh_status cohi_parts_enter(cohi_call *call)
{
    uint64_t most = call->from.counts ? write_table(call) : call->count;
    coh_status status = cohi_place_enter(call, most);
    for (int i = 0; call->from.counts && i < call->team->size && status == COH_OK; i++) {
        uint64_t sent = entry_from(call, i)->count, expected = cohi_block_count(&call->to, i);
        if (sent != expected)
            status = refuse(call, i, sent, expected);
    }
    return status;
}

size_t cohi_parts_first(const cohi_call *call, int index)
{
    if (call->from.counts)
        return (size_t)entry_from(call, index)->first;
    return cohi_block_first(&call->from, call->team->index);
}
