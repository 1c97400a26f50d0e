#include "engine/ucx/ucx.h"

#include "base/error.h"

#include <string.h>

/* ---- one request to one rank ---- */

/* Takes the lock, which end_request gives back. */
static coh_status begin_request(cohi_endpoint *endpoint, int rank, cohi_ucx_verb verb,
                                cohi_ucx_request **request)
{
    cohi_ucx_link *link;
    cohi_ucx_lock(endpoint);
    coh_status status = cohi_ucx_link_to(endpoint, rank, &link);
    *request = status == COH_OK ? cohi_ucx_request_new(link, verb) : NULL;
    if (status == COH_OK && !*request)
        status = cohi_fail(COH_NO_MEMORY, "ucx: out of memory for a request to rank %d", rank);
    if (status != COH_OK)
        cohi_ucx_unlock(endpoint);
    return status;
}

static coh_status end_request(cohi_ucx_request *request, const void *source, cohi_op *op)
{
    cohi_endpoint *endpoint = request->link->endpoint;
    cohi_ucx_request_submit(request, source, op);
    cohi_ucx_end_call(endpoint);
    return COH_OK;
}

/* The next quiet of the context is for it too, unless its op tells that it is complete. */
static void aim(cohi_ucx_request *request, cohi_remote at, bool by_quiet)
{
    cohi_ucx_link *link = request->link;
    request->context = at.context;
    request->counted = true;
    link->counts[at.context].issued += by_quiet;
    request->frame.segment = (uint16_t)at.segment;
    request->frame.generation = link->endpoint->segments.rows[at.segment].peers[link->rank];
    request->frame.offset = at.offset;
}

/* ---- rma ---- */

/* A put or a get, of any length. */
struct transfer {
    cohi_ucx_verb verb;
    cohi_remote at;
    const char *source; /* of a put */
    char *target;       /* of a get */
    size_t bytes;
    const cohi_remote_signal *signal; /* of a put, which the last piece carries; or NULL */
    cohi_op *op;
};

/* The signal's piece waits at the target for those before it. */
static void add_signal(cohi_ucx_frame *frame, const cohi_remote_signal *signal, bool is_only)
{
    frame->verb = COHI_UCX_PUT_SIGNAL;
    frame->after = !is_only;
    frame->add = signal->add;
    frame->signal_offset = signal->offset;
    frame->signal_value = signal->value;
}

static void submit_piece(const struct transfer *whole, size_t first, cohi_ucx_request *request)
{
    size_t left = whole->bytes - first;
    bool is_last = left <= COHI_UCX_PIECE_BYTES;
    cohi_remote at = whole->at;
    at.offset += first;
    if (request->link->ended) {
        cohi_ucx_request_discard(request, whole->op);
        return;
    }
    aim(request, at, whole->verb == COHI_UCX_PUT || !whole->op);
    request->frame.bytes = is_last ? left : COHI_UCX_PIECE_BYTES;
    request->target = whole->target ? whole->target + first : NULL;
    if (is_last && whole->signal)
        add_signal(&request->frame, whole->signal, first == 0);
    cohi_ucx_request_submit(request, whole->source ? whole->source + first : NULL, whole->op);
}

/* The op is held while its pieces are issued: the first may be done before the last is there. */
static coh_status issue(cohi_endpoint *endpoint, const struct transfer *whole)
{
    size_t count = (whole->bytes + COHI_UCX_PIECE_BYTES - 1) / COHI_UCX_PIECE_BYTES, first = 0;
    cohi_ucx_link *link;
    cohi_ucx_request *request = NULL;
    cohi_part hold;
    cohi_ucx_lock(endpoint);
    coh_status status = cohi_ucx_link_to(endpoint, whole->at.rank, &link);
    if (status == COH_OK) {
        request = cohi_ucx_requests_new(link, whole->verb, count > 0 ? count : 1);
        if (!request)
            status = cohi_fail(COH_NO_MEMORY, "ucx: out of memory for a request to rank %d",
                               whole->at.rank);
    }
    if (status != COH_OK) {
        cohi_ucx_unlock(endpoint);
        return status;
    }
    cohi_part_join(&hold, whole->op, whole->at.rank);
    for (cohi_ucx_request *next; request; request = next, first += COHI_UCX_PIECE_BYTES) {
        next = request->next;
        submit_piece(whole, first, request);
    }
    cohi_ucx_part_end(endpoint, &hold, COH_OK);
    cohi_ucx_end_call(endpoint);
    return COH_OK;
}

static coh_status ucx_put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                          cohi_op *op)
{
    const struct transfer whole = {
        .verb = COHI_UCX_PUT, .at = to, .source = source, .bytes = bytes, .op = op};
    return issue(endpoint, &whole);
}

static coh_status ucx_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                          cohi_op *op)
{
    const struct transfer whole = {
        .verb = COHI_UCX_GET, .at = from, .target = target, .bytes = bytes, .op = op};
    return issue(endpoint, &whole);
}

static coh_status ucx_put_signal(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                                 size_t bytes, const cohi_remote_signal *signal, cohi_op *op)
{
    const struct transfer whole = {.verb = COHI_UCX_PUT,
                                   .at = to,
                                   .source = source,
                                   .bytes = bytes,
                                   .signal = signal,
                                   .op = op};
    return issue(endpoint, &whole);
}

/* The next frame to each target waits there for all before it. That is for all contexts, which is more
 * than asked. */
static coh_status ucx_fence(cohi_endpoint *endpoint, unsigned context)
{
    (void)context;
    cohi_ucx_lock(endpoint);
    endpoint->fences++;
    cohi_ucx_unlock(endpoint);
    return COH_OK;
}

const cohi_engine_rma cohi_ucx_rma = {
    .size = sizeof cohi_ucx_rma,
    .put = ucx_put,
    .get = ucx_get,
    .put_signal = ucx_put_signal,
    .fence = ucx_fence,
    .quiet = cohi_ucx_quiet,
};

/* ---- atomic ---- */

static void describe_atomic(cohi_ucx_frame *frame, const cohi_remote_atomic *call)
{
    size_t bytes = coh_dtype_size(call->dtype);
    frame->kind = (uint16_t)call->kind;
    frame->dtype = (uint16_t)call->dtype;
    if (call->operand)
        memcpy(&frame->operand, call->operand, bytes);
    if (call->compare)
        memcpy(&frame->compare, call->compare, bytes);
}

static coh_status ucx_post(cohi_endpoint *endpoint, cohi_remote at,
                           const cohi_remote_atomic *atomic)
{
    cohi_ucx_request *request;
    coh_status status = begin_request(endpoint, at.rank, COHI_UCX_POST, &request);
    if (status != COH_OK)
        return status;
    aim(request, at, true);
    describe_atomic(&request->frame, atomic);
    return end_request(request, NULL, NULL);
}

static coh_status ucx_fetch(cohi_endpoint *endpoint, cohi_remote at,
                            const cohi_remote_atomic *atomic, void *result, cohi_op *op)
{
    cohi_ucx_request *request;
    coh_status status = begin_request(endpoint, at.rank, COHI_UCX_FETCH, &request);
    if (status != COH_OK)
        return status;
    aim(request, at, !op);
    describe_atomic(&request->frame, atomic);
    request->target = result;
    return end_request(request, NULL, op);
}

const cohi_engine_atomic cohi_ucx_atomic = {
    .size = sizeof cohi_ucx_atomic,
    .post = ucx_post,
    .fetch = ucx_fetch,
};

/* ---- channel ---- */

static coh_status ucx_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                           const void *body, size_t body_bytes, cohi_op *op)
{
    cohi_ucx_request *request;
    coh_status status = begin_request(endpoint, rank, COHI_UCX_MESSAGE, &request);
    if (status != COH_OK)
        return status;
    memcpy(request->head, head, head_bytes);
    request->frame.head_bytes = (uint16_t)head_bytes;
    request->frame.bytes = body_bytes;
    return end_request(request, body, op);
}

const cohi_engine_channel cohi_ucx_channel = {
    .size = sizeof cohi_ucx_channel,
    .send = ucx_send,
};
