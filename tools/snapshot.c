#include "snapshot.h"

#include "base/clock.h"
#include "core/world/doing.h"

#include <stdio.h>
#include <sys/mman.h>

static size_t snapshot_bytes(int size)
{
    return sizeof(cohi_snapshot) + (size_t)size * sizeof(cohi_snapshot_row);
}

cohi_snapshot *cohi_snapshot_make(int size)
{
    void *memory =
        mmap(NULL, snapshot_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void cohi_snapshot_free(cohi_snapshot *snapshot, int size)
{
    if (snapshot)
        munmap(snapshot, snapshot_bytes(size));
}

static void take_operation(cohi_slot *slot, uint64_t now, cohi_snapshot_row *row)
{
    unsigned op = atomic_load(&slot->op), phase = atomic_load(&slot->phase);
    uint64_t sequence = atomic_load(&slot->sequence), since = atomic_load(&slot->since_ns);
    row->waiting_ns = since && now > since ? now - since : 0;
    row->waits_for = row->waiting_ns ? atomic_load(&slot->waits_for) : -1;
    cohi_doing_list(slot, row->awaits, sizeof row->awaits);
    if (phase == COHI_PHASE_ABSENT)
        snprintf(row->operation, sizeof row->operation, "has not called init");
    else if (phase == COHI_PHASE_LEFT && op == COHI_OP_INIT)
        snprintf(row->operation, sizeof row->operation, "could not join");
    else if (phase == COHI_PHASE_LEFT)
        snprintf(row->operation, sizeof row->operation, "finalized");
    else if (op == COHI_OP_NONE || sequence == 0)
        snprintf(row->operation, sizeof row->operation, "%s", cohi_opcode_name(op));
    else
        snprintf(row->operation, sizeof row->operation, "%s #%llu", cohi_opcode_name(op),
                 (unsigned long long)sequence);
}

/* The operations of all ranks first: they are what changes soon. */
void cohi_snapshot_take(cohi_snapshot *snapshot, const cohi_board *board, int again)
{
    int count = (int)board->head->locals;
    const int32_t *ranks = cohi_board_ranks(board);
    uint64_t now = cohi_now_ns();
    if (atomic_exchange(&snapshot->taken, 1) && !again)
        return;
    for (int i = 0; i < count; i++)
        take_operation(cohi_board_slot(board, ranks[i]), now, &snapshot->rows[ranks[i]]);
    for (int i = 0; i < count; i++) {
        int rank = ranks[i];
        char phrase[96];
        const char *state = cohi_slot_describe(cohi_board_slot(board, rank), phrase, sizeof phrase);
        snprintf(snapshot->rows[rank].state, sizeof snapshot->rows[rank].state, "%s", state);
    }
}

void cohi_snapshot_check(cohi_snapshot_row *row)
{
    row->state[sizeof row->state - 1] = '\0';
    row->operation[sizeof row->operation - 1] = '\0';
    row->awaits[sizeof row->awaits - 1] = '\0';
}
