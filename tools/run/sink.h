/*
 * run/sink.h - where output goes: a queue in front of a descriptor that may be slow.
 *
 * Writing never blocks the launcher, and never makes the descriptor non-blocking for the others
 * that share it: a pipe or terminal is opened a second time for that.
 */
#ifndef COHI_TOOLS_RUN_SINK_H
#define COHI_TOOLS_RUN_SINK_H

#include <stddef.h>

struct cohi_source;

typedef struct cohi_sink {
    int fd;
    int reopened; /* `fd` is the sink's own */
    int kind;     /* how to write without blocking; run/sink.c's */
    int terminal;
    int error; /* errno of the write that failed; from then on everything is dropped */
    int lost;  /* errno: some of the output could not be read, or there was no memory for it */
    char *data;
    size_t start, end, room; /* data[start, end) is still to be written */

    struct cohi_source *owner; /* whose line is open there, or NULL */
    int noted;                 /* a note stands on the last line */
} cohi_sink;

void cohi_sink_open(cohi_sink *sink, int fd);
void cohi_sink_close(cohi_sink *sink);

/* Adds to the queue. 0, or -1 when it was dropped: there is no memory (`lost`), or the sink failed. */
int cohi_sink_append(cohi_sink *sink, const void *bytes, size_t count);

/* Shows `text` on the last line of a terminal, in place of the note before it; "" shows none. Whatever is
 * appended wipes it first. Shows nothing while a line of output is open. */
void cohi_sink_note(cohi_sink *sink, const char *text);

/* Writes what can be written at once. */
void cohi_sink_flush(cohi_sink *sink);

static inline size_t cohi_sink_pending(const cohi_sink *sink)
{
    return sink->end - sink->start;
}

#endif
