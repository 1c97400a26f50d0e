#include "engine/sim/fabric.h"

#include <string.h>

/* One multiplication and shift a number: enough to tell two runs apart. */
static void trace(cohi_fabric *fabric, uint64_t number)
{
    uint64_t mixed = (fabric->trace ^ number) * UINT64_C(0x9fb21c651e98df25);
    fabric->trace = mixed ^ (mixed >> 32);
}

static void trace_event(cohi_fabric *fabric, const cohi_event *event)
{
    const cohi_flight *flight = event->flight;
    trace(fabric, fabric->step);
    trace(fabric, (uint64_t)flight->verb << 8 | (uint64_t)event->stage);
    trace(fabric, (uint64_t)flight->source << 32 | (uint64_t)flight->target);
    trace(fabric, event->bytes);
}

void cohi_op_complete(cohi_endpoint *endpoint, cohi_op *op, coh_status status, int rank)
{
    op->status = status;
    op->rank = rank;
    atomic_store_explicit(&op->done, 1, memory_order_release);
    cohi_fabric_ring(endpoint);
}

static void complete(cohi_fabric *fabric, cohi_flight *flight)
{
    cohi_op *op = flight->op;
    if (!op)
        return;
    flight->op = NULL;
    cohi_op_complete(fabric->endpoints[flight->source], op, flight->status, flight->failed_rank);
}

static void retire(cohi_event *event)
{
    cohi_flight *flight = event->flight;
    if (--flight->left == 0 && !flight->told)
        cohi_flight_free(flight);
}

/* The next quiet of the context tells it as well: an operation without an op has nobody else. */
static void fail_flight(cohi_fabric *fabric, cohi_flight *flight, coh_status status)
{
    flight->status = status;
    flight->failed_rank = flight->target;
    cohi_stream *stream = fabric->endpoints[flight->source]->streams[flight->context];
    stream->failed = status;
    stream->failed_rank = flight->target;
}

/* Where the bytes are at the target; NULL, with the flight failed, when it is gone or took them
 * away. */
static char *target_address(cohi_fabric *fabric, cohi_flight *flight, uint64_t offset, size_t bytes)
{
    cohi_endpoint *target = cohi_fabric_alive(fabric, flight->target);
    if (!target) {
        fail_flight(fabric, flight, COH_PEER_LOST);
        return NULL;
    }
    const cohi_sim_segment *segment = &target->segments[flight->segment];
    if (segment->base && offset <= segment->bytes && bytes <= segment->bytes - offset)
        return segment->base + offset;
    fail_flight(fabric, flight, COH_TRANSPORT);
    return NULL;
}

static void execute_copy(cohi_fabric *fabric, cohi_event *event)
{
    cohi_flight *flight = event->flight;
    memcpy(flight->copy, flight->from, flight->bytes);
    flight->from = flight->copy;
    if (!cohi_fabric_alive(fabric, flight->target))
        fail_flight(fabric, flight, COH_PEER_LOST);
    complete(fabric, flight);
}

static void put_piece(cohi_fabric *fabric, cohi_event *event)
{
    cohi_flight *flight = event->flight;
    char *there = target_address(fabric, flight, flight->offset + event->at, event->bytes);
    if (!there)
        return;
    if (event->bytes == flight->bytes && cohi_word_whole(there, event->bytes))
        cohi_word_store(there, flight->from, event->bytes);
    else
        memmove(there, flight->from + event->at, event->bytes);
    cohi_fabric_ring(fabric->endpoints[flight->target]);
}

/* Only within one's own memory can the two overlap. */
static void get_piece(cohi_fabric *fabric, cohi_event *event)
{
    cohi_flight *flight = event->flight;
    char *there = target_address(fabric, flight, flight->offset + event->at, event->bytes);
    if (!there)
        return;
    if (event->bytes == flight->bytes && cohi_word_whole(there, event->bytes))
        cohi_word_load(there, flight->to, event->bytes);
    else if (flight->source == flight->target)
        memmove(flight->to + event->at, there, event->bytes);
    else
        cohi_word_read(flight->to + event->at, there, event->bytes);
}

static void change_word(cohi_fabric *fabric, cohi_flight *flight, uint64_t offset)
{
    size_t bytes = coh_dtype_size(flight->word.dtype);
    char *there = target_address(fabric, flight, offset, bytes);
    if (!there)
        return;
    cohi_word_apply(there, &flight->word);
    cohi_fabric_ring(fabric->endpoints[flight->target]);
}

static void atomic_piece(cohi_fabric *fabric, cohi_event *event)
{
    change_word(fabric, event->flight, event->flight->offset);
}

static void hand_over(cohi_fabric *fabric, cohi_event *event)
{
    if (cohi_fabric_alive(fabric, event->flight->target))
        cohi_fabric_tell_later(fabric, event->flight);
}

static void execute_piece(cohi_fabric *fabric, cohi_event *event)
{
    static void (*const by_verb[])(cohi_fabric * fabric, cohi_event * event) = {
        [COHI_VERB_PUT] = put_piece,       [COHI_VERB_GET] = get_piece,
        [COHI_VERB_ATOMIC] = atomic_piece, [COHI_VERB_MESSAGE] = hand_over,
        [COHI_VERB_NOTICE] = hand_over,    [COHI_VERB_LEFT] = hand_over,
    };
    by_verb[event->flight->verb](fabric, event);
}

static void execute_signal(cohi_fabric *fabric, cohi_event *event)
{
    change_word(fabric, event->flight, event->flight->word_offset);
}

static void end_quiet(cohi_fabric *fabric, cohi_flight *flight)
{
    cohi_stream *stream = fabric->endpoints[flight->source]->streams[flight->context];
    if (!stream || stream->failed == COH_OK)
        return;
    flight->status = stream->failed;
    flight->failed_rank = stream->failed_rank;
    stream->failed = COH_OK;
}

static void end_send(cohi_fabric *fabric, cohi_flight *flight)
{
    memcpy(flight->copy + flight->head_bytes, flight->from, flight->bytes - flight->head_bytes);
    if (cohi_fabric_alive(fabric, flight->target))
        return;
    flight->status = COH_PEER_LOST;
    flight->failed_rank = flight->target;
}

static void end_fetch(cohi_flight *flight)
{
    if (flight->status != COH_OK)
        return;
    uint32_t narrow = (uint32_t)flight->word.old;
    if (flight->bytes == sizeof narrow)
        memcpy(flight->to, &narrow, sizeof narrow);
    else
        memcpy(flight->to, &flight->word.old, sizeof flight->word.old);
}

static void execute_done(cohi_fabric *fabric, cohi_event *event)
{
    cohi_flight *flight = event->flight;
    if (flight->verb == COHI_VERB_MESSAGE)
        end_send(fabric, flight);
    if (flight->verb == COHI_VERB_QUIET)
        end_quiet(fabric, flight);
    if (flight->verb == COHI_VERB_ATOMIC)
        end_fetch(flight);
    complete(fabric, flight);
}

static void execute(cohi_fabric *fabric, cohi_event *event)
{
    static void (*const by_stage[])(cohi_fabric * fabric, cohi_event * event) = {
        [COHI_STAGE_COPY] = execute_copy,
        [COHI_STAGE_PIECE] = execute_piece,
        [COHI_STAGE_SIGNAL] = execute_signal,
        [COHI_STAGE_DONE] = execute_done,
    };
    trace_event(fabric, event);
    by_stage[event->stage](fabric, event);
    retire(event);
}

int cohi_flight_deliver(cohi_fabric *fabric, uint64_t step)
{
    int any = 0;
    while (fabric->events && fabric->events->due <= step) {
        cohi_event *event = fabric->events;
        fabric->events = event->next;
        execute(fabric, event);
        any = 1;
    }
    return any;
}

static void drop_events(cohi_fabric *fabric, cohi_flight *flight)
{
    cohi_event **link = &fabric->events;
    for (unsigned left = flight->left; left > 0;) {
        cohi_event *event = *link;
        if (event->flight != flight) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        left--;
        retire(event);
    }
}

void cohi_flight_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_fabric *fabric = endpoint->fabric;
    if (atomic_load_explicit(&op->done, memory_order_acquire))
        return;
    cohi_event *event = fabric->events;
    while (event && event->flight->op != op)
        event = event->next;
    cohi_op_complete(endpoint, op, COH_TRANSPORT, event ? event->flight->target : -1);
    if (!event)
        return;
    event->flight->op = NULL;
    drop_events(fabric, event->flight);
}

void cohi_flight_sever(cohi_endpoint *endpoint, uint64_t until, coh_status status)
{
    cohi_fabric *fabric = endpoint->fabric;
    for (cohi_event **link = &fabric->events; *link;) {
        cohi_event *event = *link;
        cohi_flight *flight = event->flight;
        /* That it was killed is the network's to tell, whatever becomes of its endpoint. */
        if (flight->source != endpoint->rank || flight->verb == COHI_VERB_NOTICE) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        if (status != COH_OK) {
            flight->status = status;
            flight->failed_rank = endpoint->rank;
        }
        if (event->due <= until) {
            execute(fabric, event);
            continue;
        }
        complete(fabric, flight);
        retire(event);
    }
}

void cohi_flight_clear(cohi_fabric *fabric)
{
    while (fabric->events) {
        cohi_event *event = fabric->events;
        fabric->events = event->next;
        retire(event);
    }
}
