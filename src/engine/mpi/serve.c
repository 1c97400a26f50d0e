#include "engine/mpi/mpi.h"

#include "engine/modules/words.h"

#include <string.h>

static char *locate(const cohi_endpoint *endpoint, const cohi_mpi_frame *frame, uint64_t bytes,
                    const char **wrong)
{
    cohi_remote at = {.segment = frame->segment, .offset = frame->offset};
    return cohi_segments_locate(&endpoint->segments, &at, frame->generation, bytes, wrong);
}

static cohi_word word_at(const cohi_mpi_frame *frame, uint64_t offset)
{
    return (cohi_word){
        .segment = frame->segment, .generation = frame->generation, .offset = offset};
}

/* ---- puts ---- */

static const char *serve_put(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    const cohi_mpi_frame *frame = &arrival->frame;
    const char *wrong = NULL;
    char *place = locate(link->endpoint, frame, frame->payload, &wrong);
    if (wrong)
        return wrong;
    if (frame->payload > 0)
        cohi_words_store(place, arrival->payload, frame->payload);
    cohi_events_note_write(&link->endpoint->events, frame->segment);
    return frame->signals
               ? cohi_apply_signal(&link->endpoint->segments, word_at(frame, frame->operand),
                                   frame->compare, frame->add)
               : NULL;
}

/* ---- what is answered ---- */

static const char *answer(cohi_mpi_link *link, const cohi_mpi_answer *made)
{
    return cohi_mpi_answer_submit(link, made) ? NULL : "there is no memory to answer it";
}

static const char *serve_get(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    const cohi_mpi_frame *frame = &arrival->frame;
    cohi_mpi_answer made = {.number = frame->number};
    const char *wrong = NULL;
    const char *place = locate(link->endpoint, frame, frame->bytes, &wrong);
    if (wrong)
        return wrong;
    if (cohi_words_is_one(place, frame->bytes)) {
        cohi_words_copy(&made.value, place, frame->bytes);
        made.value_bytes = (size_t)frame->bytes;
    } else {
        made.from = word_at(frame, frame->offset);
        made.left = frame->bytes;
    }
    return answer(link, &made);
}

static const char *apply(cohi_mpi_link *link, const cohi_mpi_frame *frame, uint64_t *before,
                         size_t *bytes)
{
    cohi_remote_atomic atomic = {.kind = (coh_atomic_op)frame->kind,
                                 .dtype = (coh_dtype)frame->dtype,
                                 .operand = &frame->operand,
                                 .compare = &frame->compare};
    cohi_events_note_write(&link->endpoint->events, frame->segment);
    return cohi_apply_atomic(&link->endpoint->segments, word_at(frame, frame->offset), &atomic,
                             before, bytes);
}

static const char *serve_post(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    uint64_t before;
    size_t bytes;
    return apply(link, &arrival->frame, &before, &bytes);
}

static const char *serve_fetch(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    cohi_mpi_answer made = {.number = arrival->frame.number};
    const char *wrong = apply(link, &arrival->frame, &made.value, &made.value_bytes);
    return wrong ? wrong : answer(link, &made);
}

static const char *serve_quiet(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    cohi_mpi_answer made = {.number = arrival->frame.number};
    return answer(link, &made);
}

/* Where both leave, each one's word that it does is the answer to the other's. So nothing is on its way to
 * a rank that has closed, of which MPI would complain. */
static const char *serve_leave(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    cohi_endpoint *endpoint = link->endpoint;
    const char *wrong = link->told ? NULL : serve_quiet(link, arrival);
    if (!link->peer_left)
        cohi_events_add(&endpoint->events,
                        cohi_event_new(&endpoint->events, COHI_EVENT_LEFT, link->rank, 0));
    link->peer_left = true;
    unsigned char alive = COHI_MPI_ALIVE;
    (void)atomic_compare_exchange_strong(&endpoint->fates[link->rank], &alive, COHI_MPI_LEFT);
    cohi_mpi_excuse_leave(link);
    return wrong;
}

/* ---- answers to what this rank asked ---- */

static const char *serve_answer(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    const cohi_mpi_frame *frame = &arrival->frame;
    cohi_mpi_request *request = link->awaited.first;
    if (!request || request->frame.number != frame->number)
        return "nobody asked for it";
    if (frame->payload > request->expected || (frame->payload == 0 && request->expected > 0))
        return "its length is not what was asked for";
    if (request->target && frame->payload > 0) {
        memcpy(request->target, arrival->payload, frame->payload);
        request->target += frame->payload;
    }
    request->expected -= frame->payload;
    if (request->expected == 0)
        cohi_mpi_answered(link);
    return NULL;
}

/* ---- messages and the rest ---- */

static void give_kept(cohi_event *event)
{
    cohi_endpoint *endpoint = event->owner;
    cohi_mpi_buffer *buffer = (cohi_mpi_buffer *)((char *)event - offsetof(cohi_mpi_buffer, event));
    cohi_mpi_lock(endpoint);
    buffer->kept = false;
    cohi_mpi_buffer_give(endpoint, buffer);
    cohi_mpi_unlock(endpoint);
}

/* A long one stays in its buffer, and another buffer receives. */
static const char *keep_message(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    arrival->kept = true;
    arrival->event = (cohi_event){.kind = COHI_EVENT_DELIVERED,
                                  .rank = link->rank,
                                  .count = arrival->frame.payload,
                                  .message = arrival->payload,
                                  .owner = link->endpoint,
                                  .release = give_kept};
    cohi_events_add(&link->endpoint->events, &arrival->event);
    return NULL;
}

static const char *serve_message(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    enum { KEPT_FROM = 4096 };
    size_t count = arrival->frame.payload;
    if (count >= KEPT_FROM)
        return keep_message(link, arrival);
    cohi_event *event =
        cohi_event_new(&link->endpoint->events, COHI_EVENT_DELIVERED, link->rank, count);
    if (!event)
        return "there is no memory for its message here";
    memcpy(cohi_event_bytes(event), arrival->payload, count);
    cohi_events_add(&link->endpoint->events, event);
    return NULL;
}

static const char *serve_keepalive(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    (void)link;
    (void)arrival;
    return NULL;
}

/* A rank is told of by those of its host alone. */
static const char *serve_loss(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    cohi_endpoint *endpoint = link->endpoint;
    uint64_t rank = arrival->frame.offset;
    if (rank >= (uint64_t)endpoint->size
        || endpoint->host_of[rank] != endpoint->host_of[link->rank])
        return "there is no such rank on its host";
    cohi_mpi_link *lost = cohi_mpi_link_from(endpoint, (int)rank);
    if (lost)
        cohi_mpi_link_end(lost, COHI_LOSS_LINK);
    return NULL;
}

typedef const char *serve_frame(cohi_mpi_link *link, cohi_mpi_buffer *arrival);

static serve_frame *const by_verb[COHI_MPI_VERBS] = {
    [COHI_MPI_PUT] = serve_put,
    [COHI_MPI_GET] = serve_get,
    [COHI_MPI_POST] = serve_post,
    [COHI_MPI_FETCH] = serve_fetch,
    [COHI_MPI_QUIET] = serve_quiet,
    [COHI_MPI_LEAVE] = serve_leave,
    [COHI_MPI_MESSAGE] = serve_message,
    [COHI_MPI_ANSWER] = serve_answer,
    [COHI_MPI_KEEPALIVE] = serve_keepalive,
    [COHI_MPI_LOSS] = serve_loss,
};

const char *cohi_mpi_serve(cohi_mpi_link *link, cohi_mpi_buffer *arrival)
{
    unsigned verb = arrival->frame.verb;
    if (verb >= COHI_MPI_VERBS || !by_verb[verb])
        return "there is no such frame";
    if (arrival->frame.segment >= COHI_SEGMENTS_MAX)
        return "there is no such segment";
    return by_verb[verb](link, arrival);
}
