#include "engine/mpi/mpi.h"

#include "base/error.h"
#include "base/log.h"

#include <sched.h>
#include <stdlib.h>

/* Receives that may fail one after the other before nothing more is expected of MPI. */
enum { FAILURES = 2 * COHI_MPI_RECEIVES };

/* Bytes of a frame from which libraries may take it for long. */
enum { LONG_FROM = 4096 };

static int post(cohi_endpoint *endpoint, cohi_mpi_buffer *buffer)
{
    const cohi_mpi_library *mpi = endpoint->mpi;
    return mpi->MPI_Irecv(&buffer->frame, COHI_MPI_FRAME_BYTES, mpi->byte, MPI_ANY_SOURCE,
                          COHI_MPI_TAG, endpoint->comm, &buffer->request);
}

coh_status cohi_mpi_receive_begin(cohi_endpoint *endpoint)
{
    char text[COHI_MPI_TEXT_BYTES];
    for (unsigned i = 0; i < COHI_MPI_RECEIVES; i++) {
        cohi_mpi_buffer *buffer = cohi_mpi_buffer_take(endpoint);
        if (!buffer)
            return cohi_fail(COH_NO_MEMORY, "mpi: out of memory to receive");
        int error = post(endpoint, buffer);
        if (error != MPI_SUCCESS) {
            cohi_mpi_buffer_give(endpoint, buffer);
            return cohi_fail(COH_TRANSPORT, "mpi: MPI cannot receive: %s",
                             cohi_mpi_text(endpoint, error, text));
        }
        endpoint->receives[i] = buffer;
    }
    return COH_OK;
}

/* ---- what comes ---- */

/* A frame that is not of this world can only come of a mistake. */
static bool is_ours(const cohi_endpoint *endpoint, const cohi_mpi_buffer *buffer, int from,
                    int count)
{
    const cohi_mpi_frame *frame = &buffer->frame;
    return count >= (int)sizeof *frame && frame->version == COHI_MPI_VERSION
           && frame->key == endpoint->key && frame->payload == (uint32_t)count - sizeof *frame
           && from >= 0 && from < endpoint->size && from != endpoint->rank;
}

static void take(cohi_endpoint *endpoint, cohi_mpi_buffer *buffer, const MPI_Status *status)
{
    int count = 0, from = status->MPI_SOURCE;
    (void)endpoint->mpi->MPI_Get_count(status, endpoint->mpi->byte, &count);
    if (!is_ours(endpoint, buffer, from, count)) {
        cohi_log(COH_LOG_WARN, "mpi: rank %d dropped a frame that is none of this world",
                 endpoint->rank);
        return;
    }
    if (atomic_load(&endpoint->fates[from]) == COHI_MPI_LOST)
        return;
    cohi_mpi_link *link = cohi_mpi_link_from(endpoint, from);
    if (!link || link->ended)
        return;
    link->silent_ns = 0;
    atomic_store_explicit(&endpoint->long_frames, count >= LONG_FROM, memory_order_relaxed);
    const char *wrong = cohi_mpi_serve(link, buffer);
    if (wrong)
        cohi_mpi_link_refuse(link, buffer->frame.verb, wrong);
    else if (link->first_answer)
        (void)cohi_mpi_flush(link);
}

/* Without receives nobody can be heard. */
static void give_up(cohi_endpoint *endpoint, int error)
{
    char text[COHI_MPI_TEXT_BYTES];
    cohi_log(COH_LOG_ERROR, "mpi: rank %d can receive nothing any more: %s", endpoint->rank,
             cohi_mpi_text(endpoint, error, text));
    for (int rank = 0; rank < endpoint->size; rank++) {
        cohi_mpi_link *link = cohi_segments_is_near(&endpoint->segments, rank)
                                  ? NULL
                                  : cohi_mpi_link_from(endpoint, rank);
        if (link)
            cohi_mpi_link_end(link, COHI_LOSS_LINK);
    }
}

/* One that is kept is replaced by another. */
static void post_again(cohi_endpoint *endpoint, cohi_mpi_buffer *buffer)
{
    if (buffer->kept)
        buffer = cohi_mpi_buffer_take(endpoint);
    int error = buffer ? post(endpoint, buffer) : MPI_ERR_NO_MEM;
    endpoint->receives[endpoint->oldest] = error == MPI_SUCCESS ? buffer : NULL;
    if (error == MPI_SUCCESS)
        return;
    if (buffer)
        cohi_mpi_buffer_give(endpoint, buffer);
    give_up(endpoint, error);
}

/* MPI fills receives in the order of posting, so the oldest is looked at alone. */
bool cohi_mpi_receive(cohi_endpoint *endpoint)
{
    cohi_mpi_buffer *buffer = endpoint->receives[endpoint->oldest];
    MPI_Status status;
    int done = 0;
    if (!buffer)
        return false;
    int error = endpoint->mpi->MPI_Test(&buffer->request, &done, &status);
    if (error == MPI_SUCCESS && !done)
        return false;
    if (error == MPI_SUCCESS) {
        endpoint->failures = 0;
        take(endpoint, buffer, &status);
    } else if (++endpoint->failures == FAILURES) {
        give_up(endpoint, error);
    }
    if (endpoint->failures < FAILURES)
        post_again(endpoint, buffer);
    endpoint->oldest = (endpoint->oldest + 1) % COHI_MPI_RECEIVES;
    return true;
}

/* ---- all of it ---- */

bool cohi_mpi_step(cohi_endpoint *endpoint)
{
    bool any = cohi_mpi_receive(endpoint);
    if (endpoint->teams)
        any = cohi_mpi_teams_step(endpoint) || any;
    bool moving = endpoint->teams != NULL;
    for (int i = 0; i < endpoint->made_count; i++) {
        cohi_mpi_link *link = endpoint->made[i];
        if (link->requests.first || link->first_answer || link->first_sent)
            any = cohi_mpi_flush(link) || any;
        moving = moving || link->first_sent || link->awaited.first;
    }
    atomic_store_explicit(&endpoint->moving, moving, memory_order_relaxed);
    return any;
}

/* A receive that is cancelled ends at once, unless a frame has just come into it. */
void cohi_mpi_receive_end(cohi_endpoint *endpoint)
{
    enum { TRIES = 1000 };
    for (unsigned i = 0; i < COHI_MPI_RECEIVES; i++) {
        cohi_mpi_buffer *buffer = endpoint->receives[i];
        MPI_Status ignored;
        int done = 0;
        if (!buffer)
            continue;
        (void)endpoint->mpi->MPI_Cancel(&buffer->request);
        for (int tries = 0; tries < TRIES && !done; tries++)
            if (endpoint->mpi->MPI_Test(&buffer->request, &done, &ignored) != MPI_SUCCESS)
                done = 1;
            else if (!done)
                sched_yield();
        if (done)
            cohi_mpi_buffer_give(endpoint, buffer); /* else it stays MPI's */
        endpoint->receives[i] = NULL;
    }
}
