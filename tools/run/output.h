/*
 * run/output.h - the ranks' output, line by line.
 *
 * Each rank has two sources, the pipes behind its standard output and error. Whole lines move from
 * them to the sinks, the launcher's own output and error, so that lines of different ranks never
 * mix. A line is "open" in a sink when its end has not come yet; only its source may then write
 * there. That happens:
 *   - when a line is longer than COHI_OUTPUT_PIECE_BYTES, which bounds the memory of a source;
 *   - on a terminal, so that a prompt is seen at once;
 *   - when a rank closed its output in the middle of a line.
 * If the others have to wait, an open line ends (by a line feed that the rank did not write) when
 * its rank has been silent for COHI_SILENCE_NS, or has written another piece.
 */
#ifndef COHI_TOOLS_RUN_OUTPUT_H
#define COHI_TOOLS_RUN_OUTPUT_H

#include "base/clock.h"
#include "run/fold.h"
#include "run/sink.h"

enum {
    COHI_OUTPUT_PIECE_BYTES = 1 << 20, /* longest line that is kept whole */
    COHI_QUEUE_BYTES = 256 << 10       /* with more than this in a sink, its sources have to wait */
};

#define COHI_SILENCE_NS (250 * COHI_NS_PER_MS)

typedef struct cohi_source {
    int fd;           /* -1: not attached, fed by others, or at its end */
    int fed;          /* its bytes come by cohi_output_feed, and more may come */
    const char *host; /* that its rank is on, for tags; NULL: the only one */
    int rank;
    cohi_sink *sink;
    char *data;
    size_t used, room;
    size_t open_bytes; /* of its open line in the sink */
    uint64_t wrote_ns; /* when it last added to the sink */
    int fresh;         /* its next byte begins a line */
    int waiting;       /* it has output, but another's line is open */
} cohi_source;

typedef struct cohi_output {
    cohi_sink sinks[2];    /* standard output and error */
    cohi_sink *error_sink; /* sinks[0] when both are one file */
    cohi_source *sources;  /* two a rank: output, error */
    int count;
    int tag;        /* begin each line by its rank, and its host */
    cohi_fold fold; /* not used with `tag`: there each rank's lines are wanted */
} cohi_output;

/* 0, or -1 when there is no memory. */
int cohi_output_open(cohi_output *output, int ranks, int tag);
void cohi_output_close(cohi_output *output);

/* Gives the source its pipe, non-blocking, which it closes at its end. */
void cohi_output_attach(cohi_output *output, int rank, int is_error, int fd);

/* The source has no pipe here: its bytes will be fed. `host` is for the tags, and stays the caller's. */
void cohi_output_expect(cohi_output *output, int rank, int is_error, const char *host);

/* Passes on what came from such a source; no bytes: it is at its end. */
void cohi_output_feed(cohi_output *output, int rank, int is_error, const void *bytes, size_t count);

/* Whether data of the source has somewhere to go. */
int cohi_source_has_room(const cohi_source *source);

/* Whether the source is to be polled: it is open and has room. */
int cohi_source_wants(const cohi_source *source);

/* Reads once and passes lines on. */
void cohi_source_read(cohi_output *output, cohi_source *source);

/* The errno of output that was lost; 0: none was. Writes to standard error that fail do not count. */
int cohi_output_error(const cohi_output *output);

/* A message of the launcher itself, whole lines, to the error sink. */
void cohi_output_say(cohi_output *output, const char *text);

/* When cohi_output_tick has something to do; UINT64_MAX: not by itself. */
uint64_t cohi_output_deadline(const cohi_output *output);

/* Tells what lines were left out because other ranks had said the same (run/fold.h). */
void cohi_output_unfold(cohi_output *output);

/* Ends lines of silent ranks that others wait for, and writes what can be written. */
void cohi_output_tick(cohi_output *output, uint64_t now);

/* Reads what is still in the pipes, without waiting, and forgets them. */
void cohi_output_drain(cohi_output *output);

#endif
