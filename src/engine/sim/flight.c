#include "engine/sim/fabric.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A put of at most this many bytes whose caller waits for the source gets a copy of it; larger ones
 * are delivered from the source, so that the largest need no memory besides their own. */
enum { COPY_BYTES_MOST = 1 << 20 };

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- flights and their events ---- */

cohi_flight *cohi_flight_new(cohi_endpoint *endpoint, cohi_verb verb, int target, unsigned events)
{
    cohi_flight *made = calloc(1, sizeof *made + events * sizeof(cohi_event));
    if (!made)
        return NULL;
    made->verb = verb;
    made->source = endpoint->rank;
    made->target = target;
    made->failed_rank = -1;
    endpoint->fabric->traffic.flights[verb]++;
    return made;
}

static coh_status no_memory(const char *call, size_t bytes)
{
    return cohi_fail(COH_NO_MEMORY, "the simulator has no memory for a %s of %zu bytes", call,
                     bytes);
}

void cohi_flight_free(cohi_flight *flight)
{
    free(flight->copy);
    free(flight);
}

/* Events that are due at the same step are executed in the order in which they were added. */
static void add_event(cohi_fabric *fabric, cohi_flight *flight, cohi_flight_stage stage,
                      uint64_t due)
{
    cohi_event *event = &flight->events[flight->made++];
    flight->left++;
    event->flight = flight;
    event->stage = stage;
    event->due = due;
    cohi_event **link = &fabric->events;
    while (*link && (*link)->due <= due)
        link = &(*link)->next;
    event->next = *link;
    *link = event;
}

static void add_piece(cohi_fabric *fabric, cohi_flight *flight, uint64_t due, size_t at,
                      size_t bytes)
{
    cohi_event *event = &flight->events[flight->made];
    event->at = at;
    event->bytes = bytes;
    add_event(fabric, flight, COHI_FLIGHT_PIECE, due);
}

/* ---- when things are due ---- */

static uint64_t draw_due(cohi_endpoint *endpoint, uint64_t earliest)
{
    uint64_t delay = cohi_dice_below(&endpoint->dice, (uint64_t)endpoint->fabric->script.delay + 1);
    return later(endpoint->fabric->step, earliest) + delay;
}

void cohi_stream_free(cohi_stream *stream)
{
    if (stream)
        free(stream->to_due);
    free(stream);
}

static cohi_stream *stream_of(cohi_endpoint *endpoint, unsigned context)
{
    cohi_stream **place = &endpoint->streams[context];
    if (*place)
        return *place;
    size_t size = (size_t)endpoint->fabric->size;
    cohi_stream *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->to_due = calloc(2 * size, sizeof *made->to_due);
    if (!made->to_due) {
        free(made);
        return NULL;
    }
    made->fenced = made->to_due + size;
    *place = made;
    return made;
}

coh_status cohi_flight_open(cohi_endpoint *endpoint, unsigned context)
{
    if (!stream_of(endpoint, context))
        return cohi_fail(COH_NO_MEMORY, "out of memory for a context of the simulator");
    endpoint->open_contexts |= UINT64_C(1) << context;
    return COH_OK;
}

/* The stream stays: something may still be under way on it. */
void cohi_flight_close(cohi_endpoint *endpoint, unsigned context)
{
    endpoint->open_contexts &= ~(UINT64_C(1) << context);
}

static coh_status check_context(const cohi_endpoint *endpoint, const char *call, unsigned context)
{
    bool own = context < COHI_CONTEXT_FIRST_FREE || context >= COHI_CONTEXT_MESSAGES;
    if (own || endpoint->open_contexts >> context & 1)
        return COH_OK;
    return cohi_fail(COH_TRANSPORT, "rank %d: %s on context %u, which is not open", endpoint->rank,
                     call, context);
}

/* When bytes that are not to arrive before `earliest` do. Gets are not `ordered` by fences. */
static uint64_t arrival_due(cohi_endpoint *endpoint, cohi_stream *stream, int target, int ordered,
                            uint64_t earliest)
{
    uint64_t now = endpoint->fabric->step;
    uint64_t due = later(draw_due(endpoint, now), earliest);
    if (ordered)
        due = later(due, stream->fenced[target]);
    if (endpoint->fabric->script.keep_order) {
        due = later(due, endpoint->pair_due[target]);
        endpoint->pair_due[target] = due;
    }
    if (ordered)
        stream->to_due[target] = later(stream->to_due[target], due);
    stream->last_due = later(stream->last_due, due);
    return due;
}

/* ---- issuing ---- */

static coh_status check_reach(cohi_endpoint *endpoint, const char *call, cohi_remote place,
                              size_t bytes)
{
    const cohi_sim_segment *segment = &endpoint->segments[place.segment];
    uint64_t reach = segment->attached ? segment->attached[place.rank] : 0;
    coh_status status = check_context(endpoint, call, place.context);
    if (status != COH_OK)
        return status;
    if (place.rank == endpoint->rank)
        reach = segment->bytes;
    if (place.offset <= reach && bytes <= reach - place.offset)
        return COH_OK;
    return cohi_fail(COH_OUT_OF_BOUNDS,
                     "rank %d: %s of %zu bytes at offset %llu of rank %d's segment %d, of which "
                     "%llu bytes are attached",
                     endpoint->rank, call, bytes, (unsigned long long)place.offset, place.rank,
                     place.segment, (unsigned long long)reach);
}

/* Whether the caller's bytes and the place share memory, which is then moved in one piece. */
static int overlaps(cohi_endpoint *endpoint, cohi_remote place, const void *caller, size_t bytes)
{
    if (place.rank != endpoint->rank)
        return 0;
    uintptr_t there = (uintptr_t)endpoint->segments[place.segment].base + place.offset;
    uintptr_t here = (uintptr_t)caller;
    return here < there + bytes && there < here + bytes;
}

static unsigned draw_pieces(cohi_endpoint *endpoint, cohi_remote place, const void *caller,
                            size_t bytes)
{
    if (bytes == 0)
        return 0;
    uint64_t most = later(endpoint->fabric->script.split, 1);
    if (bytes < most)
        most = bytes;
    unsigned pieces = 1 + (unsigned)cohi_dice_below(&endpoint->dice, most);
    /* Segments begin at page boundaries or lines, so the offset tells the alignment. */
    int whole = cohi_word_whole((const void *)(uintptr_t)place.offset, bytes);
    return whole || overlaps(endpoint, place, caller, bytes) ? 1 : pieces;
}

/* Cuts the flight at random places; returns when the last piece is due. */
static uint64_t add_pieces(cohi_endpoint *endpoint, cohi_stream *stream, cohi_flight *flight,
                           unsigned pieces, uint64_t earliest)
{
    int ordered = flight->verb != COHI_VERB_GET;
    uint64_t last = earliest;
    size_t at = 0;
    for (unsigned left = pieces; left > 0; left--) {
        size_t rest = flight->bytes - at;
        size_t bytes = rest;
        if (left > 1)
            bytes = 1 + (size_t)cohi_dice_below(&endpoint->dice, rest - left + 1);
        uint64_t due = arrival_due(endpoint, stream, flight->target, ordered, earliest);
        add_piece(endpoint->fabric, flight, due, at, bytes);
        last = later(last, due);
        at += bytes;
    }
    return last;
}

/* The issuer learns of the result some time after the last piece, and before any later quiet is
 * done. */
static void add_done(cohi_endpoint *endpoint, cohi_stream *stream, cohi_flight *flight,
                     uint64_t last_piece)
{
    uint64_t due = draw_due(endpoint, last_piece);
    stream->last_due = later(stream->last_due, due);
    add_event(endpoint->fabric, flight, COHI_FLIGHT_DONE, due);
}

static void set_place(cohi_flight *flight, cohi_remote place, size_t bytes)
{
    flight->context = place.context;
    flight->segment = place.segment;
    flight->offset = place.offset;
    flight->bytes = bytes;
}

/* Takes the copy of the source that the put's size calls for; small ones at once. */
static coh_status prepare_source(cohi_flight *flight, const void *source, const cohi_op *op)
{
    size_t bytes = flight->bytes;
    flight->from = source;
    if (bytes > COHI_INLINE_BYTES && (!op || bytes > COPY_BYTES_MOST))
        return COH_OK;
    flight->copy = malloc(bytes ? bytes : 1);
    if (!flight->copy)
        return no_memory("put", bytes);
    if (bytes <= COHI_INLINE_BYTES && bytes > 0) {
        memcpy(flight->copy, source, bytes);
        flight->from = flight->copy;
    }
    return COH_OK;
}

static void issue_put(cohi_endpoint *endpoint, cohi_stream *stream, cohi_flight *flight,
                      unsigned pieces, int signals, cohi_op *op)
{
    cohi_fabric *fabric = endpoint->fabric;
    uint64_t due = fabric->step;
    int copies_late = flight->copy && flight->from != flight->copy && flight->bytes > 0;
    flight->op = op;
    if (copies_late) {
        due = draw_due(endpoint, due);
        add_event(fabric, flight, COHI_FLIGHT_COPY, due);
    }
    due = add_pieces(endpoint, stream, flight, pieces, due);
    if (signals)
        add_event(fabric, flight, COHI_FLIGHT_SIGNAL,
                  arrival_due(endpoint, stream, flight->target, 1, due));
    if (op && !copies_late && flight->bytes > COHI_INLINE_BYTES) {
        add_event(fabric, flight, COHI_FLIGHT_DONE, due);
    } else if (op && !copies_late) {
        flight->op = NULL;
        cohi_op_complete(endpoint, op, COH_OK, -1);
    }
    if (flight->left == 0)
        cohi_flight_free(flight);
}

coh_status cohi_flight_put(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                           size_t bytes, uint64_t signal_offset, const cohi_word_call *signal,
                           cohi_op *op)
{
    cohi_remote word = {to.context, to.rank, to.segment, signal_offset};
    coh_status status = check_reach(endpoint, "put", to, bytes);
    if (status == COH_OK && signal)
        status = check_reach(endpoint, "signal", word, sizeof(uint64_t));
    if (status != COH_OK)
        return status;
    cohi_stream *stream = stream_of(endpoint, to.context);
    unsigned pieces = draw_pieces(endpoint, to, source, bytes);
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_PUT, to.rank, pieces + 3);
    if (!stream || !flight) {
        free(flight);
        return no_memory("put", bytes);
    }
    set_place(flight, to, bytes);
    endpoint->fabric->traffic.words += bytes <= sizeof(uint64_t);
    status = prepare_source(flight, source, op);
    if (status != COH_OK) {
        cohi_flight_free(flight);
        return status;
    }
    if (signal) {
        flight->word = *signal;
        flight->word_offset = signal_offset;
    }
    issue_put(endpoint, stream, flight, pieces, signal != NULL, op);
    return COH_OK;
}

coh_status cohi_flight_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                           cohi_op *op)
{
    coh_status status = check_reach(endpoint, "get", from, bytes);
    if (status != COH_OK)
        return status;
    cohi_stream *stream = stream_of(endpoint, from.context);
    unsigned pieces = draw_pieces(endpoint, from, target, bytes);
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_GET, from.rank, pieces + 1);
    if (!stream || !flight) {
        free(flight);
        return no_memory("get", bytes);
    }
    set_place(flight, from, bytes);
    flight->to = target;
    flight->op = op;
    uint64_t last = add_pieces(endpoint, stream, flight, pieces, endpoint->fabric->step);
    if (op)
        add_done(endpoint, stream, flight, last);
    if (flight->left == 0)
        cohi_flight_free(flight);
    return COH_OK;
}

coh_status cohi_flight_atomic(cohi_endpoint *endpoint, cohi_remote at, const cohi_word_call *word,
                              void *result, cohi_op *op)
{
    coh_status status = cohi_word_check(word->kind, word->dtype);
    size_t bytes = coh_dtype_size(word->dtype);
    if (status == COH_OK)
        status = check_reach(endpoint, "atomic", at, bytes);
    if (status != COH_OK)
        return status;
    cohi_stream *stream = stream_of(endpoint, at.context);
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_ATOMIC, at.rank, 2);
    if (!stream || !flight) {
        free(flight);
        return no_memory("atomic", bytes);
    }
    set_place(flight, at, bytes);
    flight->word = *word;
    flight->to = result;
    flight->op = op;
    uint64_t last = add_pieces(endpoint, stream, flight, 1, endpoint->fabric->step);
    if (result)
        add_done(endpoint, stream, flight, last);
    return COH_OK;
}

static cohi_flight *new_message(cohi_endpoint *endpoint, int rank, size_t bytes)
{
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_MESSAGE, rank, 2);
    if (!flight)
        return NULL;
    flight->bytes = bytes;
    flight->copy = malloc(bytes ? bytes : 1);
    if (flight->copy)
        return flight;
    cohi_flight_free(flight);
    return NULL;
}

/* The body is copied late, so that a caller which changes it too early is found out. The piece comes
 * last, since its flight then belongs to the upcall. */
coh_status cohi_flight_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                            const void *body, size_t body_bytes, cohi_op *op)
{
    cohi_fabric *fabric = endpoint->fabric;
    size_t bytes = head_bytes + body_bytes;
    cohi_flight *flight = new_message(endpoint, rank, bytes);
    if (!flight)
        return no_memory("message", bytes);
    if (head_bytes > 0)
        memcpy(flight->copy, head, head_bytes);
    flight->head_bytes = head_bytes;
    uint64_t due = fabric->step;
    if (body_bytes > 0) {
        flight->from = body;
        flight->op = op;
        due = draw_due(endpoint, due);
        add_event(fabric, flight, COHI_FLIGHT_DONE, due);
    } else if (op) {
        cohi_op_complete(endpoint, op, COH_OK, -1);
    }
    due = later(draw_due(endpoint, due), endpoint->channel_due[rank]);
    endpoint->channel_due[rank] = due;
    add_piece(fabric, flight, due, 0, bytes);
    return COH_OK;
}

void cohi_flight_fence(cohi_endpoint *endpoint, unsigned context)
{
    cohi_stream *stream = endpoint->streams[context];
    if (stream)
        memcpy(stream->fenced, stream->to_due,
               (size_t)endpoint->fabric->size * sizeof *stream->fenced);
}

/* The target of what is due last of this rank's operations on a context; -1: none. */
static int last_target(const cohi_endpoint *endpoint, unsigned context)
{
    int target = -1;
    for (const cohi_event *event = endpoint->fabric->events; event; event = event->next) {
        const cohi_flight *flight = event->flight;
        bool of_context = flight->verb == COHI_VERB_PUT || flight->verb == COHI_VERB_GET
                          || flight->verb == COHI_VERB_ATOMIC;
        if (of_context && flight->source == endpoint->rank && flight->context == context)
            target = flight->target;
    }
    return target;
}

coh_status cohi_flight_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    cohi_stream *stream = endpoint->streams[context];
    atomic_store(&op->waits_for, last_target(endpoint, context));
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_QUIET, endpoint->rank, 1);
    if (!flight)
        return no_memory("quiet", 0);
    flight->context = context;
    flight->op = op;
    add_event(endpoint->fabric, flight, COHI_FLIGHT_DONE,
              draw_due(endpoint, stream ? stream->last_due : 0));
    return COH_OK;
}

/* When the last of all that the rank has issued is due. */
static uint64_t last_due(const cohi_endpoint *endpoint)
{
    uint64_t last = endpoint->fabric->step;
    for (const cohi_event *event = endpoint->fabric->events; event; event = event->next)
        if (event->flight->source == endpoint->rank)
            last = later(last, event->due);
    return last;
}

coh_status cohi_flight_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_fabric *fabric = endpoint->fabric;
    uint64_t last = last_due(endpoint), told = last;
    for (int rank = 0; rank < fabric->size; rank++) {
        if (rank == endpoint->rank || !cohi_fabric_alive(fabric, rank))
            continue;
        cohi_flight *farewell = cohi_flight_new(endpoint, COHI_VERB_LEFT, rank, 1);
        if (!farewell)
            return no_memory("farewell", 0);
        uint64_t due = draw_due(endpoint, last);
        add_piece(fabric, farewell, due, 0, 0);
        told = later(told, due);
    }
    cohi_flight *flight = cohi_flight_new(endpoint, COHI_VERB_QUIET, endpoint->rank, 1);
    if (!flight)
        return no_memory("farewell", 0);
    flight->context = COHI_CONTEXT_CONTROL;
    flight->op = op;
    add_event(fabric, flight, COHI_FLIGHT_DONE, told);
    return COH_OK;
}

void cohi_flight_notice(cohi_fabric *fabric, cohi_flight *notice)
{
    uint64_t delay = cohi_dice_below(&fabric->dice, (uint64_t)fabric->script.delay + 1);
    add_piece(fabric, notice, fabric->step + delay, 0, 0);
}
