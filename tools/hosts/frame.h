/*
 * frame.h - what the launcher and its agents say to each other.
 *
 * A stream of bytes each way, the agent's standard input and output. The agent's begins with a line,
 * COHI_AGENT_MAGIC and the version: what a login script has written before it is skipped. Then
 * there are frames: a head, and a payload whose length has bounds by kind. Both sides are of one
 * version, so payloads are structures in the order of bytes of the host; the head has a word by which
 * another order is noticed.
 *
 * Times travel as ages, since two hosts have two clocks.
 */
#ifndef COHI_TOOLS_FRAME_H
#define COHI_TOOLS_FRAME_H

#include <cohort.h>
#include <stddef.h>
#include <stdint.h>

/* Then the version and a line feed. */
#define COHI_AGENT_MAGIC "@@cohort-agent-1@@ "

typedef enum cohi_frame_kind {
    /* To the agent. */
    COHI_FRAME_ORDER = 1, /* what to run: order.h */
    COHI_FRAME_START,     /* coh_unique_id: all hosts are ready */
    COHI_FRAME_SIGNAL,    /* int32: an order to the supervisors (run/supervise.h) */
    COHI_FRAME_ABANDON,   /* the supervisors are to be killed too */
    COHI_FRAME_CREDIT,    /* cohi_credit of the rank */
    COHI_FRAME_LOOK,      /* send what all ranks are doing: the job fails */
    COHI_FRAME_INPUT,     /* bytes of rank 0's standard input; none: that is its end */

    /* Both ways: from the agent of the rank, and to all others. */
    COHI_FRAME_BLAMED,  /* cohi_blame by the rank, which has ended: another is why, perhaps */
    COHI_FRAME_ENDED,   /* cohi_end of the rank */
    COHI_FRAME_STOPPED, /* cohi_stop of the rank */
    COHI_FRAME_EXIT,    /* int32: a rank has asked for the end of the job, with this code */
    COHI_FRAME_PING,    /* the other side answers by one, to the launcher alone */

    /* From the agent. */
    COHI_FRAME_READY,    /* cohi_ready: it waits for COHI_FRAME_START */
    COHI_FRAME_ROOT,     /* coh_unique_id, of rank 0's host: where the others find rank 0 */
    COHI_FRAME_FAILED,   /* text: why it cannot run ranks */
    COHI_FRAME_STARTED,  /* int32: the rank's process */
    COHI_FRAME_NO_START, /* int32 errno, then text: why a rank was not started */
    COHI_FRAME_OUTPUT,   /* bytes of the rank's standard output */
    COHI_FRAME_ERROR,    /* bytes of its standard error */
    COHI_FRAME_TAKEN,    /* uint32: bytes of its input that rank 0 has taken */
    COHI_FRAME_FACTS,    /* cohi_facts of the rank (facts.h) */
    COHI_FRAME_SIGHT,    /* cohi_sight of the rank (sight.h) */
    COHI_FRAME_SNAPSHOT, /* cohi_snapshot_row of the rank (snapshot.h) */
    COHI_FRAME_RACE,     /* text: the first race that a rank has named */
    COHI_FRAME_SAY,      /* text: a line for the user */
    COHI_FRAME_DONE,     /* all of its ranks and what they had started are gone */
    COHI_FRAME_KINDS
} cohi_frame_kind;

enum {
    COHI_FRAME_MARK = 0x43f7, /* differs when its bytes are swapped */
    COHI_FRAME_TEXT_MAX = 2048,
    COHI_FRAME_BYTES_MAX = 16 << 10, /* of output: short enough for others to come between */
    COHI_FRAME_ORDER_MAX = 4 << 20   /* the kernel's own limit on arguments is 2 MiB */
};

typedef struct cohi_frame_head {
    uint16_t mark, kind;
    int32_t rank; /* -1: of none */
    uint32_t length;
} cohi_frame_head;

typedef struct cohi_end {
    int32_t wait_status;
    int32_t unused;
    uint64_t age_ns;
} cohi_end;

typedef struct cohi_blame {
    int32_t rank;
    int32_t unused;
    uint64_t verdict; /* core/health/verdict.h */
} cohi_blame;

typedef struct cohi_stop {
    uint32_t stopped;
    uint32_t op; /* cohi_opcode that it was stopped in */
} cohi_stop;

typedef struct cohi_ready {
    int32_t cores;
    int32_t pid; /* the agent's */
} cohi_ready;

/*
 * Output is sent only on credit, so that the launcher can always read on: `granted` is how many
 * bytes more of that stream of the rank may come. And `received`, how many bytes of output of all
 * ranks have come so far, bounds what is on the way, so that other frames are not long behind it.
 */
typedef struct cohi_credit {
    uint32_t is_error;
    uint32_t granted;
    uint64_t received;
} cohi_credit;

enum {
    COHI_CREDIT_BYTES = 64 << 10,     /* of a stream of a rank, at first; of its input, ever */
    COHI_ON_THE_WAY_BYTES = 256 << 10 /* of all of a host */
};

/* One frame as it was received. `data` is the stream's, and has `length` bytes and a 0 after them. */
typedef struct cohi_frame {
    cohi_frame_kind kind;
    int rank;
    const char *data;
    size_t length;
} cohi_frame;

/* Reads a frame from data[length], for ranks of a world of `size`: how many bytes it takes; 0: it is
 * not all there yet; -1 when it is none, with the reason in coh_last_error(). The payload is at
 * sizeof(cohi_frame_head). */
ptrdiff_t cohi_frame_read(const char *data, size_t length, int size, cohi_frame *frame);

/* The version after the magic in data[length], into version[room]: how many bytes it takes with what
 * is before it; 0: it has not come yet. */
size_t cohi_frame_find_magic(const char *data, size_t length, char *version, size_t room);

/* Copies a payload; one of a kind with a fixed length has that many bytes. */
void cohi_frame_copy(const cohi_frame *frame, void *to, size_t bytes);

/* The payload as text, from byte `from` on: controls but the line feed as '?'. */
void cohi_frame_text(const cohi_frame *frame, size_t from, char *text, size_t room);

#endif
