/*
 * mpi.h - the engine over MPI, as its files see it.
 *
 *   library.c   MPI's functions and handles, found at run time
 *   process.c   MPI in this process: started if nobody has, ended if nobody does; its rank and size
 *   finalize.c  how it is ended, and kept from ending
 *   mpi.c       the slots
 *   memory.c    segments: mapped on this host, served to the others
 *   link.c      what there is of one peer: made, ended, kept alive
 *   send.c      requests and answers on their way out, cut into frames
 *   receive.c   frames that come
 *   serve.c     what each frame does
 *   collective.c  MPI's own collectives
 *   thread.c    the thread of an endpoint: progress for a rank that computes, keepalives
 *
 * All that ranks of different hosts do to each other travels as messages of MPI, one tag on a communicator
 * of the world's own, called frames here. MPI keeps them in order. A frame has at most
 * COHI_MPI_PAYLOAD_BYTES with it; what is longer is cut. MPI sends from, and receives into, buffers of
 * the engine's own: it offers no way to take back what it was given, and so no memory of the program's
 * is ever given to it. The target checks each frame, applies it with the CPU's own stores and atomics,
 * and rings its rank. So a fence is nothing, words arrive whole, and atomics are those of mapped
 * peers.
 *
 * Windows of MPI (one-sided operations) were not taken. Open MPI limits the ranges that a dynamic
 * window has attached (32 by default), their atomics are not atomic with the CPU's, and a target that
 * sleeps is not woken.
 *
 * One lock, endpoint->lock, guards everything here and is held around MPI's calls. No upcall is made
 * with it held: those that are due are kept (modules/events.h).
 *
 * Who may call MPI: with MPI_THREAD_MULTIPLE all threads. Where the program's own MPI_Init gave less, the
 * thread that opened the endpoint alone; what others ask for waits until that one is in a call.
 */
#ifndef COHI_ENGINE_MPI_MPI_H
#define COHI_ENGINE_MPI_MPI_H

#include "engine/engine.h"
#include "engine/modules/apply.h"
#include "engine/modules/events.h"
#include "engine/modules/parts.h"
#include "engine/modules/segments.h"
#include "engine/mpi/library.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct cohi_mpi_link cohi_mpi_link;
typedef struct cohi_mpi_team cohi_mpi_team;

/* ---- frames ---- */

enum {
    COHI_MPI_TAG = 1,
    COHI_MPI_TEAM_TAG = 16, /* and on: of the making of communicators */
    COHI_MPI_VERSION = 1,
    /* With a message's head. The frame is below 64 KiB, up to which Open MPI sends over TCP without asking. */
    COHI_MPI_PAYLOAD_BYTES = (63 << 10) + 256,
};

typedef enum cohi_mpi_verb {
    COHI_MPI_PUT = 1,
    COHI_MPI_GET,
    COHI_MPI_POST,
    COHI_MPI_FETCH,
    COHI_MPI_QUIET,
    COHI_MPI_LEAVE,
    COHI_MPI_MESSAGE,
    COHI_MPI_ANSWER,
    COHI_MPI_KEEPALIVE,
    COHI_MPI_LOSS, /* of a rank of the sender's host, whose number is the offset */
    COHI_MPI_VERBS
} cohi_mpi_verb;

typedef struct cohi_mpi_frame {
    uint64_t key; /* of the world */
    uint8_t version;
    uint8_t verb;
    uint8_t signals; /* of a put: the signal comes with this part of it */
    uint8_t add;     /* the signal is added */
    uint16_t segment;
    uint16_t kind, dtype; /* of an atomic */
    uint16_t unused;
    uint32_t generation;
    uint32_t payload; /* bytes that follow */
    uint64_t offset;
    uint64_t bytes;            /* that a get asks for */
    uint64_t number;           /* of a request that is answered, and of its answers */
    uint64_t operand, compare; /* of an atomic; of a signal its offset and value */
} cohi_mpi_frame;

enum { COHI_MPI_FRAME_BYTES = sizeof(cohi_mpi_frame) + COHI_MPI_PAYLOAD_BYTES };

/* A frame that MPI sends or receives. */
typedef struct cohi_mpi_buffer {
    struct cohi_mpi_buffer *next;
    MPI_Request request;
    bool kept;        /* it was received, and core is to be told of what is in it */
    cohi_event event; /* by which it is */
    cohi_mpi_frame frame;
    unsigned char payload[COHI_MPI_PAYLOAD_BYTES];
} cohi_mpi_buffer;

_Static_assert(offsetof(cohi_mpi_buffer, payload)
                   == offsetof(cohi_mpi_buffer, frame) + sizeof(cohi_mpi_frame),
               "a payload is sent with its frame");

/* ---- sending (send.c) ---- */

/* From when it is issued until it is answered or, where it has no answer, in frames. */
typedef struct cohi_mpi_request {
    struct cohi_mpi_request *next;
    cohi_part part;
    unsigned context;
    cohi_mpi_frame frame;
    bool signals;  /* the last frame carries a signal */
    uint64_t left; /* bytes that are in no frame so far */
    const char *source;
    char *target;      /* of the answer; NULL: it is dropped */
    uint64_t expected; /* bytes of the answer that are to come */
    uint64_t mark;     /* of a quiet: what it is to complete */
    size_t head_bytes; /* of a message, which are in `copied` */
    unsigned char copied[COHI_HEAD_BYTES];
} cohi_mpi_request;

_Static_assert((int)COHI_HEAD_BYTES >= (int)COHI_INLINE_BYTES, "short puts fit too");

/* An answer that is to be sent: a value, or bytes of a segment as they are when they are sent. */
typedef struct cohi_mpi_answer {
    struct cohi_mpi_answer *next;
    uint64_t number;
    cohi_word from;
    uint64_t left;
    size_t value_bytes;
    uint64_t value;
} cohi_mpi_answer;

typedef struct cohi_mpi_queue {
    cohi_mpi_request *first, *last;
} cohi_mpi_queue;

/* ---- links (link.c) ---- */

/* What a context has issued on a link, counted, and how much of it is known to be complete. */
typedef struct cohi_mpi_count {
    uint64_t issued;
    uint64_t complete;
} cohi_mpi_count;

struct cohi_mpi_link {
    cohi_endpoint *endpoint;
    int rank;
    bool ended;
    bool peer_left; /* it said so: its end is no loss */
    bool told;      /* that this rank leaves */
    bool spoke;     /* since the last tick */
    uint64_t silent_ns;
    uint64_t number;         /* of the last request that is answered */
    cohi_mpi_queue requests; /* not in frames, or in part */
    cohi_mpi_queue awaited;  /* to be answered in this order */
    cohi_mpi_answer *first_answer, *last_answer;
    cohi_mpi_buffer *first_sent, *last_sent; /* that MPI has */
    unsigned sent_count;
    cohi_mpi_count counts[COHI_CONTEXTS_MAX];
};

/* ---- the endpoint ---- */

/* What a rank tells the others. */
typedef struct cohi_mpi_address {
    uint64_t key;     /* rank 0's is the world's */
    uint64_t job;     /* of the launcher, as far as it can be told */
    int32_t rank;     /* in MPI_COMM_WORLD */
    int32_t size;     /* of it */
    int32_t threaded; /* it answers and keeps alive while it computes */
} cohi_mpi_address;

_Static_assert(sizeof(cohi_mpi_address) <= COHI_ADDRESS_BYTES, "it fits a card");

/* A rank as this one knows it, whether there is a link to it or not. */
enum { COHI_MPI_ALIVE = 0, COHI_MPI_LEFT = 1, COHI_MPI_LOST = 2 };

/* Receives that MPI has at a time. */
enum { COHI_MPI_RECEIVES = 16 };

struct cohi_endpoint {
    cohi_endpoint *next; /* of this process */
    int rank;
    int size;
    uint64_t link_timeout_ns; /* 0: none */
    uint64_t tick_ns;

    const cohi_mpi_library *mpi;
    MPI_Comm comm; /* ranks in it are the world's; from connect on, where hosts differ */
    bool connected;
    bool finalized;  /* the program has called MPI_Finalize */
    bool threaded;   /* all threads may call MPI */
    pthread_t owner; /* else this one alone */
    pthread_mutex_t lock;
    int held; /* what cohi_mpi_unlock gives back, of the thread that has the lock */

    cohi_segments segments;
    cohi_events events;

    cohi_mpi_address own;
    uint64_t key;          /* of the world */
    bool *threaded_of;     /* [size] */
    int *host_of;          /* [size] */
    atomic_uchar *fates;   /* [size] */
    cohi_mpi_link **links; /* [size]; NULL: none so far */
    cohi_mpi_link **made;  /* [size] those that there are, in order of making */
    int made_count;
    bool leaving;

    cohi_mpi_buffer *receives[COHI_MPI_RECEIVES]; /* in order of posting, from `oldest` on */
    unsigned oldest;
    unsigned failures; /* receives that failed one after the other */
    cohi_mpi_buffer *free_buffers;
    cohi_mpi_request *free_requests;

    cohi_mpi_team *teams; /* whose ops are under way */
    int making;           /* threads that make a communicator */

    pthread_t thread;
    pthread_cond_t wake;
    pthread_mutex_t sleep;
    bool started;
    bool called;          /* with `sleep` */
    atomic_bool stopping; /* is set with `sleep` */
    atomic_bool has_way;  /* the ranks: the thread stands aside */
    atomic_bool moving;   /* MPI has frames to send, or a collective under way */
    atomic_bool
        long_frames; /* the last frame that came was one of which MPI may ask before it sends it */
    uint64_t last_tick_ns;
    atomic_uint looks; /* of threads that wait, which move bytes themselves */
};

/* MPI makes system calls; a thread must not be cancelled inside. */
void cohi_mpi_lock(cohi_endpoint *endpoint);
bool cohi_mpi_trylock(cohi_endpoint *endpoint);
void cohi_mpi_unlock(cohi_endpoint *endpoint);

/* Whether the calling thread may call MPI, now. Lock held. */
bool cohi_mpi_may_call(const cohi_endpoint *endpoint);

/* MPI's sentence for an error. */
const char *cohi_mpi_text(const cohi_endpoint *endpoint, int error, char *text);
#define COHI_MPI_TEXT_BYTES MPI_MAX_ERROR_STRING

/* ---- process.c ---- */

extern const cohi_engine_job cohi_mpi_job;

/* Sees to it that MPI is initialised in this process. */
coh_status cohi_mpi_start(const cohi_mpi_library **library, int *level);

/* Ranks will be missing: MPI_Finalize, which would wait for them, is not called at exit. */
void cohi_mpi_spoil(void);
void cohi_mpi_lose_rank(void); /* a rank died: the same, and nothing is sent any more */

/* Whether MPI_Finalize was called. */
bool cohi_mpi_is_finalized(const cohi_mpi_library *library);

/* Around the life of an endpoint that uses MPI: when the program calls MPI_Finalize, the endpoint is told
 * by cohi_mpi_shut before. */
void cohi_mpi_process_add(cohi_endpoint *endpoint);
void cohi_mpi_process_remove(cohi_endpoint *endpoint);

/* ---- finalize.c ---- */

/* A session of MPI keeps it alive beyond the program's MPI_Finalize, where the library has sessions and needs it. */
void cohi_mpi_session_hold(const cohi_mpi_library *library);
bool cohi_mpi_session_is_held(void);
void cohi_mpi_session_end(const cohi_mpi_library *library);

/* At exit, with the process's status. Ends MPI as soon as all others exit too; where this process does not end
 * `in_order`, or another, MPI stays as it is, and all hear of it. */
void cohi_mpi_finalize(const cohi_mpi_library *mpi, bool in_order, int status);

/* The same where the program has called MPI_Finalize, and a session is held. */
void cohi_mpi_finalize_rest(const cohi_mpi_library *mpi, int status);

/* ---- mpi.c ---- */

/* MPI ends: what can be done for the others is done, and nothing is called after. */
void cohi_mpi_shut(cohi_endpoint *endpoint);

/* ---- memory.c ---- */

extern const cohi_engine_memory cohi_mpi_memory;

void cohi_mpi_memory_close(cohi_endpoint *endpoint);

/* ---- link.c: lock held ---- */

/* The link to a rank, which is made if there is none. COH_PEER_LOST for one that is gone. */
coh_status cohi_mpi_link_to(cohi_endpoint *endpoint, int rank, cohi_mpi_link **link);

/* The link of a rank from which a frame came; NULL: no memory. */
cohi_mpi_link *cohi_mpi_link_from(cohi_endpoint *endpoint, int rank);

/* Ends it, and what waits for it with COH_PEER_LOST. Core is told, unless `loss` is 0, the rank has left
 * or the link had ended. */
void cohi_mpi_link_end(cohi_mpi_link *link, cohi_loss loss);

/* The other side has sent what it should not have. */
void cohi_mpi_link_refuse(cohi_mpi_link *link, unsigned verb, const char *wrong);

/* MPI could not send to it. */
void cohi_mpi_link_broke(cohi_mpi_link *link, int error);

/* Now and then: keeps alive, tells of silence. */
void cohi_mpi_link_tick(cohi_mpi_link *link, uint64_t passed_ns);

/* ---- send.c: lock held ---- */

/* The part is over; the last one's end is the op's. */
void cohi_mpi_part_end(cohi_endpoint *endpoint, cohi_part *part, coh_status status);

/* A request to be filled in; NULL: no memory. */
cohi_mpi_request *cohi_mpi_request_new(cohi_mpi_link *link, cohi_mpi_verb verb);

/* Queues it, and sends what can be sent. `source` is the payload of `bytes` bytes, copied if short. */
void cohi_mpi_request_submit(cohi_mpi_link *link, cohi_mpi_request *request, const void *source,
                             size_t bytes, cohi_op *op);

/* Takes the answer over; false: no memory. */
bool cohi_mpi_answer_submit(cohi_mpi_link *link, const cohi_mpi_answer *answer);

/* Sends what MPI takes. Returns whether anything happened. */
bool cohi_mpi_flush(cohi_mpi_link *link);

/* The answer to the first that is awaited is complete. */
void cohi_mpi_answered(cohi_mpi_link *link);

/* Ends all requests with COH_PEER_LOST, and forgets the answers. */
void cohi_mpi_drop_all(cohi_mpi_link *link);

/* Nobody waits any more for the op's requests, nor for those that it was to complete if it is a quiet. */
void cohi_mpi_withdraw(cohi_mpi_link *link, const cohi_op *op);

/* A peer that leaves too need not answer that this rank leaves. */
void cohi_mpi_excuse_leave(cohi_mpi_link *link);

cohi_mpi_buffer *cohi_mpi_buffer_take(cohi_endpoint *endpoint);
void cohi_mpi_buffer_give(cohi_endpoint *endpoint, cohi_mpi_buffer *buffer);

/* Memory of requests and buffers. What MPI still has of a link is left to it. */
void cohi_mpi_out_free(cohi_mpi_link *link);
void cohi_mpi_pools_free(cohi_endpoint *endpoint);

/* ---- receive.c: lock held ---- */

coh_status cohi_mpi_receive_begin(cohi_endpoint *endpoint);

/* Takes one frame, if one has come. */
bool cohi_mpi_receive(cohi_endpoint *endpoint);

void cohi_mpi_receive_end(cohi_endpoint *endpoint);

/* Takes what has come and sends what can be sent. Returns whether anything happened. */
bool cohi_mpi_step(cohi_endpoint *endpoint);

/* ---- serve.c: lock held ---- */

/* Does what the frame says. NULL, or what is wrong. */
const char *cohi_mpi_serve(cohi_mpi_link *link, cohi_mpi_buffer *arrival);

/* ---- collective.c: lock held ---- */

extern const cohi_engine_collective cohi_mpi_collective;

/* Looks for collectives that are done. Returns whether one is. */
bool cohi_mpi_teams_step(cohi_endpoint *endpoint);

/* Nobody waits any more for the op, if it is a collective. */
void cohi_mpi_teams_cancel(cohi_endpoint *endpoint, const cohi_op *op);

/* ---- thread.c ---- */

coh_status cohi_mpi_thread_start(cohi_endpoint *endpoint);
void cohi_mpi_thread_stop(cohi_endpoint *endpoint);

/* The thread stands aside no longer: a rank that looked is about to sleep. */
void cohi_mpi_thread_resume(cohi_endpoint *endpoint);

#endif
