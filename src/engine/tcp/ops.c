#include "engine/tcp/tcp.h"

void cohi_tcp_tell(cohi_endpoint *endpoint)
{
    if (atomic_load_explicit(&endpoint->rings, memory_order_relaxed)
        && atomic_exchange(&endpoint->rings, 0))
        endpoint->upcalls->arrived(endpoint->world);
}

static void note_next(cohi_op *op)
{
    const cohi_tcp_part *part = op->internal;
    while (part && part->excused)
        part = part->next;
    atomic_store_explicit(&op->waits_for, part ? part->rank : -1, memory_order_relaxed);
}

void cohi_tcp_part_join(cohi_endpoint *endpoint, cohi_tcp_part *part, cohi_op *op, int rank)
{
    *part = (cohi_tcp_part){.op = op, .rank = rank};
    if (!op)
        return;
    pthread_mutex_lock(&endpoint->ops_lock);
    part->next = op->internal;
    if (part->next)
        part->next->previous = part;
    op->internal = part;
    note_next(op);
    pthread_mutex_unlock(&endpoint->ops_lock);
}

void cohi_tcp_part_excuse(cohi_endpoint *endpoint, cohi_tcp_part *part)
{
    pthread_mutex_lock(&endpoint->ops_lock);
    part->excused = true;
    if (part->op)
        note_next(part->op);
    pthread_mutex_unlock(&endpoint->ops_lock);
}

bool cohi_tcp_part_end(cohi_endpoint *endpoint, cohi_tcp_part *part, coh_status status)
{
    cohi_op *op = part->op;
    if (!op)
        return false;
    part->op = NULL;
    pthread_mutex_lock(&endpoint->ops_lock);
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
    pthread_mutex_unlock(&endpoint->ops_lock);
    return last;
}
