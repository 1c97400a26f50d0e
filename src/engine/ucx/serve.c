#include "engine/ucx/ucx.h"

#include "base/log.h"
#include "engine/modules/words.h"

#include <stdlib.h>
#include <string.h>

/* ---- puts ---- */

static cohi_word word_at(const cohi_ucx_frame *frame, uint64_t offset)
{
    return (cohi_word){
        .segment = frame->segment, .generation = frame->generation, .offset = offset};
}

static const char *end_put(cohi_ucx_link *link, const cohi_ucx_frame *frame)
{
    cohi_events_note_write(&link->endpoint->events, frame->segment);
    if (frame->verb != COHI_UCX_PUT_SIGNAL)
        return NULL;
    return cohi_apply_signal(&link->endpoint->segments, word_at(frame, frame->signal_offset),
                             frame->signal_value, frame->add);
}

/* A put whose bytes UCX fetches into this rank's segment. */
struct landing {
    cohi_ucx_link *link;
    cohi_ucx_frame frame;
};

static void end_landing(struct landing *landing, ucs_status_t status)
{
    cohi_ucx_link *link = landing->link;
    link->silent_ns = 0;
    const char *wrong = NULL;
    link->landings--;
    link->endpoint->segments.rows[landing->frame.segment].busy--;
    if (status == UCS_OK && !link->ended)
        wrong = end_put(link, &landing->frame);
    if (wrong)
        cohi_ucx_link_refuse(link, landing->frame.verb, wrong);
    free(landing);
    cohi_ucx_receive_more(link);
}

static void on_landed(void *ucx_request, ucs_status_t status, size_t bytes, void *arg)
{
    struct landing *landing = arg;
    (void)bytes;
    landing->link->endpoint->ucx->ucp_request_free(ucx_request);
    end_landing(landing, status);
}

static ucs_status_ptr_t fetch_payload(cohi_endpoint *endpoint, const cohi_ucx_arrival *arrival,
                                      char *target, ucp_am_recv_data_nbx_callback_t on_end,
                                      void *arg)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv_am = on_end,
                                 .user_data = arg};
    return endpoint->ucx->ucp_am_recv_data_nbx(endpoint->worker, arrival->data, target,
                                               arrival->bytes, &param);
}

static const char *land(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, char *place)
{
    cohi_endpoint *endpoint = link->endpoint;
    struct landing *landing = malloc(sizeof *landing);
    if (!landing)
        return "there is no memory to receive it";
    *landing = (struct landing){.link = link, .frame = arrival->frame};
    link->landings++;
    endpoint->segments.rows[arrival->frame.segment].busy++;
    ucs_status_ptr_t landed = fetch_payload(endpoint, arrival, place, on_landed, landing);
    if (!UCS_PTR_IS_PTR(landed))
        end_landing(landing, UCS_PTR_STATUS(landed));
    return UCS_PTR_IS_ERR(landed) ? "UCX cannot fetch it" : NULL;
}

static const char *serve_put(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    const cohi_ucx_frame *frame = &arrival->frame;
    const char *wrong = NULL;
    if (frame->bytes != arrival->bytes)
        return "its length is not what it says";
    char *place = cohi_ucx_locate(link->endpoint, frame, frame->offset, frame->bytes, &wrong);
    if (!wrong && frame->verb == COHI_UCX_PUT_SIGNAL)
        (void)cohi_ucx_locate(link->endpoint, frame, frame->signal_offset, sizeof(uint64_t),
                              &wrong);
    if (wrong)
        return wrong;
    if (arrival->fetched) {
        *taken = true;
        return land(link, arrival, place);
    }
    if (frame->bytes > 0)
        cohi_words_store(place, arrival->data, frame->bytes);
    return end_put(link, frame);
}

/* ---- what is answered ---- */

static cohi_ucx_request *new_answer(cohi_ucx_link *link, const cohi_ucx_frame *asked)
{
    cohi_ucx_request *answer = link->ep ? cohi_ucx_request_new(link, COHI_UCX_ANSWER) : NULL;
    if (answer)
        answer->frame.ticket = asked->ticket;
    return answer;
}

static const char no_memory[] = "there is no memory to answer it";

static const char *serve_get(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    const cohi_ucx_frame *frame = &arrival->frame;
    const char *wrong = NULL;
    uint64_t word;
    (void)taken;
    const char *place = cohi_ucx_locate(link->endpoint, frame, frame->offset, frame->bytes, &wrong);
    if (wrong)
        return wrong;
    cohi_ucx_request *answer = new_answer(link, frame);
    if (!answer)
        return no_memory;
    answer->frame.bytes = frame->bytes;
    if (cohi_words_is_one(place, frame->bytes)) {
        cohi_words_copy(&word, place, frame->bytes);
        place = (const char *)&word;
    } else if (frame->bytes > sizeof answer->copied) {
        answer->served = frame->segment;
        link->endpoint->segments.rows[frame->segment].busy++;
    }
    cohi_ucx_request_submit(answer, place, NULL);
    return NULL;
}

static const char *apply_atomic(cohi_endpoint *endpoint, const cohi_ucx_frame *frame,
                                uint64_t *before, size_t *bytes)
{
    cohi_remote_atomic atomic = {.kind = (coh_atomic_op)frame->kind,
                                 .dtype = (coh_dtype)frame->dtype,
                                 .operand = &frame->operand,
                                 .compare = &frame->compare};
    cohi_events_note_write(&endpoint->events, frame->segment);
    return cohi_apply_atomic(&endpoint->segments, word_at(frame, frame->offset), &atomic, before,
                             bytes);
}

static const char *serve_post(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    uint64_t before;
    size_t bytes;
    (void)taken;
    return apply_atomic(link->endpoint, &arrival->frame, &before, &bytes);
}

static const char *serve_fetch(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    uint64_t before;
    size_t bytes;
    (void)taken;
    const char *wrong = apply_atomic(link->endpoint, &arrival->frame, &before, &bytes);
    if (wrong)
        return wrong;
    cohi_ucx_request *answer = new_answer(link, &arrival->frame);
    if (!answer)
        return no_memory;
    answer->frame.bytes = bytes;
    cohi_ucx_request_submit(answer, &before, NULL);
    return NULL;
}

static const char *serve_quiet(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    (void)taken;
    cohi_ucx_request *answer = new_answer(link, &arrival->frame);
    if (!answer)
        return no_memory;
    cohi_ucx_request_submit(answer, NULL, NULL);
    return NULL;
}

static void note_left(cohi_ucx_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (!link->peer_left)
        cohi_events_add(&endpoint->events,
                        cohi_event_new(&endpoint->events, COHI_EVENT_LEFT, link->rank, 0));
    link->peer_left = true;
}

static const char *serve_leave(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    const char *wrong = serve_quiet(link, arrival, taken);
    note_left(link);
    return wrong;
}

static const char *serve_gone(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    (void)arrival;
    (void)taken;
    note_left(link);
    cohi_ucx_link_end(link, COHI_LOSS_LEFT);
    return NULL;
}

/* ---- answers to what this rank asked ---- */

static cohi_ucx_request *find_asked(cohi_ucx_link *link, uint64_t ticket)
{
    cohi_ucx_request *request = link->requests.first;
    while (request && !(request->awaited && request->frame.ticket == ticket))
        request = request->next;
    return request;
}

static void on_answer_landed(void *ucx_request, ucs_status_t status, size_t bytes, void *arg)
{
    cohi_ucx_request *request = arg;
    (void)bytes;
    request->link->endpoint->ucx->ucp_request_free(ucx_request);
    request->landing = false;
    request->link->silent_ns = 0;
    if (status != UCS_OK && request->status == COH_OK)
        request->status = COH_PEER_LOST;
    cohi_ucx_request_answered(request);
}

static bool carries_answer(const cohi_ucx_request *request)
{
    return request->frame.verb == COHI_UCX_GET || request->frame.verb == COHI_UCX_FETCH;
}

static size_t expected_bytes(const cohi_ucx_request *request)
{
    const cohi_ucx_frame *frame = &request->frame;
    if (frame->verb == COHI_UCX_FETCH)
        return coh_dtype_size((coh_dtype)frame->dtype);
    return carries_answer(request) ? (size_t)frame->bytes : 0;
}

/* Of an operation that was given up nothing is received. */
static const char *land_answer(cohi_ucx_link *link, const cohi_ucx_arrival *arrival,
                               cohi_ucx_request *request, bool *taken)
{
    if (!request->target) {
        cohi_ucx_request_answered(request);
        return NULL;
    }
    *taken = true;
    request->landing = true;
    ucs_status_ptr_t landed =
        fetch_payload(link->endpoint, arrival, request->target, on_answer_landed, request);
    if (UCS_PTR_IS_PTR(landed))
        return NULL;
    request->landing = false;
    if (UCS_PTR_IS_ERR(landed))
        return "UCX cannot fetch it";
    cohi_ucx_request_answered(request);
    return NULL;
}

static const char *serve_answer(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    cohi_ucx_request *request = find_asked(link, arrival->frame.ticket);
    if (!request)
        return "nobody asked for it";
    if (arrival->bytes != expected_bytes(request))
        return "its length is not what was asked for";
    if (arrival->fetched)
        return land_answer(link, arrival, request, taken);
    if (request->target && arrival->bytes > 0)
        memcpy(request->target, arrival->data, arrival->bytes);
    cohi_ucx_request_answered(request);
    return NULL;
}

/* ---- messages and the rest ---- */

static const char *serve_message(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    size_t head_bytes = arrival->frame.head_bytes;
    (void)taken;
    if (arrival->fetched || arrival->bytes != arrival->frame.bytes
        || arrival->bytes + head_bytes > COHI_UCX_MESSAGE_BYTES)
        return "its length is wrong";
    const cohi_event_message message = {.head = (const char *)arrival->head,
                                        .head_bytes = head_bytes,
                                        .body = arrival->data,
                                        .body_bytes = arrival->bytes};
    if (arrival->bytes > 0 && cohi_events_place(&link->endpoint->events, link->rank, &message))
        return NULL;
    cohi_event *event = cohi_event_new(&link->endpoint->events, COHI_EVENT_DELIVERED, link->rank,
                                       head_bytes + arrival->bytes);
    if (!event)
        return "there is no memory for its message here";
    memcpy(cohi_event_bytes(event), arrival->head, head_bytes);
    if (arrival->bytes > 0)
        memcpy((char *)cohi_event_bytes(event) + head_bytes, arrival->data, arrival->bytes);
    cohi_events_add(&link->endpoint->events, event);
    return NULL;
}

static const char *serve_keepalive(cohi_ucx_link *link, const cohi_ucx_arrival *arrival,
                                   bool *taken)
{
    (void)link;
    (void)arrival;
    (void)taken;
    return NULL;
}

typedef const char *serve_frame(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken);

static serve_frame *const by_verb[COHI_UCX_VERBS] = {
    [COHI_UCX_PUT] = serve_put,
    [COHI_UCX_PUT_SIGNAL] = serve_put,
    [COHI_UCX_GET] = serve_get,
    [COHI_UCX_POST] = serve_post,
    [COHI_UCX_FETCH] = serve_fetch,
    [COHI_UCX_QUIET] = serve_quiet,
    [COHI_UCX_LEAVE] = serve_leave,
    [COHI_UCX_GONE] = serve_gone,
    [COHI_UCX_MESSAGE] = serve_message,
    [COHI_UCX_ANSWER] = serve_answer,
    [COHI_UCX_KEEPALIVE] = serve_keepalive,
};

const char *cohi_ucx_serve(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken)
{
    unsigned verb = arrival->frame.verb;
    if (verb >= COHI_UCX_VERBS || !by_verb[verb])
        return "there is no such frame";
    if (arrival->frame.segment >= COHI_SEGMENTS_MAX)
        return "there is no such segment";
    return by_verb[verb](link, arrival, taken);
}
