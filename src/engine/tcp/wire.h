/*
 * wire.h - what travels on a link: the hello and its answer, then frames in both directions.
 *
 * A frame is a head of 32 bytes, an extension whose length follows from the verb, and a payload. It
 * names memory by segment, generation and offset, never by address. Everything here is checked
 * by what the frame says alone; serve.c checks it against this rank's own segments.
 *
 * Numbers are in the byte order of the hosts, which the hello compares.
 */
#ifndef COHI_ENGINE_TCP_WIRE_H
#define COHI_ENGINE_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COHI_TCP_VERSION = 1,
    COHI_TCP_ORDER_MARK = 0x01020304,
    COHI_TCP_KEY_BYTES = 16,
    COHI_TCP_WORD_BYTES = 8,
    /* The longest payload of a frame. Longer transfers are several frames, so that answers can go
     * between them. */
    COHI_TCP_FRAME_BYTES = 1 << 20,
    COHI_TCP_MESSAGE_BYTES =
        (512 << 10) + 256,       /* the longest message of the channel, with its head */
    COHI_TCP_REASON_BYTES = 160, /* the longest reason of a goodbye */
    /* Requests of one direction that may wait for their answers at once: all that the side that
     * answers must be able to queue. */
    COHI_TCP_WINDOW = 64
};

/* ---- the first bytes of a connection ---- */

/* Fixed sizes: nothing is allocated by what a stranger says. */
typedef struct cohi_tcp_hello {
    char magic[8];
    uint32_t version;
    uint32_t order_mark;
    int32_t from;
    int32_t to;
    int32_t size;
    uint32_t unused;
    /* Zero behind a handshake. Without one: */
    unsigned char to_key[COHI_TCP_KEY_BYTES];   /* the first key of the one that is called */
    unsigned char from_key[COHI_TCP_KEY_BYTES]; /* the second key of the caller */
} cohi_tcp_hello;

typedef enum cohi_tcp_reply {
    COHI_TCP_REPLY_OPEN = 1,    /* frames may follow, in both directions */
    COHI_TCP_REPLY_CROSSED = 2, /* the other side has called as well, and its call is the one */
    COHI_TCP_REPLY_LEFT = 3,    /* the rank has said that it leaves */
    COHI_TCP_REPLY_LOST = 4     /* the caller counts as lost there */
} cohi_tcp_reply;

typedef struct cohi_tcp_welcome {
    char magic[8];
    uint32_t reply;
    int32_t rank;
    unsigned char key[COHI_TCP_KEY_BYTES]; /* the second key of the one that was called, or zero */
} cohi_tcp_welcome;

extern const char cohi_tcp_magic[8];

/* ---- frames ---- */

/*
 * X(constant, name, bytes of the extension, the most that `bytes` may be, whether so many follow).
 * Answers come in the order of the requests, of which each has a number, counted from 1.
 */
#define COHI_TCP_VERB_TABLE(X)                                             \
    X(COHI_TCP_PUT, "put", 0, COHI_TCP_FRAME_BYTES, 1)                     \
    X(COHI_TCP_PUT_SIGNAL, "put with signal", 16, COHI_TCP_FRAME_BYTES, 1) \
    X(COHI_TCP_GET, "get", 0, UINT64_MAX, 0)                               \
    X(COHI_TCP_POST, "atomic", 24, 0, 0)                                   \
    X(COHI_TCP_FETCH, "fetching atomic", 24, 0, 0)                         \
    X(COHI_TCP_QUIET, "quiet", 0, 0, 0)                                    \
    X(COHI_TCP_LEAVE, "leave", 0, 0, 0)                                    \
    X(COHI_TCP_MESSAGE, "message", 0, COHI_TCP_MESSAGE_BYTES, 1)           \
    X(COHI_TCP_ANSWER, "answer", 0, COHI_TCP_FRAME_BYTES, 1)               \
    X(COHI_TCP_KEEPALIVE, "keepalive", 0, 0, 0)                            \
    X(COHI_TCP_GOODBYE, "goodbye", 0, COHI_TCP_REASON_BYTES, 1)

typedef enum cohi_tcp_verb {
    COHI_TCP_NO_VERB = 0,
#define COHI_TCP_VERB_CONSTANT(constant, name, extension, most, follows) constant,
    COHI_TCP_VERB_TABLE(COHI_TCP_VERB_CONSTANT)
#undef COHI_TCP_VERB_CONSTANT
        COHI_TCP_VERBS
} cohi_tcp_verb;

typedef struct cohi_tcp_head {
    uint8_t verb;
    uint8_t add; /* of a signal: it is added, not stored */
    uint16_t segment;
    uint32_t generation; /* of the segment */
    uint64_t offset;
    uint64_t bytes;  /* of the payload; of a get, asked for */
    uint64_t number; /* of a request that is answered, and of its answer */
} cohi_tcp_head;

typedef struct cohi_tcp_signal {
    uint64_t offset;
    uint64_t value;
} cohi_tcp_signal;

typedef struct cohi_tcp_atomic {
    uint32_t kind;  /* coh_atomic_op */
    uint32_t dtype; /* coh_dtype */
    uint64_t operand;
    uint64_t compare;
} cohi_tcp_atomic;

enum { COHI_TCP_EXTENSION_MOST = sizeof(cohi_tcp_atomic) };

/* A frame that has come so far: its head and extension, and the payload where that is here whole. */
typedef struct cohi_tcp_frame {
    cohi_tcp_head head;
    union {
        cohi_tcp_signal signal;
        cohi_tcp_atomic atomic;
    } extension;
    const unsigned char *payload; /* NULL: it follows, or there is none */
} cohi_tcp_frame;

/* Bytes of head and extension together, for a verb that exists. */
size_t cohi_tcp_head_bytes(unsigned verb);

/* Bytes that follow them. */
uint64_t cohi_tcp_payload_bytes(const cohi_tcp_head *head);

/*
 * Reads head and extension from `count` bytes; *taken is how many they are, 0 where more are needed.
 * Returns NULL, or what is wrong with them; this much is known from the first 32 bytes.
 */
const char *cohi_tcp_decode(const unsigned char *bytes, size_t count, cohi_tcp_frame *frame,
                            size_t *taken);

/* Writes them to `bytes`, of sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST; returns how many. */
size_t cohi_tcp_encode(const cohi_tcp_frame *frame, unsigned char *bytes);

/* NULL, or what is wrong with a hello to `rank` of `size` whose keys are compared by the caller. */
const char *cohi_tcp_check_hello(const cohi_tcp_hello *hello, int rank, int size);
const char *cohi_tcp_check_welcome(const cohi_tcp_welcome *welcome, int rank);

const char *cohi_tcp_verb_name(unsigned verb);

#endif
