/*
 * ucx.h - the engine over UCX, as its files see it.
 *
 *   library.c   libucp, opened at run time
 *   worker.c    UCX's context and worker, opened and closed
 *   async.c     UCX's own thread, which is none of the program's
 *   ucx.c       the slots of the lifecycle
 *   operations.c  puts, gets, atomics and messages
 *   memory.c    segments: mapped on this host, served to the others
 *   request.c   what is under way: sent, awaited, or received into a caller's memory
 *   link.c      links: made, ended, given up, kept alive
 *   receive.c   frames that come, put in order
 *   serve.c     what each frame does
 *   thread.c    the thread of an endpoint: progress for a rank that computes, keepalives
 *
 * All that ranks of different hosts do to each other travels as active messages of UCX, called frames
 * here. A long one is fetched by the target straight into its memory (UCX's rendezvous, which is RDMA
 * where the fabric has it). The target checks each, applies it with the CPU's own stores and atomics,
 * and rings its rank. So words arrive whole, atomics are those of mapped peers, and a rank that sleeps
 * is woken, over every transport.
 *
 * Frames carry a number, since UCX does not keep short and long messages in order. They are begun in
 * that order. What must come after all that was begun before, a frame behind a fence or a quiet, waits
 * until the rendezvous under way have ended.
 *
 * One lock, endpoint->lock, guards UCX's worker and everything here; UCX's callbacks run with it held.
 * No upcall is made with it held, but for those that place a message in core's buffer: the others are kept until
 * they are due (modules/events.h).
 */
#ifndef COHI_ENGINE_UCX_UCX_H
#define COHI_ENGINE_UCX_UCX_H

#include "engine/engine.h"
#include "engine/modules/apply.h"
#include "engine/modules/events.h"
#include "engine/modules/parts.h"
#include "engine/modules/segments.h"
#include "engine/ucx/library.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct cohi_ucx_link cohi_ucx_link;

/* ---- frames ---- */

enum {
    COHI_UCX_FRAME_ID = 0x43, /* of the active messages */
    COHI_UCX_VERSION = 1,
    COHI_UCX_MESSAGE_BYTES =
        (63 << 10)
        + 256, /* the longest message of the channel: it goes eagerly, and a spare holds it */
    /* Longer payloads are fetched by their target. So that a message of the channel is never; not tuned. */
    COHI_UCX_EAGER_BYTES = 64 << 10,
    /* Longer puts and gets go in pieces, each of which tells that the other side is there: UCX says nothing of
     * what is under way, and keepalives queue behind it. */
    COHI_UCX_PIECE_BYTES = 16 << 20
};

typedef enum cohi_ucx_verb {
    COHI_UCX_PUT = 1,
    COHI_UCX_PUT_SIGNAL,
    COHI_UCX_GET,
    COHI_UCX_POST,
    COHI_UCX_FETCH,
    COHI_UCX_QUIET,
    COHI_UCX_LEAVE,
    COHI_UCX_GONE, /* this rank has left, and takes nothing any more */
    COHI_UCX_MESSAGE,
    COHI_UCX_ANSWER,
    COHI_UCX_KEEPALIVE,
    COHI_UCX_VERBS
} cohi_ucx_verb;

/* The header of an active message. It names memory by segment, generation and offset. */
typedef struct cohi_ucx_frame {
    uint64_t key;    /* of the rank that it is for */
    uint64_t number; /* of all frames from one rank to another, from 1 */
    int32_t from;
    uint8_t version;
    uint8_t verb;
    uint8_t after; /* all before it must be complete: a fence was between */
    uint8_t add;   /* the signal is added */
    uint16_t segment;
    uint16_t kind, dtype; /* of an atomic */
    uint16_t head_bytes;  /* of a message, which follow this header */
    uint32_t generation;
    uint64_t offset;
    uint64_t bytes;  /* of the payload, or those that are asked for */
    uint64_t ticket; /* of a request that is answered, and of its answer */
    union {
        struct {
            uint64_t operand, compare;
        };
        struct {
            uint64_t signal_offset, signal_value;
        };
    };
} cohi_ucx_frame;

/* ---- operations and requests (request.c) ---- */

/* From when it is issued until nothing of it is under way any more. */
typedef struct cohi_ucx_request {
    struct cohi_ucx_request *next, *previous; /* on its link, in order of issue */
    cohi_ucx_link *link;
    cohi_part part;
    unsigned context;
    bool sending; /* UCX has it */
    bool awaited; /* an answer is to come */
    bool landing; /* UCX receives the answer into `target` */
    bool counted; /* the next quiet of its context is for it */
    coh_status status;
    const void *source; /* of the payload; not this request's own memory: it is the caller's */
    char *target;       /* of the answer; NULL: it is dropped */
    int served;         /* the segment that an answer is sent from, or -1 */
    uint64_t mark;      /* of a quiet: what it is to complete */
    cohi_ucx_frame frame;
    unsigned char head[COHI_HEAD_BYTES]; /* of a message; behind the frame, as it is sent */
    unsigned char copied[COHI_INLINE_BYTES];
} cohi_ucx_request;

typedef struct cohi_ucx_list {
    cohi_ucx_request *first, *last;
} cohi_ucx_list;

/* All of this with the lock held. */

/* The part is over; the last one's end is the op's. */
void cohi_ucx_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status);

/* A request to be filled in; NULL: no memory. */
cohi_ucx_request *cohi_ucx_request_new(cohi_ucx_link *link, cohi_ucx_verb verb);

/* So many of them, in a list by `next`; NULL: no memory. */
cohi_ucx_request *cohi_ucx_requests_new(cohi_ucx_link *link, cohi_ucx_verb verb, size_t count);

/* Gives one back that was not sent, since its link has ended. */
void cohi_ucx_request_discard(cohi_ucx_request *request, cohi_op *op);

/* Sends it. `source` is the payload of frame.bytes bytes, copied where it is short. */
void cohi_ucx_request_submit(cohi_ucx_request *request, const void *source, cohi_op *op);

/* The answer is in place, or there is none any more. */
void cohi_ucx_request_answered(cohi_ucx_request *request);

/* Ends what UCX does not have; what it has ends by its callbacks. */
void cohi_ucx_requests_drop(cohi_ucx_link *link);

/* Whether UCX has bytes of the caller's memory for the op. */
bool cohi_ucx_requests_hold_memory(const cohi_ucx_link *link, const cohi_op *op);

/* Nobody waits for the op's requests any more, and of a quiet for those that it was to complete. False:
 * UCX has bytes of the caller's memory, so that the link must end. */
bool cohi_ucx_requests_withdraw(cohi_ucx_link *link, const cohi_op *op);

/* Memory of requests. */
void cohi_ucx_requests_free(cohi_endpoint *endpoint);

/* ---- links (link.c) ---- */

/* A frame that cannot be begun yet. */
typedef struct cohi_ucx_arrival {
    struct cohi_ucx_arrival *next;
    cohi_ucx_frame frame;
    unsigned char head[COHI_HEAD_BYTES];
    void *data;
    size_t bytes;
    bool fetched; /* by rendezvous; `data` is UCX's descriptor */
    bool held;    /* `data` is UCX's, to be released */
} cohi_ucx_arrival;

/* What a context has issued on a link, counted, and how much of it is known to be complete. */
typedef struct cohi_ucx_count {
    uint64_t issued;
    uint64_t complete;
} cohi_ucx_count;

struct cohi_ucx_link {
    cohi_endpoint *endpoint;
    int rank;
    ucp_ep_h ep; /* NULL: not made, or closed */
    bool ended;
    bool broken;        /* UCX said so */
    uint64_t called_ns; /* when the endpoint was made */
    bool peer_left;     /* it said so: its end is no loss */
    bool heard;         /* something has come of it, ever */
    bool spoke;         /* since the last tick */
    uint64_t silent_ns;
    uint64_t sent;   /* the number of the last frame */
    uint64_t fences; /* of the endpoint's, those that frames were marked with */
    uint64_t tickets;
    cohi_ucx_list requests;
    unsigned unsettled; /* quiets that are answered, but not over */
    cohi_ucx_count counts[COHI_CONTEXTS_MAX];

    uint64_t begun;            /* the number of the last frame that was */
    unsigned landings;         /* puts that UCX receives into a segment */
    cohi_ucx_arrival *waiting; /* in order of numbers */
};

/* ---- the endpoint ---- */

/* What a rank tells the others. */
typedef struct cohi_ucx_address {
    uint64_t key; /* that frames for it carry, so that it takes none of another job */
    uint32_t bytes;
    unsigned char worker[COHI_ADDRESS_BYTES - 12];
} __attribute__((packed)) cohi_ucx_address;

_Static_assert(sizeof(cohi_ucx_address) == COHI_ADDRESS_BYTES, "it fits a card");

/* A rank as this one knows it, whether there is a link to it or not. */
enum { COHI_UCX_ALIVE = 0, COHI_UCX_LEFT = 1, COHI_UCX_LOST = 2 };

struct cohi_endpoint {
    int rank;
    int size;
    uint64_t link_timeout_ns; /* 0: none */
    uint64_t tick_ns;

    const cohi_ucx_library *ucx;
    ucp_context_h context;
    ucp_worker_h worker;
    pthread_mutex_t lock;
    int held; /* what cohi_ucx_unlock gives back, of the thread that has the lock */

    cohi_segments segments;

    cohi_ucx_address own;
    cohi_ucx_address *addresses; /* [size], from connect on */
    int *host_of;                /* [size] */
    atomic_uchar *fates;         /* [size] */
    cohi_ucx_link **links;       /* [size]; NULL: none so far */
    cohi_ucx_link **made;        /* [size] those that there are, in order of making */
    int made_count;
    struct cohi_ucx_chunk *chunks; /* of memory for requests */
    cohi_ucx_request *free;
    uint64_t fences;
    unsigned closing; /* endpoints of UCX's */
    bool noted;       /* by async.c */
    bool sweep;       /* a link has ended whose endpoint is to be closed */
    bool leaving;

    cohi_events events; /* upcalls that are due */

    int wake;
    int worker_fd;
    pthread_t thread;
    bool started;
    atomic_int stopping;
    uint64_t last_tick_ns;
    atomic_uint looks;   /* of ranks that wait, and take what comes themselves */
    atomic_bool has_way; /* the thread has left it to them */
};

/* UCX makes system calls; a thread must not be cancelled inside. */
void cohi_ucx_lock(cohi_endpoint *endpoint);
bool cohi_ucx_trylock(cohi_endpoint *endpoint);
void cohi_ucx_unlock(cohi_endpoint *endpoint);

/* Gives the lock back, and tells core of ops that are done. */
void cohi_ucx_end_call(cohi_endpoint *endpoint);

/* ---- ucx.c ---- */

coh_status cohi_ucx_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op);

/* ---- operations.c ---- */

extern const cohi_engine_rma cohi_ucx_rma;
extern const cohi_engine_atomic cohi_ucx_atomic;
extern const cohi_engine_channel cohi_ucx_channel;

/* ---- worker.c ---- */

coh_status cohi_ucx_worker_open(cohi_endpoint *endpoint);

/* Ends all links. */
void cohi_ucx_worker_close(cohi_endpoint *endpoint);

/* ---- async.c ---- */

/* Around the life of a worker: core is told which thread is UCX's, so that it does not count as one that
 * may still do something for ranks that wait. `before` is from ahead of the context. */
enum { COHI_UCX_THREADS = 16 };

typedef struct cohi_ucx_threads {
    int count;
    int ids[COHI_UCX_THREADS];
} cohi_ucx_threads;

void cohi_ucx_async_find(cohi_ucx_threads *found);
void cohi_ucx_async_begin(const cohi_ucx_threads *before);
void cohi_ucx_async_end(void);

/* ---- memory.c ---- */

extern const cohi_engine_memory cohi_ucx_memory;

/* Where so many bytes are in this rank's segment; NULL, and *wrong says why. Lock held. */
char *cohi_ucx_locate(const cohi_endpoint *endpoint, const cohi_ucx_frame *frame, uint64_t offset,
                      uint64_t bytes, const char **wrong);

void cohi_ucx_memory_close(cohi_endpoint *endpoint);

/* ---- link.c: lock held ---- */

/* The link to a rank, which is made if there is none. COH_PEER_LOST for one that is gone. */
coh_status cohi_ucx_link_to(cohi_endpoint *endpoint, int rank, cohi_ucx_link **link);

/* The link of a rank from which a frame came; NULL: no memory. */
cohi_ucx_link *cohi_ucx_link_from(cohi_endpoint *endpoint, int rank);

/* Ends it, and what waits for it with COH_PEER_LOST. Core is told, unless `loss` is 0, the rank has left
 * or the link had ended. UCX's endpoint is closed by the next sweep. */
void cohi_ucx_link_end(cohi_ucx_link *link, cohi_loss loss);

/* The other side has sent what it should not have. */
void cohi_ucx_link_refuse(cohi_ucx_link *link, unsigned verb, const char *wrong);

/* Closes the endpoints of links that have ended. Not from a callback of UCX's. */
void cohi_ucx_sweep(cohi_endpoint *endpoint);

/* Lets UCX work, then sweeps. Returns whether anything happened. */
bool cohi_ucx_step(cohi_endpoint *endpoint);

/* Steps until `is_over`, at most for so long. */
bool cohi_ucx_step_until(cohi_endpoint *endpoint, bool (*is_over)(cohi_endpoint *, const void *),
                         const void *what, uint64_t most_ns);

/* Now and then: keeps alive, tells of silence. */
void cohi_ucx_link_tick(cohi_ucx_link *link, uint64_t passed_ns);

void cohi_ucx_link_free(cohi_ucx_link *link);

/* ---- receive.c: lock held ---- */

/* UCX's callback for active messages. */
ucs_status_t cohi_ucx_receive(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *param);

/* Begins what waited, as far as it can be. */
void cohi_ucx_receive_more(cohi_ucx_link *link);

void cohi_ucx_arrivals_drop(cohi_ucx_link *link);

/* ---- serve.c: lock held ---- */

/* Does what the frame says. If it was fetched, and UCX's descriptor is taken, *taken is set. NULL, or
 * what is wrong. */
const char *cohi_ucx_serve(cohi_ucx_link *link, const cohi_ucx_arrival *arrival, bool *taken);

/* ---- thread.c ---- */

coh_status cohi_ucx_thread_start(cohi_endpoint *endpoint);
void cohi_ucx_thread_stop(cohi_endpoint *endpoint);
void cohi_ucx_thread_wake(cohi_endpoint *endpoint);

/* A rank that looked will do so no more: what comes is for the thread. */
void cohi_ucx_thread_resume(cohi_endpoint *endpoint);

#endif
