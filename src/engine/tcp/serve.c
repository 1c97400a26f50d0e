#include "engine/tcp/tcp.h"

#include "base/error.h"
#include "engine/modules/words.h"
#include "memory/host_atomic.h"

#include <stdlib.h>
#include <string.h>

/* A peer has written into the frame's segment. */
static void note_write(cohi_endpoint *endpoint, const cohi_tcp_frame *frame)
{
    bool control = frame->head.segment == COHI_SEGMENT_CONTROL;
    atomic_store_explicit(control ? &endpoint->rings : &endpoint->stores, 1, memory_order_relaxed);
}

/* ---- puts ---- */

static const char *signal_word(cohi_endpoint *endpoint, const cohi_tcp_frame *frame)
{
    const cohi_tcp_signal *signal = &frame->extension.signal;
    const char *wrong = NULL;
    pthread_mutex_lock(&endpoint->segments_lock);
    char *place =
        cohi_tcp_locate(endpoint, &frame->head, signal->offset, sizeof signal->value, &wrong);
    if (place && !cohi_words_is_one(place, sizeof signal->value)) {
        wrong = "its signal is not aligned";
    } else if (place && frame->head.add) {
        uint64_t before;
        cohi_host_atomic_find(COH_ATOMIC_ADD, COH_U64)(place, &signal->value, NULL, &before);
    } else if (place) {
        cohi_words_copy(place, &signal->value, sizeof signal->value);
    }
    pthread_mutex_unlock(&endpoint->segments_lock);
    return wrong;
}

static const char *end_put(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    note_write(link->endpoint, frame);
    return frame->head.verb == COHI_TCP_PUT_SIGNAL ? signal_word(link->endpoint, frame) : NULL;
}

/* The signal is checked before the first byte is stored. */
static const char *check_put(const cohi_endpoint *endpoint, const cohi_tcp_frame *frame,
                             char **place)
{
    const char *wrong = NULL;
    *place = cohi_tcp_locate(endpoint, &frame->head, frame->head.offset, frame->head.bytes, &wrong);
    if (!wrong && frame->head.verb == COHI_TCP_PUT_SIGNAL)
        (void)cohi_tcp_locate(endpoint, &frame->head, frame->extension.signal.offset,
                              sizeof(uint64_t), &wrong);
    return wrong;
}

static const char *serve_put(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    cohi_endpoint *endpoint = link->endpoint;
    char *place;
    pthread_mutex_lock(&endpoint->segments_lock);
    const char *wrong = check_put(endpoint, frame, &place);
    if (!wrong && frame->payload && frame->head.bytes > 0)
        cohi_words_store(place, frame->payload, frame->head.bytes);
    pthread_mutex_unlock(&endpoint->segments_lock);
    if (wrong)
        return wrong;
    if (frame->payload)
        return end_put(link, frame);
    link->in.sink = COHI_TCP_SINK_SEGMENT;
    return NULL;
}

/* ---- what is answered ---- */

static const char *answer_with(cohi_tcp_link *link, const cohi_tcp_answer *answer)
{
    pthread_mutex_lock(&link->lock);
    bool queued = link->state != COHI_TCP_OPEN || cohi_tcp_answer_queue(link, answer);
    pthread_mutex_unlock(&link->lock);
    return queued ? NULL : "it is one request too many";
}

static const char *serve_get(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    const cohi_tcp_head *head = &frame->head;
    cohi_endpoint *endpoint = link->endpoint;
    const char *wrong = NULL;
    cohi_tcp_answer answer = {.number = head->number,
                              .segment = head->segment,
                              .generation = head->generation,
                              .offset = head->offset,
                              .left = head->bytes};
    pthread_mutex_lock(&endpoint->segments_lock);
    const char *place = cohi_tcp_locate(endpoint, head, head->offset, head->bytes, &wrong);
    if (place && cohi_words_is_one(place, head->bytes)) {
        cohi_words_copy(answer.value, place, head->bytes);
        answer.value_bytes = (size_t)head->bytes;
        answer.left = 0;
    }
    pthread_mutex_unlock(&endpoint->segments_lock);
    return wrong ? wrong : answer_with(link, &answer);
}

static const char *apply_atomic(cohi_endpoint *endpoint, const cohi_tcp_frame *frame,
                                cohi_tcp_answer *answer)
{
    const cohi_tcp_atomic *atomic = &frame->extension.atomic;
    size_t bytes = coh_dtype_size((coh_dtype)atomic->dtype);
    cohi_host_atomic *apply =
        cohi_host_atomic_find((coh_atomic_op)atomic->kind, (coh_dtype)atomic->dtype);
    const char *wrong = NULL;
    if (!apply)
        return "there is no such atomic operation";
    pthread_mutex_lock(&endpoint->segments_lock);
    char *place = cohi_tcp_locate(endpoint, &frame->head, frame->head.offset, bytes, &wrong);
    if (place && !cohi_host_aligned(place, bytes))
        wrong = "its word is not aligned";
    else if (place)
        apply(place, &atomic->operand, &atomic->compare, answer->value);
    pthread_mutex_unlock(&endpoint->segments_lock);
    answer->value_bytes = bytes;
    note_write(endpoint, frame);
    return wrong;
}

static const char *serve_post(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    cohi_tcp_answer unwanted;
    return apply_atomic(link->endpoint, frame, &unwanted);
}

static const char *serve_fetch(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    cohi_tcp_answer answer = {.number = frame->head.number};
    const char *wrong = apply_atomic(link->endpoint, frame, &answer);
    return wrong ? wrong : answer_with(link, &answer);
}

static const char *serve_quiet(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    return answer_with(link, &(cohi_tcp_answer){.number = frame->head.number});
}

static const char *serve_leave(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    pthread_mutex_lock(&link->lock);
    link->peer_left = true;
    cohi_tcp_excuse_leave(link);
    pthread_mutex_unlock(&link->lock);
    link->endpoint->upcalls->left(link->endpoint->world, link->rank);
    return serve_quiet(link, frame);
}

/* ---- answers to what this rank asked ---- */

/* A part of the first request's answer is in place. Locks held. */
static void end_answer_part(cohi_tcp_link *link, uint64_t bytes)
{
    cohi_tcp_request *request = link->out.awaited.first;
    request->expected -= bytes;
    if (request->target)
        request->target += bytes;
    if (request->expected == 0)
        cohi_tcp_answered(link);
}

static const char *take_answer(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    const cohi_tcp_head *head = &frame->head;
    cohi_tcp_request *request = link->out.awaited.first;
    if (!request || request->frame.head.number != head->number)
        return "nobody asked for it";
    if (head->bytes > request->expected || (head->bytes == 0 && request->expected > 0))
        return "its length is not what was asked for";
    if (!frame->payload) {
        link->in.sink = COHI_TCP_SINK_CALLER;
        return NULL;
    }
    if (request->target)
        memcpy(request->target, frame->payload, (size_t)head->bytes);
    end_answer_part(link, head->bytes);
    return NULL;
}

static const char *serve_answer(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    pthread_mutex_lock(&link->landing);
    pthread_mutex_lock(&link->lock);
    const char *wrong = take_answer(link, frame);
    pthread_mutex_unlock(&link->lock);
    pthread_mutex_unlock(&link->landing);
    return wrong;
}

static const char *end_answer(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    pthread_mutex_lock(&link->landing);
    pthread_mutex_lock(&link->lock);
    if (link->state == COHI_TCP_OPEN)
        end_answer_part(link, frame->head.bytes);
    pthread_mutex_unlock(&link->lock);
    pthread_mutex_unlock(&link->landing);
    return NULL;
}

/* ---- messages ---- */

/* By the thread, where no rank polls. */
static void note_served(cohi_tcp_poll *poll)
{
    if (!atomic_load_explicit(&poll->taken, memory_order_relaxed))
        atomic_store_explicit(&poll->served, 1, memory_order_relaxed);
}

static void deliver(cohi_tcp_link *link, const unsigned char *bytes, uint64_t count)
{
    link->endpoint->upcalls->deliver(link->endpoint->world, link->rank, bytes, (size_t)count);
    atomic_store_explicit(&link->endpoint->attends, 1, memory_order_relaxed);
}

/* Whether core takes the message as it comes. Its first bytes are here (receive.c). */
static bool claim(cohi_tcp_link *link, uint64_t count)
{
    const cohi_upcalls *upcalls = link->endpoint->upcalls;
    cohi_tcp_in *in = &link->in;
    cohi_arriving message = {
        .bytes = in->bytes + in->from, .here = in->to - in->from, .count = count};
    if (!upcalls->claim)
        return false;
    in->claim = upcalls->claim(link->endpoint->world, link->rank, &message, &in->skipped);
    if (!in->claim) {
        in->skipped = 0;
        return false;
    }
    in->from += in->skipped;
    in->sink = COHI_TCP_SINK_CLAIM;
    return true;
}

/* More of it must be to come, so that the socket tells of it also when no rank looks again. */
static bool put_off(cohi_tcp_in *in, uint64_t count)
{
    in->put_off = in->patient && count > in->to - in->from;
    return in->put_off;
}

static const char *serve_message(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    if (frame->payload) {
        note_served(&link->endpoint->poll);
        deliver(link, frame->payload, frame->head.bytes);
        return NULL;
    }
    if (claim(link, frame->head.bytes) || put_off(&link->in, frame->head.bytes))
        return NULL;
    if (!link->in.message)
        link->in.message = malloc(COHI_TCP_MESSAGE_BYTES);
    if (!link->in.message)
        return "there is no memory for its message here";
    link->in.sink = COHI_TCP_SINK_MESSAGE;
    return NULL;
}

/* What nobody received yet came the slow way: its buffer need not stay with each link for the next. */
static const char *end_message(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    note_served(&link->endpoint->poll);
    if (link->in.sink == COHI_TCP_SINK_CLAIM) {
        atomic_store_explicit(&link->endpoint->attends, 1, memory_order_relaxed);
        return NULL;
    }
    deliver(link, link->in.message, frame->head.bytes);
    free(link->in.message);
    link->in.message = NULL;
    return NULL;
}

/* ---- the rest ---- */

static const char *serve_keepalive(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    (void)link;
    (void)frame;
    return NULL;
}

static const char *serve_goodbye(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    cohi_tcp_link_hear_goodbye(link, frame->payload, (size_t)frame->head.bytes);
    return NULL;
}

typedef const char *serve_frame(cohi_tcp_link *link, const cohi_tcp_frame *frame);

static const struct serve_row {
    serve_frame *serve;
    serve_frame *end; /* of a payload that followed */
    size_t whole;
} rows[COHI_TCP_VERBS] = {
    [COHI_TCP_PUT] = {serve_put, end_put, COHI_INLINE_BYTES},
    [COHI_TCP_PUT_SIGNAL] = {serve_put, end_put, COHI_INLINE_BYTES},
    [COHI_TCP_GET] = {serve_get, NULL, 0},
    [COHI_TCP_POST] = {serve_post, NULL, 0},
    [COHI_TCP_FETCH] = {serve_fetch, NULL, 0},
    [COHI_TCP_QUIET] = {serve_quiet, NULL, 0},
    [COHI_TCP_LEAVE] = {serve_leave, NULL, 0},
    [COHI_TCP_MESSAGE] = {serve_message, end_message, COHI_TCP_WHOLE_BYTES},
    [COHI_TCP_ANSWER] = {serve_answer, end_answer, COHI_INLINE_BYTES},
    [COHI_TCP_KEEPALIVE] = {serve_keepalive, NULL, 0},
    [COHI_TCP_GOODBYE] = {serve_goodbye, NULL, COHI_TCP_REASON_BYTES},
};

size_t cohi_tcp_whole_bytes(unsigned verb)
{
    return rows[verb].whole;
}

const char *cohi_tcp_serve(cohi_tcp_link *link, const cohi_tcp_frame *frame)
{
    cohi_tcp_in *in = &link->in;
    in->skipped = 0;
    in->owes |= frame->head.verb != COHI_TCP_MESSAGE;
    const char *wrong = rows[frame->head.verb].serve(link, frame);
    in->last_was_long = !frame->payload;
    if (wrong || frame->payload)
        return wrong;
    in->frame = *frame;
    in->at = 0;
    in->left = cohi_tcp_payload_bytes(&frame->head) - in->skipped;
    return NULL;
}

const char *cohi_tcp_serve_end(cohi_tcp_link *link)
{
    cohi_tcp_in *in = &link->in;
    in->owes |= in->frame.head.verb != COHI_TCP_MESSAGE;
    return rows[in->frame.head.verb].end(link, &in->frame);
}
