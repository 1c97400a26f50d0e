#include "engine/mpi/mpi.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"

#include <stdlib.h>

/* ---- the lock ---- */

void cohi_mpi_lock(cohi_endpoint *endpoint)
{
    int held = cohi_cancel_hold();
    pthread_mutex_lock(&endpoint->lock);
    endpoint->held = held;
}

bool cohi_mpi_trylock(cohi_endpoint *endpoint)
{
    int held = cohi_cancel_hold();
    bool locked = pthread_mutex_trylock(&endpoint->lock) == 0;
    if (locked)
        endpoint->held = held;
    else
        cohi_cancel_release(held);
    return locked;
}

void cohi_mpi_unlock(cohi_endpoint *endpoint)
{
    int held = endpoint->held;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cancel_release(held);
}

bool cohi_mpi_may_call(const cohi_endpoint *endpoint)
{
    return endpoint->connected && !endpoint->finalized
           && (endpoint->threaded || pthread_equal(endpoint->owner, pthread_self()));
}

const char *cohi_mpi_text(const cohi_endpoint *endpoint, int error, char *text)
{
    int length;
    text[0] = '\0';
    (void)endpoint->mpi->MPI_Error_string(error, text, &length);
    return text;
}

/* ---- making ---- */

static cohi_mpi_link *make_link(cohi_endpoint *endpoint, int rank)
{
    cohi_mpi_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->endpoint = endpoint;
    link->rank = rank;
    endpoint->links[rank] = link;
    endpoint->made[endpoint->made_count++] = link;
    return link;
}

static coh_status refuse_gone(const cohi_endpoint *endpoint, int rank)
{
    const char *why = atomic_load(&endpoint->fates[rank]) == COHI_MPI_LEFT ? "has left" : "is lost";
    if (endpoint->finalized)
        why = "cannot be reached: the program has called MPI_Finalize";
    return cohi_fail(COH_PEER_LOST, "mpi: rank %d %s", rank, why);
}

coh_status cohi_mpi_link_to(cohi_endpoint *endpoint, int rank, cohi_mpi_link **link)
{
    if (atomic_load_explicit(&endpoint->fates[rank], memory_order_relaxed) != COHI_MPI_ALIVE
        || endpoint->finalized)
        return refuse_gone(endpoint, rank);
    *link = cohi_mpi_link_from(endpoint, rank);
    if (!*link)
        return cohi_fail(COH_NO_MEMORY, "mpi: out of memory for the link to rank %d", rank);
    return (*link)->ended ? refuse_gone(endpoint, rank) : COH_OK;
}

cohi_mpi_link *cohi_mpi_link_from(cohi_endpoint *endpoint, int rank)
{
    cohi_mpi_link *link = endpoint->links[rank];
    return link ? link : make_link(endpoint, rank);
}

/* ---- ending ---- */

void cohi_mpi_link_end(cohi_mpi_link *link, cohi_loss loss)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (link->ended)
        return;
    link->ended = true;
    if (!link->peer_left)
        cohi_mpi_spoil();
    atomic_store(&endpoint->fates[link->rank], link->peer_left ? COHI_MPI_LEFT : COHI_MPI_LOST);
    cohi_mpi_drop_all(link);
    if (!loss || link->peer_left)
        return;
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_LOST, link->rank, 0);
    if (event)
        event->loss = loss;
    cohi_events_add(&endpoint->events, event);
}

void cohi_mpi_link_refuse(cohi_mpi_link *link, unsigned verb, const char *wrong)
{
    if (link->ended)
        return;
    cohi_log(COH_LOG_ERROR, "mpi: rank %d ends the link to rank %d: frame %u is wrong: %s",
             link->endpoint->rank, link->rank, verb, wrong);
    cohi_mpi_link_end(link, COHI_LOSS_LINK);
}

void cohi_mpi_link_broke(cohi_mpi_link *link, int error)
{
    char text[COHI_MPI_TEXT_BYTES];
    if (!link->ended && !link->peer_left)
        cohi_log(COH_LOG_INFO, "mpi: rank %d: nothing can be sent to rank %d: %s",
                 link->endpoint->rank, link->rank, cohi_mpi_text(link->endpoint, error, text));
    cohi_mpi_link_end(link, COHI_LOSS_LINK);
}

/* ---- now and then ---- */

static void keep_alive(cohi_mpi_link *link)
{
    bool idle = !link->spoke && !link->requests.first && link->sent_count == 0;
    cohi_mpi_request *request = idle ? cohi_mpi_request_new(link, COHI_MPI_KEEPALIVE) : NULL;
    if (request)
        cohi_mpi_request_submit(link, request, NULL, 0, NULL);
    link->spoke = false;
}

/* A rank that answers inside of its calls alone may be silent for as long as it computes. */
void cohi_mpi_link_tick(cohi_mpi_link *link, uint64_t passed_ns)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (link->ended || link->peer_left)
        return;
    keep_alive(link);
    link->silent_ns += passed_ns;
    if (link->silent_ns < 4 * endpoint->tick_ns || !endpoint->threaded_of[link->rank])
        return;
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_SILENT, link->rank, 0);
    if (event)
        event->silent_ns = link->silent_ns;
    cohi_events_add(&endpoint->events, event);
}
