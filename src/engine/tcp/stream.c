#include "engine/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So much goes at once: the other side opens it while the next record is sealed. */
enum { SOON_BYTES = 16 << 10 };

bool cohi_tcp_stream_make(cohi_tcp_stream *stream, bool sealed)
{
    if (!sealed)
        return true;
    stream->out = malloc(COHI_TCP_STREAM_BYTES);
    stream->in = malloc(COHI_TCP_STREAM_BYTES);
    return stream->out && stream->in;
}

void cohi_tcp_stream_reset(cohi_tcp_stream *stream)
{
    cohi_seals_end(&stream->seals);
    stream->out_from = stream->out_to = 0;
    stream->in_from = stream->in_to = 0;
    stream->drained = false;
}

void cohi_tcp_stream_free(cohi_tcp_stream *stream)
{
    cohi_tcp_stream_reset(stream);
    free(stream->out);
    free(stream->in);
}

/* ---- out ---- */

static int send_records(cohi_tcp_link *link)
{
    cohi_tcp_stream *stream = &link->stream;
    int error = 0;
    while (!error && cohi_tcp_stream_holds(stream)) {
        struct iovec part = {.iov_base = stream->out + stream->out_from,
                             .iov_len = stream->out_to - stream->out_from};
        size_t moved;
        error = cohi_tcp_socket_write(link->fd, &part, 1, &moved);
        stream->out_from += moved;
    }
    if (!cohi_tcp_stream_holds(stream))
        stream->out_from = stream->out_to = 0;
    return error;
}

int cohi_tcp_stream_flush(cohi_tcp_link *link)
{
    return cohi_tcp_stream_holds(&link->stream) ? send_records(link) : 0;
}

/* As many of the parts as a record holds; `parts` are the caller's copy. */
static int cut(struct iovec *parts, int count, size_t most, size_t *bytes)
{
    int used = 0;
    *bytes = 0;
    while (used < count && *bytes < most) {
        if (parts[used].iov_len > most - *bytes)
            parts[used].iov_len = most - *bytes;
        *bytes += parts[used++].iov_len;
    }
    return used;
}

static size_t room(const cohi_tcp_stream *stream)
{
    return COHI_TCP_STREAM_BYTES - stream->out_to;
}

static int seal(cohi_tcp_stream *stream, cohi_seal_kind kind, const struct iovec *parts, int count)
{
    size_t bytes =
        cohi_seal_close(stream->seals.out, kind, parts, count, stream->out + stream->out_to);
    stream->out_to += bytes;
    return bytes > 0 ? 0 : EIO;
}

int cohi_tcp_stream_write(cohi_tcp_link *link, const struct iovec *parts, int count, size_t *moved)
{
    enum { PARTS = 64 };
    cohi_tcp_stream *stream = &link->stream;
    struct iovec copy[PARTS];
    if (!stream->seals.out)
        return cohi_tcp_socket_write(link->fd, parts, count, moved);
    *moved = 0;
    int error = room(stream) < COHI_SEAL_RECORD_BYTES ? send_records(link) : 0;
    if (error)
        return error;
    count = count < PARTS ? count : PARTS;
    memcpy(copy, parts, (size_t)count * sizeof *parts);
    count = cut(copy, count, COHI_SEAL_PLAIN_BYTES, moved);
    error = seal(stream, COHI_SEAL_DATA, copy, count);
    if (error)
        *moved = 0;
    else if (stream->out_to - stream->out_from >= SOON_BYTES)
        (void)send_records(link); /* what comes of it is seen the next time */
    return error;
}

/* What the socket does not take now is not sent any more. */
void cohi_tcp_stream_goodbye(cohi_tcp_link *link, const char *text, size_t count)
{
    cohi_tcp_stream *stream = &link->stream;
    struct iovec part = {.iov_base = (char *)(uintptr_t)text, .iov_len = count};
    if (room(stream) < COHI_SEAL_RECORD_BYTES && send_records(link) != 0)
        return;
    if (seal(stream, COHI_SEAL_GOODBYE, &part, 1) == 0)
        (void)send_records(link);
}

int cohi_tcp_stream_say(int fd, cohi_seal *seal, const void *bytes, size_t count)
{
    unsigned char record[COHI_SEAL_EXTRA_BYTES + sizeof(cohi_tcp_hello)];
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    if (!seal)
        return cohi_tcp_socket_write_whole(fd, bytes, count);
    size_t all = cohi_seal_close(seal, COHI_SEAL_DATA, &part, 1, record);
    return all > 0 ? cohi_tcp_socket_write_whole(fd, record, all) : EIO;
}

/* ---- in ---- */

/* 0 where the next record is not here whole; SIZE_MAX where none can begin like that. */
static size_t whole_record(const cohi_tcp_stream *stream, cohi_seal_kind *kind)
{
    size_t here = stream->in_to - stream->in_from;
    if (here < COHI_SEAL_HEAD_BYTES)
        return 0;
    size_t bytes = cohi_seal_announced(stream->in + stream->in_from, kind);
    return bytes == 0 ? SIZE_MAX : bytes <= here ? bytes : 0;
}

/* The beginning of a record moves to the front when its rest would not fit. */
static void make_room(cohi_tcp_stream *stream)
{
    size_t here = stream->in_to - stream->in_from;
    if (here > 0 && stream->in_from + COHI_SEAL_RECORD_BYTES <= COHI_TCP_STREAM_BYTES)
        return;
    memmove(stream->in, stream->in + stream->in_from, here);
    stream->in_from = 0;
    stream->in_to = here;
}

static int read_more(cohi_tcp_link *link, size_t *moved)
{
    cohi_tcp_stream *stream = &link->stream;
    *moved = 0;
    if (stream->drained)
        return EAGAIN;
    make_room(stream);
    struct iovec part = {.iov_base = stream->in + stream->in_to,
                         .iov_len = COHI_TCP_STREAM_BYTES - stream->in_to};
    int error = cohi_tcp_socket_read(link->fd, &part, 1, moved);
    stream->in_to += *moved;
    stream->drained = !error && *moved < part.iov_len;
    return error;
}

int cohi_tcp_stream_next(cohi_tcp_link *link, const unsigned char **record, size_t *bytes,
                         cohi_seal_kind *kind)
{
    cohi_tcp_stream *stream = &link->stream;
    *record = NULL;
    while ((*bytes = whole_record(stream, kind)) == 0) {
        size_t moved;
        int error = read_more(link, &moved);
        if (error || moved == 0)
            return error;
    }
    if (*bytes == SIZE_MAX)
        return EPROTO;
    *record = stream->in + stream->in_from;
    return 0;
}

bool cohi_tcp_stream_open(cohi_tcp_stream *stream, unsigned char *plain)
{
    cohi_seal_kind kind;
    const unsigned char *record = stream->in + stream->in_from;
    size_t bytes = cohi_seal_announced(record, &kind);
    stream->in_from += bytes;
    return cohi_seal_open(stream->seals.in, record, bytes, plain);
}
