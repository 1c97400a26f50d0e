#include "engine/mpi/mpi.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* Frames to one rank that MPI has at a time. More would fill the target's memory, not the network. */
enum { WINDOW = 32 };

/* ---- parts of an operation ---- */

void cohi_mpi_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status)
{
    if (!cohi_part_end(part, status))
        return;
    atomic_store_explicit(&endpoint->events.rings, 1, memory_order_relaxed);
    atomic_store_explicit(&endpoint->events.attends, 1, memory_order_relaxed);
}

/* ---- pools ---- */

cohi_mpi_buffer *cohi_mpi_buffer_take(cohi_endpoint *endpoint)
{
    cohi_mpi_buffer *buffer = endpoint->free_buffers;
    if (buffer)
        endpoint->free_buffers = buffer->next;
    else if ((buffer = malloc(sizeof *buffer)))
        buffer->kept = false;
    return buffer;
}

void cohi_mpi_buffer_give(cohi_endpoint *endpoint, cohi_mpi_buffer *buffer)
{
    buffer->next = endpoint->free_buffers;
    endpoint->free_buffers = buffer;
}

static void give_back(cohi_endpoint *endpoint, cohi_mpi_request *request)
{
    request->next = endpoint->free_requests;
    endpoint->free_requests = request;
}

void cohi_mpi_pools_free(cohi_endpoint *endpoint)
{
    while (endpoint->free_buffers) {
        cohi_mpi_buffer *next = endpoint->free_buffers->next;
        free(endpoint->free_buffers);
        endpoint->free_buffers = next;
    }
    while (endpoint->free_requests) {
        cohi_mpi_request *next = endpoint->free_requests->next;
        free(endpoint->free_requests);
        endpoint->free_requests = next;
    }
}

/* ---- queues ---- */

static void append(cohi_mpi_queue *queue, cohi_mpi_request *request)
{
    request->next = NULL;
    if (queue->last)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
}

static cohi_mpi_request *take_first(cohi_mpi_queue *queue)
{
    cohi_mpi_request *request = queue->first;
    queue->first = request->next;
    if (!queue->first)
        queue->last = NULL;
    return request;
}

/* ---- frames that MPI has ---- */

static void note_sent(cohi_mpi_link *link, cohi_mpi_buffer *buffer)
{
    buffer->next = NULL;
    if (link->last_sent)
        link->last_sent->next = buffer;
    else
        link->first_sent = buffer;
    link->last_sent = buffer;
    link->sent_count++;
}

/* Gives back the buffers that MPI is through with, in order of sending. */
static bool reap(cohi_mpi_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    bool any = false;
    while (link->first_sent) {
        cohi_mpi_buffer *first = link->first_sent;
        int done = 0;
        MPI_Status ignored;
        int error = endpoint->mpi->MPI_Test(&first->request, &done, &ignored);
        if (error == MPI_SUCCESS && !done)
            break;
        link->first_sent = first->next;
        if (!link->first_sent)
            link->last_sent = NULL;
        link->sent_count--;
        cohi_mpi_buffer_give(endpoint, first);
        any = true;
        if (error != MPI_SUCCESS)
            cohi_mpi_link_broke(link, error);
    }
    return any;
}

/* A buffer with the frame in it; NULL: the window is full, or no memory. */
static cohi_mpi_buffer *begin_frame(cohi_mpi_link *link, const cohi_mpi_frame *frame)
{
    if (link->sent_count >= WINDOW && !reap(link))
        return NULL;
    cohi_mpi_buffer *buffer =
        link->sent_count < WINDOW ? cohi_mpi_buffer_take(link->endpoint) : NULL;
    if (buffer) {
        buffer->frame = *frame;
        buffer->frame.key = link->endpoint->key;
        buffer->frame.version = COHI_MPI_VERSION;
        buffer->frame.payload = 0;
    }
    return buffer;
}

static void add_payload(cohi_mpi_buffer *buffer, const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(buffer->payload + buffer->frame.payload, bytes, count);
    buffer->frame.payload += (uint32_t)count;
}

static bool end_frame(cohi_mpi_link *link, cohi_mpi_buffer *buffer)
{
    cohi_endpoint *endpoint = link->endpoint;
    const cohi_mpi_library *mpi = endpoint->mpi;
    int bytes = (int)(sizeof buffer->frame + buffer->frame.payload);
    int error = mpi->MPI_Isend(&buffer->frame, bytes, mpi->byte, link->rank, COHI_MPI_TAG,
                               endpoint->comm, &buffer->request);
    link->spoke = true;
    if (error == MPI_SUCCESS) {
        note_sent(link, buffer);
        return true;
    }
    cohi_mpi_buffer_give(endpoint, buffer);
    cohi_mpi_link_broke(link, error);
    return false;
}

/* ---- answers ---- */

bool cohi_mpi_answer_submit(cohi_mpi_link *link, const cohi_mpi_answer *answer)
{
    cohi_mpi_answer *kept = malloc(sizeof *kept);
    if (!kept)
        return false;
    *kept = *answer;
    kept->next = NULL;
    if (link->last_answer)
        link->last_answer->next = kept;
    else
        link->first_answer = kept;
    link->last_answer = kept;
    return true;
}

static void drop_answer(cohi_mpi_link *link)
{
    cohi_mpi_answer *first = link->first_answer;
    link->first_answer = first->next;
    if (!link->first_answer)
        link->last_answer = NULL;
    free(first);
}

/* Bytes of a segment that went since it was asked for: the asker is wrong. */
static const char *fill_answer(cohi_mpi_link *link, cohi_mpi_answer *answer,
                               cohi_mpi_buffer *buffer)
{
    const char *wrong = NULL;
    if (answer->value_bytes > 0)
        add_payload(buffer, &answer->value, answer->value_bytes);
    if (answer->left == 0)
        return NULL;
    uint64_t part = answer->left < COHI_MPI_PAYLOAD_BYTES ? answer->left : COHI_MPI_PAYLOAD_BYTES;
    cohi_remote at = {.segment = answer->from.segment, .offset = answer->from.offset};
    const char *place =
        cohi_segments_locate(&link->endpoint->segments, &at, answer->from.generation, part, &wrong);
    if (!place)
        return wrong;
    add_payload(buffer, place, (size_t)part);
    answer->from.offset += part;
    answer->left -= part;
    return NULL;
}

static bool send_answer(cohi_mpi_link *link)
{
    cohi_mpi_answer *answer = link->first_answer;
    cohi_mpi_frame frame = {.verb = COHI_MPI_ANSWER, .number = answer->number};
    cohi_mpi_buffer *buffer = begin_frame(link, &frame);
    if (!buffer)
        return false;
    const char *wrong = fill_answer(link, answer, buffer);
    if (wrong) {
        cohi_mpi_buffer_give(link->endpoint, buffer);
        cohi_mpi_link_refuse(link, COHI_MPI_GET, wrong);
        return false;
    }
    if (answer->left == 0)
        drop_answer(link);
    return end_frame(link, buffer);
}

/* ---- requests ---- */

static bool is_answered(unsigned verb)
{
    return verb == COHI_MPI_GET || verb == COHI_MPI_FETCH || verb == COHI_MPI_QUIET
           || verb == COHI_MPI_LEAVE;
}

cohi_mpi_request *cohi_mpi_request_new(cohi_mpi_link *link, cohi_mpi_verb verb)
{
    cohi_endpoint *endpoint = link->endpoint;
    cohi_mpi_request *request = endpoint->free_requests;
    if (request)
        endpoint->free_requests = request->next;
    else
        request = malloc(sizeof *request);
    if (!request)
        return NULL;
    request->context = 0;
    request->signals = false;
    request->left = 0;
    request->source = NULL;
    request->target = NULL;
    request->expected = 0;
    request->mark = 0;
    request->head_bytes = 0;
    request->frame = (cohi_mpi_frame){.verb = (uint8_t)verb};
    return request;
}

/* All of it is in frames: its source is free. What is answered waits for that. */
static void conclude(cohi_mpi_link *link, cohi_mpi_request *request)
{
    if (is_answered(request->frame.verb)) {
        append(&link->awaited, request);
        return;
    }
    cohi_mpi_part_end(link->endpoint, &request->part, COH_OK);
    give_back(link->endpoint, request);
}

static void fill_request(cohi_mpi_request *request, cohi_mpi_buffer *buffer)
{
    uint64_t room = COHI_MPI_PAYLOAD_BYTES;
    if (request->head_bytes > 0)
        add_payload(buffer, request->copied, request->head_bytes);
    room -= request->head_bytes;
    uint64_t part = request->left < room ? request->left : room;
    add_payload(buffer, request->source, (size_t)part);
    request->source = request->source ? request->source + part : NULL;
    request->left -= part;
    request->frame.offset += part;
    buffer->frame.signals = request->signals && request->left == 0;
}

/* One frame of the first request. */
static bool send_request(cohi_mpi_link *link)
{
    cohi_mpi_request *request = link->requests.first;
    cohi_mpi_buffer *buffer = begin_frame(link, &request->frame);
    if (!buffer)
        return false;
    fill_request(request, buffer);
    if (request->left == 0)
        conclude(link, take_first(&link->requests));
    return end_frame(link, buffer);
}

bool cohi_mpi_flush(cohi_mpi_link *link)
{
    bool any = reap(link);
    while (link->first_answer && !link->ended && send_answer(link))
        any = true;
    while (link->requests.first && !link->ended && send_request(link))
        any = true;
    return any;
}

void cohi_mpi_request_submit(cohi_mpi_link *link, cohi_mpi_request *request, const void *source,
                             size_t bytes, cohi_op *op)
{
    cohi_part_join(&request->part, op, link->rank);
    if (is_answered(request->frame.verb))
        request->frame.number = ++link->number;
    request->left = bytes;
    request->source = source;
    if (bytes > 0 && bytes <= COHI_INLINE_BYTES && request->head_bytes == 0) {
        memcpy(request->copied, source, bytes);
        request->source = (const char *)request->copied;
    }
    append(&link->requests, request);
    if (cohi_mpi_may_call(link->endpoint))
        (void)cohi_mpi_flush(link);
}

/* ---- ends ---- */

static void note_complete(cohi_mpi_count *count, uint64_t mark)
{
    if (mark > count->complete)
        count->complete = mark;
}

void cohi_mpi_answered(cohi_mpi_link *link)
{
    cohi_mpi_request *request = take_first(&link->awaited);
    if (request->frame.verb == COHI_MPI_QUIET)
        note_complete(&link->counts[request->context], request->mark);
    cohi_mpi_part_end(link->endpoint, &request->part, COH_OK);
    give_back(link->endpoint, request);
}

/* Who leaves does not wait for those that are gone. */
static void drop_queue(cohi_mpi_link *link, cohi_mpi_queue *queue)
{
    while (queue->first) {
        cohi_mpi_request *request = take_first(queue);
        cohi_mpi_part_end(link->endpoint, &request->part,
                          request->frame.verb == COHI_MPI_LEAVE ? COH_OK : COH_PEER_LOST);
        give_back(link->endpoint, request);
    }
}

void cohi_mpi_drop_all(cohi_mpi_link *link)
{
    drop_queue(link, &link->awaited);
    drop_queue(link, &link->requests);
    while (link->first_answer)
        drop_answer(link);
}

/* Whether a quiet of its context is for it. */
static bool is_one_sided(const cohi_mpi_request *request)
{
    unsigned verb = request->frame.verb;
    return verb == COHI_MPI_PUT || verb == COHI_MPI_GET || verb == COHI_MPI_POST
           || verb == COHI_MPI_FETCH;
}

/* Whether it goes with the quiet of that context, which is given up. */
static bool goes_with(const cohi_mpi_request *request, int context)
{
    return !request->part.op && is_one_sided(request) && (int)request->context == context;
}

static int quieted_context(const cohi_mpi_queue *queue, const cohi_op *op)
{
    for (const cohi_mpi_request *request = queue->first; request; request = request->next)
        if (request->part.op == op && request->frame.verb == COHI_MPI_QUIET)
            return (int)request->context;
    return -1;
}

/* Its answer is still to come, and is dropped. */
static void withdraw_awaited(cohi_mpi_link *link, const cohi_op *op, int context)
{
    for (cohi_mpi_request *request = link->awaited.first; request; request = request->next) {
        bool own = request->part.op == op;
        if (own || goes_with(request, context))
            request->target = NULL;
        if (own)
            cohi_mpi_part_end(link->endpoint, &request->part, COH_TRANSPORT);
    }
}

/* What is left of it is not sent. Of a put that is in frames in part, the target has a part. */
static void withdraw_queued(cohi_mpi_link *link, const cohi_op *op, int context)
{
    cohi_mpi_queue kept = {NULL, NULL};
    while (link->requests.first) {
        cohi_mpi_request *request = take_first(&link->requests);
        bool own = request->part.op == op;
        if (!own && !goes_with(request, context)) {
            append(&kept, request);
            continue;
        }
        cohi_mpi_part_end(link->endpoint, &request->part, COH_TRANSPORT);
        give_back(link->endpoint, request);
    }
    link->requests = kept;
}

void cohi_mpi_withdraw(cohi_mpi_link *link, const cohi_op *op)
{
    int awaited = quieted_context(&link->awaited, op);
    int queued = quieted_context(&link->requests, op);
    int context = awaited >= 0 ? awaited : queued;
    withdraw_awaited(link, op, context);
    withdraw_queued(link, op, context);
}

void cohi_mpi_excuse_leave(cohi_mpi_link *link)
{
    for (cohi_mpi_request *request = link->awaited.first; request; request = request->next)
        if (request->frame.verb == COHI_MPI_LEAVE)
            cohi_mpi_part_end(link->endpoint, &request->part, COH_OK);
    for (cohi_mpi_request *request = link->requests.first; request; request = request->next)
        if (request->frame.verb == COHI_MPI_LEAVE)
            cohi_mpi_part_end(link->endpoint, &request->part, COH_OK);
}

/* What MPI still has was sent to a rank that takes nothing any more. MPI is to finish it by itself, and
 * its memory stays. */
void cohi_mpi_out_free(cohi_mpi_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    cohi_mpi_drop_all(link);
    while (link->first_sent) {
        cohi_mpi_buffer *next = link->first_sent->next;
        if (!endpoint->finalized && cohi_mpi_may_call(endpoint))
            (void)endpoint->mpi->MPI_Request_free(&link->first_sent->request);
        link->first_sent = next;
    }
    free(link);
}
