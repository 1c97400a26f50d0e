/*
 * tcp.h - the engine between hosts, as its files see it.
 *
 *   wire.c     the format of what travels
 *   socket.c   the few system calls on sockets
 *   congestion.c  the kernel's congestion control, by the round trip
 *   tcp.c      the slots
 *   memory.c   segments: mapped on this host, served to the others
 *   ops.c      operations that wait for one link, or several
 *   places.c   the addresses of this host, and which of a peer's to call
 *   listen.c   where this rank listens; who can reach whom
 *   link.c     links: found, kept alive, ended
 *   call.c     links: called and opened
 *   callers.c  connections that have not proved themselves yet
 *   stream.c   the bytes of a link: as they are, or sealed in records
 *   send.c     requests and answers on their way out
 *   receive.c  the stream of bytes that comes in, cut into frames
 *   serve.c    what each frame does
 *   thread.c   the thread of an endpoint: it reads, writes what did not fit, keeps links alive
 *   poll.c     ranks that wait read their links themselves, and the thread sleeps meanwhile
 *   fork.c     what a forked child does not keep
 *
 * Two ranks of different hosts have at most one connection, made when one of them first needs it. Each
 * side sends requests on it and answers the other's. It begins with a handshake (secure/tls.h), then a
 * hello and its answer. Unless COHORT_NET is clear, all that follows the handshake is in sealed
 * records (secure/seal.h), the hello too. Where both call at the same time the call of the lower rank is the one.
 * Nothing is sent before the hello was answered, so nothing is lost or overtaken by that. A
 * connection that breaks is not made again: the rank is lost.
 *
 * Locks, in the order in which they are taken:
 *   poll->lock            who reads the links, the thread or ranks
 *   link->reading         whoever reads from the link, and does what the frames say; upcalls are
 *                         made with it held. A rank that polls only tries it
 *   link->landing         held while bytes are received into a caller's memory
 *   link->lock            the link's state, and all that is sent
 *   endpoint->segments    this rank's segments, while bytes move to or from them
 *   endpoint->ops         which requests an operation waits for
 * No upcall is made with the first or one of the last four held.
 */
#ifndef COHI_ENGINE_TCP_TCP_H
#define COHI_ENGINE_TCP_TCP_H

#include "engine/engine.h"
#include "engine/modules/parts.h"
#include "engine/modules/segments.h"
#include "engine/tcp/places.h"
#include "engine/tcp/socket.h"
#include "engine/tcp/wire.h"
#include "secure/tls.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct cohi_tcp_link cohi_tcp_link;

/* What a descriptor of the thread's epoll belongs to; the first member of each. */
typedef enum cohi_tcp_source {
    COHI_TCP_SOURCE_WAKE = 0,
    COHI_TCP_SOURCE_LISTENER,
    COHI_TCP_SOURCE_CALLER,
    COHI_TCP_SOURCE_LINK,
    COHI_TCP_SOURCE_LINKS, /* the set of those */
    COHI_TCP_SOURCE_TIMER, /* of polling */
    COHI_TCP_SOURCES
} cohi_tcp_source;

/* ---- operations (ops.c) ---- */

/* Tells core that something happened, if so. No lock held. */
void cohi_tcp_tell(cohi_endpoint *endpoint);

/* cohi_part_join and its kin, with the lock of parts. */
void cohi_tcp_part_join(cohi_endpoint *endpoint, cohi_part *part, cohi_op *op, int rank);

void cohi_tcp_part_excuse(cohi_endpoint *endpoint, cohi_part *part);

/* The part is over; the last one's end is the op's. Returns whether it was. */
bool cohi_tcp_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status);

/* ---- sending (send.c) ---- */

/* Of a payload that is copied into its request: a put's, or the head of a message. */
enum { COHI_TCP_INLINE_BYTES = COHI_HEAD_BYTES };

_Static_assert((int)COHI_TCP_INLINE_BYTES >= (int)COHI_INLINE_BYTES, "short puts fit too");

/* A request from when it is issued until it is answered or, where it has no answer, sent. */
typedef struct cohi_tcp_request {
    struct cohi_tcp_request *next;
    cohi_part part;
    unsigned context;
    cohi_tcp_frame frame; /* the one that is being sent, of several where there are many bytes */
    bool signals;         /* the last one carries a signal */
    uint64_t left;        /* bytes that are in none of the frames so far */
    const char *source;   /* of those */
    char *target;         /* of the answer; NULL: it is dropped */
    uint64_t expected;    /* bytes of the answer that are to come */
    uint64_t mark;        /* of a quiet: what it was to complete */
    size_t prefix_bytes;  /* of a message: the first ones, which are in `head` */
    const char *body;     /* of the present frame, behind what is in `head` */
    size_t body_bytes;
    char *
        own; /* the link's copy of the body, where the caller's is not to be used any more, or NULL */
    size_t head_bytes;
    unsigned char head[sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST + COHI_TCP_INLINE_BYTES];
} cohi_tcp_request;

/* An answer that is to be sent: a value, or bytes of a segment as they are when they are sent. */
typedef struct cohi_tcp_answer {
    uint64_t number;
    int segment;
    uint32_t generation;
    uint64_t offset;
    uint64_t left; /* bytes of the segment that were not sent */
    size_t value_bytes;
    unsigned char value[COHI_TCP_WORD_BYTES];
} cohi_tcp_answer;

typedef struct cohi_tcp_queue {
    cohi_tcp_request *first;
    cohi_tcp_request *last;
    unsigned count;
} cohi_tcp_queue;

typedef struct cohi_tcp_out {
    cohi_tcp_queue requests; /* not sent, or in part */
    cohi_tcp_queue awaited;  /* sent, to be answered in this order */
    cohi_tcp_request *free;
    struct cohi_tcp_chunk *chunks; /* of memory for requests */
    cohi_tcp_answer answers[COHI_TCP_WINDOW];
    unsigned first_answer;
    unsigned answer_count;
    unsigned char answer_head[sizeof(cohi_tcp_head) + COHI_TCP_WORD_BYTES];
    size_t answer_head_bytes; /* of the first answer's present frame; 0: none is made */
    size_t answer_body_bytes;
    size_t written;    /* of the frame that is being sent, so far */
    bool answering;    /* that one is an answer's */
    atomic_bool armed; /* the thread is told when the socket takes more */
    bool broken;       /* the socket takes nothing any more; the thread finds out why */
    bool spoke;        /* since the last tick */
    uint64_t number;   /* of the last request that is answered */
    char *spare; /* [COHI_SHORT_BYTES] for the rest of a short message; NULL: a request has it */
} cohi_tcp_out;

/* ---- receiving (receive.c) ---- */

enum {
    COHI_TCP_WHOLE_BYTES = 16 << 10, /* the longest payload that waits to be here whole */
    COHI_TCP_IN_BYTES = 96 << 10     /* a record, and a frame that was not whole before it */
};

/* So more than what a look reads fits there too. */
_Static_assert((int)COHI_TCP_IN_BYTES >= (int)COHI_SEAL_PLAIN_BYTES + (int)COHI_TCP_WHOLE_BYTES
                                             + (int)sizeof(cohi_tcp_head)
                                             + (int)COHI_TCP_EXTENSION_MOST,
               "a record always fits behind what is left of the one before");

/* Where the payload that follows is to go. */
typedef enum cohi_tcp_sink {
    COHI_TCP_SINK_NONE = 0,
    COHI_TCP_SINK_SEGMENT,
    COHI_TCP_SINK_CALLER, /* the target of the first request that is awaited */
    COHI_TCP_SINK_MESSAGE,
    COHI_TCP_SINK_CLAIM /* a buffer of core's, for the rest of a message */
} cohi_tcp_sink;

typedef struct cohi_tcp_in {
    unsigned char *bytes; /* [COHI_TCP_IN_BYTES] */
    size_t from, to;      /* of them, those that have come and are not taken */
    cohi_tcp_frame frame; /* whose payload follows */
    cohi_tcp_sink sink;
    uint64_t claim;         /* of a message that core has a buffer for */
    size_t skipped;         /* of the payload, its head, which is not for that buffer */
    uint64_t at;            /* of the payload, so far */
    uint64_t left;          /* of the payload, to come */
    unsigned skips;         /* receives that are not to look for more of it */
    bool last_was_long;     /* the last frame's payload was not here whole */
    bool owes;              /* there may be something to send since what came was served */
    bool patient;           /* a message may be put off: see receive.c */
    bool put_off;           /* the next one has been */
    unsigned char *message; /* [COHI_TCP_MESSAGE_BYTES], for those that do not come whole */
} cohi_tcp_in;

/* ---- the bytes of a link (stream.c) ---- */

/* Records that fit a buffer: while one of them is with the kernel the next can be made. */
enum { COHI_TCP_RECORDS = 2, COHI_TCP_STREAM_BYTES = COHI_TCP_RECORDS * COHI_SEAL_RECORD_BYTES };

/* Of a link whose bytes are sealed. */
typedef struct cohi_tcp_stream {
    cohi_seals seals;        /* none: in the clear */
    unsigned char *out;      /* [COHI_TCP_STREAM_BYTES] of records */
    size_t out_from, out_to; /* of them, those that the socket has not taken; under link->lock */
    unsigned char *in;       /* [COHI_TCP_STREAM_BYTES] as they came */
    size_t in_from, in_to;   /* of them, those that are not opened */
    bool drained;            /* the socket had no more when it was last read */
} cohi_tcp_stream;

/* ---- links (link.c) ---- */

typedef enum cohi_tcp_state {
    COHI_TCP_IDLE = 0,
    COHI_TCP_CALLING, /* or waiting for the other's call, which crossed ours: then there is no fd */
    COHI_TCP_SECURING, /* connected; the handshake is under way */
    COHI_TCP_GREETING, /* connected; the hello is not answered */
    COHI_TCP_OPEN,
    COHI_TCP_ENDED
} cohi_tcp_state;

/* What a context has issued on a link, counted, and how much of it is known to be complete. */
typedef struct cohi_tcp_count {
    uint64_t issued;
    uint64_t complete;
} cohi_tcp_count;

struct cohi_tcp_link {
    cohi_tcp_source source;
    cohi_endpoint *endpoint;
    int rank;
    pthread_mutex_t reading;
    pthread_mutex_t landing;
    pthread_mutex_t lock;
    _Atomic(cohi_tcp_state) state;
    int fd;             /* closed by the thread alone */
    uint32_t interest;  /* events that the thread waits for; 0: it is not in its set */
    cohi_tls *tls;      /* of a call, until the handshake is through */
    cohi_tls_turn turn; /* what that waits for */
    bool complained;    /* that a call failed */
    bool
        unconfirmed; /* open for a caller of which nothing was heard since: it may have given up its
                         * call before it was answered, so nothing is sent to it yet */
    unsigned char order[COHI_TCP_PLACES]; /* in which the peer's places are called */
    int places;                           /* of them */
    int at;                               /* the one that is called */
    int failed;                           /* what came of those before it, or 0 */
    uint64_t called_ns;                   /* since when */
    uint64_t refused_ns;                  /* when nobody listened there for the first time */
    int call_error;             /* with which a call ended at once; the thread is to see to it */
    bool peer_left;             /* it said so: its end is no loss */
    bool leaving;               /* it was told that this rank leaves */
    uint64_t linger_ns;         /* ended, but what it says is taken until then */
    _Atomic uint64_t silent_ns; /* for how long nothing has come, by this rank's own time */
    uint64_t acknowledged;      /* bytes, by its host, when that was last looked at */
    uint64_t host_silent_ns;    /* and for how long its host has not acknowledged anything */
    bool mute;                  /* it says nothing, but its host acknowledges; the thread's */
    cohi_tcp_count *counts;     /* [COHI_CONTEXTS_MAX] */
    cohi_traffic *traffic;  /* counted where bytes move, under the lock; `received` by who reads */
    cohi_traffic uncounted; /* what that points to where nobody looks */
    cohi_tcp_stream stream;
    cohi_tcp_out out;
    cohi_tcp_in in;
};

/* ---- callers (callers.c) ---- */

enum { COHI_TCP_CALLERS = 64 };

/* A connection that has not proved itself, or has not shown a hello yet. */
typedef struct cohi_tcp_caller {
    cohi_tcp_source source;
    int fd; /* -1: the place is free */
    uint64_t since_ns;
    cohi_tls *tls; /* NULL: not begun, or through */
    int rank;      /* that it has proved to be; -1: not so far */
    cohi_seals seals;
    size_t got;
    unsigned char bytes[COHI_SEAL_EXTRA_BYTES + sizeof(cohi_tcp_hello)];
} cohi_tcp_caller;

/* ---- polling (poll.c) ---- */

typedef struct cohi_tcp_poll {
    cohi_tcp_source links_source, timer_source;
    int timer;            /* rings now and then while a rank polls; -1: ranks do not */
    atomic_int taken;     /* a rank polls, or is about to: the thread does not hear of links */
    atomic_int unasked;   /* and it reads all of them, whether something has come or not */
    atomic_int served;    /* the thread has received a message since a rank polled */
    atomic_uint expected; /* `calls` when a rank that sent was last taken for one about to poll */
    atomic_uint calls;    /* of ranks that poll */
    atomic_int rests;     /* none does: those that waited are asleep, and were not woken since */
    unsigned seen;        /* of them, when the timer rang last */
    uint64_t period_ns;   /* of the timer; 0: it does not ring */
    pthread_mutex_t lock; /* taking and giving back, and the period */
} cohi_tcp_poll;

/* ---- the endpoint ---- */

/* A socket at which others call. */
typedef struct cohi_tcp_listener {
    cohi_tcp_source source;
    int fd; /* -1: none */
} cohi_tcp_listener;

/* A rank as this one knows it, whether there is a link to it or not. */
enum { COHI_TCP_ALIVE = 0, COHI_TCP_LEFT = 1, COHI_TCP_LOST = 2 };

struct cohi_endpoint {
    cohi_endpoint *next; /* of this process */
    int rank;
    int size;
    const cohi_upcalls *upcalls;
    void *world;
    uint64_t link_timeout_ns; /* 0: none */
    uint64_t tick_ns;         /* between looks at all links */

    pthread_mutex_t segments_lock;
    cohi_segments segments;

    cohi_tcp_congestion congestion;
    cohi_tls_self self;
    bool secured;            /* links begin with a handshake */
    bool seals;              /* and what follows it is sealed */
    cohi_seal_limits limits; /* of the keys */
    cohi_tcp_address own;
    cohi_tcp_address *addresses; /* [size], from connect on */
    int *host_of;                /* [size] */
    atomic_uchar *fates;         /* [size] */

    _Atomic(cohi_tcp_link *) *links; /* [size]; NULL: none so far */
    cohi_traffic *traffic;           /* [size], or NULL: nobody looks */
    cohi_tcp_link **made;            /* [size] those that there are, in order of making */
    atomic_int made_count;
    pthread_mutex_t links_lock; /* making one */

    pthread_mutex_t ops_lock;
    atomic_int leaving;
    atomic_int attends; /* something came by which core may go on with its messages */

    cohi_tcp_source wake_source;
    cohi_tcp_listener listeners[COHI_TCP_PLACES]; /* of the places of `own` */
    int epoll;                                    /* the thread's set */
    int links_epoll; /* of links, which is in the thread's, unless a rank polls */
    int wake;
    cohi_tcp_poll poll;
    pthread_t thread;
    bool started;
    bool deaf; /* no descriptors for callers at the moment */
    atomic_int stopping;
    atomic_int sweep; /* a link has ended, or could not be called, which the thread sees to */
    uint64_t last_tick_ns;
    uint64_t looks_until_ns; /* the thread does not sleep; 0: it does */
    unsigned skips;          /* events behind which it is to sleep at once */
    uint64_t again_ns;       /* when to call again, before the next tick; 0: not */
    atomic_int rings;        /* something happened that core is not told yet */
    atomic_int stores;       /* likewise: a peer wrote into a heap */
    uint64_t refused_ns;     /* when it was last said that strangers call */
    unsigned refused;        /* strangers since then */
    cohi_tcp_caller callers[COHI_TCP_CALLERS];
};

/* ---- memory.c ---- */

extern const cohi_engine_memory cohi_tcp_memory;

/* Where so many bytes are in this rank's segment; NULL, and *wrong says why. segments_lock held. */
char *cohi_tcp_locate(const cohi_endpoint *endpoint, const cohi_tcp_head *head, uint64_t offset,
                      uint64_t bytes, const char **wrong);

void cohi_tcp_memory_close(cohi_endpoint *endpoint);

/* ---- link.c ---- */

/* The link to a rank, which is made if there is none. COH_PEER_LOST for one that is gone. */
coh_status cohi_tcp_link_to(cohi_endpoint *endpoint, int rank, cohi_tcp_link **link);

/* The link if there is one. */
cohi_tcp_link *cohi_tcp_link_find(cohi_endpoint *endpoint, int rank);

/* The link, which is made if there is none, or NULL. */
cohi_tcp_link *cohi_tcp_link_make(cohi_endpoint *endpoint, int rank);

/* Closes the socket and all that belongs to it. The thread, lock held. */
void cohi_tcp_link_hang_up(cohi_tcp_link *link);

/* COH_PEER_LOST. */
coh_status cohi_tcp_refuse_gone(const cohi_endpoint *endpoint, int rank);

/* ---- call.c ---- */

/* Sees to it that the link is open, or will be. Lock held. */
coh_status cohi_tcp_link_use(cohi_tcp_link *link);

/* The thread: the socket of a link that is not open yet can be written or read. */
void cohi_tcp_link_advance(cohi_tcp_link *link);

/* The thread: a caller has proved that it is that rank. Takes the descriptor and the seals, or closes
 * them. */
void cohi_tcp_link_adopt(cohi_endpoint *endpoint, int rank, int fd, cohi_seals *seals);

/* ---- link.c again: how a link ends ---- */

typedef struct cohi_tcp_end {
    cohi_loss loss; /* 0: core knows */
    int detail;
    const char *goodbye; /* what the other side is told; NULL: nothing */
} cohi_tcp_end;

/* A step of the call has failed, if `error`: another place is called, or it is tried again at the
 * next tick, or the link is to end by what is returned, where that has a loss. Lock held. */
cohi_tcp_end cohi_tcp_call_conclude(cohi_tcp_link *link, int error);

/* The thread, now and then: calls again, and leaves places that do not answer. Lock held. */
cohi_tcp_end cohi_tcp_call_tick(cohi_tcp_link *link);

/*
 * Ends it, and all that waits for it with COH_PEER_LOST. No lock held. Core is told, unless the rank
 * has left or the link had ended.
 */
void cohi_tcp_link_end(cohi_tcp_link *link, cohi_tcp_end end);

/* The same for a link that broke with `error`, or 0 where the other side closed it. */
void cohi_tcp_link_broke(cohi_tcp_link *link, int error);

/* The other side has sent what it should not have, in a frame, or in a record: both sides say so. */
void cohi_tcp_link_refuse(cohi_tcp_link *link, unsigned verb, const char *wrong);
void cohi_tcp_link_refuse_record(cohi_tcp_link *link, const char *wrong);

/* The other side says why it ends the link. */
void cohi_tcp_link_hear_goodbye(cohi_tcp_link *link, const unsigned char *text, size_t count);

/* The thread: closes what has ended, and ends what could not be called. */
void cohi_tcp_link_sweep(cohi_endpoint *endpoint);

/* The thread: whether it has ended; what it says is read and dropped while it lingers. */
bool cohi_tcp_link_drain(cohi_tcp_link *link);

/* The thread, now and then: calls again, keeps alive, tells of silence. */
void cohi_tcp_link_tick(cohi_tcp_link *link, uint64_t passed_ns);

/* The thread: calls again where a call has ended without an answer. */
void cohi_tcp_link_call_again(cohi_tcp_link *link);

/* Core says that the rank is lost. */
void cohi_tcp_link_lose(cohi_endpoint *endpoint, int rank);

/* Goes back to calling, where the link is unconfirmed and the caller has hung up. False: it has not. */
bool cohi_tcp_link_forget(cohi_tcp_link *link);

/* The thread's set of descriptors follows what the link waits for. Lock held. */
void cohi_tcp_link_poll(cohi_tcp_link *link);

void cohi_tcp_link_free(cohi_tcp_link *link);

/* ---- listen.c ---- */

/* Listens where the others may call, which is then in endpoint->own. */
coh_status cohi_tcp_listen(cohi_endpoint *endpoint, const cohi_engine_args *args);
void cohi_tcp_listen_no_more(cohi_endpoint *endpoint);

/* The addresses of all are known: checks that those of other hosts can be reached, and starts the
 * thread. */
coh_status cohi_tcp_go_online(cohi_endpoint *endpoint);

/* ---- callers.c: the thread's ---- */

void cohi_tcp_callers_accept(cohi_endpoint *endpoint, cohi_tcp_listener *listener);
void cohi_tcp_caller_read(cohi_endpoint *endpoint, cohi_tcp_caller *caller);
void cohi_tcp_callers_tick(cohi_endpoint *endpoint, uint64_t now_ns);
void cohi_tcp_callers_close(cohi_endpoint *endpoint);

/* ---- stream.c ---- */

/* Room for records, where links are sealed; false: no memory. */
bool cohi_tcp_stream_make(cohi_tcp_stream *stream, bool sealed);

/* A new connection: nothing is under way, in either direction. */
void cohi_tcp_stream_reset(cohi_tcp_stream *stream);
void cohi_tcp_stream_free(cohi_tcp_stream *stream);

/* As cohi_tcp_socket_write, link->lock held. What is sealed counts as moved; the flush moves it on:
 * EAGAIN while there is something that the socket does not take. */
int cohi_tcp_stream_write(cohi_tcp_link *link, const struct iovec *parts, int count, size_t *moved);
int cohi_tcp_stream_flush(cohi_tcp_link *link);

static inline bool cohi_tcp_stream_holds(const cohi_tcp_stream *stream)
{
    return stream->out_from < stream->out_to;
}

/* Says why the link ends, at the end of a record; link->lock held. */
void cohi_tcp_stream_goodbye(cohi_tcp_link *link, const char *text, size_t count);

/*
 * The next record that is here whole; *record is NULL at the end of the connection. EAGAIN: none is.
 * EPROTO: what comes is none. It stays until it is opened, the thread's.
 */
int cohi_tcp_stream_next(cohi_tcp_link *link, const unsigned char **record, size_t *bytes,
                         cohi_seal_kind *kind);

/* Opens it, all or nothing. */
bool cohi_tcp_stream_open(cohi_tcp_stream *stream, unsigned char *plain);

/* All of a short text, by its own record where there is a seal; 0 or an errno. */
int cohi_tcp_stream_say(int fd, cohi_seal *seal, const void *bytes, size_t count);

/* ---- send.c: link->lock held ---- */

/* A request that is filled in next; NULL: no memory. */
cohi_tcp_request *cohi_tcp_request_new(cohi_tcp_link *link, cohi_tcp_verb verb);

/* Queues it. It is sent at once where it can be. */
void cohi_tcp_request_submit(cohi_tcp_link *link, cohi_tcp_request *request, cohi_op *op);

/* Whether a short message can go at once, and what does not go of it has a place. */
bool cohi_tcp_ready_for_short(cohi_tcp_link *link);

/* Behind the request that was submitted then: copies what was not sent. */
void cohi_tcp_keep_rest(cohi_tcp_link *link);

/* Queues an answer; false: more than the other side may ask for. */
bool cohi_tcp_answer_queue(cohi_tcp_link *link, const cohi_tcp_answer *answer);

/* Sends what the socket takes. Core need not be told that `mine` is done. */
void cohi_tcp_flush(cohi_tcp_link *link, const cohi_op *mine);

/* The answer to the first that is awaited is complete. */
void cohi_tcp_answered(cohi_tcp_link *link);

/* Ends all requests with COH_PEER_LOST, and forgets the answers. */
void cohi_tcp_drop_all(cohi_tcp_link *link);

/* The peer leaves too: that it does not hear that this rank leaves cannot be held against it. To be
 * called before core knows. */
void cohi_tcp_excuse_leave(cohi_tcp_link *link);

/* Takes the op's requests, and what they were to complete, out of the link. False: bytes of the
 * caller's memory are under way, so that the link cannot go on. landing held too. */
bool cohi_tcp_withdraw(cohi_tcp_link *link, const cohi_op *op);

void cohi_tcp_out_free(cohi_tcp_out *out);

/* ---- receive.c: of who has `reading`, the thread or a rank that looks ---- */

void cohi_tcp_receive(cohi_tcp_link *link, bool by_rank);

/* ---- serve.c: of who has `reading` ---- */

/* The most bytes of payload with which a frame is taken only when it is here whole. */
size_t cohi_tcp_whole_bytes(unsigned verb);

/* Does what the frame says; a payload that follows has its sink set. NULL, or what is wrong. */
const char *cohi_tcp_serve(cohi_tcp_link *link, const cohi_tcp_frame *frame);

/* The payload of link->in.frame has come. */
const char *cohi_tcp_serve_end(cohi_tcp_link *link);

/* ---- thread.c ---- */

coh_status cohi_tcp_thread_start(cohi_endpoint *endpoint);
void cohi_tcp_thread_stop(cohi_endpoint *endpoint);
void cohi_tcp_thread_wake(cohi_endpoint *endpoint);

/* ---- poll.c ---- */

/* Around the life of the thread's sets. 0 or an errno. */
int cohi_tcp_poll_open(cohi_endpoint *endpoint);
void cohi_tcp_poll_close(cohi_endpoint *endpoint);

/* The slots `progress` and `rest`. */
void cohi_tcp_progress(cohi_endpoint *endpoint);
bool cohi_tcp_rest(cohi_endpoint *endpoint);

/* A message is about to be sent. */
void cohi_tcp_poll_expect(cohi_endpoint *endpoint);

/* The thread: the timer has rung. */
void cohi_tcp_poll_look(cohi_endpoint *endpoint);

/* ---- fork.c ---- */

/* Around the life of an endpoint. */
coh_status cohi_tcp_fork_add(cohi_endpoint *endpoint);
void cohi_tcp_fork_remove(cohi_endpoint *endpoint);

#endif
