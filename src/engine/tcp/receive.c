#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/atomics.h"

#include <errno.h>
#include <string.h>

enum {
    /* From one link at a time; then it is the others' turn. */
    TURN_BYTES = 4 << 20,
    /* What is read before it is known where it goes is copied once more: enough for many short frames
     * at once, and little of a long one. Behind a payload, and where the last frame was long, for the next head. */
    LOOK_BYTES = 16 << 10,
    NEXT_BYTES = 1 << 10,
    /* So much of a payload is missing that more than one segment is to come. */
    STREAM_BYTES = 64 << 10,
    SKIPS = 16
};

#define NEAR_NS (20 * COHI_NS_PER_US)

/* ---- where a payload goes ---- */

/*
 * Where the next bytes go, for as long as they are moved there; NULL: they are dropped, or *wrong says
 * why they have no place. Behind it comes close_sink, with how many were moved.
 */
static char *open_sink(cohi_tcp_link *link, uint64_t bytes, const char **wrong)
{
    cohi_tcp_in *in = &link->in;
    cohi_endpoint *endpoint = link->endpoint;
    switch (in->sink) {
    case COHI_TCP_SINK_SEGMENT:
        pthread_mutex_lock(&endpoint->segments_lock);
        return cohi_tcp_locate(endpoint, &in->frame.head, in->frame.head.offset + in->at, bytes,
                               wrong);
    case COHI_TCP_SINK_CALLER: /* what is lost or given up has no target any more */
        pthread_mutex_lock(&link->landing);
        return link->state == COHI_TCP_OPEN && link->out.awaited.first->target
                   ? link->out.awaited.first->target + in->at
                   : NULL;
    case COHI_TCP_SINK_MESSAGE:
        return (char *)in->message + in->at;
    case COHI_TCP_SINK_CLAIM:
        return endpoint->upcalls->borrow(endpoint->world, link->rank, in->claim, (size_t)bytes);
    case COHI_TCP_SINK_NONE:
        break;
    }
    return NULL;
}

static void close_sink(cohi_tcp_link *link, const char *place, size_t moved)
{
    const cohi_tcp_in *in = &link->in;
    cohi_endpoint *endpoint = link->endpoint;
    if (in->sink == COHI_TCP_SINK_SEGMENT)
        pthread_mutex_unlock(&endpoint->segments_lock);
    else if (in->sink == COHI_TCP_SINK_CALLER)
        pthread_mutex_unlock(&link->landing);
    else if (in->sink == COHI_TCP_SINK_CLAIM && place)
        endpoint->upcalls->give_back(endpoint->world, link->rank, in->claim, moved);
}

static const char *advance_payload(cohi_tcp_link *link, size_t bytes)
{
    cohi_tcp_in *in = &link->in;
    in->at += bytes;
    in->left -= bytes;
    return in->left == 0 ? cohi_tcp_serve_end(link) : NULL;
}

/* Moves what has come already to its place. */
static const char *absorb(cohi_tcp_link *link)
{
    cohi_tcp_in *in = &link->in;
    size_t here = in->to - in->from, bytes = in->left < here ? (size_t)in->left : here;
    const char *wrong = NULL;
    char *place = open_sink(link, bytes, &wrong);
    if (place)
        memcpy(place, in->bytes + in->from, bytes);
    close_sink(link, place, bytes);
    in->from += bytes;
    return wrong ? wrong : advance_payload(link, bytes);
}

/* ---- frames ---- */

/* Takes the next frame, if it is here as far as it must be. */
static const char *take_frame(cohi_tcp_link *link, bool *taken)
{
    cohi_tcp_in *in = &link->in;
    cohi_tcp_frame frame;
    size_t head, here = in->to - in->from;
    *taken = false;
    const char *wrong = cohi_tcp_decode(in->bytes + in->from, here, &frame, &head);
    if (here >= sizeof frame.head)
        in->frame.head.verb = frame.head.verb; /* for who is told that it is wrong */
    if (wrong || head == 0)
        return wrong;
    uint64_t payload = cohi_tcp_payload_bytes(&frame.head);
    bool whole = payload <= cohi_tcp_whole_bytes(frame.head.verb);
    bool begins = whole || frame.head.verb != COHI_TCP_MESSAGE;
    if (here - head < (begins ? whole ? payload : 0 : (uint64_t)COHI_HEAD_BYTES))
        return NULL;
    if (whole)
        frame.payload = in->bytes + in->from + head;
    size_t begin = in->from;
    in->from += head + (whole ? (size_t)payload : 0);
    wrong = cohi_tcp_serve(link, &frame);
    *taken = !in->put_off;
    if (in->put_off) {
        in->from = begin;
        in->left = 0;
    }
    return wrong;
}

/* A caller that sends has seen that it was answered. */
static void confirm(cohi_tcp_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->unconfirmed = false;
    pthread_mutex_unlock(&link->lock);
    link->in.owes = true;
}

static const char *take_frames(cohi_tcp_link *link)
{
    cohi_tcp_in *in = &link->in;
    const char *wrong = NULL;
    bool taken = true;
    if (link->unconfirmed) /* set by this thread */
        confirm(link);
    while (!wrong && taken && in->from < in->to)
        wrong = in->left > 0 ? absorb(link) : take_frame(link, &taken);
    if (in->from > 0 && in->left == 0)
        memmove(in->bytes, in->bytes + in->from, in->to - in->from);
    in->to -= in->from;
    in->from = 0;
    return wrong;
}

/* ---- bytes ---- */

/* A payload is received where it goes, and what follows it where frames are taken from. */
static int read_payload(cohi_tcp_link *link, size_t *moved, size_t *asked, const char **wrong)
{
    cohi_tcp_in *in = &link->in;
    char *place = open_sink(link, in->left, wrong);
    struct iovec parts[2] = {{.iov_base = place, .iov_len = place ? (size_t)in->left : 0},
                             {.iov_base = in->bytes, .iov_len = NEXT_BYTES}};
    *asked = parts[0].iov_len + parts[1].iov_len;
    int error = *wrong ? 0 : cohi_tcp_socket_read(link->fd, parts, 2, moved);
    size_t placed = *moved < parts[0].iov_len ? *moved : parts[0].iov_len;
    close_sink(link, place, placed);
    in->to = *moved - placed;
    cohi_traffic_add(&link->traffic->received, *moved);
    if (!*wrong && placed > 0)
        *wrong = advance_payload(link, placed);
    return error;
}

static int read_some(cohi_tcp_link *link, size_t *moved, size_t *asked, const char **wrong)
{
    cohi_tcp_in *in = &link->in;
    *moved = 0;
    if (in->left > 0)
        return read_payload(link, moved, asked, wrong);
    bool head_only = in->last_was_long && in->to == 0;
    struct iovec part = {.iov_base = in->bytes + in->to,
                         .iov_len = head_only ? NEXT_BYTES : LOOK_BYTES};
    *asked = part.iov_len;
    int error = cohi_tcp_socket_read(link->fd, &part, 1, moved);
    in->to += *moved;
    cohi_traffic_add(&link->traffic->received, *moved);
    return error;
}

/* ---- records ---- */

/* Only what a caller has asked for is opened where it goes: nobody else may look there before. */
static bool is_for_caller(const cohi_tcp_in *in, size_t bytes)
{
    return in->sink == COHI_TCP_SINK_CALLER && in->left >= bytes && bytes > COHI_INLINE_BYTES;
}

static bool open_for_caller(cohi_tcp_link *link, size_t bytes, const char **wrong)
{
    cohi_tcp_in *in = &link->in;
    char *place = open_sink(link, bytes, wrong);
    bool opened = cohi_tcp_stream_open(&link->stream, place ? (unsigned char *)place : in->bytes);
    close_sink(link, place, bytes);
    if (opened)
        *wrong = advance_payload(link, bytes);
    return opened;
}

static bool open_record(cohi_tcp_link *link, size_t bytes, cohi_seal_kind kind, const char **wrong)
{
    cohi_tcp_in *in = &link->in;
    cohi_traffic_add(&link->traffic->received, bytes);
    if (kind == COHI_SEAL_DATA && in->left > 0 && is_for_caller(in, bytes))
        return open_for_caller(link, bytes, wrong);
    bool opened = cohi_tcp_stream_open(&link->stream, in->bytes + in->to);
    in->to += opened ? bytes : 0;
    return opened;
}

/* Whether the link goes on. */
static bool take_record(cohi_tcp_link *link, size_t bytes, cohi_seal_kind kind)
{
    cohi_tcp_in *in = &link->in;
    const char *wrong = NULL;
    if (!open_record(link, bytes, kind, &wrong)) {
        cohi_tcp_link_refuse_record(link, "it was changed, repeated, moved or cut on the way");
        return false;
    }
    link->silent_ns = 0;
    if (kind == COHI_SEAL_GOODBYE) {
        cohi_tcp_link_hear_goodbye(link, in->bytes + in->to - bytes, bytes);
        return false;
    }
    if (!wrong)
        wrong = take_frames(link);
    if (wrong)
        cohi_tcp_link_refuse(link, in->frame.head.verb, wrong);
    return !wrong;
}

/* Answers that were made meanwhile go together; an answer that came may let a request go. */
static void finish_turn(cohi_tcp_link *link)
{
    if (link->in.owes) {
        link->in.owes = false;
        pthread_mutex_lock(&link->lock);
        if (!link->out.armed)
            cohi_tcp_flush(link, NULL);
        pthread_mutex_unlock(&link->lock);
    }
    cohi_tcp_tell(link->endpoint);
}

/* False: the link has ended, and nothing is left to do. *turn is what came. */
static bool receive_sealed(cohi_tcp_link *link, size_t *turn)
{
    link->stream.drained = false;
    while (*turn < TURN_BYTES) {
        const unsigned char *record;
        size_t bytes;
        cohi_seal_kind kind;
        int error = cohi_tcp_stream_next(link, &record, &bytes, &kind);
        if (error == EAGAIN)
            break;
        if (error == EPROTO)
            cohi_tcp_link_refuse_record(link, "no record begins like that");
        else if (error || !record)
            cohi_tcp_link_broke(link, error);
        if (error || !record || !take_record(link, bytes - COHI_SEAL_EXTRA_BYTES, kind))
            return false;
        *turn += bytes;
    }
    return true;
}

/*
 * Of a long payload the next segment comes within some microseconds, and to sleep until it does costs the other side
 * more: its core wakes this one. A put of 16 MiB over TCP on the loopback to a rank that sleeps: 3.2 ms, 2.6 with a look
 * of NEAR_NS. Where the sender needs this very core, or the network is slower, looks are of no use, and most are skipped.
 */
static bool rest_is_near(cohi_tcp_in *in, size_t turn, uint64_t came_ns)
{
    if (turn == 0 || in->left < STREAM_BYTES || in->skips > 0)
        return false;
    if (cohi_now_ns() - came_ns > NEAR_NS) {
        in->skips = SKIPS;
        return false;
    }
    cohi_cpu_relax();
    return true;
}

/*
 * A long message that nobody receives yet would be kept, and copied twice. But a rank that looks is about to be given
 * what came before it, and mostly posts the next receive then. So the message stays where it is until the rank looks
 * again, or the thread does. It is put off once.
 */
static const char *take_put_off(cohi_tcp_link *link)
{
    link->in.patient = link->in.put_off = false;
    return take_frames(link);
}

static bool receive_clear(cohi_tcp_link *link, bool by_rank, size_t *turn)
{
    uint64_t came_ns = 0;
    cohi_tcp_in *in = &link->in;
    in->skips -= in->skips > 0;
    const char *late = in->put_off ? take_put_off(link) : NULL;
    if (late) {
        cohi_tcp_link_refuse(link, in->frame.head.verb, late);
        return false;
    }
    in->patient = by_rank;
    while (*turn < TURN_BYTES && !in->put_off) {
        size_t moved, asked;
        const char *wrong = NULL;
        int error = read_some(link, &moved, &asked, &wrong);
        if (error == EAGAIN && rest_is_near(&link->in, *turn, came_ns))
            continue;
        if (error == EAGAIN)
            break;
        if (!wrong && (error || moved == 0)) {
            cohi_tcp_link_broke(link, error);
            return false;
        }
        link->silent_ns = 0;
        *turn += moved;
        if (!wrong)
            wrong = take_frames(link);
        if (wrong) {
            cohi_tcp_link_refuse(link, link->in.frame.head.verb, wrong);
            return false;
        }
        if (moved < asked && link->in.left < STREAM_BYTES) /* that was all */
            break;
        came_ns = cohi_now_ns();
    }
    return true;
}

void cohi_tcp_receive(cohi_tcp_link *link, bool by_rank)
{
    size_t came = 0;
    bool goes_on =
        link->stream.seals.in ? receive_sealed(link, &came) : receive_clear(link, by_rank, &came);
    if (goes_on && came > 0) /* most looks of a rank that waits find nothing */
        finish_turn(link);
}
