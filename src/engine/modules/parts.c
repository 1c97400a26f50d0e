#include "engine/modules/parts.h"

static void note_next(cohi_op *op)
{
    const cohi_part *part = op->internal;
    while (part && part->excused)
        part = part->next;
    atomic_store_explicit(&op->waits_for, part ? part->rank : -1, memory_order_relaxed);
}

void cohi_part_join(cohi_part *part, cohi_op *op, int rank)
{
    *part = (cohi_part){.op = op, .rank = rank};
    if (!op)
        return;
    part->next = op->internal;
    if (part->next)
        part->next->previous = part;
    op->internal = part;
    note_next(op);
}

void cohi_part_excuse(cohi_part *part)
{
    part->excused = true;
    if (part->op)
        note_next(part->op);
}

bool cohi_part_end(cohi_part *part, coh_status status)
{
    cohi_op *op = part->op;
    if (!op)
        return false;
    part->op = NULL;
    if (part->next)
        part->next->previous = part->previous;
    if (part->previous)
        part->previous->next = part->next;
    else
        op->internal = part->next;
    if (status != COH_OK && op->status == COH_OK) {
        op->status = status;
        op->rank = part->rank;
    }
    bool last = !op->internal;
    if (last)
        atomic_store_explicit(&op->done, 1, memory_order_release);
    else
        note_next(op);
    return last;
}
