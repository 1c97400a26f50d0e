#include "hosts/stream.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

static void make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void cohi_stream_open(cohi_stream *stream, int in, int out)
{
    *stream = (cohi_stream){.in = in, .out = out};
    make_nonblocking(in);
    make_nonblocking(out);
}

void cohi_stream_close(cohi_stream *stream)
{
    cohi_os_close(stream->in);
    if (stream->out != stream->in)
        cohi_os_close(stream->out);
    free(stream->data);
    free(stream->control.data);
    free(stream->output.data);
    *stream = (cohi_stream){.in = -1, .out = -1, .at_end = 1};
}

/* ---- in ---- */

/* Room for a read, and a 0 behind it. */
static int make_room(cohi_stream *stream)
{
    size_t unread = cohi_stream_unread(stream);
    if (stream->start > 0)
        memmove(stream->data, stream->data + stream->start, unread);
    stream->start = 0;
    stream->used = unread;
    if (stream->room >= unread + READ_BYTES + 1)
        return 0;
    size_t room = 2 * unread + READ_BYTES + 1;
    char *data = realloc(stream->data, room);
    if (!data)
        return -1;
    stream->data = data;
    stream->room = room;
    return 0;
}

void cohi_stream_read(cohi_stream *stream)
{
    if (stream->in < 0 || stream->at_end || stream->error)
        return;
    if (make_room(stream) != 0) {
        stream->error = ENOMEM;
        return;
    }
    ssize_t got = read(stream->in, stream->data + stream->used, READ_BYTES);
    if (got > 0)
        stream->used += (size_t)got;
    else if (got == 0)
        stream->at_end = 1;
    else if (errno != EAGAIN && errno != EINTR)
        stream->error = errno;
}

int cohi_stream_next(cohi_stream *stream, cohi_frame *frame)
{
    if (cohi_stream_unread(stream) == 0)
        return 0;
    ptrdiff_t took = cohi_frame_read(stream->data + stream->start, cohi_stream_unread(stream),
                                     stream->size, frame);
    if (took <= 0)
        return (int)took;
    stream->start += (size_t)took;
    return 1;
}

int cohi_stream_find_magic(cohi_stream *stream, char *version, size_t room)
{
    size_t took = 0;
    if (cohi_stream_unread(stream) > 0)
        took = cohi_frame_find_magic(stream->data + stream->start, cohi_stream_unread(stream),
                                     version, room);
    stream->start += took;
    return took > 0;
}

/* ---- out ---- */

static size_t queued(const cohi_queue *queue)
{
    return queue->end - queue->start;
}

static int extend(cohi_queue *queue, size_t count)
{
    if (queue->start > 0) {
        memmove(queue->data, queue->data + queue->start, queued(queue));
        queue->end -= queue->start;
        queue->start = 0;
    }
    if (queue->end + count <= queue->room)
        return 0;
    size_t room = 2 * (queue->end + count);
    char *data = realloc(queue->data, room);
    if (!data)
        return -1;
    queue->data = data;
    queue->room = room;
    return 0;
}

static void append(cohi_stream *stream, cohi_queue *queue, const void *data, size_t count)
{
    if (stream->error || count == 0)
        return;
    if (queue->end + count > queue->room && extend(queue, count) != 0) {
        stream->error = ENOMEM;
        return;
    }
    memcpy(queue->data + queue->end, data, count);
    queue->end += count;
}

static void append_frame(cohi_stream *stream, cohi_queue *queue, const cohi_frame_head *head,
                         const void *data)
{
    append(stream, queue, head, sizeof *head);
    append(stream, queue, data, head->length);
}

static cohi_frame_head head_of(cohi_frame_kind kind, int rank, size_t length)
{
    return (cohi_frame_head){
        .mark = COHI_FRAME_MARK, .kind = (uint16_t)kind, .rank = rank, .length = (uint32_t)length};
}

void cohi_stream_send(cohi_stream *stream, cohi_frame_kind kind, int rank, const void *data,
                      size_t length)
{
    cohi_frame_head head = head_of(kind, rank, length);
    append_frame(stream, &stream->control, &head, data);
}

void cohi_stream_send_line(cohi_stream *stream, const char *line)
{
    append(stream, &stream->control, line, strlen(line));
}

void cohi_stream_send_text(cohi_stream *stream, cohi_frame_kind kind, const char *text)
{
    size_t length = strlen(text);
    cohi_stream_send(stream, kind, -1, text,
                     length < COHI_FRAME_TEXT_MAX ? length : COHI_FRAME_TEXT_MAX);
}

void cohi_stream_send_output(cohi_stream *stream, cohi_frame_kind kind, int rank, const void *data,
                             size_t length)
{
    cohi_frame_head head = head_of(kind, rank, length);
    append_frame(stream, &stream->output, &head, data);
}

size_t cohi_stream_pending(const cohi_stream *stream)
{
    return queued(&stream->control) + queued(&stream->output);
}

/* How much of the queue may be written before the other is looked at again: of output one frame, or
 * what is left of it. */
static size_t turn_of(const cohi_stream *stream, const cohi_queue *queue)
{
    cohi_frame_head head;
    if (queue == &stream->control)
        return queued(queue);
    if (stream->torn > 0)
        return stream->torn;
    memcpy(&head, queue->data + queue->start, sizeof head);
    return sizeof head + head.length;
}

/* 1 when it is worth another try. */
static int write_some(cohi_stream *stream, cohi_queue *queue)
{
    size_t count = turn_of(stream, queue);
    ssize_t wrote = write(stream->out, queue->data + queue->start, count);
    if (wrote < 0) {
        if (errno != EAGAIN && errno != EINTR)
            stream->error = errno;
        return errno == EINTR;
    }
    queue->start += (size_t)wrote;
    if (queue == &stream->output)
        stream->torn = count - (size_t)wrote;
    return 1;
}

/* A frame of output that was begun is ended before one of control. A frame of control that was begun
 * is at the head of its queue, which goes first. */
void cohi_stream_flush(cohi_stream *stream)
{
    while (!stream->error && stream->out >= 0 && cohi_stream_pending(stream) > 0) {
        int control = stream->torn == 0 && queued(&stream->control) > 0;
        if (!write_some(stream, control ? &stream->control : &stream->output))
            return;
    }
}
