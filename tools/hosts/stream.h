/*
 * stream.h - frames in both directions over two descriptors that never block.
 *
 * What is sent waits in one of two queues: frames of control, and output, which goes only when no
 * frame of control waits. Both are bounded by what their senders do: output by credit, control by
 * how much there is to say.
 */
#ifndef COHI_TOOLS_STREAM_H
#define COHI_TOOLS_STREAM_H

#include "hosts/frame.h"

typedef struct cohi_queue {
    char *data;
    size_t start, end, room; /* data[start, end) is still to be written */
} cohi_queue;

typedef struct cohi_stream {
    int in, out; /* -1: closed */
    int size;    /* ranks of the world */
    int error;   /* errno of what failed, or ENOMEM: the stream is of no use any more */
    int at_end;  /* the other side has closed it */
    size_t torn; /* bytes that are left of a frame of output: it is ended before others */
    char *data;  /* what came in, data[start, used) still to be read */
    size_t start, used, room;
    cohi_queue control, output;
} cohi_stream;

/* Makes both descriptors non-blocking and takes them over. */
void cohi_stream_open(cohi_stream *stream, int in, int out);
void cohi_stream_close(cohi_stream *stream);

/* Reads what is there, once. */
void cohi_stream_read(cohi_stream *stream);

/* The next frame, valid until the stream is read again. 1; 0: there is none yet; -1: what came is no
 * frame, with the reason in coh_last_error(). */
int cohi_stream_next(cohi_stream *stream, cohi_frame *frame);

/* Skips what is before the agent's first frame, and reads the version: 1 when it has come. */
int cohi_stream_find_magic(cohi_stream *stream, char *version, size_t room);

/* Bytes that came and were not read. */
static inline size_t cohi_stream_unread(const cohi_stream *stream)
{
    return stream->used - stream->start;
}

/* Sends a frame of control. */
void cohi_stream_send(cohi_stream *stream, cohi_frame_kind kind, int rank, const void *data,
                      size_t length);

/* Sends bytes as they are, before all frames. */
void cohi_stream_send_line(cohi_stream *stream, const char *line);

/* Sends a text, cut to what a frame may have. */
void cohi_stream_send_text(cohi_stream *stream, cohi_frame_kind kind, const char *text);

/* Sends a frame of output. */
void cohi_stream_send_output(cohi_stream *stream, cohi_frame_kind kind, int rank, const void *data,
                             size_t length);

/* Bytes that wait to be written. */
size_t cohi_stream_pending(const cohi_stream *stream);

/* Writes what can be written at once. */
void cohi_stream_flush(cohi_stream *stream);

#endif
