#include "engine/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_REQUESTS = 16, /* memory for so many is made at a time */
    BATCH_REQUESTS = 16, /* of short requests that go in one system call */
    /*
     * In one system call. Each costs some 3 us beside its bytes. A put of 1 and 16 MiB over TCP on the loopback in writes of
     * 128 KiB / 256 / 512 KiB / 1 MiB: 170 us and 2.9 ms / 138 and 2.4 / 128 and 2.3 / 121 and 2.3 (Zen 5). Where the kernel
     * paces what is sent (congestion.h), 16 MiB take 2.9 / 2.7 / 2.5 to 3.4 / 3.0 to 3.4 ms. A whole frame with its head. Of
     * answers less, since nobody may store to this rank's segments meanwhile.
     */
    WRITE_BYTES = COHI_TCP_FRAME_BYTES + 256,
    ANSWER_BYTES = 256 << 10,
    TURN_BYTES = 8 << 20 /* then it is the turn of others: of the caller, and of other links */
};

struct cohi_tcp_chunk {
    struct cohi_tcp_chunk *next;
    cohi_tcp_request requests[CHUNK_REQUESTS];
};

/* ---- requests and their queues ---- */

static void append(cohi_tcp_queue *queue, cohi_tcp_request *request)
{
    request->next = NULL;
    if (queue->last)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
    queue->count++;
}

/* Takes out the one behind `before`; NULL: the first. */
static cohi_tcp_request *take_behind(cohi_tcp_queue *queue, cohi_tcp_request *before)
{
    cohi_tcp_request **place = before ? &before->next : &queue->first;
    cohi_tcp_request *taken = *place;
    *place = taken->next;
    if (queue->last == taken)
        queue->last = before;
    queue->count--;
    return taken;
}

static void give_back(cohi_tcp_out *out, cohi_tcp_request *request)
{
    free(request->own);
    request->own = NULL;
    request->next = out->free;
    out->free = request;
}

static bool make_room(cohi_tcp_out *out)
{
    struct cohi_tcp_chunk *chunk = malloc(sizeof *chunk);
    if (!chunk)
        return false;
    chunk->next = out->chunks;
    out->chunks = chunk;
    for (int i = 0; i < CHUNK_REQUESTS; i++) {
        chunk->requests[i].own = NULL;
        give_back(out, &chunk->requests[i]);
    }
    return true;
}

cohi_tcp_request *cohi_tcp_request_new(cohi_tcp_link *link, cohi_tcp_verb verb)
{
    cohi_tcp_out *out = &link->out;
    if (!out->free && !make_room(out))
        return NULL;
    cohi_tcp_request *request = out->free;
    out->free = request->next;
    request->part.op = NULL;
    request->context = 0;
    request->frame = (cohi_tcp_frame){.head = {.verb = (uint8_t)verb}};
    request->signals = false;
    request->left = request->expected = request->mark = 0;
    request->source = request->body = NULL;
    request->target = NULL;
    request->prefix_bytes = request->body_bytes = request->head_bytes = 0;
    return request;
}

static bool is_answered(const cohi_tcp_request *request)
{
    unsigned verb = request->frame.head.verb;
    return verb == COHI_TCP_GET || verb == COHI_TCP_FETCH || verb == COHI_TCP_QUIET
           || verb == COHI_TCP_LEAVE;
}

/* Whether bytes of the caller's memory are to be read or written for it. */
static bool has_callers_memory(const cohi_tcp_request *request)
{
    return (request->body_bytes > 0 && !request->own) || request->left > 0 || request->target;
}

/* The op is over for this request. */
static void end_part(cohi_tcp_link *link, cohi_tcp_request *request, coh_status status,
                     const cohi_op *mine)
{
    const cohi_op *op = request->part.op;
    if (!cohi_tcp_part_end(link->endpoint, &request->part, status) || op == mine)
        return;
    atomic_store_explicit(&link->endpoint->rings, 1, memory_order_relaxed);
    atomic_store_explicit(&link->endpoint->attends, 1, memory_order_relaxed);
}

/* ---- frames of a request ---- */

/* The next of its frames. Bytes that fit behind the head are copied there. */
static void make_frame(cohi_tcp_request *request)
{
    cohi_tcp_head *head = &request->frame.head;
    size_t bytes =
        request->left < COHI_TCP_FRAME_BYTES ? (size_t)request->left : (size_t)COHI_TCP_FRAME_BYTES;
    bool carries = head->verb == COHI_TCP_PUT || head->verb == COHI_TCP_PUT_SIGNAL
                   || head->verb == COHI_TCP_MESSAGE;
    if (carries)
        head->bytes = request->prefix_bytes + bytes;
    if (request->signals)
        head->verb = bytes == request->left ? COHI_TCP_PUT_SIGNAL : COHI_TCP_PUT;
    request->head_bytes = cohi_tcp_encode(&request->frame, request->head) + request->prefix_bytes;
    request->body = request->source;
    request->body_bytes = bytes;
    if (bytes == 0)
        return;
    if (bytes <= COHI_INLINE_BYTES && request->head_bytes + bytes <= sizeof request->head) {
        memcpy(request->head + request->head_bytes, request->source, bytes);
        request->head_bytes += bytes;
        request->body_bytes = 0;
    }
    request->source += bytes;
    request->left -= bytes;
    head->offset += bytes;
}

/* All its frames are with the kernel. */
static void has_gone(cohi_tcp_link *link, cohi_tcp_request *request, const cohi_op *mine)
{
    request->body_bytes = 0;
    if (is_answered(request)) {
        append(&link->out.awaited, request);
        return;
    }
    end_part(link, request, COH_OK, mine);
    give_back(&link->out, request);
}

/* ---- writing ---- */

struct batch {
    struct iovec parts[2 * BATCH_REQUESTS];
    int count;
    size_t skip; /* bytes that are written already */
    size_t room; /* bytes that it may still have */
};

static void add(struct batch *batch, const void *bytes, size_t count)
{
    size_t skipped = batch->skip < count ? batch->skip : count;
    batch->skip -= skipped;
    count = count - skipped < batch->room ? count : batch->room + skipped;
    batch->room -= count - skipped;
    if (count > skipped)
        batch->parts[batch->count++] = (struct iovec){
            .iov_base = (char *)(uintptr_t)bytes + skipped, .iov_len = count - skipped};
}

static bool can_ask(const cohi_tcp_out *out)
{
    const cohi_tcp_request *first = out->requests.first;
    return first && (!is_answered(first) || out->awaited.count < COHI_TCP_WINDOW);
}

/* Of a request with several frames, the present one is the last of the batch. */
static void gather(const cohi_tcp_out *out, struct batch *batch)
{
    unsigned awaited = out->awaited.count;
    int requests = 0;
    for (const cohi_tcp_request *request = out->requests.first;
         request && requests < BATCH_REQUESTS; request = request->next) {
        if (is_answered(request) && awaited++ >= COHI_TCP_WINDOW)
            break;
        add(batch, request->head, request->head_bytes);
        add(batch, request->body, request->body_bytes);
        requests++;
        if (request->left > 0)
            break;
    }
}

static void account(cohi_tcp_link *link, size_t moved, const cohi_op *mine)
{
    cohi_tcp_out *out = &link->out;
    moved += out->written;
    out->written = 0;
    while (moved > 0) {
        cohi_tcp_request *first = out->requests.first;
        size_t bytes = first->head_bytes + first->body_bytes;
        if (moved < bytes) {
            out->written = moved;
            return;
        }
        moved -= bytes;
        if (first->left > 0)
            make_frame(first);
        else
            has_gone(link, take_behind(&out->requests, NULL), mine);
    }
}

static int write_requests(cohi_tcp_link *link, const cohi_op *mine, size_t *moved)
{
    struct batch batch = {.count = 0, .skip = link->out.written, .room = WRITE_BYTES};
    gather(&link->out, &batch);
    int error = cohi_tcp_stream_write(link, batch.parts, batch.count, moved);
    link->out.answering = false;
    cohi_traffic_add(&link->traffic->sent, *moved);
    account(link, *moved, mine);
    return error;
}

/* ---- answers ---- */

bool cohi_tcp_answer_queue(cohi_tcp_link *link, const cohi_tcp_answer *answer)
{
    cohi_tcp_out *out = &link->out;
    if (out->answer_count == COHI_TCP_WINDOW)
        return false;
    out->answers[(out->first_answer + out->answer_count) % COHI_TCP_WINDOW] = *answer;
    out->answer_count++;
    return true;
}

static void make_answer_frame(cohi_tcp_out *out, const cohi_tcp_answer *answer)
{
    size_t bytes =
        answer->left < COHI_TCP_FRAME_BYTES ? (size_t)answer->left : (size_t)COHI_TCP_FRAME_BYTES;
    cohi_tcp_frame frame = {.head = {.verb = COHI_TCP_ANSWER,
                                     .bytes = answer->value_bytes + bytes,
                                     .number = answer->number}};
    out->answer_head_bytes = cohi_tcp_encode(&frame, out->answer_head);
    memcpy(out->answer_head + out->answer_head_bytes, answer->value, answer->value_bytes);
    out->answer_head_bytes += answer->value_bytes;
    out->answer_body_bytes = bytes;
}

static void account_answer(cohi_tcp_out *out, size_t moved)
{
    cohi_tcp_answer *answer = &out->answers[out->first_answer];
    out->written += moved;
    if (out->written < out->answer_head_bytes + out->answer_body_bytes)
        return;
    out->written = 0;
    out->answer_head_bytes = 0;
    answer->offset += out->answer_body_bytes;
    answer->left -= out->answer_body_bytes;
    if (answer->left > 0)
        return;
    out->first_answer = (out->first_answer + 1) % COHI_TCP_WINDOW;
    out->answer_count--;
}

/* The bytes are read as they are now, from a segment that cannot go meanwhile. */
static int write_answer(cohi_tcp_link *link, size_t *moved)
{
    cohi_tcp_out *out = &link->out;
    const cohi_tcp_answer *answer = &out->answers[out->first_answer];
    struct batch batch = {.count = 0, .skip = out->written, .room = ANSWER_BYTES};
    const char *wrong = NULL, *body = NULL;
    *moved = 0;
    if (out->answer_head_bytes == 0)
        make_answer_frame(out, answer);
    cohi_tcp_head head = {.segment = (uint16_t)answer->segment, .generation = answer->generation};
    pthread_mutex_lock(&link->endpoint->segments_lock);
    if (out->answer_body_bytes > 0)
        body =
            cohi_tcp_locate(link->endpoint, &head, answer->offset, out->answer_body_bytes, &wrong);
    add(&batch, out->answer_head, out->answer_head_bytes);
    add(&batch, body, out->answer_body_bytes);
    int error = wrong ? EFAULT : cohi_tcp_stream_write(link, batch.parts, batch.count, moved);
    pthread_mutex_unlock(&link->endpoint->segments_lock);
    out->answering = true;
    cohi_traffic_add(&link->traffic->sent, *moved);
    account_answer(out, *moved);
    return error;
}

/* ---- what goes next ---- */

/* Frames are not mixed. Between them answers and requests take turns, so that neither side's gets
 * keep its puts waiting. */
static bool is_answers_turn(const cohi_tcp_out *out)
{
    if (out->written > 0)
        return out->answering;
    return out->answer_count > 0 && (!out->answering || !can_ask(out));
}

static bool has_something(const cohi_tcp_out *out)
{
    return out->written > 0 || out->answer_count > 0 || can_ask(out);
}

void cohi_tcp_flush(cohi_tcp_link *link, const cohi_op *mine)
{
    cohi_tcp_out *out = &link->out;
    int error = 0;
    size_t moved, all = 0;
    if (link->state != COHI_TCP_OPEN || link->unconfirmed || out->broken)
        return;
    while (!error && has_something(out)) {
        error = all >= TURN_BYTES      ? EAGAIN
                : is_answers_turn(out) ? write_answer(link, &moved)
                                       : write_requests(link, mine, &moved);
        all += error ? 0 : moved;
        out->spoke = true;
    }
    if (!error || error == EAGAIN) {
        int late = cohi_tcp_stream_flush(link);
        error = late ? late : error;
    }
    atomic_store_explicit(&out->armed, error == EAGAIN, memory_order_relaxed);
    cohi_traffic_add(&link->traffic->waits, error == EAGAIN);
    if (error && error != EAGAIN) {
        out->broken = true;
        cohi_tcp_socket_end(link->fd);
    }
    cohi_tcp_link_poll(link);
}

void cohi_tcp_request_submit(cohi_tcp_link *link, cohi_tcp_request *request, cohi_op *op)
{
    cohi_tcp_part_join(link->endpoint, &request->part, op, link->rank);
    if (is_answered(request))
        request->frame.head.number = ++link->out.number;
    make_frame(request);
    append(&link->out.requests, request);
    cohi_traffic_add(&link->traffic->operations, 1);
    if (!link->out.armed)
        cohi_tcp_flush(link, op);
}

/* ---- short messages ---- */

/* The caller's memory is not needed for it any more. */
static void make_own(cohi_tcp_request *request, char *room)
{
    memcpy(room, request->body, request->body_bytes);
    request->body = request->own = room;
}

bool cohi_tcp_ready_for_short(cohi_tcp_link *link)
{
    cohi_tcp_out *out = &link->out;
    if (link->state != COHI_TCP_OPEN || link->unconfirmed || link->peer_left || out->broken
        || out->armed || out->requests.first || out->answer_count > 0)
        return false;
    if (!out->spare)
        out->spare = malloc(COHI_SHORT_BYTES);
    return out->spare != NULL;
}

void cohi_tcp_keep_rest(cohi_tcp_link *link)
{
    cohi_tcp_out *out = &link->out;
    cohi_tcp_request *request = out->requests.first;
    if (!request || request->body_bytes == 0)
        return;
    make_own(request, out->spare);
    out->spare = NULL;
}

void cohi_tcp_answered(cohi_tcp_link *link)
{
    cohi_tcp_request *request = take_behind(&link->out.awaited, NULL);
    cohi_tcp_count *count = &link->counts[request->context];
    if (request->frame.head.verb == COHI_TCP_QUIET && request->mark > count->complete)
        count->complete = request->mark;
    end_part(link, request, COH_OK, NULL);
    give_back(&link->out, request);
}

/* ---- giving up ---- */

/* Who leaves does not wait for those that are gone. */
static void drop_queue(cohi_tcp_link *link, cohi_tcp_queue *queue)
{
    while (queue->first) {
        cohi_tcp_request *request = take_behind(queue, NULL);
        bool leaves = request->frame.head.verb == COHI_TCP_LEAVE;
        end_part(link, request, leaves ? COH_OK : COH_PEER_LOST, NULL);
        give_back(&link->out, request);
    }
}

void cohi_tcp_drop_all(cohi_tcp_link *link)
{
    cohi_tcp_out *out = &link->out;
    drop_queue(link, &out->awaited);
    drop_queue(link, &out->requests);
    out->answer_count = 0;
    out->answer_head_bytes = out->written = 0;
    out->armed = false;
}

void cohi_tcp_excuse_leave(cohi_tcp_link *link)
{
    cohi_tcp_queue *queues[] = {&link->out.requests, &link->out.awaited};
    for (int i = 0; i < 2; i++)
        for (cohi_tcp_request *request = queues[i]->first; request; request = request->next)
            if (request->frame.head.verb == COHI_TCP_LEAVE)
                cohi_tcp_part_excuse(link->endpoint, &request->part);
}

/* The context that the op is a quiet of on this link; -1: none. */
static int quieted_context(const cohi_tcp_out *out, const cohi_op *op)
{
    const cohi_tcp_queue *queues[] = {&out->requests, &out->awaited};
    for (int i = 0; i < 2; i++)
        for (const cohi_tcp_request *request = queues[i]->first; request; request = request->next)
            if (request->part.op == op && request->frame.head.verb == COHI_TCP_QUIET)
                return (int)request->context;
    return -1;
}

/* What a quiet was to complete is given up with it: the caller may use that memory again. */
static bool belongs(const cohi_tcp_request *request, const cohi_op *op, int context)
{
    return request->part.op == op
           || (!request->part.op && has_callers_memory(request)
               && (int)request->context == context);
}

/* A message that has begun to go must go whole, or the link could not go on: what is left of it becomes the link's own. */
static bool take_over(cohi_tcp_link *link, cohi_tcp_request *request)
{
    if (request->frame.head.verb != COHI_TCP_MESSAGE || request->left > 0)
        return false;
    char *own = malloc(request->body_bytes);
    if (!own)
        return false;
    make_own(request, own);
    end_part(link, request, COH_OK, NULL);
    return true;
}

/* Whether it may stay; nobody waits for it any more. */
static bool orphan(cohi_tcp_link *link, cohi_tcp_request *request)
{
    end_part(link, request, COH_TRANSPORT, NULL);
    request->target = NULL;
    return request->body_bytes == 0 && request->left == 0;
}

bool cohi_tcp_withdraw(cohi_tcp_link *link, const cohi_op *op)
{
    cohi_tcp_out *out = &link->out;
    int context = quieted_context(out, op);
    bool intact = true;
    for (cohi_tcp_request *request = out->awaited.first; request; request = request->next)
        if (belongs(request, op, context))
            (void)orphan(link, request);
    cohi_tcp_request *before = NULL, *request = out->requests.first;
    for (; request; request = before ? before->next : out->requests.first) {
        bool begun = !before && out->written > 0 && !out->answering;
        if (!belongs(request, op, context)) {
            before = request;
        } else if (begun && request->body_bytes > 0 && take_over(link, request)) {
            before = request;
        } else if (begun || !has_callers_memory(request)) {
            intact = orphan(link, request) && intact;
            before = request;
        } else {
            (void)orphan(link, request);
            give_back(out, take_behind(&out->requests, before));
        }
    }
    return intact;
}

void cohi_tcp_out_free(cohi_tcp_out *out)
{
    free(out->spare);
    out->spare = NULL;
    while (out->chunks) {
        struct cohi_tcp_chunk *next = out->chunks->next;
        for (int i = 0; i < CHUNK_REQUESTS; i++)
            free(out->chunks->requests[i].own);
        free(out->chunks);
        out->chunks = next;
    }
}
