#include "engine/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_REQUESTS = 16 }; /* memory for so many is made at a time */

struct cohi_ucx_chunk {
    struct cohi_ucx_chunk *next;
    cohi_ucx_request requests[CHUNK_REQUESTS];
};

_Static_assert(offsetof(cohi_ucx_request, head)
                   == offsetof(cohi_ucx_request, frame) + sizeof(cohi_ucx_frame),
               "a message's head is sent with its frame");

/* ---- parts of an operation ---- */

static void ring(cohi_endpoint *endpoint)
{
    atomic_store_explicit(&endpoint->events.rings, 1, memory_order_relaxed);
    atomic_store_explicit(&endpoint->events.attends, 1, memory_order_relaxed);
}

void cohi_ucx_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status)
{
    if (cohi_part_end(part, status))
        ring(endpoint);
}

/* ---- memory and lists ---- */

static void give_back(cohi_endpoint *endpoint, cohi_ucx_request *request)
{
    request->next = endpoint->free;
    endpoint->free = request;
}

static bool make_room(cohi_endpoint *endpoint)
{
    struct cohi_ucx_chunk *chunk = malloc(sizeof *chunk);
    if (!chunk)
        return false;
    chunk->next = endpoint->chunks;
    endpoint->chunks = chunk;
    for (int i = 0; i < CHUNK_REQUESTS; i++)
        give_back(endpoint, &chunk->requests[i]);
    return true;
}

void cohi_ucx_requests_free(cohi_endpoint *endpoint)
{
    while (endpoint->chunks) {
        struct cohi_ucx_chunk *next = endpoint->chunks->next;
        free(endpoint->chunks);
        endpoint->chunks = next;
    }
}

cohi_ucx_request *cohi_ucx_request_new(cohi_ucx_link *link, cohi_ucx_verb verb)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (!endpoint->free && !make_room(endpoint))
        return NULL;
    cohi_ucx_request *request = endpoint->free;
    endpoint->free = request->next;
    request->link = link;
    request->part.op = NULL;
    request->context = 0;
    request->sending = request->awaited = request->landing = request->counted = false;
    request->status = COH_OK;
    request->source = NULL;
    request->target = NULL;
    request->served = -1;
    request->mark = 0;
    request->frame = (cohi_ucx_frame){.from = endpoint->rank,
                                      .version = COHI_UCX_VERSION,
                                      .verb = (uint8_t)verb,
                                      .key = endpoint->addresses[link->rank].key};
    return request;
}

cohi_ucx_request *cohi_ucx_requests_new(cohi_ucx_link *link, cohi_ucx_verb verb, size_t count)
{
    cohi_ucx_request *first = NULL;
    for (size_t i = 0; i < count; i++) {
        cohi_ucx_request *request = cohi_ucx_request_new(link, verb);
        if (!request)
            break;
        request->next = first;
        first = request;
        if (i + 1 == count)
            return first;
    }
    while (first) {
        cohi_ucx_request *next = first->next;
        give_back(link->endpoint, first);
        first = next;
    }
    return NULL;
}

void cohi_ucx_request_discard(cohi_ucx_request *request, cohi_op *op)
{
    cohi_part_join(&request->part, op, request->link->rank);
    cohi_ucx_part_end(request->link->endpoint, &request->part, COH_PEER_LOST);
    give_back(request->link->endpoint, request);
}

static void append(cohi_ucx_list *list, cohi_ucx_request *request)
{
    request->next = NULL;
    request->previous = list->last;
    if (list->last)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
}

static void take_out(cohi_ucx_list *list, cohi_ucx_request *request)
{
    if (request->next)
        request->next->previous = request->previous;
    else
        list->last = request->previous;
    if (request->previous)
        request->previous->next = request->next;
    else
        list->first = request->next;
}

/* ---- ends ---- */

/* A quiet is over when it is answered and nothing that its context issued before is under way: the
 * answer may overtake the bytes of a long get, and UCX's word that a source may be used again. */
static bool is_settled(const cohi_ucx_request *quiet)
{
    for (const cohi_ucx_request *before = quiet->previous; before; before = before->previous)
        if (before->counted && before->context == quiet->context)
            return false;
    return true;
}

static bool is_quiet(const cohi_ucx_request *request)
{
    return request->frame.verb == COHI_UCX_QUIET;
}

static void note_complete(cohi_ucx_count *count, uint64_t mark)
{
    if (mark > count->complete)
        count->complete = mark;
}

static void finish(cohi_ucx_request *request)
{
    cohi_ucx_link *link = request->link;
    take_out(&link->requests, request);
    if (request->served >= 0)
        link->endpoint->segments.rows[request->served].busy--;
    if (is_quiet(request) && request->status == COH_OK)
        note_complete(&link->counts[request->context], request->mark);
    cohi_ucx_part_end(link->endpoint, &request->part, request->status);
    give_back(link->endpoint, request);
}

static bool is_under_way(const cohi_ucx_request *request)
{
    return request->sending || request->awaited || request->landing;
}

static void settle_quiets(cohi_ucx_link *link)
{
    cohi_ucx_request *next, *request = link->requests.first;
    for (; request && link->unsettled > 0; request = next) {
        next = request->next;
        if (is_quiet(request) && !is_under_way(request) && is_settled(request)) {
            link->unsettled--;
            finish(request);
        }
    }
}

/* Something of it has come to its end. */
static void conclude(cohi_ucx_request *request)
{
    cohi_ucx_link *link = request->link;
    if (is_under_way(request))
        return;
    if (is_quiet(request) && !link->ended && !is_settled(request)) {
        link->unsettled++;
        return;
    }
    finish(request);
    if (link->unsettled > 0)
        settle_quiets(link);
}

void cohi_ucx_request_answered(cohi_ucx_request *request)
{
    request->awaited = false;
    conclude(request);
}

/* Who leaves does not wait for those that are gone. */
static void fail_request(cohi_ucx_request *request)
{
    if (request->status == COH_OK && request->frame.verb != COHI_UCX_LEAVE)
        request->status = COH_PEER_LOST;
}

void cohi_ucx_requests_drop(cohi_ucx_link *link)
{
    cohi_ucx_request *next, *request = link->requests.first;
    link->unsettled = 0;
    for (; request; request = next) {
        next = request->next;
        fail_request(request);
        request->awaited = false;
        conclude(request);
    }
}

/* ---- giving up ---- */

static int quieted_context(const cohi_ucx_link *link, const cohi_op *op)
{
    for (const cohi_ucx_request *request = link->requests.first; request; request = request->next)
        if (request->part.op == op && is_quiet(request))
            return (int)request->context;
    return -1;
}

/* Whether it is the op's, or is to be completed by it. */
static bool is_of(const cohi_ucx_request *request, const cohi_op *op, int quieted)
{
    return request->part.op == op
           || (!request->part.op && request->counted && (int)request->context == quieted);
}

/* Whether UCX has bytes of the caller's memory. */
static bool holds_memory(const cohi_ucx_request *request)
{
    return request->landing || (request->sending && request->source);
}

bool cohi_ucx_requests_hold_memory(const cohi_ucx_link *link, const cohi_op *op)
{
    int quieted = quieted_context(link, op);
    for (const cohi_ucx_request *request = link->requests.first; request; request = request->next)
        if (is_of(request, op, quieted) && holds_memory(request))
            return true;
    return false;
}

bool cohi_ucx_requests_withdraw(cohi_ucx_link *link, const cohi_op *op)
{
    int quieted = quieted_context(link, op);
    bool intact = true;
    for (cohi_ucx_request *request = link->requests.first; request; request = request->next) {
        if (!is_of(request, op, quieted))
            continue;
        request->target = request->landing ? request->target : NULL;
        if (holds_memory(request)) {
            request->status = COH_TRANSPORT;
            intact = false;
        } else if (request->part.op == op) {
            cohi_ucx_part_end(link->endpoint, &request->part, COH_TRANSPORT);
        }
    }
    return intact;
}

/* ---- sending ---- */

static void on_sent(void *ucx_request, ucs_status_t status, void *arg)
{
    cohi_ucx_request *request = arg;
    request->link->endpoint->ucx->ucp_request_free(ucx_request);
    request->sending = false;
    if (status == UCS_OK && request->frame.bytes > COHI_UCX_EAGER_BYTES)
        request->link->silent_ns = 0; /* the target has fetched it */
    if (status != UCS_OK) {
        fail_request(request);
        request->awaited = false;
    }
    conclude(request);
}

static ucs_status_ptr_t hand_over(cohi_ucx_request *request, const void *payload)
{
    const cohi_ucx_link *link = request->link;
    size_t bytes = payload ? (size_t)request->frame.bytes : 0;
    bool eager = bytes <= COHI_UCX_EAGER_BYTES || request->frame.verb == COHI_UCX_MESSAGE;
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = eager ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV,
        .cb.send = on_sent,
        .user_data = request,
    };
    return link->endpoint->ucx->ucp_am_send_nbx(link->ep, COHI_UCX_FRAME_ID, &request->frame,
                                                sizeof request->frame + request->frame.head_bytes,
                                                payload, bytes, &param);
}

static bool is_answered(unsigned verb)
{
    return verb == COHI_UCX_GET || verb == COHI_UCX_FETCH || verb == COHI_UCX_QUIET
           || verb == COHI_UCX_LEAVE;
}

/* A short payload is copied, so that its source is free when the call returns. */
static const void *place_payload(cohi_ucx_request *request, const void *source)
{
    if (!source || request->frame.bytes == 0)
        return NULL;
    if (request->frame.bytes > sizeof request->copied) {
        request->source = source;
        return source;
    }
    memcpy(request->copied, source, (size_t)request->frame.bytes);
    return request->copied;
}

static void number_frame(cohi_ucx_link *link, cohi_ucx_frame *frame)
{
    frame->number = ++link->sent;
    if (is_answered(frame->verb))
        frame->ticket = ++link->tickets;
    if (link->fences != link->endpoint->fences || frame->verb == COHI_UCX_QUIET
        || frame->verb == COHI_UCX_LEAVE)
        frame->after = 1;
    link->fences = link->endpoint->fences;
}

void cohi_ucx_request_submit(cohi_ucx_request *request, const void *source, cohi_op *op)
{
    cohi_ucx_link *link = request->link;
    cohi_part_join(&request->part, op, link->rank);
    append(&link->requests, request);
    number_frame(link, &request->frame);
    request->awaited = is_answered(request->frame.verb);
    ucs_status_ptr_t sent = hand_over(request, place_payload(request, source));
    link->spoke = true;
    request->sending = UCS_PTR_IS_PTR(sent);
    if (UCS_PTR_IS_ERR(sent))
        cohi_ucx_link_end(link, COHI_LOSS_LINK); /* a frame is missing: nothing can follow it */
    else
        conclude(request);
}
