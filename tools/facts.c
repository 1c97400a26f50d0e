#include "facts.h"

#include "core/health/verdict.h"

#include <string.h>

static void read_lost(cohi_slot *slot, int size, cohi_ranks *lost)
{
    for (int other = 0; other < size && other < COHI_RANKS_MAX; other++) {
        if ((atomic_load(cohi_slot_verdict(slot, other)) & 0xff) == COHI_VERDICT_LOST)
            cohi_ranks_add(lost, other);
    }
}

void cohi_facts_read(const cohi_board *board, int rank, cohi_facts *facts)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    coh_status status = COH_OK;
    memset(facts, 0, sizeof *facts);
    if (!slot)
        return;
    facts->pid = atomic_load(&slot->pid);
    facts->phase = atomic_load(&slot->phase);
    facts->in_call = atomic_load(&slot->op) != COHI_OP_NONE;
    facts->error_ns = cohi_slot_read_error(slot, &status, facts->error);
    facts->error_status = (int32_t)status;
    read_lost(slot, (int)board->head->size, &facts->lost);
}

void cohi_facts_pack(cohi_facts *facts, uint64_t now)
{
    if (facts->error_ns)
        facts->error_ns = now > facts->error_ns ? now - facts->error_ns : 1;
}

void cohi_facts_unpack(cohi_facts *facts, uint64_t now)
{
    if (facts->error_ns)
        facts->error_ns = facts->error_ns < now ? now - facts->error_ns : 1;
    facts->error[sizeof facts->error - 1] = '\0';
}
