#include "engine/tcp/tcp.h"

void cohi_tcp_tell(cohi_endpoint *endpoint)
{
    if (atomic_load_explicit(&endpoint->rings, memory_order_relaxed)
        && atomic_exchange(&endpoint->rings, 0)) {
        atomic_store_explicit(&endpoint->poll.rests, 0, memory_order_relaxed); /* it wakes */
        endpoint->upcalls->arrived(endpoint->world);
    }
    if (atomic_load_explicit(&endpoint->stores, memory_order_relaxed)
        && atomic_exchange(&endpoint->stores, 0))
        endpoint->upcalls->stored(endpoint->world);
}

void cohi_tcp_part_join(cohi_endpoint *endpoint, cohi_part *part, cohi_op *op, int rank)
{
    if (!op) { /* nobody else has the part yet */
        cohi_part_join(part, NULL, rank);
        return;
    }
    pthread_mutex_lock(&endpoint->ops_lock);
    cohi_part_join(part, op, rank);
    pthread_mutex_unlock(&endpoint->ops_lock);
}

void cohi_tcp_part_excuse(cohi_endpoint *endpoint, cohi_part *part)
{
    pthread_mutex_lock(&endpoint->ops_lock);
    cohi_part_excuse(part);
    pthread_mutex_unlock(&endpoint->ops_lock);
}

bool cohi_tcp_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status)
{
    if (!part->op)
        return false;
    pthread_mutex_lock(&endpoint->ops_lock);
    bool last = cohi_part_end(part, status);
    pthread_mutex_unlock(&endpoint->ops_lock);
    return last;
}
